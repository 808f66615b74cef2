"""The published tables of a cube: post-processing of noisy measurements, without additional privacy loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow as pa

from discreet.domain import Domain, Numbers
from discreet.engine.spans import Int64s
from discreet.methods.hypercube.calibration import CalibratedCube, NoiseDraw, RakingOptions, calibrate, raked_variances
from discreet.methods.hypercube.design import CubeDesign, PreparedControl
from discreet.methods.hypercube.kernel import published_schema, to_units
from discreet.methods.hypercube.model import cube_model, variance_function
from discreet.methods.hypercube.noisy_measurements import CubeMeasurements
from discreet.methods.hypercube.rounding.controlled_rounding import LARGEST_TOTAL, IntegerCube, round_cube
from discreet.methods.hypercube.spec import RakingCalibration
from discreet.noise.key import public_stream
from discreet.noise.stream import Stream
from discreet.post.cubes.margins import Floats, Margin, Problem
from discreet.post.cubes.model import RakedModel, SamplingModel
from discreet.post.cubes.overlap import carry_steps
from discreet.privacy.confidential import Grant
from discreet.privacy.guarantee import Guarantee
from discreet.publish.description import stem
from discreet.publish.storage import Storage
from discreet.publish.tables import write_table

ROWS = 1 << 18  # written at a time
RUNS, FEWEST = 30, 4  # default number of simulation runs, and its minimum
SIMULATED = 1 << 26  # cells to simulate over all runs, about
WORDS = 1 << 16  # 64-bit words of public randomness, for rounding
LARGEST = 2.0**62  # largest rounded value
Columns = Mapping[str, Floats | Int64s]


@dataclass(frozen=True)
class CubeTables:
    """Calibrates, rounds and writes the tables of a cube from its noisy measurements."""

    measurements: CubeMeasurements
    grant: Grant
    place: Storage

    @property
    def design(self) -> CubeDesign:
        return self.measurements.design

    def write(self, parts: int) -> dict[str, str]:
        """Calibrates the cube and writes all tables."""
        design, cube = self.design, self.measurements.cube
        numbers: dict[str, Floats | Int64s] = {
            name: to_units(column, design.step) if name == "total" else column for name, column in cube.columns.items()
        }
        best = to_units(cube.columns[design.spec.measure], design.step)
        calibrated = self._calibrate(best) if design.controls else None
        if calibrated is not None:
            best = calibrated.values
        if design.calibrates_cells:
            numbers["calibrated"] = best
        rounded = self._rounded(best) if design.spec.integers else None
        if rounded is not None:
            numbers["whole"] = rounded.values.reshape(-1)
        files = self._write_cube(numbers, cube.cells, parts)
        for place, control in enumerate(design.controls):
            steps = calibrated.steps[place] if calibrated and cube.cells is not None else None
            files |= self._write_control(control, steps)
        return files | self.write_model(calibrated, None if rounded is None else rounded.problems, best)

    def write_model(
        self,
        calibrated: CalibratedCube | None = None,
        exceptions: Sequence[Problem] | None = None,
        cube: Floats | None = None,
    ) -> dict[str, str]:
        """Writes the model file, and deviations of replicates where they are published."""
        files, sampling = dict[str, str](), None
        source = self.design.spec.variance_source
        if source is not None and source.tables and cube is not None:
            sampling = variance_function(self.measurements, lambda margin: self._sums(margin, cube, calibrated))
        elif self.design.spec.replicates is not None:
            files, sampling = self._write_deviations(float(self.design.spec.replicates.factor))
        raked = self._raked_variances(calibrated) if calibrated is not None and calibrated.raked else ()
        model = cube_model(self.measurements, self.grant.simulated, calibrated, raked, exceptions, sampling)
        text = model.model_dump_json(indent=1)
        name = f"{stem(self.design.name, self.grant.simulated)}.model.json"
        with self.place.create(name) as file:
            file.write(self.grant.protect(text, self.design.guarantee).value.encode())
        return {**files, name: file.sha256()}

    def _sums(self, margin: Margin, cube: Floats, calibrated: CalibratedCube | None) -> Floats:
        """A table of the calibrated cube."""
        sums = margin.add_up(cube, self.measurements.cube.cells)
        if calibrated is not None and self.measurements.cube.cells is not None:
            for control, steps in zip(self.design.controls, calibrated.steps, strict=True):
                sums = sums + carry_steps(steps, control.margin, margin)
        return sums

    def _rounded(self, best: Floats) -> IntegerCube:
        if np.abs(best).sum() > LARGEST_TOTAL:  # a release may not fail because of its records
            rounded = np.rint(np.clip(best, 0, LARGEST)).astype(np.int64)
            problem = Problem("not adjacent", self.design.name, 0, "total above 10^11: rounded cell by cell")
            return IntegerCube(rounded, [], 0, (problem,))
        words = next(self._stream("whole").words(0, WORDS)).reshape(-1)
        margins = [control.margin for control in self.design.controls]
        return round_cube(best.reshape(self.design.domain.shape), margins, words=words)

    # --- calibration ------------------------------------------------------------------------------------------------

    @property
    def _raking(self) -> RakingOptions | None:
        declared = self.design.spec.calibration
        if not isinstance(declared, RakingCalibration):
            return None
        return RakingOptions(float(declared.tolerance), declared.cycles)

    def _calibrate(self, measure: Floats) -> CalibratedCube:
        controls = list(self.measurements.controls.values())
        return calibrate(measure, controls, self.measurements.variance, self._raking, self.measurements.cube.cells)

    def _raked_variances(self, calibrated: CalibratedCube) -> tuple[RakedModel, ...]:
        """The noise variance in tables of a raked cube, by simulation."""
        declared, raking = self.design.spec.calibration, self._raking
        if raking is None or not isinstance(declared, RakingCalibration):
            return ()
        runs = declared.runs or min(RUNS, max(SIMULATED // max(len(calibrated.values), 1), FEWEST))
        controls = list(self.measurements.controls.values())
        return raked_variances(calibrated.values, controls, self.measurements.variance, raking, self._draws(), runs)

    def _draws(self) -> Iterator[NoiseDraw]:
        """Simulated noise with the distribution of the release's, from public streams: it protects nothing."""
        distribution, size = self.design.distribution, self.design.domain.cells
        for run in count():
            noise = distribution.draw(self._stream(f"cube {run}"), 0, size)
            totals = [self._noise_of(control, run) for control in self.design.controls]
            yield noise.astype(np.float64) * self.measurements.largest_noise_unit, totals

    def _noise_of(self, control: PreparedControl, run: int) -> Floats:
        size = control.cells.coarse.cells
        if control.distribution is None:
            return np.zeros(size)
        return (
            control.distribution.draw(self._stream(f"{control.name} {run}"), 0, size).astype(np.float64)
            * self.measurements.noise_unit
        )

    def _stream(self, purpose: str) -> Stream:
        return public_stream("hypercube", self.grant.release, self.design.name, purpose)

    # --- writing ----------------------------------------------------------------------------------------------------

    def _write_cube(self, numbers: Columns, cells: Numbers | None, parts: int) -> dict[str, str]:
        design = self.design
        size = len(next(iter(numbers.values())))
        rows = max(-(-size // parts), 1)
        files = dict[str, str]()
        for part in range(parts):
            first, end = min(part * rows, size), min((part + 1) * rows, size)
            batches = self._rows(design.domain, numbers, cells, first, end)
            files |= self._table(design.name, design.columns, design.domain, batches, part if parts > 1 else None)
        return files

    def _rows(
        self, domain: Domain, numbers: Columns, cells: Numbers | None, first: int, end: int
    ) -> Iterator[list[pa.Array]]:
        for start in range(first, max(end, first + 1), ROWS):
            stop = min(start + ROWS, end)
            codes = domain.describe(np.arange(start, stop) if cells is None else cells[start:stop])
            yield [*codes, *(pa.array(column[start:stop]) for column in numbers.values())]

    def _table(
        self,
        name: str,
        columns: tuple[str, ...],
        domain: Domain,
        rows: Iterator[list[pa.Array]],
        part: int | None = None,
        guarantee: Guarantee | None = None,
    ) -> dict[str, str]:
        schema, statement = published_schema(domain, columns), guarantee or self.design.guarantee
        batches = (self.grant.protect(pa.RecordBatch.from_arrays(arrays, schema=schema), statement) for arrays in rows)
        kinds = self.design.kinds
        return write_table(self.place, name, schema, batches, self.grant.simulated, part, kinds).files

    def _write_control(self, control: PreparedControl, steps: Floats | None) -> dict[str, str]:
        """The totals to which the cube was calibrated, as measured; for a sparse cube also the steps of its cells,
        which depend on all measurements."""
        domain, numbers = control.cells.coarse, {"total": self.measurements.controls[control.name].totals}
        if steps is not None:
            numbers["step"] = steps
        rows = self._rows(domain, numbers, None, 0, domain.cells)
        return self._table(control.name, tuple(numbers), domain, rows, None, self.design.table_guarantee(control))

    def _write_deviations(self, factor: float) -> tuple[dict[str, str], SamplingModel]:
        design, (deviations,) = self.design, self.measurements.deviations
        columns = tuple(f"d{i}" for i in range(1, design.replicates + 1))
        named = dict(zip(columns, deviations.T, strict=True))
        rows = self._rows(design.domain, named, None, 0, len(deviations))
        name, noise = f"{design.name}_replicates", self.measurements.deviation_noise[0]
        files = self._table(name, columns, design.domain, rows, None, design.deviation_guarantee)
        model = SamplingModel(kind="replicates", replicates=design.replicates, factor=factor, noise=noise, table=name)
        return files, model
