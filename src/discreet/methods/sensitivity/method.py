"""Any statistic of small cells, with noise scaled by the maximum observed sensitivity (Chetty & Friedman 2019).

Each cell has an estimate, its standard error and a count, each with independent noise and its own ε. The scale of the
noise, χ, is the largest n·(local sensitivity) among the cells of a declared group, and is published without noise: no
guarantee covers it, and everything published says so.
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
from discreet.methods.writing import MethodOutput, OutputLocations, dry_run, write_parts
from discreet.privacy.confidential import Confidential, Reservation
from discreet.privacy.guarantee import Guarantee
from discreet.publish.description import PublishedTable
from discreet.spec import Release

if TYPE_CHECKING:
    import ibis

    from discreet.engine.audit import EstimateAudit

PART = 1 << 18  # rows in a file
PIECE, CALLED = 1 << 10, 1 << 6  # cells in one piece of work; the same for Python functions
MOST_PIECES = 1 << 14


@dataclass(frozen=True)
class NoiseScales:
    """χ of estimates and of their errors by group, in grid steps; and the number of cells with infinite sensitivity."""

    chi: Int64s
    chi_error: Int64s
    infinite: int


@dataclass(frozen=True)
class SensitivityMethod(Method):
    """One table of estimates, and the table of their noise scales χ."""

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

    def published_tables(self) -> list[PublishedTable]:
        return tables.published(self.design, self.spans)

    def notes(self) -> dict[str, tuple[str, ...]]:
        return tables.notes(self.design)

    # --- from records to estimates and scales ------------------------------------------------------------------------

    def local(self, engine: Engine, rows: Observations) -> ibis.Table:
        """Estimates and local sensitivities of every occupied cell, computed in the engine."""
        design = self.design
        ranked = thresholds(design.spec, design.base)
        kernel = LocalKernel(design.statistic, design.search, design.steps, design.errors, self.observed, ranked)
        piece = CALLED if isinstance(design.statistic, Function) else PIECE
        pieces = Spans(design.domain.cells, max(piece, -(-design.domain.cells // MOST_PIECES)))
        return engine.map(rows.of(engine, design.domain, self.observed), pieces, kernel, progress=rows.progress)

    def scales(self, engine: Engine, local: ibis.Table) -> NoiseScales:
        """χ, the largest n^decay·sensitivity, of each group (Chetty & Friedman 2019, Step 2)."""
        design, groups = self.design, self.design.groups.coarse.cells
        kernel = ChiKernel(design.groups, float(design.spec.decay), design.least, design.steps)
        chi, infinite = np.zeros((2, groups), np.int64), 0
        for batch in engine.gather(local, self.spans[0], kernel):
            group, one, two, without = (c.to_numpy(zero_copy_only=False) for c in batch.columns)
            np.maximum.at(chi[0], group, one)
            np.maximum.at(chi[1], group, two)
            infinite += int(without.sum())
        # A group without an eligible cell takes the largest χ of the others, or else the statistic's natural size.
        natural = int(stepped(np.array([design.statistic.scale]), design.steps)[0])
        for values in chi:
            values[values == 0] = values.max() or natural
            values[:] = [min(rounded_up(int(value)), LARGEST) for value in values]
        return NoiseScales(chi[0], chi[1], infinite)

    @property
    def counts_records(self) -> bool:
        return False  # but by the values of its records

    def try_code(self) -> None:
        if isinstance(self.design.statistic, Function):
            self.design.statistic.dry_run()

    def audit(self, reading: RecordReading) -> EstimateAudit:
        from discreet.methods.sensitivity.audit import audit

        return audit(reading.engine, self, observations(reading))

    def tabulate(self, reading: RecordReading) -> list[Confidential[ibis.Table]]:
        ones = np.ones(self.design.groups.coarse.cells, np.int64)
        dry_run(self.design.kernel(ones, ones), min(1, self.design.domain.cells), "sensitivity")
        engine = reading.engine
        local = self.local(engine, observations(reading))
        noise_scales = self.scales(engine, local)
        if noise_scales.infinite and self.design.spec.infinite_influence == "refuse":
            raise SourceError(
                "cells have no finite sensitivity, and `infinite_influence: refuse` is declared",
                where=f"table {self.name}",
                do="`discreet check` lists them; winsorise, raise `suppress_below`, merge cells, or write "
                "`infinite_influence: exclude`",
            )
        groups = np.arange(self.design.groups.coarse.cells, dtype=np.int64)
        scales = engine.load_table(
            pa.table({CELL: groups, "chi": noise_scales.chi, "chi_error": noise_scales.chi_error})
        )
        estimates = local.select(*LOCAL.names[:4])
        return [Confidential(estimates), Confidential(scales)]

    # --- the trust boundary -----------------------------------------------------------------------------------------

    def protect(
        self,
        engine: Engine,
        cells: list[Confidential[FingerprintedTable]],
        reservation: Reservation,
        places: OutputLocations,
        progress: Progress,
    ) -> MethodOutput:
        estimates, scales = (table.open_confidential() for table in cells)
        chi, chi_error = read_fingerprinted(engine, scales, ("chi", "chi_error"), "the scales of the noise")
        write = partial(write_parts, guarantee=self.guarantee(), place=places.published, formats=self.design.kinds)
        noisy = write(
            engine,
            estimates,
            self.design.kernel(chi, chi_error),
            reservation,
            name=self.name,
            purpose=f"sensitivity/{self.design.spec.noise}",
            progress=progress,
        )
        chi_table = write(
            engine,
            scales,
            ScaleKernel(self.design.groups.coarse, self.design.steps, self.design.errors),
            reservation,
            name=f"{self.name}_chi",
            purpose="sensitivity/scale",
        )
        return MethodOutput(noisy.value.files | chi_table.value.files, {})
