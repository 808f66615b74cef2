"""The noisy measurements of a cube, read back: the perturbed cube, its controls, and deviations of replicates."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256

import numpy as np

from discreet.domain import Numbers
from discreet.engine.spans import Int64s
from discreet.errors import PublishError
from discreet.methods.hypercube.calibration import ControlTotals
from discreet.methods.hypercube.design import CubeDesign, PreparedControl
from discreet.methods.hypercube.kernel import to_units
from discreet.post.cubes.margins import Floats
from discreet.post.cubes.variance import KnownMargin, Perturbation
from discreet.privacy.protected import Protected
from discreet.publish.parquet import table_of
from discreet.publish.storage import Storage
from discreet.publish.tables import WrittenTable


@dataclass
class MeasurementFiles:
    """The files of noisy measurements, and exact totals and average weights."""

    cube: Protected[WrittenTable] | None = None
    exact: dict[str, Floats] = field(default_factory=dict)  # totals of `exact: true` controls, without noise
    noisy: dict[str, Protected[WrittenTable]] = field(default_factory=dict)
    deviations: list[Protected[WrittenTable]] = field(default_factory=list)
    averages: Int64s | None = None  # of weights by stratum, in steps of the grid
    overall: Int64s | None = None


@dataclass(frozen=True)
class CubeInMemory:
    """The perturbed cube in memory, in steps of the grid."""

    cells: Numbers | None
    columns: dict[str, Int64s]


@dataclass(frozen=True)
class CubeMeasurements:
    """Noisy measurements in units of the measure, and the variances of their noise."""

    design: CubeDesign
    place: Storage
    files: MeasurementFiles

    @property
    def noise_unit(self) -> float:
        """The measure's value of one unit of noise: a step of the grid, or the overall average weight."""
        step, overall = float(self.design.step), self.files.overall
        return step if overall is None else step * float(overall[0])

    @property
    def largest_noise_unit(self) -> float:
        """The same in the stratum with the largest average weight: an upper bound for all cells."""
        averages = self.files.averages
        return self.noise_unit if averages is None else float(self.design.step) * float(averages.max())

    @property
    def variance(self) -> float:
        """Variance of the noise in a cell."""
        return self.design.distribution.variance() * self.largest_noise_unit**2

    @property
    def fourth(self) -> float:
        """Fourth cumulant of the noise in a cell."""
        return self.design.distribution.fourth_cumulant() * self.largest_noise_unit**4

    def variance_of(self, control: PreparedControl) -> float:
        """Variance of the noise in each total of a control."""
        return 0.0 if control.distribution is None else control.distribution.variance() * self.noise_unit**2

    @property
    def perturbation(self) -> Perturbation:
        """The noise of any query. Controls by groups of codes are left out: they would only lower its variance."""
        known = KnownMargin.among((control.margin, self.variance_of(control)) for control in self.design.controls)
        return Perturbation(self.design.domain.shape, self.variance, known)

    @cached_property
    def cube(self) -> CubeInMemory:
        """The perturbed cube."""
        columns = {} if self.files.cube is None else self._numbers(self.files.cube)
        return CubeInMemory(columns.pop("cell", None), columns)

    @cached_property
    def controls(self) -> dict[str, ControlTotals]:
        """Control totals, by the name of their table."""
        return {c.name: ControlTotals(c.margin, self._totals(c), self.variance_of(c)) for c in self.design.controls}

    def _totals(self, control: PreparedControl) -> Floats:
        if control.public is not None:
            return control.public
        if control.distribution is None:
            return self.files.exact[control.name]
        return to_units(self._numbers(self.files.noisy[control.name])[self.design.spec.measure], self.design.step)

    @cached_property
    def deviations(self) -> list[Floats]:
        """Noisy deviations of each table: (cells, R)."""
        units = [self._numbers(parts)["deviation"] for parts in self.files.deviations]
        return [to_units(column, self.design.step).reshape(-1, self.design.replicates) for column in units]

    @property
    def deviation_noise(self) -> tuple[float, float]:
        """Variance and fourth cumulant of the noise in one deviation."""
        distribution, step = self.design.deviation_distribution, float(self.design.step)
        return (
            (0.0, 0.0)
            if distribution is None
            else (distribution.variance() * step**2, distribution.fourth_cumulant() * step**4)
        )

    def _numbers(self, parts: Protected[WrittenTable]) -> dict[str, Int64s]:
        """The columns that workers wrote, in cell order. The files are removed: nothing else reads them."""
        columns: dict[str, list[Int64s]] = {}
        for name in sorted(parts.value.files):
            content = self.place.read(name)
            if sha256(content).hexdigest() != parts.value.files[name]:  # others may write to an object store
                raise PublishError(
                    "differs from what was written: its SHA-256 is another one",
                    where=name,
                    do="write it again with `discreet resume`",
                )
            table = table_of(content)
            for column in table.column_names:
                columns.setdefault(column, []).append(table.column(column).to_numpy())
            self.place.remove(name)
        return {column: np.concatenate(pieces) for column, pieces in columns.items()}
