"""(ε, δ)-differential privacy as a value: privacy unit, parameters, neighbouring relation, caveats; and composition."""

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
        """The column that identifies the entity of a record, if the unit has one."""
        return None

    @property
    def records(self) -> int:
        """How many records one unit contributes to a table at most: the sensitivity of its counts."""
        return 1


class Record(_Unit):
    """One record, whatever entity it belongs to."""

    kind: Literal["record"] = "record"

    def implies(self, other: Unit) -> bool:
        return isinstance(other, Record)

    def in_words(self) -> str:
        return "one record"

    def relation(self, neighbours: Neighbours) -> str:
        step = "adding or removing it" if neighbours == "add-remove" else "replacing it by another"
        return f"one record (an entity with several records is protected less), under {step}"


class _Entity(_Unit):
    """Everything that one entity contributes. Contributions are bounded: at most `max_records` of its records are used,
    which is enforced, never assumed.

    A budget leaves `max_records` open: it is how a release satisfies the guarantee, not what is guaranteed.
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
            raise ParameterError(
                "a release needs max_records", where="unit", do="state the most records that one unit may contribute"
            )
        return self.max_records

    def implies(self, other: Unit) -> bool:
        return type(other) is type(self) and other.entity == self.entity

    def in_words(self) -> str:
        return f"all records of one {self.noun} (column {self.column})"

    def relation(self, neighbours: Neighbours) -> str:
        used = "" if self.max_records is None else f", at most {self.max_records} used"
        step = "adding or removing" if neighbours == "add-remove" else "replacing"
        other = "" if neighbours == "add-remove" else " by another"
        return f"all records of one {self.noun} (column {self.column}{used}), under {step} that {self.noun}{other}"


class Person(_Entity):
    """All records of one person."""

    noun = "person"
    kind: Literal["person"] = "person"


class Job(_Entity):
    """All records of one job."""

    noun = "job"
    kind: Literal["job"] = "job"


class WholeEstablishment(_Entity):
    """A whole establishment: all its records, and that it exists."""

    noun = "establishment"
    kind: Literal["whole_establishment"] = "whole_establishment"


class Establishment(_Unit):
    """An establishment's size within a factor 1+α; strong or weak adversary (Haney et al. 2017, Def. 7.1, 7.3)."""

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

    def relation(self, neighbours: Neighbours) -> str:
        step = "gains or loses" if neighbours == "add-remove" else "exchanges"
        kinds = "" if self.adversary == "strong" else " and of each kind of worker in it"
        one = "one worker" if self.adversary == "strong" else "one worker of a kind"
        return (
            f"the size of one establishment (column {self.column}, {self.adversary} adversary), under a restricted "
            f"neighbouring relation: it {step} workers within a factor 1+{format_exact(self.alpha)} of its "
            f"size{kinds}, or {one}; larger changes are protected less"
        )


Unit = Annotated[Record | Person | Job | Establishment | WholeEstablishment, Field(discriminator="kind")]


def meet(one: Unit, two: Unit) -> Unit | None:
    """The strongest unit that guarantees for both imply, or None where no rule converts them."""
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


INFORMAL = "Not differentially private: "  # prefix of a caveat without which no differential privacy can be claimed
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
        """Sequential composition: two releases of the same data, ε and δ add up.

        Establishments compose at the smallest α and for the weaker adversary (their neighbours nest); other units
        compose only with their own kind.
        """
        unit = meet(self.unit, other.unit)
        if unit is None:
            raise GuaranteeError(
                f"no rule composes a guarantee for {self.unit.in_words()} with one for {other.unit.in_words()}",
                do="state both for the same privacy unit",
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
        """Parallel composition: releases of disjoint parts of the data.

        A record, or an establishment that lies in one part as a whole: the largest ε holds. An entity of which k
        records are used, in all parts together, lies in at most k parts: the k largest add up.
        """
        parts = (self, *others)
        if any(part.neighbours == "substitution" for part in parts):
            # A replaced record may leave one part and enter another: an addition there, which a guarantee under
            # substitution does not cover.
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
        """The same guarantee under substitution instead of add/remove adjacency: two steps, 2ε and (1 + e^ε)·δ."""
        if self.neighbours == "substitution":
            return self
        if isinstance(self.unit, Establishment) and self.unit.adversary == "weak":
            raise GuaranteeError(
                "against a weak adversary, exchanging workers is not covered (Haney et al. 2017, Theorem 7.2 fails)",
                do="state the guarantee against a strong adversary, or the budget for add-remove",
            )
        delta = Fraction(0)
        if self.delta:
            vacuous = self.epsilon > 10_000  # e^ε is beyond any δ worth stating; δ = 1 always holds
            delta = Fraction(1) if vacuous else min(Fraction(1), self.delta * (1 + exp_above(self.epsilon)))
        return self.model_copy(update={"epsilon": 2 * self.epsilon, "delta": delta, "neighbours": "substitution"})

    def for_budget(self, unit: Unit, neighbours: Neighbours) -> Guarantee:
        """This cost for the privacy unit and adjacency of a budget; refused where no rule converts it."""
        cost = self.as_substitution() if neighbours == "substitution" else self
        if cost.neighbours != neighbours or not cost.unit.implies(unit):
            raise GuaranteeError(
                f"a guarantee for {self.unit.in_words()} ({self.neighbours}) cannot be charged to a budget for "
                f"{unit.in_words()} ({neighbours})",
                do=_same_unit(self.unit, unit),
            )
        return cost.model_copy(update={"unit": unit})

    def in_words(self) -> str:
        """The guarantee in one sentence, as every manifest states it."""
        satisfies, changes = "Satisfies", "changes"
        if any(caveat.startswith(INFORMAL) for caveat in self.caveats):
            satisfies = f"{INFORMAL}were it not for what the caveats name, it would satisfy"
            changes = "would change"
        epsilon, delta = format_exact(self.epsilon), format_exact(self.delta)
        more = f", up to an additional {delta}" if self.delta else ""
        return (
            f"{satisfies} ({epsilon}, {delta})-differential privacy for {self.unit.relation(self.neighbours)}: the "
            f"probability of any set of published outputs {changes} by a factor of at most e^{epsilon}{more}."
        )


def _same_unit(one: Unit, two: Unit) -> str:
    if isinstance(one, Establishment) and isinstance(two, Establishment) and one.column == two.column:
        return "a budget may have a smaller alpha or a weaker adversary than the release, not the other way round"
    return "state the release and the budget for the same unit"


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Sequential composition of one or more guarantees."""
    return reduce(Guarantee.compose_sequential, guarantees)


def _united(one: Guarantee, two: Guarantee) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one.caveats, *two.caveats)))
