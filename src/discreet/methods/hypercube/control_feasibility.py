"""Feasibility of control totals, checked from the totals alone before any budget is spent. Proof: regression.md.

Two tables of one cube agree on every sum that both determine. If they differ in one, no cube has both tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from discreet.domain import Numbers
from discreet.errors import ParameterError
from discreet.post.cubes.margins import Axis, Floats, Margin, Problem
from discreet.post.cubes.overlap import arrange, by_place, group_sizes, outer_product


def infeasible_totals(margins: Sequence[Margin], targets: Sequence[Floats], tolerance: float) -> list[Problem]:
    """Why hard controls are infeasible: negative or all-zero totals, non-zero totals of empty sets of cells, pairs with
    inconsistent sums. Necessary conditions only: three tables that are consistent in pairs may still be the margins of
    no non-negative cube, which is not checked."""
    check(margins, targets)
    controls = list(zip(margins, targets, strict=True))
    signs = [problem for margin, totals in controls if (problem := _sign(margin, totals))]
    empty = [problem for margin, totals in controls if (problem := _empty(margin, totals, tolerance))]
    return signs + empty + inconsistent_pairs(margins, targets, tolerance)


def inconsistent_pairs(margins: Sequence[Margin], targets: Sequence[Floats], tolerance: float) -> list[Problem]:
    """Pairs of margins that differ in a sum which both determine: one problem per pair, at the largest difference. Sums
    a and b are consistent if |a − b| ≤ tolerance·max(1, |a|, |b|)."""
    pairs = combinations(zip(margins, targets, strict=True), 2)
    return [problem for a, b in pairs if (problem := _pair(*a, *b, tolerance))]


def check(margins: Sequence[Margin], targets: Sequence[Floats]) -> None:
    """Requires one finite total per cell of each margin, and margins of one cube."""
    if len(margins) != len(targets) or len({margin.shape for margin in margins}) > 1:
        raise ParameterError(
            "expected one array of totals per margin, all of one cube", where="controls", do="pass matching lists"
        )
    for margin, totals in zip(margins, targets, strict=True):
        if totals.shape != (margin.cells,) or not np.isfinite(totals).all():
            raise ParameterError(
                "expected one finite total per cell",
                where=f"control {margin.name}",
                do="pass a flat array in cell order, first axis first",
            )


def _sign(margin: Margin, totals: Floats) -> Problem | None:
    """Negative totals, which no table of counts has; or zeros only, to which nothing can be scaled."""
    least = int(np.argmin(totals))
    if totals[least] < 0:
        detail = f"the total is {totals[least]:.12g}, but totals of counts are not negative"
        return Problem("target not positive", margin.name, least, detail)
    if not totals.any():
        return Problem("target not positive", margin.name, 0, "every total is 0")
    return None


def _empty(margin: Margin, totals: Floats, tolerance: float) -> Problem | None:
    """A non-zero total of a cell to which no cell of the cube belongs."""
    without = outer_product([group_sizes(axis) for axis in by_place(margin)]) == 0
    numbers = arrange(margin, np.arange(margin.cells, dtype=np.float64))
    missed = np.where(without, np.abs(arrange(margin, totals)), 0.0).reshape(-1)
    if missed.max() <= tolerance:
        return None
    cell = int(numbers.reshape(-1)[np.argmax(missed)])
    return Problem(
        "no cells", margin.name, cell, f"the total is {totals[cell]:.12g}, but no cell of the cube belongs to it"
    )


def _pair(a: Margin, first: Floats, b: Margin, second: Floats, tolerance: float) -> Problem | None:
    """Compares two tables on the finest table to which both add up."""
    shared = sorted({*a.places} & {*b.places})
    of_a, of_b = ({axis.place: axis for axis in by_place(margin)} for margin in (a, b))
    merged = {place: _components(of_a[place], of_b[place]) for place in shared}
    sums_a = _summed(a, first, {place: (labels, n) for place, (labels, _, n) in merged.items()})
    sums_b = _summed(b, second, {place: (labels, n) for place, (_, labels, n) in merged.items()})
    apart = np.abs(sums_a - sums_b)
    excess = apart - tolerance * np.maximum(1.0, np.maximum(np.abs(sums_a), np.abs(sums_b)))
    if excess.max() <= 0:
        return None
    worst = np.unravel_index(int(np.argmax(excess)), excess.shape)
    where = "" if shared else "in total "
    detail = f"{where}its cells add up to {sums_a[worst]:.12g}, those of {b.name} to {sums_b[worst]:.12g}"
    if (more := int((excess > 0).sum()) - 1) > 0:
        detail += f"; {more} more sums differ"
    return Problem("inconsistent", a.name, _first_cell(a, merged, dict(zip(shared, worst, strict=True))), detail)


def _components(a: Axis, b: Axis) -> tuple[Numbers, Numbers, int]:
    """The finest groups to which both groupings of one axis add up: connected components, where a shared code links two
    groups. Returns the component of every group of each grouping (−1 if it has no codes) and their number."""
    label = np.arange(a.size)
    while True:  # every code takes the smallest label of its groups, until nothing changes
        other = np.full(b.size, a.size)
        np.minimum.at(other, b.groups, label[a.groups])
        smallest = label.copy()
        np.minimum.at(smallest, a.groups, other[b.groups])
        if np.array_equal(smallest, label):
            break
        label = smallest
    names, numbers = np.unique(label[a.groups], return_inverse=True)
    of_a, of_b = np.full(a.size, -1), np.full(b.size, -1)
    of_a[a.groups] = numbers
    of_b[b.groups] = numbers
    return of_a, of_b, len(names)


def _summed(margin: Margin, totals: Floats, labelled: dict[int, tuple[Numbers, int]]) -> Floats:
    """Totals summed over all other axes and by the labels of these axes' groups. Groups without codes are left out."""
    table = arrange(margin, totals)
    for i, axis in reversed(list(enumerate(by_place(margin)))):
        labels, size = labelled.get(axis.place, (np.zeros(axis.size, np.int64), 1))
        used = (labels >= 0) & (group_sizes(axis) > 0)
        added = np.zeros((size, *np.delete(table.shape, i)))
        np.add.at(added, labels[used], np.moveaxis(table, i, 0)[used])
        table = np.moveaxis(added, 0, i)
    return table.reshape([size for _, size in labelled.values()])


def _first_cell(margin: Margin, merged: dict[int, tuple[Numbers, Numbers, int]], at: dict[int, np.intp]) -> int:
    """The first cell of a margin that belongs to a shared sum."""
    numbers: Floats = arrange(margin, np.arange(margin.cells, dtype=np.float64))
    for i, axis in enumerate(by_place(margin)):
        chosen = merged[axis.place][0] == at[axis.place] if axis.place in at else group_sizes(axis) > 0
        numbers = np.compress(chosen, numbers, axis=i)
    return int(numbers.min())
