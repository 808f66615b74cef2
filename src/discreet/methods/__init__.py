"""Published systems, one module each: declare, tabulate, protect. All follow one small protocol."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa

    from discreet.domain import Domain
    from discreet.engine import Engine
    from discreet.engine.fingerprint import Bound
    from discreet.engine.spans import Progress, Spans
    from discreet.methods.writing import Parts
    from discreet.privacy.confidential import Confidential
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.protected import Protected
    from discreet.privacy.reservation import Reservation
    from discreet.publish.place import Place
    from discreet.spec import Release, Table


@dataclass(frozen=True)
class Column:
    """One published column, in words."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True)
class ExpectedError:
    """How wrong a published number will be, known before anything is drawn."""

    margin90: int
    standard_deviation: float
    mean_absolute: float


class Method(Protocol):
    """A table of a release: what it costs, how wrong it will be, what it reads and what it releases."""

    name: str
    domain: Domain

    def guarantee(self) -> Guarantee:
        """What this table promises on its own."""

    def composes(self) -> str:
        """How the cost of this table comes about, in words."""

    def error(self) -> ExpectedError:
        """From the parameters alone."""

    def noise(self) -> str:
        """The mechanism, in words and symbols."""

    @property
    def spans(self) -> Spans:
        """How the cells are cut into pieces of work, each a file: from the declaration alone."""

    def tabulate(self, engine: Engine, rows: Any) -> Confidential[ibis.Table]:
        """The exact numbers the noise will be added to, by cell."""

    def protect(
        self,
        engine: Engine,
        cells: Confidential[Bound],
        reservation: Reservation,
        place: Place,
        progress: Progress,
    ) -> Protected[Parts]:
        """Draw the noise where the numbers are, and write the published rows in cell order."""

    @property
    def schema(self) -> pa.Schema:
        """The published columns."""

    def columns(self) -> list[Column]:
        """Their meaning, for the codebook."""


_METHODS = {"counts": ("discreet.methods.counts", "CountsMethod")}


def methods(release: Release) -> list[Method]:
    """The tables of a release, ready to be planned or run."""
    return [_method(release, table) for table in release.tables]


def _method(release: Release, table: Table) -> Method:
    module, name = _METHODS[table.method]
    method: Method = getattr(import_module(module), name)(table, release.domain(table), release.unit)
    return method
