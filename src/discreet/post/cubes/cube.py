"""A published cube, and queries of it (Li & Krenzke 2020, §3.4).

Every table adds up cells of one cube. So the same set of cells has the same value in every table, the same query has
the same answer, and tables are additive. Standard errors are computed from published numbers alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np
import pyarrow as pa

from discreet.arrays import Flags, Int64s
from discreet.domain import Numbers
from discreet.errors import ParameterError
from discreet.post.cubes.margins import Axis, Floats, Margin, marginalise
from discreet.post.cubes.model import CubeModel
from discreet.post.cubes.sampling import Gvf, interval, replicate_variance, round_outward, standard_error, tail
from discreet.post.cubes.variance import KnownMargin, Perturbation

LEVEL = Fraction(9, 10)
MOST_CELLS = 1 << 26  # rows of one table
SHOWN = 5  # codes that an error lists
Where = Mapping[str, Sequence[str]]
Codes = list[list[tuple[str, ...]]]  # by axis and column


@dataclass(frozen=True, eq=False)
class CubeTable:
    """A table with a row for each combination of codes, zeros included."""

    columns: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]  # one tuple a column
    estimate: Floats
    se: Floats  # of sampling and perturbation together; of perturbation alone without `se_sampling`
    se_sampling: Floats | None  # None: the release has no measurements of sampling variances
    se_perturbation: Floats
    low: Floats
    high: Floats
    cells: Numbers  # number of the cube's cells in each row
    level: Fraction

    def __len__(self) -> int:
        return len(self.estimate)

    def arrow(self) -> pa.Table:
        """As an Arrow table, for pandas, Polars or DuckDB."""
        named = {name: pa.array(codes) for name, codes in zip(self.columns, self.codes, strict=True)}
        percent = str(round(100 * self.level))
        numbers = {"estimate": self.estimate, "se": self.se}
        numbers |= {} if self.se_sampling is None else {"se_sampling": self.se_sampling}
        numbers |= {"se_perturbation": self.se_perturbation, f"low{percent}": self.low, f"high{percent}": self.high}
        return pa.table({**named, **{name: pa.array(values) for name, values in numbers.items()}})


@dataclass(frozen=True, eq=False)
class Cube:
    """A published cube: its model, and the values of all cells or of those with a row."""

    model: CubeModel
    values: Floats
    cells: Numbers | None = None
    deviations: Floats | None = None  # (cells, R), if published
    steps: tuple[Floats, ...] = ()  # of each control, for calibrated sparse cubes

    def table(self, by: Sequence[str] = (), where: Where | None = None, *, level: Fraction = LEVEL) -> CubeTable:
        """Estimates by some variables or coarser levels, restricted to the codes in `where` (codes by variable)."""
        axes, columns, codes = self._axes(by)
        chosen = self._chosen(where or {})
        if not all(keep.any() for keep in chosen):
            raise ParameterError("no cell of the cube matches", where="where", do="use codes that occur together")
        axes, codes = _present(axes, codes, chosen)  # what `where` excludes is omitted, not shown as zero
        margin = Margin(" × ".join(by), self.model.shape, tuple(axes))
        if margin.cells > MOST_CELLS:
            raise ParameterError(
                f"{margin.cells:,} rows exceed the limit of {MOST_CELLS:,}",
                where="by",
                do="use fewer variables or coarser levels",
            )
        sizes = self._sizes(margin, axes, chosen)
        estimate = self._sums(margin, self.values, chosen)
        if self.steps:
            estimate = estimate + self._calibration_steps(margin, chosen)
        number = sizes.prod(axis=1)
        perturbation = self._perturbation(sizes, estimate)
        fourth = tail(perturbation, None if self.model.controls else self.model.fourth * number)
        sampled = self._sampling(margin, chosen, number)
        error = np.sqrt(perturbation) if sampled is None else standard_error(estimate, sampled, perturbation)
        clamped = np.maximum(estimate, 0.0)  # the estimand is not negative: clamping to 0 only widens intervals
        if isinstance(sampled, Gvf):
            low, high = sampled.interval(estimate, perturbation, level, fourth)
        else:
            low, high = interval(clamped, error, level, fourth)
        low, high = round_outward(clamped, low, high, self.model.unit)
        variance = sampled.variance(estimate) if isinstance(sampled, Gvf) else sampled
        deviation = None if variance is None else np.sqrt(np.maximum(variance, 0.0))
        rows = self._rows(margin, codes)
        return CubeTable(columns, rows, estimate, error, deviation, np.sqrt(perturbation), low, high, number, level)

    # --- the query --------------------------------------------------------------------------------------------------

    def _axes(self, by: Sequence[str]) -> tuple[list[Axis], tuple[str, ...], Codes]:
        if isinstance(by, str):
            raise ParameterError(f"{by!r} is not a list of variables", where="by", do=f'write ["{by}"]')
        axes, columns = list[Axis](), list[str]()
        codes: Codes = []
        for name in by:
            place, groups, own, listed = self._variable(name, "by")
            if place in (axis.place for axis in axes):
                twice = list(by).count(name) > 1
                raise ParameterError(
                    f"duplicate variable {name!r}" if twice else f"{name!r} and another level group the same variable",
                    where="by",
                    do="name it once" if twice else "use the finer level alone",
                )
            axes.append(Axis(place, groups, len(listed)))
            columns += own
            codes.append([tuple(code[i] for code in listed) for i in range(len(own))])
        return axes, tuple(columns), codes

    def _variable(self, name: str, where: str) -> tuple[int, Numbers, tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """The axis of a variable or level, the group of each of the axis's codes, and the columns and codes of the
        groups."""
        for place, axis in enumerate(self.model.axes):
            if axis.name == name:
                return place, np.arange(len(axis.codes)), axis.columns, axis.codes
        for level in self.model.levels:
            if level.name == name:
                return level.axis, np.array(level.groups), level.columns, level.codes
        known = [*(a.name for a in self.model.axes), *(v.name for v in self.model.levels)]
        meant = "".join(f", did you mean {near!r}?" for near in get_close_matches(name, known, 1))
        raise ParameterError(f"the cube has no variable {name!r}{meant}", where=where, do=f"it has {', '.join(known)}")

    def _chosen(self, where: Where) -> list[Flags]:
        """Which codes of each axis `where` selects."""
        chosen = [np.ones(size, np.bool_) for size in self.model.shape]
        for name, selected in where.items():
            place, groups, _, listed = self._variable(name, "where")
            texts = {"/".join(code): i for i, code in enumerate(listed)}
            if isinstance(selected, str) or not all(isinstance(code, str) for code in selected):
                raise ParameterError(f"{name!r} needs a list of codes", where="where", do='write {"name": ["code"]}')
            if unknown := next((code for code in selected if code not in texts), None):
                more = " …" if len(texts) > SHOWN else ""
                raise ParameterError(
                    f"{unknown!r} is not a code of {name!r}",
                    where="where",
                    do=f"it has {', '.join(list(texts)[:SHOWN])}{more}",
                )
            chosen[place] &= np.isin(groups, [texts[code] for code in selected])
        return chosen

    def _rows(self, margin: Margin, codes: Codes) -> tuple[tuple[str, ...], ...]:
        """The codes of every row, column by column."""
        numbers, listed = np.arange(margin.cells), list[tuple[str, ...]]()
        for i, columns in enumerate(codes):
            places = numbers // prod(margin.sizes[i + 1 :]) % margin.sizes[i]
            listed += [tuple(np.array(column, object)[places]) for column in columns]
        return tuple(listed)

    # --- sums -------------------------------------------------------------------------------------------------------

    def _sums(self, margin: Margin, values: Floats, chosen: list[Flags]) -> Floats:
        if self.cells is None:
            part, restricted = values.reshape(self.model.shape), _within(margin, chosen)
            for place, keep in enumerate(chosen):
                if not keep.all():
                    part = np.compress(keep, part, axis=place)
            places = sorted(axis.place for axis in restricted.axes)
            left = marginalise(np.ascontiguousarray(part), places)
            axes = tuple(Axis(places.index(axis.place), axis.groups, axis.size) for axis in restricted.axes)
            return Margin(restricted.name, left.shape, axes).add_up(left)
        matches = np.ones(len(values), np.bool_)
        for place, keep in enumerate(chosen):
            if not keep.all():
                stride = prod(self.model.shape[place + 1 :])
                matches &= keep[self.cells // stride % self.model.shape[place]]
        return margin.add_up(values[matches], self.cells[matches])

    def _calibration_steps(self, margin: Margin, chosen: list[Flags]) -> Floats:
        """The amount that calibration adds to a table of a sparse cube."""
        from discreet.post.cubes.overlap import carry_steps  # compiled: most queries do not need Numba

        sums, restricted = np.zeros(margin.cells), _within(margin, chosen)
        for control, steps in zip(self.model.controls, self.steps, strict=True):
            sums += carry_steps(steps, _within(self._control(control.by), chosen), restricted)
        return sums

    def _control(self, by: Sequence[str]) -> Margin:
        axes = list[Axis]()
        for name in by:
            place, groups, _, listed = self._variable(name, "controls")
            axes.append(Axis(place, groups, len(listed)))
        return Margin(" × ".join(by), self.model.shape, tuple(axes))

    def _sizes(self, margin: Margin, axes: list[Axis], chosen: list[Flags]) -> Int64s:
        """The number of codes of each axis that a row adds up: (rows, axes)."""
        sizes = np.empty((margin.cells, len(chosen)), np.int64)
        sizes[:] = [keep.sum() for keep in chosen]
        numbers = np.arange(margin.cells)
        for i, axis in enumerate(axes):
            counts = np.bincount(axis.groups, weights=chosen[axis.place], minlength=axis.size).astype(np.int64)
            sizes[:, axis.place] = counts[numbers // prod(margin.sizes[i + 1 :]) % axis.size]
        return sizes

    # --- errors -----------------------------------------------------------------------------------------------------

    @cached_property
    def perturbation(self) -> Perturbation:
        """The noise variance of any product query, after calibration."""
        known = tuple(KnownMargin(c.axes, c.variance) for c in self.model.controls if c.axes is not None)
        return Perturbation(self.model.shape, self.model.variance, known)

    def _perturbation(self, sizes: Int64s, estimate: Floats) -> Floats:
        variance: Floats = np.maximum(self.perturbation.of(sizes), 0.0)
        calibration = self.model.calibration
        if calibration is None or not calibration.raked:
            return variance
        dimension = (sizes < np.array(self.model.shape)).sum(axis=1)
        times, share = np.array([(raked.times, raked.share) for raked in calibration.raked])[dimension].T
        return np.asarray(np.where(variance > 0, times * variance + share * estimate**2, 0.0))

    def _sampling(self, margin: Margin, chosen: list[Flags], number: Numbers) -> Gvf | Floats | None:
        model = self.model.sampling
        if model is None:
            return None
        if model.kind == "gvf":
            return Gvf(model.a, model.b, a_error=model.a_error, b_error=model.b_error)
        if self.deviations is None:
            raise ParameterError(
                "the deviations of replicates are not loaded",
                where=model.table,
                do="open the cube with `discreet.open_cube`",
            )
        sums = np.stack([self._sums(margin, column, chosen) for column in self.deviations.T], axis=-1)
        return replicate_variance(sums, factor=model.factor, noise=model.noise * number)


def _present(axes: list[Axis], codes: Codes, chosen: list[Flags]) -> tuple[list[Axis], Codes]:
    """The axes of a table, restricted to groups that have a selected code."""
    restricted, listed = list[Axis](), Codes()
    for axis, columns in zip(axes, codes, strict=True):
        present = np.unique(axis.groups[chosen[axis.place]])
        numbers = np.zeros(axis.size, np.int64)
        numbers[present] = np.arange(len(present))
        restricted.append(Axis(axis.place, numbers[axis.groups], len(present)))
        listed.append([tuple(column[i] for i in present) for column in columns])
    return restricted, listed


def _within(margin: Margin, chosen: list[Flags]) -> Margin:
    """The same margin of the cube restricted to these codes."""
    axes = tuple(Axis(axis.place, axis.groups[chosen[axis.place]], axis.size) for axis in margin.axes)
    return Margin(margin.name, tuple(int(keep.sum()) for keep in chosen), axes)
