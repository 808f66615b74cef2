"""A guarantee is a value: for which privacy unit, how much, against which change of the data; and its caveats."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import reduce
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from discreet.errors import GuaranteeError, ParameterError
from discreet.privacy.exact import Exact, Positive, exp_above, format_exact

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
            f"the size of one establishment (column {self.column}) within a factor 1+{format_exact(self.alpha)}, "
            f"against a {self.adversary} adversary"
        )

    def change(self, verb: str) -> str:
        step = "gains or loses" if "added" in verb else "exchanges"
        kinds = "" if self.adversary == "strong" else " and of each kind of worker in it"
        one = "one worker" if self.adversary == "strong" else "one worker of a kind"
        return (
            f"one establishment (column {self.column}) {step} workers within a factor 1+{format_exact(self.alpha)} of "
            f"its size{kinds}, or {one} ({self.adversary} adversary)"
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


INFORMAL = "Not differentially private: "  # how a caveat begins that leaves no promise standing by itself
Neighbours = Literal["add-remove", "substitution"]


class Guarantee(BaseModel):
    """(ε, δ) for one unit: P(release | data) ≤ e^ε · P(release | neighbouring data) + δ, both ways round."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unit: Unit
    epsilon: Exact
    delta: Exact = Fraction(0)
    neighbours: Neighbours = "add-remove"
    caveats: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _in_range(self) -> Guarantee:
        if self.epsilon < 0 or not 0 <= self.delta <= 1:
            raise ValueError("needs epsilon >= 0 and 0 <= delta <= 1")
        return self

    @property
    def alpha(self) -> Fraction | None:
        return self.unit.alpha if isinstance(self.unit, Establishment) else None

    def compose_sequential(self, other: Guarantee) -> Guarantee:
        """Sequential composition: both releases on the same data, ε and δ add.

        Establishments compose at the smallest α and for the weaker adversary (their neighbours nest); other units
        compose only with their own kind.
        """
        unit = meet(self.unit, other.unit)
        if unit is None:
            raise GuaranteeError(
                f"no rule composes a promise about {self.unit.in_words()} with one about {other.unit.in_words()}",
                do="state both for the same unit",
            )
        if self.neighbours != other.neighbours:
            return self.as_substitution().compose_sequential(other.as_substitution())
        return Guarantee(
            unit=unit,
            epsilon=self.epsilon + other.epsilon,
            delta=min(Fraction(1), self.delta + other.delta),
            neighbours=self.neighbours,
            caveats=_united(self, other),
        )

    def compose_parallel(self, *others: Guarantee) -> Guarantee:
        """Parallel composition: releases on parts of the data that share no record.

        A record, or an establishment whose parts are whole establishments, lies in one part: the largest ε holds. An
        entity of which k records are kept, in all parts together, lies in at most k parts: the k largest add up.
        """
        parts = (self, *others)
        if any(part.neighbours == "substitution" for part in parts):
            # A replaced record may leave one part and enter another: an addition there, which substitution says
            # nothing about.
            raise GuaranteeError(
                "parallel composition holds for adding or removing a unit, not for replacing one",
                do="compose the add-remove guarantees and convert the result",
            )
        united = reduce(Guarantee.compose_sequential, parts)
        k = 1 if isinstance(united.unit, Record | Establishment) else united.unit.records
        return united.model_copy(
            update={
                "epsilon": sum(sorted((p.epsilon for p in parts), reverse=True)[:k], Fraction(0)),
                "delta": min(Fraction(1), sum(sorted((p.delta for p in parts), reverse=True)[:k], Fraction(0))),
            }
        )

    def as_substitution(self) -> Guarantee:
        """The same promise when a unit is replaced instead of added or removed: two steps, 2ε and (1 + e^ε)·δ."""
        if self.neighbours == "substitution":
            return self
        if isinstance(self.unit, Establishment) and self.unit.adversary == "weak":
            raise GuaranteeError(
                "against a weak adversary nothing is promised about exchanging workers (003, Theorem 7.2 fails)",
                do="state the guarantee against a strong adversary, or the budget for add-remove",
            )
        delta = Fraction(0)
        if self.delta:
            vacuous = self.epsilon > 10_000  # e^ε is beyond any δ worth stating; δ = 1 always holds
            delta = Fraction(1) if vacuous else min(Fraction(1), self.delta * (1 + exp_above(self.epsilon)))
        return self.model_copy(update={"epsilon": 2 * self.epsilon, "delta": delta, "neighbours": "substitution"})

    def for_budget(self, unit: Unit, neighbours: Neighbours) -> Guarantee:
        """This cost in the currency of a budget, or a refusal."""
        cost = self.as_substitution() if neighbours == "substitution" else self
        if cost.neighbours != neighbours or not cost.unit.implies(unit):
            raise GuaranteeError(
                f"a promise about {self.unit.in_words()} ({self.neighbours}) cannot be charged to a budget for "
                f"{unit.in_words()} ({neighbours})",
                do=_same_unit(self.unit, unit),
            )
        return cost.model_copy(update={"unit": unit})

    def in_words(self) -> str:
        """What is promised, in one sentence."""
        verb = "added to or removed from" if self.neighbours == "add-remove" else "replaced in"
        extra = f", plus a probability of at most {format_exact(self.delta)}" if self.delta else ""
        informal = any(caveat.startswith(INFORMAL) for caveat in self.caveats)
        changes = "were it not for what the caveats name, would change" if informal else "changes"
        return (
            f"Whatever is published{', ' if informal else ' '}{changes} its probability by a factor of at most "
            f"e^{format_exact(self.epsilon)} when {self.unit.change(verb)}{extra}."
        )


def _same_unit(one: Unit, two: Unit) -> str:
    if isinstance(one, Establishment) and isinstance(two, Establishment) and one.column == two.column:
        return "a budget may have a smaller alpha or a weaker adversary than the release, not the other way round"
    return "state the release and the budget for the same unit"


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Sequential composition of at least one guarantee."""
    return reduce(Guarantee.compose_sequential, guarantees)


def _united(one: Guarantee, two: Guarantee) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one.caveats, *two.caveats)))
