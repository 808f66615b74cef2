"""What a release publishes, in words and figures, before anything is drawn: made of its declaration alone.

It is one value, and everything that tells about the release is read from it: the plan, the codebook, the manifest, and
the list of the files that a run may write, stage, resume, verify or clear away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from discreet.privacy.exact import format_exact

if TYPE_CHECKING:
    from discreet.domain import Attribute, Domain
    from discreet.privacy.guarantee import Guarantee
    from discreet.publish.lehd.sidecars import Sidecars

CODEBOOKS = ("codebook.json", "codebook.md")
MEASUREMENTS = "measurements.json"
Kinds = tuple[Literal["parquet", "csv", "dta"], ...]
KINDS: Kinds = ("parquet", "csv")
SIMULATION = "SIMULATION: drawn with a fixed test key. It protects nobody and must not be published."
UNDER_A_TEST_KEY = "No guarantee: noise from a fixed test key. With a secret key it would be this one:"


def in_words(guarantee: Guarantee, simulated: bool) -> str:
    """The guarantee in one sentence; a simulation has none, and says which it would have."""
    return f"{UNDER_A_TEST_KEY} {guarantee.in_words()}" if simulated else guarantee.in_words()


def stem(table: str, simulated: bool) -> str:
    """A simulation says so in the name of every file."""
    return f"{table}.simulation" if simulated else table


def file_names(table: str, simulated: bool, parts: int, kinds: Kinds = KINDS) -> list[str]:
    """The files of a table. A large one is a folder of parts: `jobs.parquet/part-00000.parquet`."""
    return [n for part in ([None] if parts == 1 else range(parts)) for n in part_names(table, simulated, part, kinds)]


def part_names(table: str, simulated: bool, part: int | None, kinds: Kinds) -> list[str]:
    name = stem(table, simulated)
    return [f"{name}.{kind}" + ("" if part is None else f"/part-{part:05}.{kind}") for kind in kinds]


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
class AdditiveColumn:
    """A column with independent noise of one distribution in every cell: sums of it have a known error."""

    column: str
    variance: float
    fourth: float  # cumulant


@dataclass(frozen=True)
class PublishedTable:
    """One published table."""

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
    additive: AdditiveColumn | None = None  # what may be added up
    unpaid: str = ""  # why it has no epsilon of its own, if it has none
    parts: int = 1  # the files that it is cut into
    kinds: Kinds = KINDS
    method: str = ""  # that declares it
    notes: tuple[str, ...] = ()  # more that a plan tells

    @property
    def cells(self) -> int:
        return self.domain.cells

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """All that decide who is counted where."""
        return (*self.domain.attributes, *self.further)

    @property
    def paid(self) -> bool:
        """Whether its cost is one of those that add up to the release's."""
        return not self.sum_of and not self.part_of

    @property
    def cost(self) -> str:
        """What it adds to the total, in words."""
        if self.sum_of:
            return f"made of {self.sum_of}, no cost"
        if self.unpaid:
            return self.unpaid
        part = f", part of {self.part_of}'s" if self.part_of else ""
        return f"epsilon {format_exact(self.guarantee.epsilon)}{part}"

    @property
    def contents(self) -> str:
        """What its numbers are about, and their noise."""
        return " ".join(text for text in (self.about, f"Noise: {self.noise}." if self.noise else "") if text)

    def files(self, simulated: bool) -> list[str]:
        """Every file of it, part by part."""
        return file_names(self.name, simulated, self.parts, self.kinds)

    def whole(self, simulated: bool) -> list[str]:
        """Its files, or the folders of their parts."""
        return file_names(self.name, simulated, 1, self.kinds)


@dataclass(frozen=True)
class Measurement:
    """What is measured and may be kept: groups, each with so many protected numbers side by side."""

    name: str
    groups: Domain
    width: int
    about: dict[str, Any]  # what the numbers of a group are
    rate: Fraction  # of the noise in each
    guarantee: Guarantee
    method: str = ""  # that declares it


@dataclass(frozen=True)
class Recoded:
    """What readers must know of tables that were made of an earlier release's measurements."""

    of: str  # that release
    guarantee: Guarantee  # which it was measured with
    about: str
    tables: Mapping[str, str]  # the text of each table of transitions, by the measurement it is about


@dataclass(frozen=True)
class ReleaseDescription:
    """Everything that a release publishes."""

    release: str
    asset: str
    simulated: bool
    guarantee: Guarantee
    tables: tuple[PublishedTable, ...]
    measurements: tuple[Measurement, ...]
    layouts: Mapping[str, str]  # the same numbers in somebody's layout, by file: what each is
    shared: Sidecars | None  # small files that layouts share
    aside: tuple[str, ...]  # names under which something is written aside meanwhile
    recoding: bool = False  # whether it is made of kept measurements
    recoded: Recoded | None = None  # what that made of them, once it is known

    def made_of(self, recoded: Recoded) -> ReleaseDescription:
        """A recoding, once it is known what becomes of the measurements: under the guarantee that they have."""
        return replace(self, recoded=recoded, guarantee=recoded.guarantee)

    @property
    def attributes(self) -> dict[str, Attribute]:
        """Of all tables, by name."""
        return {a.name: a for table in self.tables for a in table.attributes}

    @property
    def composition(self) -> str:
        """How the total comes about, in words."""
        epsilon = f"epsilon {format_exact(self.guarantee.epsilon)}"
        if self.recoded is not None:
            return f"nothing is spent: made of the measurements of {self.recoded.of}, which cost {epsilon}"
        paid = sum(table.paid for table in self.tables)
        how = "one table" if paid == 1 else f"{paid} tables on the same records: sequential, their costs add"
        delta = f", delta {format_exact(self.guarantee.delta)}" if self.guarantee.delta else ""
        return f"{epsilon}{delta} ({how})"

    @property
    def shared_files(self) -> dict[str, str]:
        """The small files that layouts share: what each is."""
        return {} if self.shared is None else self.shared.files(self.simulated)

    @property
    def further_files(self) -> dict[str, str]:
        """Every file beyond tables and codebooks: what it is."""
        recoded = {} if self.recoded is None else self.recoded.tables
        moved = {self.transitions(name): f"{name}: where each old code went, and by which share" for name in recoded}
        return {**self.layouts, **self.shared_files, **moved}

    def transitions(self, measurement: str) -> str:
        """The file that tells what became of a recoded measurement's codes."""
        return f"{stem(f'{measurement}_transitions', self.simulated)}.csv"

    @property
    def announced(self) -> tuple[str, ...]:
        """The names of all that it may write, which is all that a crash may leave. A table of parts is named by its
        folder, and what is written aside for it by `NAME~`."""
        tables = {name for table in self.tables for name in table.whole(self.simulated)}
        moved = {self.transitions(m.name) for m in self.measurements} if self.recoding else set()
        aside = {f"{name}~" for name in self.aside}
        return tuple(sorted({*tables, *moved, *aside, *self.further_files, *CODEBOOKS, MEASUREMENTS}))
