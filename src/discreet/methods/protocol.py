"""The interface of a method: declaration, description, tabulation, protection; with defaults where methods agree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.errors import DomainError, GuaranteeError, ParameterError
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Establishment, Unit

if TYPE_CHECKING:
    import ibis

    from discreet.domain import Domain
    from discreet.engine import Engine
    from discreet.engine.audit import EstimateAudit
    from discreet.engine.derived_values import BinnedValue, ObservedValue
    from discreet.engine.lookups import Records
    from discreet.engine.spans import FingerprintedTable, Progress, Spans
    from discreet.engine.tabulate import RecordReading
    from discreet.methods.writing import MethodOutput, OutputLocations
    from discreet.privacy.confidential import Confidential, Reservation
    from discreet.privacy.guarantee import Guarantee
    from discreet.publish.description import Measurement, PublishedTable
    from discreet.publish.lehd.sidecars import Sidecars


class Method(ABC):
    """One declared table of a release: its privacy loss, what it reads, and what it publishes."""

    # --- the declaration --------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def name(self) -> str:
        """The table's name in the release."""

    @property
    @abstractmethod
    def domains(self) -> tuple[Domain, ...]:
        """The cells that noise is added to, one domain per measurement."""

    @property
    def binned(self) -> tuple[BinnedValue, ...]:
        """Bin columns that the domains use, derived from numeric columns of the records."""
        return ()

    @property
    def observed(self) -> tuple[ObservedValue, ...]:
        """Values derived from each record; none if the method only counts."""
        return ()

    @property
    @abstractmethod
    def spans(self) -> tuple[Spans, ...]:
        """How the cells of each tabulated table are partitioned into work units: a function of the declaration."""

    # --- the description --------------------------------------------------------------------------------------------

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The guarantee of all its output together."""

    @abstractmethod
    def published_tables(self) -> list[PublishedTable]:
        """Every table it publishes."""

    def notes(self) -> dict[str, tuple[str, ...]]:
        """Further lines of the plan, by published table; may take a moment to compute."""
        return {}

    def measurements(self) -> list[Measurement]:
        """Noisy measurements that can be kept for later post-processing; none if they are published as they are."""
        return []

    def layouts(self, simulated: bool) -> dict[str, str]:
        """Further published files, the same numbers in an external layout, and what each contains."""
        return {}

    def shared_files(self) -> Sidecars | None:
        """Small files published with a layout, with public codes only; shared by all tables."""
        return None

    # --- what is read -----------------------------------------------------------------------------------------------

    @property
    def counts_records(self) -> bool:
        """Whether it counts the records kept by the contribution bound; all such tables are tabulated in one pass."""
        return True

    def intake_domains(self) -> tuple[tuple[Domain, ...], tuple[Domain, ...]]:
        """The domains whose cell numbers, and those whose category codes, are computed at intake."""
        return (), self.domains

    def refuse_sources(self, records: Records) -> None:
        """Refuse sources whose columns do not fit the declaration."""

    def unit_constants(self) -> Domain | None:
        """Attributes that must be constant within a unit and are known from its records only."""
        return None

    def audit(self, reading: RecordReading) -> EstimateAudit | None:
        """What `check` reports on the confidential side besides records."""
        return None

    def try_code(self) -> None:
        """Run code named by the declaration on synthetic numbers; after this it may be called."""

    # --- the work ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def tabulate(self, reading: RecordReading) -> list[Confidential[ibis.Table]]:
        """The exact numbers that noise will be added to, by cell, one table for each of `spans`."""

    @abstractmethod
    def protect(
        self,
        engine: Engine,
        cells: list[Confidential[FingerprintedTable]],
        reservation: Reservation,
        places: OutputLocations,
        progress: Progress,
    ) -> MethodOutput:
        """Add noise where the numbers are, and write everything that is published of them."""


def refuse_clashes(columns: Iterable[str], domain: Domain, where: str) -> None:
    """Refuse a published column with the same name as a code column of the domain."""
    if taken := sorted(set(columns) & set(domain.columns)):
        raise DomainError(
            f"a published column is called {taken[0]!r} already",
            where=where,
            do="name the attribute differently and point it to the data with `column:`",
        )


def refuse_size_units(unit: Unit, where: str) -> None:
    """Refuse units that discrete Laplace noise cannot protect: it protects records, not a size within a factor."""
    if isinstance(unit, Establishment):
        raise GuaranteeError(
            "discrete Laplace noise protects records, not the size of an establishment within a factor 1+α",
            where=where,
            do="use `method: employer`, or state the unit as record, person, job, or {establishment: COLUMN, "
            "whole: true, max_records: N}",
        )


def distribution_of(
    rate: Fraction, where: str, what: str = "epsilon / max_records", cap: int | None = None
) -> DiscreteLaplace:
    """Discrete Laplace noise; a refusal names the declared parameters of its rate."""
    try:
        return DiscreteLaplace(rate, cap)
    except ParameterError as error:
        raise ParameterError(f"{what}: {error.what}", where=where, do=error.do) from None


def cost_of_disjoint_parts(epsilon: Fraction, records: int, parts: str = "cells", whole: str = "table") -> str:
    """What disjoint parts cost together, each changed by at most 1 by a record, as text: parallel composition where a
    unit has one record, else the L1 sensitivity of all parts."""
    eps = format_exact(epsilon)
    if records == 1:
        return f"{parts} are disjoint: parallel composition, ε = {eps} for the whole {whole}"
    each = format_exact(epsilon / records)
    sensitivity = f"at most {records} records per unit: L1 sensitivity {records}, noise rate ε/{records} = {each}"
    return f"{parts} are disjoint, {sensitivity}"
