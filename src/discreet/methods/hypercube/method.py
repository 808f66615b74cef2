"""The bottom-up hypercube: perturb the full cross-tabulation once, calibrate it, and answer every query from it (Li and
Krenzke 2020).

Noise is added to every cell of the cube, occupied or empty, and to control totals, which have their own epsilon. The
rest is post-processing of these noisy measurements: every table is a sum of cells of one calibrated cube, so the same
set of cells has the same value in every table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.domain import Coarsening, Domain
from discreet.engine import Engine
from discreet.engine.derived_values import ObservedValue
from discreet.engine.observations import observations
from discreet.engine.spans import CELL, FingerprintedTable, Int64s, Kernel, Progress, Span, Spans
from discreet.engine.tabulate import RecordReading, count_cells
from discreet.engine.weighted_totals import RecordWeight, ReplicateWeight, WeightGrid, weigh_cells
from discreet.methods.fingerprinted import read_fingerprinted
from discreet.methods.hypercube import published as described
from discreet.methods.hypercube.design import CubeDesign, PreparedControl
from discreet.methods.hypercube.kernel import (
    CubeKernel,
    CubeNoise,
    DeviationKernel,
    MarginKernel,
    PublicationKernel,
    to_units,
)
from discreet.methods.hypercube.noisy_measurements import CubeMeasurements, MeasurementFiles
from discreet.methods.hypercube.spec import Hypercube
from discreet.methods.hypercube.tables import CubeTables
from discreet.methods.protocol import Method
from discreet.methods.writing import MethodOutput, OutputLocations, write_parts
from discreet.noise.key import public_stream
from discreet.post.cubes.margins import Floats
from discreet.privacy.confidential import Confidential, Reservation
from discreet.privacy.guarantee import Guarantee
from discreet.publish.description import PublishedTable, stem
from discreet.spec import Release

if TYPE_CHECKING:
    import ibis

PART = 1 << 22  # rows of a file


@dataclass(frozen=True)
class HypercubeMethod(Method):
    """One cube, its controls, and the model from which errors of queries are computed."""

    design: CubeDesign

    @classmethod
    def of(cls, release: Release, table: Hypercube) -> HypercubeMethod:
        return cls(CubeDesign.of(release, table))

    @property
    def name(self) -> str:
        return self.design.name

    @property
    def counts_records(self) -> bool:
        return self.design.spec.weights is None  # otherwise by weights

    @property
    def domains(self) -> tuple[Domain, ...]:
        return (self.design.domain,)

    @cached_property
    def observed(self) -> tuple[ObservedValue, ...]:
        weights, replicates = self.design.spec.weights, self.design.spec.replicates
        if weights is None:
            return ()
        most = float(weights.max)
        weight = RecordWeight(weights.column, weights.column, 0.0, most, weights.above, grid=weights.grid)
        further = [] if replicates is None else replicates.names
        return weight, *(ReplicateWeight(name, name, 0.0, most, weight=weights.column) for name in further)

    @property
    def margins(self) -> tuple[Coarsening, ...]:
        """The tables that are tabulated with the cube: controls that are not public, deviations, strata."""
        design = self.design
        deviation_tables = () if self._cell_deviations else design.deviation_tables
        strata = () if design.strata is None else (design.strata,)
        return (*(c.cells for c in self._tabulated), *deviation_tables, *strata)

    @property
    def _tabulated(self) -> tuple[PreparedControl, ...]:
        return tuple(control for control in self.design.controls if control.public is None)

    @property
    def spans(self) -> tuple[Spans, ...]:
        design = self.design
        spans = [Spans(design.domain.cells, self._cells_for(PART))]
        spans += [Spans(control.cells.coarse.cells, PART) for control in self._tabulated]
        spans += [Spans(t.coarse.cells, max(PART // design.replicates, 1)) for t in design.deviation_tables]
        return (*spans, *([] if design.strata is None else [Spans(design.strata.coarse.cells, PART)]))

    def _cells_for(self, rows: int) -> int:
        """The number of cells expected to give this many rows: in the sparse form most cells have none."""
        share = float(self.design.distribution.tail(1)) if self.design.spec.form == "sparse" else 1.0
        cells = self.design.domain.cells
        return cells or 1 if share * cells <= rows else int(rows / share)

    def guarantee(self) -> Guarantee:
        return self.design.guarantee

    def published_tables(self) -> list[PublishedTable]:
        return described.published(self.design, len(self.spans[0]))

    def layouts(self, simulated: bool) -> dict[str, str]:
        return {f"{stem(self.name, simulated)}.model.json": described.MODEL}

    def notes(self) -> dict[str, tuple[str, ...]]:
        return described.notes(self.design)

    # --- tabulation -------------------------------------------------------------------------------------------------

    def tabulate(self, reading: RecordReading) -> list[Confidential[ibis.Table]]:
        self._dry_run()
        engine, exact = reading.engine, self.exact(reading)
        numbers = tuple(name for name in exact.columns if name != CELL)
        deviations = [name for name in numbers if name.startswith("d")]
        both = ["n", "w"] if self.design.average is not None else ["n" if self.design.spec.weights is None else "w"]
        columns = [both for _ in self._tabulated]
        by_cell = [exact.select(CELL, *deviations)] if self._cell_deviations else []
        columns += [] if self._cell_deviations else [deviations for _ in self.design.deviation_tables]
        columns += [] if self.design.strata is None else [["n", "w"]]
        small = self._margin_sums(engine, exact, numbers, columns)
        place = len(self._tabulated)
        tables = [exact.select(CELL, *self._noise(None).reads), *small[:place], *by_cell, *small[place:]]
        return [Confidential(table) for table in tables]

    @property
    def _cell_deviations(self) -> bool:
        """Whether deviations of the cube itself are files."""
        return self.design.spec.replicates is not None and not self.design.spec.replicates.tables

    def _margin_sums(
        self, engine: Engine, exact: ibis.Table, numbers: tuple[str, ...], columns: list[list[str]]
    ) -> list[ibis.Table]:
        """The exact margins of the cube, in one pass over its occupied cells."""
        if not columns:
            return []
        pieces = engine.map(exact.select(CELL, *numbers), self.spans[0], MarginKernel(self.margins, numbers))
        sums, tables = engine.store(pieces), []
        for place, names in enumerate(columns):
            mine = sums.filter(sums["margin"] == place)
            added = mine.group_by(CELL).aggregate(**{name: mine[name].sum().cast("int64") for name in names})
            tables.append(engine.store(added))
        return tables

    def exact(self, reading: RecordReading) -> ibis.Table:
        """The occupied cells: `cell`, `n`, and with weights `w` and the deviations of replicates."""
        if (weights := self.design.spec.weights) is None:
            return count_cells(reading.engine, reading.bounded, self.design.domain)
        squared = self.design.spec.squared_weights is not None
        grid = WeightGrid(self.design.step, weights.largest, self.design.bound, squared=squared)
        return weigh_cells(reading.engine, observations(reading), self.design.domain, self.observed, grid)

    def _dry_run(self) -> None:
        """Runs the kernels on no records with public randomness, so that noise that cannot be drawn fails before any
        budget is spent."""
        ones = np.ones(1 if self.design.strata is None else self.design.strata.coarse.cells, np.int64)
        kernels: list[Kernel] = [CubeKernel(self.name, self._noise(ones), self.design.spec.form)]
        kernels += [
            self._control_kernel(control, ones[:1]) for control in self._tabulated if control.distribution is not None
        ]
        if (distribution := self.design.deviation_distribution) is not None:
            kernels.append(DeviationKernel(self.name, distribution, self.design.replicates))
        for kernel in kernels:
            for _ in kernel(Span(0, 0, 1), iter(()), public_stream("hypercube", "rehearsal")):
                pass

    def _noise(self, averages: Int64s | None) -> CubeNoise:
        design = self.design
        if design.average is None:
            return CubeNoise(design.domain.cells, design.count_distribution, design.total_distribution)
        average_weights = np.ones(1, np.int64) if averages is None else averages
        return CubeNoise(design.domain.cells, design.count_distribution, None, average_weights, design.strata)

    def _control_kernel(self, control: PreparedControl, average: Int64s | None) -> CubeKernel:
        cells = control.cells.coarse.cells
        if self.design.spec.weights is None:
            return CubeKernel(control.name, CubeNoise(cells, control.distribution))
        if self.design.average is None:
            return CubeKernel(control.name, CubeNoise(cells, None, control.distribution))
        return CubeKernel(control.name, CubeNoise(cells, control.distribution, None, average))

    # --- protection -------------------------------------------------------------------------------------------------

    def protect(
        self,
        engine: Engine,
        cells: list[Confidential[FingerprintedTable]],
        reservation: Reservation,
        places: OutputLocations,
        progress: Progress,
    ) -> MethodOutput:
        design = self.design
        bound = [table.open_confidential() for table in cells]
        cube, controls = bound[0], dict(zip((c.name for c in self._tabulated), bound[1:], strict=False))
        deviation_tables = bound[1 + len(controls) : 1 + len(controls) + len(design.deviation_tables)]
        averages, overall = self._averages(engine, bound[-1] if design.strata is not None else None)
        kernel = CubeKernel(self.name, self._noise(averages), design.spec.form)
        write = partial(write_parts, engine, reservation=reservation)
        aside = partial(write, place=places.measurements, intermediate=True)
        files = MeasurementFiles(averages=averages, overall=overall)
        for control in self._tabulated:
            name, totals = control.name, controls[control.name]
            if control.distribution is None:
                files.exact[name] = self._exact_totals(engine, totals, control)
            else:
                control_kernel, guarantee = self._control_kernel(control, overall), design.control_guarantee(control)
                files.noisy[name] = aside(
                    totals, control_kernel, name=name, purpose="hypercube/control", guarantee=guarantee
                )
        for number, table in enumerate(deviation_tables):
            if (distribution := design.deviation_distribution) is not None and (
                deviation_guarantee := design.deviation_guarantee
            ) is not None:
                deviation_kernel = DeviationKernel(self.name, distribution, design.replicates)
                name = f"{self.name}~deviations{number}"  # no declared table can have this name
                files.deviations.append(
                    aside(
                        table,
                        deviation_kernel,
                        name=name,
                        purpose="hypercube/deviations",
                        guarantee=deviation_guarantee,
                    )
                )
        tables = CubeTables(CubeMeasurements(design, places.measurements, files), reservation, places.published)
        purpose = f"hypercube/{design.spec.form}"
        own: dict[str, Any] = {
            "name": self.name,
            "purpose": purpose,
            "guarantee": design.cube_guarantee,
            "progress": progress,
        }
        if design.in_memory:
            files.cube = aside(cube, kernel, **own)
            return MethodOutput(tables.write(len(self.spans[0])), {})
        published = PublicationKernel(kernel, design.domain, design.step)
        written = write(cube, published, place=places.published, formats=design.kinds, **own)
        return MethodOutput(written.value.files | tables.write_model(), {})

    def _averages(self, engine: Engine, strata: FingerprintedTable | None) -> tuple[Int64s | None, Int64s | None]:
        """The average weights by stratum and overall, in steps of the grid. A stratum without records takes the overall
        average; without any records that is the largest weight."""
        design = self.design
        if design.average is None or design.spec.weights is None:
            return None, None
        if strata is None:
            public = np.array([design.public_average], np.int64)
            return public, public
        n, w = read_fingerprinted(engine, strata, ("n", "w"), "average weights")
        largest = design.spec.weights.largest
        overall = largest if not n.sum() else max(round(int(w.sum()) / int(n.sum())), 1)
        averages = [max(round(int(b) / int(a)), 1) if a else overall for a, b in zip(n, w, strict=True)]
        return np.array(averages, np.int64), np.array([overall], np.int64)

    def _exact_totals(self, engine: Engine, bound: FingerprintedTable, control: PreparedControl) -> Floats:
        """Exact totals of a control with `exact: true`, which no guarantee covers."""
        names = bound.table.columns[1:]
        columns = read_fingerprinted(engine, bound, names, f"control {control.spec.name}")
        return to_units(columns[-1], self.design.step)
