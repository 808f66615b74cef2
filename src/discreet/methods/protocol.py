"""What a method is to the pipeline: it declares, tabulates and protects. What most methods do alike has a default."""

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
    """What a release declares as one table: what it costs, what it reads and what it publishes."""

    # --- the declaration --------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def name(self) -> str:
        """As the release calls it."""

    @property
    @abstractmethod
    def domains(self) -> tuple[Domain, ...]:
        """What is counted: the cells that noise will be added to, one domain a measurement."""

    @property
    def binned(self) -> tuple[BinnedValue, ...]:
        """Columns of bins that the domains use and the records do not have."""
        return ()

    @property
    def observed(self) -> tuple[ObservedValue, ...]:
        """The values that are made of each record; none if it only counts."""
        return ()

    @property
    @abstractmethod
    def spans(self) -> tuple[Spans, ...]:
        """How the cells of each tabulated table are cut into pieces of work: from the declaration alone."""

    # --- the description --------------------------------------------------------------------------------------------

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What all of it promises together."""

    @abstractmethod
    def published(self) -> list[PublishedTable]:
        """Every table that leaves."""

    def notes(self) -> dict[str, tuple[str, ...]]:
        """More about a published table that is known before anything is spent; may take a moment."""
        return {}

    def measurements(self) -> list[Measurement]:
        """What can be kept, so that more can be made of it later; none if all is published as it is measured."""
        return []

    def layouts(self, simulated: bool) -> dict[str, str]:
        """Further files that leave, the same numbers in somebody's layout: what each is."""
        return {}

    def shared_files(self) -> Sidecars | None:
        """Small files that leave with a layout, of public codes alone, if it has any. All tables share them."""
        return None

    # --- what is read -----------------------------------------------------------------------------------------------

    @property
    def by_record(self) -> bool:
        """Whether it counts the records that a release keeps, which all such tables are counted from in one look."""
        return True

    def taken_in(self) -> tuple[tuple[Domain, ...], tuple[Domain, ...]]:
        """The domains whose cell is made of each record as it is read, and those whose categories are."""
        return (), self.domains

    def refuse_sources(self, records: Records) -> None:
        """Refuse sources whose columns cannot mean what the table declares."""

    def as_recorded(self) -> Domain | None:
        """Attributes that must be the same in all records of a unit, where nothing but the records tells them."""
        return None

    def audit(self, reading: RecordReading) -> EstimateAudit | None:
        """What `check` tells of it on the confidential side, beyond its records."""
        return None

    def try_code(self) -> None:
        """Run code that the declaration names on synthetic numbers: from here on it may be called."""

    # --- the work ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def tabulate(self, reading: RecordReading) -> list[Confidential[ibis.Table]]:
        """The exact numbers the noise will be added to, by cell, one table for each of `spans`."""

    @abstractmethod
    def protect(
        self,
        engine: Engine,
        cells: list[Confidential[FingerprintedTable]],
        reservation: Reservation,
        places: OutputLocations,
        progress: Progress,
    ) -> MethodOutput:
        """Draw the noise where the numbers are, and write everything that is published of them."""


def refuse_taken_columns(columns: Iterable[str], domain: Domain, where: str) -> None:
    """A published column that is called as one of the domain's codes."""
    if taken := sorted(set(columns) & set(domain.columns)):
        raise DomainError(
            f"a published column is called {taken[0]!r} already",
            where=where,
            do="name the attribute differently and point it to the data with `column:`",
        )


def refuse_unless_records(unit: Unit, where: str) -> None:
    """Geometric noise hides the records of a unit, however many are used; not a size within a factor."""
    if isinstance(unit, Establishment):
        raise GuaranteeError(
            "geometric noise hides records, not the size of an establishment within a factor 1+α",
            where=where,
            do="use `method: employer`, or state the unit as record, person, job, or {establishment: COLUMN, "
            "whole: true, max_records: N}",
        )


def distribution_of(
    rate: Fraction, where: str, what: str = "epsilon / max_records", cap: int | None = None
) -> DiscreteLaplace:
    """Geometric noise; a refusal names what its rate is made of."""
    try:
        return DiscreteLaplace(rate, cap)
    except ParameterError as error:
        raise ParameterError(f"{what}: {error.what}", where=where, do=error.do) from None


def in_parallel(epsilon: Fraction, records: int, parts: str = "cells", whole: str = "table") -> str:
    """How the cost of numbers comes about that a unit's records move by at most one each, in words."""
    eps = format_exact(epsilon)
    if records == 1:
        return f"{parts} are disjoint: parallel, ε = {eps} for the whole {whole}"
    return f"{parts} are disjoint, {records} records a unit: {records} × {format_exact(epsilon / records)} = {eps}"
