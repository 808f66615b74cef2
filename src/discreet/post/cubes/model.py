"""The published model of a cube: its axes, noise and calibration, which queries need.

Everything here is public or a function of protected numbers: the model file is part of the release.
"""

from __future__ import annotations

from math import prod
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, model_validator

LARGEST = 2**62  # cells of a cube
MOST_REPLICATES = 1_000


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class AxisModel(_Frozen):
    """A variable: its columns, and the codes of its categories in order."""

    name: str
    columns: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]

    @model_validator(mode="after")
    def _listed(self) -> AxisModel:
        if not self.columns or {len(code) for code in self.codes} != {len(self.columns)}:
            raise ValueError("needs columns, and codes with one part per column")
        if len(set(self.codes)) < len(self.codes):
            raise ValueError("has a duplicate code")
        return self


class LevelModel(AxisModel):
    """A coarser level of an axis: the axis, and the group of each of its codes."""

    axis: int
    groups: tuple[int, ...]

    @model_validator(mode="after")
    def _grouped(self) -> LevelModel:
        if not all(0 <= group < len(self.codes) for group in self.groups):
            raise ValueError("has a group that is not one of its codes")
        return self


class ControlModel(_Frozen):
    """A control of the cube. `axes` are those of the cube, None where the control is by groups of codes."""

    name: str
    by: tuple[str, ...]
    kind: Literal["measured", "public", "exact"]
    axes: tuple[int, ...] | None
    variance: NonNegativeFloat  # of the noise in each of its totals


class RakedModel(_Frozen):
    """The simulated variance of a query of a raked cube: times·(GLS variance) + share·(estimate)²."""

    times: float
    share: float


class CalibrationModel(_Frozen):
    """How the cube was calibrated: the declared method, the method used, and its convergence."""

    asked: Literal["regression", "rake"]
    done: Literal["regression", "rake"]
    converged: bool
    cycles: int
    largest_gap: float
    problems: tuple[str, ...]
    raked: tuple[RakedModel, ...] = ()  # of queries by 0, 1, … variables, if raked


class SamplingModel(_Frozen):
    """The source of sampling variances: a variance function var(x) = a·x² + b·x, or noisy deviations of replicates."""

    kind: Literal["gvf", "replicates"]
    a: float = 0.0
    b: float = 0.0
    a_error: float = 0.0
    b_error: float = 0.0
    basis: str = ""
    cells: int = 0
    replicates: Annotated[int, Field(ge=0, le=MOST_REPLICATES)] = 0
    factor: float = 0.0
    noise: float = 0.0  # variance of the noise in each deviation
    table: str = ""  # of the deviations


class NoiseModel(_Frozen):
    """Variance and fourth cumulant of the noise in a cell."""

    variance: NonNegativeFloat
    fourth: float


class IntegersModel(_Frozen):
    """Controlled rounding of the estimates: its exceptions."""

    problems: tuple[str, ...]


class CubeModel(_Frozen):
    """The model of a cube: everything but its cells."""

    format: Literal["discreet-cube/1"] = "discreet-cube/1"
    cube: str
    simulation: bool
    form: Literal["dense", "sparse"]
    measure: Literal["count", "total"]  # the measure of queries
    estimate: str  # the column that queries add up
    axes: tuple[AxisModel, ...]
    levels: tuple[LevelModel, ...]
    variance: NonNegativeFloat  # of the noise in one cell of the measure, before calibration
    fourth: float  # its fourth cumulant
    unit: NonNegativeFloat  # one step of that noise
    counts: NoiseModel | None = None  # of counts, where totals are the measure
    controls: tuple[ControlModel, ...] = ()
    calibration: CalibrationModel | None = None
    whole: IntegersModel | None = None
    sampling: SamplingModel | None = None

    @model_validator(mode="after")
    def _fits(self) -> CubeModel:
        names = [axis.name for axis in (*self.axes, *self.levels)]
        columns = [column for axis in self.axes for column in axis.columns]
        if not self.axes or len(set(names)) < len(names) or len(set(columns)) < len(columns):
            raise ValueError("needs at least one variable, with distinct names and columns")
        if prod(self.shape) > LARGEST:
            raise ValueError("has more than 2^62 cells")
        places = range(len(self.axes))
        if any(v.axis not in places or len(v.groups) != len(self.axes[v.axis].codes) for v in self.levels):
            raise ValueError("has a coarser level that does not match an axis")
        for control in self.controls:
            if not {*control.by} <= {*names} or not {*(control.axes or ())} <= {*places}:
                raise ValueError("has a control by an unknown variable")
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis.codes) for axis in self.axes)
