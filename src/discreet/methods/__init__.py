"""Published systems, one module each: declare, tabulate, protect. All follow one small protocol."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol

from discreet.errors import SpecError
from discreet.publish.lehd.sidecars import joined
from discreet.publish.tables import KINDS, Kinds

if TYPE_CHECKING:
    import ibis

    from discreet.domain import Attribute, Domain
    from discreet.engine import Engine
    from discreet.engine.fingerprint import Bound
    from discreet.engine.spans import Progress, Spans
    from discreet.engine.values import Binned, Observed
    from discreet.methods.writing import Made, Places
    from discreet.privacy.confidential import Confidential
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.reservation import Reservation
    from discreet.publish.lehd.sidecars import Sidecars
    from discreet.spec import Release, Table


Grain = Literal["records", "establishments", "observations"]


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


class Method(Protocol):
    """What a release declares as one table: what it costs, what it reads and what it publishes."""

    @property
    def name(self) -> str:
        """As the release calls it."""

    @property
    def grain(self) -> Grain:
        """What it is made of: numbers of records, what each establishment has, or every record's values."""

    @property
    def domains(self) -> tuple[Domain, ...]:
        """What is counted: the cells that noise will be added to, one domain a measurement."""

    @property
    def binned(self) -> tuple[Binned, ...]:
        """Columns of bins that the domains use and the records do not have."""

    @property
    def observed(self) -> tuple[Observed, ...]:
        """The values that are made of each record; none if it only counts."""

    @property
    def spans(self) -> tuple[Spans, ...]:
        """How the cells of each tabulated table are cut into pieces of work: from the declaration alone."""

    def guarantee(self) -> Guarantee:
        """What all of it promises together."""

    def published(self) -> list[Published]:
        """Every table that leaves."""

    def layouts(self, simulated: bool) -> dict[str, str]:
        """Further files that leave, the same numbers in somebody's layout: what each is."""

    def sidecars(self) -> Sidecars:
        """Small files that leave with a layout, of public codes alone. All tables of a release share them."""

    def outlook(self) -> dict[str, tuple[str, ...]]:
        """More about a published table that is known before anything is spent; may take a moment."""

    def measurements(self) -> list[Measurement]:
        """What can be kept, so that more can be made of it later; none if all is published as it is measured."""

    def tabulate(self, engine: Engine, rows: Any) -> list[Confidential[ibis.Table]]:
        """The exact numbers the noise will be added to, by cell, one table for each of `spans`: of what its grain
        says."""

    def protect(
        self,
        engine: Engine,
        cells: list[Confidential[Bound]],
        reservation: Reservation,
        places: Places,
        progress: Progress,
    ) -> Made:
        """Draw the noise where the numbers are, and write everything that is published of them."""


_METHODS = {
    "counts": ("discreet.methods.counts", "CountsMethod"),
    "earnings": ("discreet.methods.earnings", "EarningsMethod"),
    "employer": ("discreet.methods.employer", "EmployerMethod"),
    "flows": ("discreet.methods.flows", "FlowsMethod"),
    "hypercube": ("discreet.methods.hypercube", "HypercubeMethod"),
    "sensitivity": ("discreet.methods.sensitivity", "SensitivityMethod"),
}


def methods(release: Release) -> list[Method]:
    """The tables of a release, ready to be planned or run."""
    found = [_method(release, table) for table in release.tables]
    if release.keep is not None and not any(method.measurements() for method in found):
        raise SpecError("nothing is measured that could be kept", where="keep", do="only earnings and flows are")
    small = joined(method.sidecars() for method in found)
    _refuse_doubles([*(name for method in found for name in _files(method)), *small.files(False)])
    return found


def _files(method: Method) -> list[str]:
    tables = [f"{table.name}.{kind}" for table in method.published() for kind in table.kinds]
    return [*tables, *method.layouts(False)]


def _refuse_doubles(names: list[str]) -> None:
    """Two tables, or a table and a layout, that would be one file; on some systems A and a are one."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise SpecError(f"two files are called {name!r}", where="tables", do="rename a table or a level")
        seen.add(name.lower())


def _method(release: Release, table: Table) -> Method:
    module, name = _METHODS[table.method]
    method: Method = getattr(import_module(module), name).of(release, table)
    return method
