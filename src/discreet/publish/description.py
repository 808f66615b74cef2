"""Description of everything a release publishes: a function of its declaration alone, known before noise is drawn.

The plan, the codebook, the manifest and the list of files that a run may write, stage, resume, verify or remove are all
read from this one value.
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
FileFormats = tuple[Literal["parquet", "csv", "dta"], ...]
FORMATS: FileFormats = ("parquet", "csv")
SIMULATION = "SIMULATION: drawn with a fixed test key. It has no privacy guarantee and must not be published."
UNDER_A_TEST_KEY = "No guarantee: noise from a fixed test key. With a secret key it would be this one:"


def guarantee_text(guarantee: Guarantee, simulated: bool) -> str:
    """The guarantee as a sentence; a simulation has none, and states the one that a secret key would give."""
    return f"{UNDER_A_TEST_KEY} {guarantee.in_words()}" if simulated else guarantee.in_words()


def stem(table: str, simulated: bool) -> str:
    """A table's file name without its ending; files of a simulation are marked as such."""
    return f"{table}.simulation" if simulated else table


def file_names(table: str, simulated: bool, parts: int, formats: FileFormats = FORMATS) -> list[str]:
    """The files of a table. A large table is a folder of parts: `jobs.parquet/part-00000.parquet`."""
    return [n for part in ([None] if parts == 1 else range(parts)) for n in part_names(table, simulated, part, formats)]


def part_names(table: str, simulated: bool, part: int | None, formats: FileFormats) -> list[str]:
    name = stem(table, simulated)
    return [f"{name}.{kind}" + ("" if part is None else f"/part-{part:05}.{kind}") for kind in formats]


@dataclass(frozen=True)
class Column:
    """One published column: name, type and meaning."""

    name: str
    type: str
    meaning: str


def code_columns(domain: Domain) -> list[Column]:
    """The category columns, which identify the cell of a row."""
    return [Column(name, "code", f"{a.name}: {a.summary()}") for a in domain.attributes for name in a.columns]


@dataclass(frozen=True)
class ExpectedError:
    """Expected error of a published number due to noise, known before noise is drawn."""

    margin90: int
    standard_deviation: float
    mean_absolute: float


@dataclass(frozen=True)
class AdditiveColumn:
    """A column with independent, identically distributed noise in every cell: its sums have a known error."""

    column: str
    variance: float
    fourth: float  # fourth cumulant of the noise


@dataclass(frozen=True)
class PublishedTable:
    """One published table."""

    name: str
    by: tuple[str, ...]
    domain: Domain
    guarantee: Guarantee
    composition: str  # how its privacy loss composes, as a sentence
    noise: str  # the mechanism, as a sentence with symbols
    error: ExpectedError | None  # due to noise; none for a table without counts
    columns: tuple[Column, ...]
    further: tuple[Attribute, ...] = ()  # attributes that decide which records are counted but have no column
    about: str = ""  # what the numbers measure, beyond the names of their columns
    form: str = "dense"
    sum_of: str = ""  # the table whose protected numbers it adds up: post-processing
    part_of: str = ""  # the table whose epsilon includes its own
    additive: AdditiveColumn | None = None  # the column that may be summed
    no_cost_note: str = ""  # why it has no epsilon of its own, if it has none
    parts: int = 1  # number of part files per format
    formats: FileFormats = FORMATS
    method: str = ""  # the method that publishes it
    notes: tuple[str, ...] = ()  # further lines of the plan

    @property
    def cells(self) -> int:
        return self.domain.cells

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """All attributes that decide which records are counted in which cell."""
        return (*self.domain.attributes, *self.further)

    @property
    def has_own_cost(self) -> bool:
        """Whether its epsilon is a term of the release's total."""
        return not self.sum_of and not self.part_of

    @property
    def cost(self) -> str:
        """Its privacy loss, as text."""
        if self.sum_of:
            return f"post-processing of {self.sum_of}, no additional epsilon"
        if self.no_cost_note:
            return self.no_cost_note
        part = f", part of {self.part_of}'s" if self.part_of else ""
        return f"epsilon {format_exact(self.guarantee.epsilon)}{part}"

    @property
    def contents(self) -> str:
        """What its numbers measure, and the noise in them."""
        return " ".join(text for text in (self.about, f"Noise: {self.noise}." if self.noise else "") if text)

    def files(self, simulated: bool) -> list[str]:
        """Every file, part by part."""
        return file_names(self.name, simulated, self.parts, self.formats)

    def top_level_files(self, simulated: bool) -> list[str]:
        """Its files, or the folders that hold their parts."""
        return file_names(self.name, simulated, 1, self.formats)


@dataclass(frozen=True)
class Measurement:
    """Noisy measurements that a release may keep: `width` protected numbers for each group."""

    name: str
    groups: Domain
    width: int
    about: dict[str, Any]  # meaning of a group's numbers
    rate: Fraction  # of the noise in each number
    guarantee: Guarantee
    method: str = ""  # the method that takes them


@dataclass(frozen=True)
class RecodingSource:
    """The earlier release whose noisy measurements a recoded release is computed from."""

    release: str
    guarantee: Guarantee  # of the measurements
    about: str
    tables: Mapping[str, str]  # CSV text of the transitions of each measurement, by its name


@dataclass(frozen=True)
class ReleaseDescription:
    """Everything a release publishes."""

    release: str
    asset: str
    simulated: bool
    guarantee: Guarantee
    tables: tuple[PublishedTable, ...]
    measurements: tuple[Measurement, ...]
    layouts: Mapping[str, str]  # files with the same numbers in an external layout, and what each contains
    shared: Sidecars | None  # small files shared by layouts
    intermediate_names: tuple[str, ...]  # under which intermediate files may be written during a run
    recoding: bool = False  # whether it is computed from kept measurements
    recoding_source: RecodingSource | None = None  # once the kept measurements have been read

    def with_recoding(self, source: RecodingSource) -> ReleaseDescription:
        """The same release with its source, under the guarantee of the kept measurements."""
        return replace(self, recoding_source=source, guarantee=source.guarantee)

    @property
    def attributes(self) -> dict[str, Attribute]:
        """The attributes of all tables, by name."""
        return {a.name: a for table in self.tables for a in table.attributes}

    @property
    def composition(self) -> str:
        """How the privacy loss of the tables composes to the total, as text."""
        epsilon = f"epsilon {format_exact(self.guarantee.epsilon)}"
        if self.recoding_source is not None:
            source = self.recoding_source.release
            return f"no additional privacy loss: post-processing of the measurements of {source}, which cost {epsilon}"
        costs = sum(table.has_own_cost for table in self.tables)
        how = "one table" if costs == 1 else f"{costs} tables on the same records: sequential composition, epsilons add"
        delta = f", delta {format_exact(self.guarantee.delta)}" if self.guarantee.delta else ""
        return f"{epsilon}{delta} ({how})"

    @property
    def shared_files(self) -> dict[str, str]:
        """The small files shared by layouts, and what each contains."""
        return {} if self.shared is None else self.shared.files(self.simulated)

    @property
    def further_files(self) -> dict[str, str]:
        """Every file besides tables and codebooks, and what it contains."""
        recoded = {} if self.recoding_source is None else self.recoding_source.tables
        moved = {self.transitions(name): f"{name}: the new codes of each old code, with shares" for name in recoded}
        return {**self.layouts, **self.shared_files, **moved}

    def transitions(self, measurement: str) -> str:
        """The file that lists the transitions from the old to the new codes of a recoded measurement."""
        return f"{stem(f'{measurement}_transitions', self.simulated)}.csv"

    @property
    def output_names(self) -> tuple[str, ...]:
        """Every name that a run may write, hence every name that a crash may leave. A table in parts is named by its
        folder, its intermediate files by `NAME~`."""
        tables = {name for table in self.tables for name in table.top_level_files(self.simulated)}
        moved = {self.transitions(m.name) for m in self.measurements} if self.recoding else set()
        intermediate = {f"{name}~" for name in self.intermediate_names}
        return tuple(sorted({*tables, *moved, *intermediate, *self.further_files, *CODEBOOKS, MEASUREMENTS}))
