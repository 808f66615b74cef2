"""What a published table is, in words and figures, before anything is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.publish.tables import KINDS, Kinds

if TYPE_CHECKING:
    from discreet.domain import Attribute, Domain
    from discreet.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Column:
    """One published column, in words."""

    name: str
    type: str
    meaning: str


def code_columns(domain: Domain) -> list[Column]:
    """The columns that say which cell a row is about."""
    return [Column(name, "code", f"{a.name}: {a.in_words()}") for a in domain.attributes for name in a.columns]


@dataclass(frozen=True)
class ExpectedError:
    """How wrong a published number will be, known before anything is drawn."""

    margin90: int
    standard_deviation: float
    mean_absolute: float


@dataclass(frozen=True)
class Additive:
    """A column with independent noise of one law in every cell: sums of it have a known error."""

    column: str
    variance: float
    fourth: float  # cumulant


@dataclass(frozen=True)
class Published:
    """One published table, as `plan`, the codebook and the manifest describe it."""

    name: str
    by: tuple[str, ...]
    domain: Domain
    guarantee: Guarantee
    composes: str  # how its cost comes about, in words
    noise: str  # the mechanism, in words and symbols
    error: ExpectedError | None  # of its numbers, as far as noise makes it; none if it has no counts
    columns: tuple[Column, ...]
    further: tuple[Attribute, ...] = ()  # that decide who is counted, though no column has them
    about: str = ""  # what the numbers are about, beyond the names of their columns
    form: str = "dense"
    sum_of: str = ""  # the table whose protected numbers it adds up, at no cost
    part_of: str = ""  # the table whose cost includes its own
    additive: Additive | None = None  # what may be added up
    unpaid: str = ""  # why it has no epsilon of its own, if it has none
    parts: int = 1  # the files that it is cut into
    kinds: Kinds = KINDS


@dataclass(frozen=True)
class Measurement:
    """What is measured and may be kept: groups, each with so many protected numbers side by side."""

    name: str
    groups: Domain
    width: int
    about: dict[str, Any]  # what the numbers of a group are
    rate: Fraction  # of the noise in each
    guarantee: Guarantee
