"""What a query of a published cube needs to know: its axes, what its noise was, and how it was calibrated.

Everything here is public, or made of protected numbers: the file that it is written to is part of the release.
"""

from __future__ import annotations

from math import prod
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, model_validator

LARGEST = 2**62  # cells
MOST_REPLICATES = 1_000


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class AxisModel(_Frozen):
    """One variable: its columns, and the codes of each of its categories, in order."""

    name: str
    columns: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]

    @model_validator(mode="after")
    def _listed(self) -> AxisModel:
        if not self.columns or {len(code) for code in self.codes} != {len(self.columns)}:
            raise ValueError("needs a column, and codes with a part for each")
        if len(set(self.codes)) < len(self.codes):
            raise ValueError("has a code twice")
        return self


class LevelModel(AxisModel):
    """A coarser variable: the axis that it groups, and the group of each of its codes."""

    axis: int
    groups: tuple[int, ...]

    @model_validator(mode="after")
    def _grouped(self) -> LevelModel:
        if not all(0 <= group < len(self.codes) for group in self.groups):
            raise ValueError("has a group without a code")
        return self


class ControlModel(_Frozen):
    """A table that the cube was made to add up to. `axes` are the cube's, none where it is by groups of codes."""

    name: str
    by: tuple[str, ...]
    kind: Literal["measured", "public", "exact"]
    axes: tuple[int, ...] | None
    variance: NonNegativeFloat  # of the noise in each of its totals


class RakedModel(_Frozen):
    """The variance of a query is times·(what least squares would leave) + share·(the estimate)²: simulated."""

    times: float
    share: float


class CalibrationModel(_Frozen):
    """How the cube was calibrated: what was asked for, what was done, and how well."""

    asked: Literal["regression", "rake"]
    done: Literal["regression", "rake"]
    converged: bool
    cycles: int
    largest_gap: float
    problems: tuple[str, ...]
    raked: tuple[RakedModel, ...] = ()  # the variance of queries of 0, 1, … variables, where it was raked


class SamplingModel(_Frozen):
    """Where sampling variances come from: var(x) = a·x² + b·x, or deviations of replicates with noise."""

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
    """Variance and fourth cumulant of the noise in one cell."""

    variance: NonNegativeFloat
    fourth: float


class IntegersModel(_Frozen):
    """Whole numbers beside the estimates: the sums that they could not keep."""

    problems: tuple[str, ...]


class CubeModel(_Frozen):
    """Everything about a cube but its cells."""

    format: Literal["discreet-cube/1"] = "discreet-cube/1"
    cube: str
    simulation: bool
    form: Literal["dense", "sparse"]
    measure: Literal["count", "total"]  # what queries are about
    estimate: str  # the column that queries add up
    axes: tuple[AxisModel, ...]
    levels: tuple[LevelModel, ...]
    variance: NonNegativeFloat  # of the noise in one cell of the measure, before calibration
    fourth: float  # its fourth cumulant
    unit: NonNegativeFloat  # one step of it
    counts: NoiseModel | None = None  # of counts beside totals
    controls: tuple[ControlModel, ...] = ()
    calibration: CalibrationModel | None = None
    whole: IntegersModel | None = None
    sampling: SamplingModel | None = None

    @model_validator(mode="after")
    def _fits(self) -> CubeModel:
        names = [axis.name for axis in (*self.axes, *self.levels)]
        columns = [column for axis in self.axes for column in axis.columns]
        if not self.axes or len(set(names)) < len(names) or len(set(columns)) < len(columns):
            raise ValueError("needs variables, each with a name and columns of its own")
        if prod(self.shape) > LARGEST:
            raise ValueError("has more cells than can be numbered")
        places = range(len(self.axes))
        if any(v.axis not in places or len(v.groups) != len(self.axes[v.axis].codes) for v in self.levels):
            raise ValueError("has a coarser variable that groups no axis")
        for control in self.controls:
            if not {*control.by} <= {*names} or not {*(control.axes or ())} <= {*places}:
                raise ValueError("has a control by a variable that it lacks")
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis.codes) for axis in self.axes)
