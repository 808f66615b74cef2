"""The exact variance of the noise in any query of a calibrated cube, from public numbers alone. Proof: regression.md.

A query adds up the cells of a product set: k_i of the n_i codes of each axis i. Effects E, the interactions of axes as
in an analysis of variance, split cube and controls into problems of their own. Effect E keeps the share
r_E = 1/(1 + Σ_{C ⊇ E} σ²(N/n_C)/v_C) of its variance, n_C being the cells of control C and v_C their variance, N the
cells of the cube and σ² theirs; r_E = 0 if some v_C is 0, and r_E = 1 if no control contains E. Then

    variance of the query = σ² · Π k_i · E[r_S],

S being the random set that has axis i with probability 1 − k_i/n_i, independently of the others.
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
_BLOCK = 1 << 20  # numbers at a time


@dataclass(frozen=True)
class KnownMargin:
    """A control by whole axes of the cube, with noise of one variance in all of its cells: 0 if exact or public."""

    places: tuple[int, ...]
    variance: float

    @classmethod
    def among(cls, controls: Iterable[tuple[Margin, float]]) -> tuple[KnownMargin, ...]:
        """Those of the controls, each with its variance, that are by whole axes."""
        return tuple(cls(margin.places, variance) for margin, variance in controls if margin.ungrouped)


@dataclass(frozen=True)
class Perturbation:
    """The noise of a dense cube calibrated by `regression.fit`. Controls by groups of codes are left out of `controls`:
    the variance stated is then an upper bound, since a measurement more never makes the best estimate worse."""

    shape: tuple[int, ...]
    variance: float  # σ², of every cell before calibration
    controls: tuple[KnownMargin, ...]

    def __post_init__(self) -> None:
        if not self.shape or min(self.shape) < 1 or not 0 <= self.variance < inf:
            raise ParameterError("no cube with a noise variance", where="shape", do="give sizes and a variance")
        for control in self.controls:
            if len(set(control.places)) != len(control.places) or not set(control.places) <= set(
                range(len(self.shape))
            ):
                raise ParameterError("axes that the cube has not, or twice", where="controls", do="number them from 0")
            if not 0 <= control.variance < inf:
                raise ParameterError("no noise variance", where="controls", do="give 0 for an exact one")
        if sum(2 ** len(control.places) for control in self.controls) > MOST_EFFECTS:
            raise ParameterError("controls of too many axes at once", where="controls", do="leave the largest out")

    def gain(self, control: KnownMargin) -> float:
        """σ²(N/n_C)/v_C: how much more a control knows of its effects than the cube does."""
        alone = prod(n for place, n in enumerate(self.shape) if place not in control.places)
        return inf if control.variance == 0 else self.variance * alone / control.variance

    @cached_property
    def _effects(self) -> tuple[Flags, Floats]:
        """Which axes each controlled effect has, and r_E."""
        precision: dict[Effect, float] = {}
        for control in self.controls:
            for effect in _within(control):
                precision[effect] = precision.get(effect, 0.0) + self.gain(control)
        has = [[place in effect for place in range(len(self.shape))] for effect in precision]
        left = 1 / (1 + np.array(list(precision.values()), np.float64))
        return np.array(has, np.bool_).reshape(len(precision), len(self.shape)), left

    def of(self, sizes: Int64s) -> Floats:
        """The variance of each query, of which a row says how many codes of each axis it adds up."""
        if sizes.ndim != 2 or sizes.shape[1] != len(self.shape) or not np.issubdtype(sizes.dtype, np.integer):
            raise ParameterError("not one row a query, one column an axis", where="sizes", do="count codes by axis")
        if sizes.size and not ((sizes >= 0) & (sizes <= self.shape)).all():
            raise ParameterError("more codes than an axis has", where="sizes", do="give 0 up to its size")
        has, _ = self._effects
        found, step = np.empty(len(sizes)), max(1, _BLOCK // (len(has) + 1))
        for first in range(0, len(sizes), step):
            found[first : first + step] = self._some(sizes[first : first + step])
        return found

    def _some(self, sizes: Int64s) -> Floats:
        has, left = self._effects
        kept = sizes / np.array(self.shape)
        chance = np.ones((len(sizes), len(has)))  # that S is this effect
        for axis in range(len(self.shape)):
            chance *= np.where(has[:, axis], 1 - kept[:, axis, None], kept[:, axis, None])
        beyond = np.maximum(1 - chance.sum(axis=1), 0.0)
        beyond[self._inside(sizes)] = 0.0  # exactly, where subtraction would leave rounding times the cube
        kept_share = (chance * left).sum(axis=1) + beyond
        result: Floats = self.variance * np.prod(sizes, axis=1, dtype=np.float64) * kept_share
        return result

    def _inside(self, sizes: Int64s) -> Flags:
        """Whether every set that S can be is controlled: the axes with codes left out all lie in one control."""
        open_axes = sizes < self.shape
        inside = np.zeros(len(sizes), np.bool_)
        for control in self.controls:
            others = [place for place in range(len(self.shape)) if place not in control.places]
            inside |= ~open_axes[:, others].any(axis=1)
        return inside


def by_effects(noise: Perturbation, missing: Floats) -> Floats:
    """The steps σ²λ of `regression.fit`, in closed form: from t − M x̃ of all controls, one after the other.

    Effect E of the cube moves by Σ_C g_C·P_E M_C'(t_C − M_C x̃)(n_C/N) / (1 + Σ_C g_C), over the controls C ⊇ E, g_C
    being their gain; by the mean over the exact ones, if there are any. One control that contains E carries it.
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
        found = sum(weight * _projected(wide[j], effect) for j, weight in zip(controls, weights, strict=True) if weight)
        moved[controls[0]] += found / (sum(weights) + (not exact))
    back = [_narrowed(table, control) for table, control in zip(moved, noise.controls, strict=True)]
    return np.concatenate(back)


def _within(control: KnownMargin) -> list[Effect]:
    """All sets of a control's axes."""
    return [frozenset(e) for size in range(len(control.places) + 1) for e in combinations(control.places, size)]


def _widened(table: Floats, control: KnownMargin, shape: tuple[int, ...]) -> Floats:
    """A control's table with all axes of the cube, of length 1 where it has none."""
    ordered: Floats = table.transpose(np.argsort(control.places).astype(int))
    return ordered.reshape([n if place in control.places else 1 for place, n in enumerate(shape)])


def _narrowed(table: Floats, control: KnownMargin) -> Floats:
    """The other way round, one number after the other."""
    own = table.reshape([table.shape[place] for place in sorted(control.places)])
    return own.transpose(np.argsort(np.argsort(control.places)).astype(int)).reshape(-1)


def _projected(table: Floats, effect: Effect) -> Floats:
    """P_E of a table: means over the axes not in E, differences from the mean over those in E."""
    for axis, size in enumerate(table.shape):
        if axis in effect:
            table = table - table.mean(axis=axis, keepdims=True)
        elif size > 1:
            table = table.mean(axis=axis, keepdims=True)
    return table


@dataclass(frozen=True)
class Reduction:
    """What calibration does to the cells of all tables of some dimension (002, Table 4), in expectation."""

    dimension: int
    cells: int  # in all of these tables
    before: float  # mean variance of a cell without calibration
    after: float  # and with it
    spread_before: (
        float  # expected sample variance of the noise, all cells of all these tables pooled: what Table 4 shows
    )
    spread_after: float


def reduction(shape: Sequence[int], variance: float, controls: Sequence[KnownMargin], dimension: int) -> Reduction:
    """The mean variance of a cell over all tables of so many of the cube's axes.

    The noise of every table adds up to that of the cube's total T. With m cells in A tables the sample variance of all
    noise has the expectation (Σ variances − A²·Var T/m)/(m − 1).
    """
    if not 1 <= dimension <= len(shape):
        raise ParameterError("no table of so many axes", where="dimension", do="give 1 up to the cube's number of axes")
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
