"""The exact noise variance of any product query of a calibrated cube, from public numbers alone. Proof: regression.md.

A query adds up the cells of a product set: k_i of the n_i codes of each axis i. Effects E, the interactions of axes as
in an analysis of variance, decompose cube and controls into independent problems. Effect E keeps the share
r_E = 1/(1 + Σ_{C ⊇ E} σ²(N/n_C)/v_C) of its variance, n_C being the cells of control C and v_C their variance, N the
cells of the cube and σ² theirs; r_E = 0 if some v_C is 0, and r_E = 1 if no control contains E. Then

    variance of the query = σ² · Π k_i · E[r_S],

where the random set S contains axis i with probability 1 − k_i/n_i, independently of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb, inf, prod

import numpy as np

from discreet.arrays import Flags, Int64s
from discreet.errors import ParameterError
from discreet.post.cubes.margins import Floats, Margin
from discreet.post.portable import inner

Effect = frozenset[int]
MOST_EFFECTS = 2**16
_BLOCK = 1 << 20  # numbers in memory at a time


@dataclass(frozen=True)
class KnownMargin:
    """A control by ungrouped axes of the cube, and the noise variance of each of its cells: 0 if exact or public."""

    places: tuple[int, ...]
    variance: float

    @classmethod
    def among(cls, controls: Iterable[tuple[Margin, float]]) -> tuple[KnownMargin, ...]:
        """The controls, each with its variance, that are by ungrouped axes."""
        return tuple(cls(margin.places, variance) for margin, variance in controls if margin.ungrouped)


@dataclass(frozen=True)
class Perturbation:
    """The noise of a cube calibrated by `regression.fit`. Controls by groups of codes are left out of `controls`: the
    stated variance is then an upper bound, since an additional measurement never increases the GLS variance."""

    shape: tuple[int, ...]
    variance: float  # σ², of every cell before calibration
    controls: tuple[KnownMargin, ...]

    def __post_init__(self) -> None:
        if not self.shape or min(self.shape) < 1 or not 0 <= self.variance < inf:
            raise ParameterError(
                "expected a positive size per axis and a finite variance", where="shape", do="pass those of the cube"
            )
        for control in self.controls:
            if len(set(control.places)) != len(control.places) or not set(control.places) <= set(
                range(len(self.shape))
            ):
                raise ParameterError(
                    "a control has an unknown or duplicate axis", where="controls", do="number axes from 0"
                )
            if not 0 <= control.variance < inf:
                raise ParameterError(
                    "a control has no finite noise variance", where="controls", do="pass 0 for an exact one"
                )
        if sum(2 ** len(control.places) for control in self.controls) > MOST_EFFECTS:
            raise ParameterError("the controls have too many axes", where="controls", do="leave the largest out")

    def gain(self, control: KnownMargin) -> float:
        """σ²(N/n_C)/v_C: the precision of a control about its effects, relative to the cube's."""
        alone = prod(n for place, n in enumerate(self.shape) if place not in control.places)
        return inf if control.variance == 0 else self.variance * alone / control.variance

    @cached_property
    def _effects(self) -> tuple[Flags, Floats]:
        """The axes of each controlled effect, and its r_E."""
        precision: dict[Effect, float] = {}
        for control in self.controls:
            for effect in _within(control):
                precision[effect] = precision.get(effect, 0.0) + self.gain(control)
        has = [[place in effect for place in range(len(self.shape))] for effect in precision]
        left = 1 / (1 + np.array(list(precision.values()), np.float64))
        return np.array(has, np.bool_).reshape(len(precision), len(self.shape)), left

    def of(self, sizes: Int64s) -> Floats:
        """The variance of each query; a row of `sizes` has the number of codes of each axis that it adds up."""
        if sizes.ndim != 2 or sizes.shape[1] != len(self.shape) or not np.issubdtype(sizes.dtype, np.integer):
            raise ParameterError(
                "expected a row per query and a column per axis", where="sizes", do="count codes by axis"
            )
        if sizes.size and not ((sizes >= 0) & (sizes <= self.shape)).all():
            raise ParameterError("a query has more codes than an axis", where="sizes", do="pass 0 up to its size")
        has, _ = self._effects
        variances, step = np.empty(len(sizes)), max(1, _BLOCK // (len(has) + 1))
        for first in range(0, len(sizes), step):
            variances[first : first + step] = self._some(sizes[first : first + step])
        return variances

    def _some(self, sizes: Int64s) -> Floats:
        has, left = self._effects
        share = sizes / np.array(self.shape)
        chance = np.ones((len(sizes), len(has)))  # probability that S is this effect
        for axis in range(len(self.shape)):
            chance *= np.where(has[:, axis], 1 - share[:, axis, None], share[:, axis, None])
        beyond = np.maximum(1 - chance.sum(axis=1), 0.0)
        beyond[self._inside(sizes)] = (
            0.0  # exactly: subtraction would leave a rounding error, times the size of the cube
        )
        remaining = (chance * left).sum(axis=1) + beyond
        result: Floats = self.variance * np.prod(sizes, axis=1, dtype=np.float64) * remaining
        return result

    def _inside(self, sizes: Int64s) -> Flags:
        """Whether every possible S is controlled: the axes with excluded codes all belong to one control."""
        open_axes = sizes < self.shape
        inside = np.zeros(len(sizes), np.bool_)
        for control in self.controls:
            others = [place for place in range(len(self.shape)) if place not in control.places]
            inside |= ~open_axes[:, others].any(axis=1)
        return inside


def by_effects(noise: Perturbation, missing: Floats) -> Floats:
    """The steps σ²λ of `regression.fit` in closed form, from t − M x̃ of all controls, concatenated.

    Effect E of the cube changes by Σ_C g_C·P_E M_C'(t_C − M_C x̃)(n_C/N) / (1 + Σ_C g_C) over the controls C ⊇ E with
    gains g_C; by the mean over the exact ones, if there are any. The steps of one control that contains E carry it.
    """
    sizes = [tuple(noise.shape[place] for place in control.places) for control in noise.controls]
    parts = np.split(missing, np.cumsum([prod(size) for size in sizes])[:-1])
    around: dict[Effect, list[int]] = {}
    for j, control in enumerate(noise.controls):
        for effect in _within(control):
            around.setdefault(effect, []).append(j)
    tables = [part.reshape(size) * (prod(size) / prod(noise.shape)) for part, size in zip(parts, sizes, strict=True)]
    wide = [_widened(table, control, noise.shape) for table, control in zip(tables, noise.controls, strict=True)]
    moved = [np.zeros_like(table) for table in wide]
    for effect, controls in around.items():
        gains = [noise.gain(noise.controls[j]) for j in controls]
        exact = inf in gains
        weights = [float(gain == inf) if exact else gain for gain in gains]
        change = sum(
            weight * _projected(wide[j], effect) for j, weight in zip(controls, weights, strict=True) if weight
        )
        moved[controls[0]] += change / (sum(weights) + (not exact))
    back = [_narrowed(table, control) for table, control in zip(moved, noise.controls, strict=True)]
    return np.concatenate(back)


def _within(control: KnownMargin) -> list[Effect]:
    """All subsets of a control's axes."""
    return [frozenset(e) for size in range(len(control.places) + 1) for e in combinations(control.places, size)]


def _widened(table: Floats, control: KnownMargin, shape: tuple[int, ...]) -> Floats:
    """A control's table with all axes of the cube, of length 1 for axes that it lacks."""
    ordered: Floats = table.transpose(np.argsort(control.places).astype(int))
    return ordered.reshape([n if place in control.places else 1 for place, n in enumerate(shape)])


def _narrowed(table: Floats, control: KnownMargin) -> Floats:
    """The inverse of `_widened`, flattened."""
    own = table.reshape([table.shape[place] for place in sorted(control.places)])
    return own.transpose(np.argsort(np.argsort(control.places)).astype(int)).reshape(-1)


def _projected(table: Floats, effect: Effect) -> Floats:
    """P_E of a table: means over axes not in E, differences from the mean over axes in E."""
    for axis, size in enumerate(table.shape):
        if axis in effect:
            table = table - table.mean(axis=axis, keepdims=True)
        elif size > 1:
            table = table.mean(axis=axis, keepdims=True)
    return table


@dataclass(frozen=True)
class Reduction:
    """Expected noise variance of the cells of all tables of one dimension, before and after calibration (Li & Krenzke
    2020, Table 4)."""

    dimension: int
    cells: int  # of all these tables
    before: float  # mean variance of a cell without calibration
    after: float  # the same with calibration
    spread_before: float  # expected sample variance of the noise, pooled over all cells of these tables, as in Table 4
    spread_after: float


def reduction(shape: Sequence[int], variance: float, controls: Sequence[KnownMargin], dimension: int) -> Reduction:
    """The mean variance of a cell over all tables by `dimension` axes.

    The noise of every table adds up to that of the cube's total T. With m cells in A tables, the pooled sample variance
    has the expectation (Σ variances − A²·Var T/m)/(m − 1).
    """
    if not 1 <= dimension <= len(shape):
        raise ParameterError(
            "the cube has no table of this dimension", where="dimension", do="pass 1 up to its number of axes"
        )
    tables = [set(places) for places in combinations(range(len(shape)), dimension)]
    sizes = np.array([[1 if i in table else n for i, n in enumerate(shape)] for table in tables], np.int64)
    weights = np.array([prod(shape[i] for i in table) for table in tables], np.float64)
    cells = int(weights.sum())
    means, spreads = [], []
    for known in ((), tuple(controls)):
        noise = Perturbation(tuple(shape), variance, known)
        total = float(noise.of(np.array([shape], np.int64))[0])
        sum_of_variances = inner(weights, noise.of(sizes))
        means.append(sum_of_variances / cells)
        spreads.append((sum_of_variances - comb(len(shape), dimension) ** 2 * total / cells) / max(cells - 1, 1))
    return Reduction(dimension, cells, means[0], means[1], spreads[0], spreads[1])
