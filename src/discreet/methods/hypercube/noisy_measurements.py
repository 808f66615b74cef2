"""What was drawn for a cube, read back: the perturbed cube, its controls, and the deviations of replicates."""

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
    """What was drawn, by whom it was written; and what is known besides."""

    cube: Protected[WrittenTable] | None = None
    exact: dict[str, Floats] = field(default_factory=dict)  # controls without noise
    noisy: dict[str, Protected[WrittenTable]] = field(default_factory=dict)
    deviations: list[Protected[WrittenTable]] = field(default_factory=list)
    averages: Int64s | None = None  # weights by stratum, in steps of the grid
    overall: Int64s | None = None


@dataclass(frozen=True)
class CubeInMemory:
    """The perturbed cube in memory: its numbers in steps of the grid."""

    cells: Numbers | None
    columns: dict[str, Int64s]


@dataclass(frozen=True)
class CubeMeasurements:
    """Measured numbers in their own unit, and the variance of their noise."""

    design: CubeDesign
    place: Storage
    files: MeasurementFiles

    @property
    def noise_unit(self) -> float:
        """What one unit of the measure's noise is worth: a step of the grid, or an average weight."""
        step, overall = float(self.design.step), self.files.overall
        return step if overall is None else step * float(overall[0])

    @property
    def largest_noise_unit(self) -> float:
        """In the stratum with the largest average weight: what is said of the noise holds everywhere."""
        averages = self.files.averages
        return self.noise_unit if averages is None else float(self.design.step) * float(averages.max())

    @property
    def variance(self) -> float:
        """Of the noise in a cell."""
        return self.design.distribution.variance() * self.largest_noise_unit**2

    @property
    def fourth(self) -> float:
        """Its fourth cumulant."""
        return self.design.distribution.fourth_cumulant() * self.largest_noise_unit**4

    def variance_of(self, control: PreparedControl) -> float:
        """Of the noise in each total of a control."""
        return 0.0 if control.distribution is None else control.distribution.variance() * self.noise_unit**2

    @property
    def perturbation(self) -> Perturbation:
        """Of any query. Controls by groups of codes only lower it further."""
        known = KnownMargin.among((control.margin, self.variance_of(control)) for control in self.design.controls)
        return Perturbation(self.design.domain.shape, self.variance, known)

    @cached_property
    def cube(self) -> CubeInMemory:
        """The perturbed cube."""
        columns = {} if self.files.cube is None else self._numbers(self.files.cube)
        return CubeInMemory(columns.pop("cell", None), columns)

    @cached_property
    def controls(self) -> dict[str, ControlTotals]:
        """By the name of their table."""
        return {c.name: ControlTotals(c.margin, self._totals(c), self.variance_of(c)) for c in self.design.controls}

    def _totals(self, control: PreparedControl) -> Floats:
        if control.public is not None:
            return control.public
        if control.distribution is None:
            return self.files.exact[control.name]
        return to_units(self._numbers(self.files.noisy[control.name])[self.design.spec.measure], self.design.step)

    @cached_property
    def deviations(self) -> list[Floats]:
        """Of each table: (cells, R)."""
        units = [self._numbers(parts)["deviation"] for parts in self.files.deviations]
        return [to_units(found, self.design.step).reshape(-1, self.design.replicates) for found in units]

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
        """What workers wrote, in order. The files are removed: nothing else is made of them."""
        found: dict[str, list[Int64s]] = {}
        for name in sorted(parts.value.files):
            content = self.place.read(name)
            if sha256(content).hexdigest() != parts.value.files[name]:  # others may write to an object store
                raise PublishError("is not what was written", where=name, do="complete it with `discreet resume`")
            table = table_of(content)
            for column in table.column_names:
                found.setdefault(column, []).append(table.column(column).to_numpy())
            self.place.remove(name)
        return {column: np.concatenate(pieces) for column, pieces in found.items()}
