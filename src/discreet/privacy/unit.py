"""Who is hidden: the unit of protection. Its neighbours are the pairs of data sets that must look alike.

Each unit knows which other units its promise *implies*: a guarantee may be charged to a budget stated for another
unit only if it does. Nothing is converted by assumption.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from discreet.errors import ParameterError
from discreet.privacy.exact import Positive, written

MaxRecords = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]


class _Unit(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def entity(self) -> str | None:
        """The column that says which records belong together, if any."""
        return None

    @property
    def records(self) -> int:
        """How many records of one unit can reach a table: the sensitivity of its counts."""
        return 1


class Record(_Unit):
    """One record, whoever it is about."""

    kind: Literal["record"] = "record"

    def implies(self, other: Unit) -> bool:
        return isinstance(other, Record)

    def in_words(self) -> str:
        return "one record"

    def change(self, verb: str) -> str:
        return f"one record is {verb} the data (whoever has several records is hidden less well)"


class _Entity(_Unit):
    """Everything that one entity contributes; `max_records` of its records are kept, by rule, never by assumption.

    A budget leaves `max_records` open: it is how a release keeps the promise, not what is promised.
    """

    noun: ClassVar[str]
    column: str
    max_records: MaxRecords | None = None

    @property
    def entity(self) -> str:
        return self.column

    @property
    def records(self) -> int:
        if self.max_records is None:
            raise ParameterError("a release needs max_records", where="unit", do="say how many records a unit may have")
        return self.max_records

    def implies(self, other: Unit) -> bool:
        return type(other) is type(self) and other.entity == self.entity

    def in_words(self) -> str:
        return f"all records of one {self.noun} (column {self.column})"

    def change(self, verb: str) -> str:
        kept = "" if self.max_records is None else f" (at most {self.max_records} of them used)"
        return f"all records of one {self.noun} (column {self.column}){kept} are {verb} the data"


class Person(_Entity):
    """All records of one person."""

    noun = "person"
    kind: Literal["person"] = "person"


class Job(_Entity):
    """All records of one job."""

    noun = "job"
    kind: Literal["job"] = "job"


class WholeEstablishment(_Entity):
    """An establishment entirely: all its records, even its existence."""

    noun = "establishment"
    kind: Literal["whole_establishment"] = "whole_establishment"


class Establishment(_Unit):
    """An establishment's size within a factor 1+α, against a strong or weak adversary (003, Def. 7.1, 7.3)."""

    kind: Literal["establishment"] = "establishment"
    column: str
    alpha: Positive
    adversary: Literal["strong", "weak"]

    @property
    def entity(self) -> str:
        return self.column

    def implies(self, other: Unit) -> bool:
        # α-neighbours nest, and weak neighbours are strong neighbours.
        return (
            isinstance(other, Establishment)
            and other.column == self.column
            and other.alpha <= self.alpha
            and (self.adversary == "strong" or other.adversary == "weak")
        )

    def in_words(self) -> str:
        return (
            f"the size of one establishment (column {self.column}) within a factor 1+{written(self.alpha)}, "
            f"against a {self.adversary} adversary"
        )

    def change(self, verb: str) -> str:
        step = "gains or loses" if "added" in verb else "exchanges"
        kinds = "" if self.adversary == "strong" else " and of each kind of worker in it"
        one = "one worker" if self.adversary == "strong" else "one worker of a kind"
        return (
            f"one establishment (column {self.column}) {step} workers within a factor 1+{written(self.alpha)} of its "
            f"size{kinds}, or {one} ({self.adversary} adversary)"
        )


Unit = Annotated[Record | Person | Job | Establishment | WholeEstablishment, Field(discriminator="kind")]


def meet(one: Unit, two: Unit) -> Unit | None:
    """The strongest unit that both promises imply, or None where no rule converts them."""
    if isinstance(one, Establishment) and isinstance(two, Establishment) and one.column == two.column:
        weak = "weak" in (one.adversary, two.adversary)
        return Establishment(column=one.column, alpha=min(one.alpha, two.alpha), adversary="weak" if weak else "strong")
    if not one.implies(two):
        return None
    return max(one, two, key=_most)


def _most(unit: Unit) -> float:
    """How many records at most; an unstated number is unbounded."""
    stated = getattr(unit, "max_records", 1)
    return float("inf") if stated is None else stated
