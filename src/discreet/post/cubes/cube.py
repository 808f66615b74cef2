"""A published cube, and every table that can be asked of it (002, §3.4).

A table adds up cells of the one cube. So the same set of cells has the same value whoever asks and however, the same
query has the same answer, and tables add up to the table of sums. Standard errors are made of published numbers alone.
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
from discreet.post.cubes.margins import Axis, Floats, Margin, reduced
from discreet.post.cubes.model import CubeModel
from discreet.post.cubes.sampling import Gvf, interval, replicate_variance, round_outward, standard_error, tail
from discreet.post.cubes.variance import KnownMargin, Perturbation

LEVEL = Fraction(9, 10)
MOST_CELLS = 1 << 26  # of one table
SHOWN = 5  # codes that an error names
Where = Mapping[str, Sequence[str]]
Codes = list[list[tuple[str, ...]]]  # of each axis, of each of its columns


@dataclass(frozen=True, eq=False)
class CubeTable:
    """One table: a row for each combination of codes, zeros included."""

    columns: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]  # one tuple a column
    estimate: Floats
    se: Floats  # of sampling and perturbation together
    se_sampling: Floats | None  # none: the release says nothing about it
    se_perturbation: Floats
    low: Floats
    high: Floats
    cells: Numbers  # of the cube that each row adds up
    level: Fraction

    def __len__(self) -> int:
        return len(self.estimate)

    def arrow(self) -> pa.Table:
        """For pandas, Polars, DuckDB."""
        named = {name: pa.array(codes) for name, codes in zip(self.columns, self.codes, strict=True)}
        percent = str(round(100 * self.level))
        numbers = {"estimate": self.estimate, "se": self.se}
        numbers |= {} if self.se_sampling is None else {"se_sampling": self.se_sampling}
        numbers |= {"se_perturbation": self.se_perturbation, f"low{percent}": self.low, f"high{percent}": self.high}
        return pa.table({**named, **{name: pa.array(values) for name, values in numbers.items()}})


@dataclass(frozen=True, eq=False)
class Cube:
    """Cells of a published cube: all of them, or those with a row."""

    model: CubeModel
    values: Floats
    cells: Numbers | None = None
    deviations: Floats | None = None  # (cells, R), where the release has them
    steps: tuple[Floats, ...] = ()  # of each control, where calibration moves all cells of a sparse cube

    def table(self, by: Sequence[str] = (), where: Where | None = None, *, level: Fraction = LEVEL) -> CubeTable:
        """Estimates by some variables, coarser ones included, of the cells that `where` chooses (codes by variable)."""
        axes, columns, codes = self._axes(by)
        chosen = self._chosen(where or {})
        if not all(keep.any() for keep in chosen):
            raise ParameterError("no cell of the cube is chosen", where="where", do="choose codes that go together")
        axes, codes = _present(axes, codes, chosen)  # what `where` leaves out is not zero: it is not told
        margin = Margin(" × ".join(by), self.model.shape, tuple(axes))
        if margin.cells > MOST_CELLS:
            raise ParameterError(
                f"{margin.cells:,} rows are more than {MOST_CELLS:,}", where="by", do="ask for less detail"
            )
        sizes = self._sizes(margin, axes, chosen)
        estimate = self._sums(margin, self.values, chosen)
        if self.steps:
            estimate = estimate + self._carried(margin, chosen)
        number = sizes.prod(axis=1)
        moved = self._perturbation(sizes, estimate)
        fourth = tail(moved, None if self.model.controls else self.model.fourth * number)
        sampled = self._sampling(margin, chosen, number)
        error = np.sqrt(moved) if sampled is None else standard_error(estimate, sampled, moved)
        seen = np.maximum(estimate, 0.0)  # no such number is negative: below 0 counts as 0, which only widens
        if isinstance(sampled, Gvf):
            low, high = sampled.interval(estimate, moved, level, fourth)
        else:
            low, high = interval(seen, error, level, fourth)
        low, high = round_outward(seen, low, high, self.model.unit)
        shown = sampled.variance(estimate) if isinstance(sampled, Gvf) else sampled
        deviation = None if shown is None else np.sqrt(np.maximum(shown, 0.0))
        named = self._rows(margin, codes)
        return CubeTable(columns, named, estimate, error, deviation, np.sqrt(moved), low, high, number, level)

    # --- what is asked for ------------------------------------------------------------------------------------------

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
                    f"{name!r} is named twice" if twice else f"{name!r} and another one are of the same variable",
                    where="by",
                    do="name it once" if twice else "ask for the finer one alone",
                )
            axes.append(Axis(place, groups, len(listed)))
            columns += own
            codes.append([tuple(code[i] for code in listed) for i in range(len(own))])
        return axes, tuple(columns), codes

    def _variable(self, name: str, where: str) -> tuple[int, Numbers, tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """The axis of a variable, the group of each of its codes, the columns and codes of the groups."""
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
        """Which codes of each axis count."""
        chosen = [np.ones(size, np.bool_) for size in self.model.shape]
        for name, wanted in where.items():
            place, groups, _, listed = self._variable(name, "where")
            texts = {"/".join(code): i for i, code in enumerate(listed)}
            if isinstance(wanted, str) or not all(isinstance(code, str) for code in wanted):
                raise ParameterError(f"{name} is not a list of codes", where="where", do='write {"name": ["code"]}')
            if strange := next((code for code in wanted if code not in texts), None):
                more = " …" if len(texts) > SHOWN else ""
                raise ParameterError(
                    f"{strange!r} is no code of {name!r}",
                    where="where",
                    do=f"it has {', '.join(list(texts)[:SHOWN])}{more}",
                )
            chosen[place] &= np.isin(groups, [texts[code] for code in wanted])
        return chosen

    def _rows(self, margin: Margin, codes: Codes) -> tuple[tuple[str, ...], ...]:
        """The codes of every row, column by column."""
        numbers, found = np.arange(margin.cells), list[tuple[str, ...]]()
        for i, columns in enumerate(codes):
            places = numbers // prod(margin.sizes[i + 1 :]) % margin.sizes[i]
            found += [tuple(np.array(column, object)[places]) for column in columns]
        return tuple(found)

    # --- sums -------------------------------------------------------------------------------------------------------

    def _sums(self, margin: Margin, values: Floats, chosen: list[Flags]) -> Floats:
        if self.cells is None:
            part, some = values.reshape(self.model.shape), _within(margin, chosen)
            for place, keep in enumerate(chosen):
                if not keep.all():
                    part = np.compress(keep, part, axis=place)
            places = sorted(axis.place for axis in some.axes)
            left = reduced(np.ascontiguousarray(part), places)
            axes = tuple(Axis(places.index(axis.place), axis.groups, axis.size) for axis in some.axes)
            return Margin(some.name, left.shape, axes).add_up(left)
        kept = np.ones(len(values), np.bool_)
        for place, keep in enumerate(chosen):
            if not keep.all():
                stride = prod(self.model.shape[place + 1 :])
                kept &= keep[self.cells // stride % self.model.shape[place]]
        return margin.add_up(values[kept], self.cells[kept])

    def _carried(self, margin: Margin, chosen: list[Flags]) -> Floats:
        """What calibration adds to a table of a sparse cube."""
        from discreet.post.cubes.overlap import carried  # compiled: most queries need not wait for Numba

        found, some = np.zeros(margin.cells), _within(margin, chosen)
        for control, steps in zip(self.model.controls, self.steps, strict=True):
            found += carried(steps, _within(self._control(control.by), chosen), some)
        return found

    def _control(self, by: Sequence[str]) -> Margin:
        axes = list[Axis]()
        for name in by:
            place, groups, _, listed = self._variable(name, "controls")
            axes.append(Axis(place, groups, len(listed)))
        return Margin(" × ".join(by), self.model.shape, tuple(axes))

    def _sizes(self, margin: Margin, axes: list[Axis], chosen: list[Flags]) -> Int64s:
        """How many codes of each axis a row is made of: (rows, axes)."""
        found = np.empty((margin.cells, len(chosen)), np.int64)
        found[:] = [keep.sum() for keep in chosen]
        numbers = np.arange(margin.cells)
        for i, axis in enumerate(axes):
            counts = np.bincount(axis.groups, weights=chosen[axis.place], minlength=axis.size).astype(np.int64)
            found[:, axis.place] = counts[numbers // prod(margin.sizes[i + 1 :]) % axis.size]
        return found

    # --- errors -----------------------------------------------------------------------------------------------------

    @cached_property
    def perturbation(self) -> Perturbation:
        """The variance of noise in any product of codes, after calibration."""
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
                "the deviations of replicates are not loaded", where=model.table, do="open the release"
            )
        sums = np.stack([self._sums(margin, column, chosen) for column in self.deviations.T], axis=-1)
        return replicate_variance(sums, factor=model.factor, noise=model.noise * number)


def _present(axes: list[Axis], codes: Codes, chosen: list[Flags]) -> tuple[list[Axis], Codes]:
    """The axes of a table with those of their groups alone that have a chosen code."""
    some, named = list[Axis](), Codes()
    for axis, columns in zip(axes, codes, strict=True):
        there = np.unique(axis.groups[chosen[axis.place]])
        numbers = np.zeros(axis.size, np.int64)
        numbers[there] = np.arange(len(there))
        some.append(Axis(axis.place, numbers[axis.groups], len(there)))
        named.append([tuple(column[i] for i in there) for column in columns])
    return some, named


def _within(margin: Margin, chosen: list[Flags]) -> Margin:
    """The same table of the cube that has these codes alone."""
    axes = tuple(Axis(axis.place, axis.groups[chosen[axis.place]], axis.size) for axis in margin.axes)
    return Margin(margin.name, tuple(int(keep.sum()) for keep in chosen), axes)
