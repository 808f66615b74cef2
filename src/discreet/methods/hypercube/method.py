"""The bottom-up cube: perturb the full cross-tabulation once, calibrate it, answer every query from it (002).

Noise is added to every cell of the cube, occupied or not, and with an epsilon of their own to control totals. All else
is made of those protected numbers, at no cost: the calibrated cube adds up in every direction, so that whatever is
asked of it, the same set of cells has the same value.
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
from discreet.methods.hypercube.kernel import CubeKernel, DeviationKernel, MarginKernel, Noise, ShownKernel, worth
from discreet.methods.hypercube.measured import Measured, Read
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

PART = 1 << 22  # numbers in a file


@dataclass(frozen=True)
class HypercubeMethod(Method):
    """One cube, its controls, and the model that says how wrong a query is."""

    design: CubeDesign

    @classmethod
    def of(cls, release: Release, table: Hypercube) -> HypercubeMethod:
        return cls(CubeDesign.of(release, table))

    @property
    def name(self) -> str:
        return self.design.name

    @property
    def by_record(self) -> bool:
        return self.design.spec.weights is None  # else by each record's weights

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
        """The tables that are added up beside the cube: controls that are not public, deviations, strata."""
        design = self.design
        deviated = () if self._deviates_itself else design.deviated
        strata = () if design.strata is None else (design.strata,)
        return (*(c.cells for c in self._tabulated), *deviated, *strata)

    @property
    def _tabulated(self) -> tuple[PreparedControl, ...]:
        return tuple(control for control in self.design.controls if control.public is None)

    @property
    def spans(self) -> tuple[Spans, ...]:
        design = self.design
        found = [Spans(design.domain.cells, self._cells_for(PART))]
        found += [Spans(control.cells.coarse.cells, PART) for control in self._tabulated]
        found += [Spans(t.coarse.cells, max(PART // design.replicates, 1)) for t in design.deviated]
        return (*found, *([] if design.strata is None else [Spans(design.strata.coarse.cells, PART)]))

    def _cells_for(self, rows: int) -> int:
        """As many cells as give about this many rows: in the sparse form most give none."""
        share = float(self.design.distribution.tail(1)) if self.design.spec.form == "sparse" else 1.0
        cells = self.design.domain.cells
        return cells or 1 if share * cells <= rows else int(rows / share)

    def guarantee(self) -> Guarantee:
        return self.design.guarantee

    def published(self) -> list[PublishedTable]:
        return described.published(self.design, len(self.spans[0]))

    def layouts(self, simulated: bool) -> dict[str, str]:
        return {f"{stem(self.name, simulated)}.model.json": described.MODEL}

    def notes(self) -> dict[str, tuple[str, ...]]:
        return described.notes(self.design)

    # --- from records to what noise is added to ---------------------------------------------------------------------

    def tabulate(self, reading: RecordReading) -> list[Confidential[ibis.Table]]:
        self._dry_run()
        engine, exact = reading.engine, self.exact(reading)
        numbers = tuple(name for name in exact.columns if name != CELL)
        deviations = [name for name in numbers if name.startswith("d")]
        both = ["n", "w"] if self.design.average is not None else ["n" if self.design.spec.weights is None else "w"]
        wanted = [both for _ in self._tabulated]
        beside = [exact.select(CELL, *deviations)] if self._deviates_itself else []
        wanted += [] if self._deviates_itself else [deviations for _ in self.design.deviated]
        wanted += [] if self.design.strata is None else [["n", "w"]]
        small = self._added_up(engine, exact, numbers, wanted)
        place = len(self._tabulated)
        found = [exact.select(CELL, *self._noise(None).reads), *small[:place], *beside, *small[place:]]
        return [Confidential(table) for table in found]

    @property
    def _deviates_itself(self) -> bool:
        """Whether deviations of the cube itself are measured."""
        return self.design.spec.replicates is not None and not self.design.spec.replicates.tables

    def _added_up(
        self, engine: Engine, exact: ibis.Table, numbers: tuple[str, ...], wanted: list[list[str]]
    ) -> list[ibis.Table]:
        """The tables beside the cube, all in one pass over its occupied cells."""
        if not wanted:
            return []
        pieces = engine.map(exact.select(CELL, *numbers), self.spans[0], MarginKernel(self.margins, numbers))
        sums, found = engine.store(pieces), []
        for place, names in enumerate(wanted):
            mine = sums.filter(sums["margin"] == place)
            added = mine.group_by(CELL).aggregate(**{name: mine[name].sum().cast("int64") for name in names})
            found.append(engine.store(added))
        return found

    def exact(self, reading: RecordReading) -> ibis.Table:
        """The occupied cells: `cell`, `n`, and with weights `w` and the deviations of replicates."""
        if (weights := self.design.spec.weights) is None:
            return count_cells(reading.engine, reading.bounded, self.design.domain)
        squared = self.design.spec.squares is not None
        grid = WeightGrid(self.design.step, weights.largest, self.design.bound, squared=squared)
        return weigh_cells(reading.engine, observations(reading), self.design.domain, self.observed, grid)

    def _dry_run(self) -> None:
        """Protect nothing once, with noise that anybody may know: what cannot be drawn must show before anything is
        spent."""
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

    def _noise(self, averages: Int64s | None) -> Noise:
        design = self.design
        if design.average is None:
            return Noise(design.domain.cells, design.count_distribution, design.total_distribution)
        given = np.ones(1, np.int64) if averages is None else averages
        return Noise(design.domain.cells, design.count_distribution, None, given, design.strata)

    def _control_kernel(self, control: PreparedControl, average: Int64s | None) -> CubeKernel:
        cells = control.cells.coarse.cells
        if self.design.spec.weights is None:
            return CubeKernel(control.name, Noise(cells, control.distribution))
        if self.design.average is None:
            return CubeKernel(control.name, Noise(cells, None, control.distribution))
        return CubeKernel(control.name, Noise(cells, control.distribution, None, average))

    # --- the wall ---------------------------------------------------------------------------------------------------

    def protect(
        self,
        engine: Engine,
        cells: list[Confidential[FingerprintedTable]],
        reservation: Reservation,
        places: OutputLocations,
        progress: Progress,
    ) -> MethodOutput:
        design = self.design
        bound = [found.open_confidential() for found in cells]
        cube, controls = bound[0], dict(zip((c.name for c in self._tabulated), bound[1:], strict=False))
        deviated = bound[1 + len(controls) : 1 + len(controls) + len(design.deviated)]
        averages, overall = self._averages(engine, bound[-1] if design.strata is not None else None)
        kernel = CubeKernel(self.name, self._noise(averages), design.spec.form)
        write = partial(write_parts, engine, reservation=reservation)
        aside = partial(write, place=places.measured, aside=True)
        measured = Measured(averages=averages, overall=overall)
        for control in self._tabulated:
            name, found = control.name, controls[control.name]
            if control.distribution is None:
                measured.exact[name] = self._exact_totals(engine, found, control)
            else:
                shaped, promise = self._control_kernel(control, overall), design.of_control(control)
                measured.noisy[name] = aside(found, shaped, name=name, purpose="hypercube/control", guarantee=promise)
        for number, table in enumerate(deviated):
            if (distribution := design.deviation_distribution) is not None and (
                promised := design.of_deviations
            ) is not None:
                drawn = DeviationKernel(self.name, distribution, design.replicates)
                name = f"{self.name}~deviations{number}"  # no table can be called so
                measured.deviations.append(
                    aside(table, drawn, name=name, purpose="hypercube/deviations", guarantee=promised)
                )
        tables = CubeTables(Read(design, places.measured, measured), reservation, places.published)
        purpose = f"hypercube/{design.spec.form}"
        own: dict[str, Any] = {"name": self.name, "purpose": purpose, "guarantee": design.of_cube, "progress": progress}
        if design.held:
            measured.cube = aside(cube, kernel, **own)
            return MethodOutput(tables.make(len(self.spans[0])), {})
        published = ShownKernel(kernel, design.domain, design.step)
        shown = write(cube, published, place=places.published, kinds=design.kinds, **own)
        return MethodOutput(shown.value.files | tables.beside(), {})

    def _averages(self, engine: Engine, strata: FingerprintedTable | None) -> tuple[Int64s | None, Int64s | None]:
        """The average weights by stratum, and in all, in steps of the grid. A stratum without records takes that of
        all; without any records it is the largest weight."""
        design = self.design
        if design.average is None or design.spec.weights is None:
            return None, None
        if strata is None:
            public = np.array([design.public_average], np.int64)
            return public, public
        n, w = read_fingerprinted(engine, strata, ("n", "w"), "average weights")
        largest = design.spec.weights.largest
        overall = largest if not n.sum() else max(round(int(w.sum()) / int(n.sum())), 1)
        found = [max(round(int(b) / int(a)), 1) if a else overall for a, b in zip(n, w, strict=True)]
        return np.array(found, np.int64), np.array([overall], np.int64)

    def _exact_totals(self, engine: Engine, bound: FingerprintedTable, control: PreparedControl) -> Floats:
        """A control that is published as it is, which no guarantee covers."""
        names = bound.table.columns[1:]
        found = read_fingerprinted(engine, bound, names, f"control {control.spec.name}")
        return worth(found[-1], self.design.step)
