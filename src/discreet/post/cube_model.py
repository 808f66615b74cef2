"""What a query of a published cube needs to know: its axes, what its noise was, and how it was calibrated.

Everything here is public, or made of protected numbers: the file that it is written to is part of the release.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AxisModel(_Frozen):
    """One variable: its columns, and the codes of each of its categories, in order."""

    name: str
    columns: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]


class LevelModel(AxisModel):
    """A coarser variable: the axis that it groups, and the group of each of its codes."""

    axis: int
    groups: tuple[int, ...]


class ControlModel(_Frozen):
    """A table that the cube was made to add up to. `axes` are the cube's, none where it is by groups of codes."""

    name: str
    by: tuple[str, ...]
    kind: Literal["measured", "public", "exact"]
    axes: tuple[int, ...] | None
    variance: float  # of the noise in each of its totals


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
    replicates: int = 0
    factor: float = 0.0
    noise: float = 0.0  # variance of the noise in each deviation
    table: str = ""  # of the deviations


class NoiseModel(_Frozen):
    """Variance and fourth cumulant of the noise in one cell."""

    variance: float
    fourth: float


class WholeModel(_Frozen):
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
    variance: float  # of the noise in one cell of the measure, before calibration
    fourth: float  # its fourth cumulant
    unit: float  # one step of it
    counts: NoiseModel | None = None  # of counts beside totals
    controls: tuple[ControlModel, ...] = ()
    calibration: CalibrationModel | None = None
    whole: WholeModel | None = None
    sampling: SamplingModel | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis.codes) for axis in self.axes)
