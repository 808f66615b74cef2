"""What a method is to the pipeline: declare, tabulate, protect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import ibis

    from discreet.domain import Domain
    from discreet.engine import Engine
    from discreet.engine.derived_values import Binned, Observed
    from discreet.engine.fingerprint import Bound
    from discreet.engine.spans import Progress, Spans
    from discreet.methods.description import Measurement, Published
    from discreet.methods.writing import Made, Places
    from discreet.privacy.confidential import Confidential
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.reservation import Reservation
    from discreet.publish.lehd.sidecars import Sidecars


Grain = Literal["records", "establishments", "observations"]


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
