"""Any statistic of small cells, with noise in proportion to the largest observed influence of one record (004).

Of each cell come an estimate, its standard error and a count, each with noise of its own and at its own ε. What scales
the noise, χ, is the largest n·(local sensitivity) among the cells of a declared group, and is published: no guarantee
covers it, and everything published says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from discreet.domain import Domain
from discreet.engine import Engine
from discreet.engine.derived_values import ObservedValue
from discreet.engine.observations import Observations, observations
from discreet.engine.spans import CELL, FingerprintedTable, Int64s, Progress, Spans
from discreet.engine.tabulate import RecordReading
from discreet.errors import SourceError
from discreet.methods.fingerprinted import read_fingerprinted
from discreet.methods.protocol import Method
from discreet.methods.sensitivity import tables
from discreet.methods.sensitivity.design import EstimateDesign
from discreet.methods.sensitivity.kernel import LARGEST, LOCAL, ChiKernel, LocalKernel, ScaleKernel, rounded_up, stepped
from discreet.methods.sensitivity.spec import Sensitivity
from discreet.methods.sensitivity.statistic import observed, thresholds
from discreet.methods.sensitivity.statistics.function import Function
from discreet.methods.writing import MethodOutput, OutputLocations, rehearse, write_parts
from discreet.privacy.confidential import Confidential, Reservation
from discreet.privacy.guarantee import Guarantee
from discreet.publish.description import PublishedTable
from discreet.spec import Release

if TYPE_CHECKING:
    import ibis

    from discreet.engine.audit import EstimateAudit

PART = 1 << 18  # rows in a file
PIECE, CALLED = 1 << 10, 1 << 6  # cells whose observations are one piece of work; where a function is called
MOST_PIECES = 1 << 14


@dataclass(frozen=True)
class Scales:
    """χ of estimates and of their errors by group, in grid steps; and how many cells have no finite sensitivity."""

    chi: Int64s
    chi_error: Int64s
    infinite: int


@dataclass(frozen=True)
class SensitivityMethod(Method):
    """One table of estimates, and the table of what scales their noise."""

    design: EstimateDesign

    @classmethod
    def of(cls, release: Release, table: Sensitivity) -> SensitivityMethod:
        return cls(EstimateDesign.of(release, table))

    @property
    def name(self) -> str:
        return self.design.name

    @property
    def domains(self) -> tuple[Domain, ...]:
        return (self.design.domain,)

    @cached_property
    def observed(self) -> tuple[ObservedValue, ...]:
        return observed(self.design.spec)

    @property
    def spans(self) -> tuple[Spans, ...]:
        return Spans(self.design.domain.cells, PART), Spans(self.design.groups.coarse.cells, PART)

    def guarantee(self) -> Guarantee:
        return self.design.guarantee

    def published(self) -> list[PublishedTable]:
        return tables.published(self.design, self.spans)

    def notes(self) -> dict[str, tuple[str, ...]]:
        return tables.notes(self.design)

    # --- from records to what noise is added to ---------------------------------------------------------------------

    def local(self, engine: Engine, rows: Observations) -> ibis.Table:
        """Estimates and sensitivities of every occupied cell, inside the engine."""
        design = self.design
        ranked = thresholds(design.spec, design.base)
        kernel = LocalKernel(design.statistic, design.search, design.steps, design.errors, self.observed, ranked)
        piece = CALLED if isinstance(design.statistic, Function) else PIECE
        pieces = Spans(design.domain.cells, max(piece, -(-design.domain.cells // MOST_PIECES)))
        return engine.map(rows.of(engine, design.domain, self.observed), pieces, kernel, progress=rows.progress)

    def scales(self, engine: Engine, local: ibis.Table) -> Scales:
        """The largest n·sensitivity of each group (004, Step 2)."""
        design, groups = self.design, self.design.groups.coarse.cells
        kernel = ChiKernel(design.groups, float(design.spec.decay), design.least, design.steps)
        chi, infinite = np.zeros((2, groups), np.int64), 0
        for batch in engine.gather(local, self.spans[0], kernel):
            group, one, two, without = (c.to_numpy(zero_copy_only=False) for c in batch.columns)
            np.maximum.at(chi[0], group, one)
            np.maximum.at(chi[1], group, two)
            infinite += int(without.sum())
        # A group in which no cell has a say takes the largest of the others, or else the statistic's natural size.
        natural = int(stepped(np.array([design.statistic.scale]), design.steps)[0])
        for values in chi:
            values[values == 0] = values.max() or natural
            values[:] = [min(rounded_up(int(value)), LARGEST) for value in values]
        return Scales(chi[0], chi[1], infinite)

    @property
    def by_record(self) -> bool:
        return False  # but by each record's values

    def try_code(self) -> None:
        if isinstance(self.design.statistic, Function):
            self.design.statistic.rehearse()

    def audit(self, reading: RecordReading) -> EstimateAudit:
        from discreet.methods.sensitivity.audit import audit

        return audit(reading.engine, self, observations(reading))

    def tabulate(self, reading: RecordReading) -> list[Confidential[ibis.Table]]:
        ones = np.ones(self.design.groups.coarse.cells, np.int64)
        rehearse(self.design.kernel(ones, ones), min(1, self.design.domain.cells), "sensitivity")
        engine = reading.engine
        local = self.local(engine, observations(reading))
        found = self.scales(engine, local)
        if found.infinite and self.design.spec.infinite == "refuse":
            raise SourceError(
                "cells have no finite sensitivity, and `infinite: refuse` is declared",
                where=f"table {self.name}",
                do="`discreet check` names them; winsorise, raise `minimum`, join cells, or write `infinite: exclude`",
            )
        groups = np.arange(self.design.groups.coarse.cells, dtype=np.int64)
        scales = engine.load_public(pa.table({CELL: groups, "chi": found.chi, "chi_error": found.chi_error}))
        kept = local.select(*LOCAL.names[:4])
        return [Confidential(kept), Confidential(scales)]

    # --- the wall ---------------------------------------------------------------------------------------------------

    def protect(
        self,
        engine: Engine,
        cells: list[Confidential[FingerprintedTable]],
        reservation: Reservation,
        places: OutputLocations,
        progress: Progress,
    ) -> MethodOutput:
        estimates, scales = (found.open_confidential() for found in cells)
        chi, chi_error = read_fingerprinted(engine, scales, ("chi", "chi_error"), "the scales of noise")
        write = partial(write_parts, guarantee=self.guarantee(), place=places.published, kinds=self.design.kinds)
        drawn = write(
            engine,
            estimates,
            self.design.kernel(chi, chi_error),
            reservation,
            name=self.name,
            purpose=f"sensitivity/{self.design.spec.noise}",
            progress=progress,
        )
        told = write(
            engine,
            scales,
            ScaleKernel(self.design.groups.coarse, self.design.steps, self.design.errors),
            reservation,
            name=f"{self.name}_chi",
            purpose="sensitivity/scale",
        )
        return MethodOutput(drawn.value.files | told.value.files, {})
