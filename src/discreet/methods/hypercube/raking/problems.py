"""Why a cube cannot be raked to its targets, in words: margins and cells are named, numbers are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from discreet.arrays import Flags
from discreet.methods.hypercube.control_feasibility import inconsistent_pairs
from discreet.post.cubes.margins import Floats, Margin, Problem

NAMED = 100  # cells of a margin, at most
ROUNDING = 1e-12  # relative: less is no contradiction

NO_CELLS = ("no cells", "all cells that add up to it are zero, the target is not")
NO_TARGET = ("target not positive", "the target is negative")
NO_SUM = ("sum not positive", "the cells add up to zero or less, the target is neither")
EMPTIED = ("no cells", "the cells that add up to it came to zero, the target is not")


def obstacles(margins: Sequence[Margin], sums: Floats, goals: Floats, empty: Flags) -> Iterator[Problem]:
    """What raking practically never overcomes, found before it begins. A target of 0 is none."""
    wanted = goals != 0
    below = goals < 0
    for (kind, why), where in (
        (NO_CELLS, wanted & empty),
        (NO_TARGET, wanted & ~empty & below),
        (NO_SUM, wanted & ~empty & ~below & (sums <= 0)),
    ):
        yield from _named(margins, kind, why, where)


def unmet(
    margins: Sequence[Margin], sums: Floats, goals: Floats, tolerance: float, known: Sequence[Problem]
) -> Iterator[Problem]:
    """What stood in the way: slices that were emptied by other targets, and the margin that is furthest off."""
    before = {(problem.margin, problem.cell) for problem in known}
    for problem in _named(margins, *EMPTIED, (sums == 0) & (goals != 0)):
        if (problem.margin, problem.cell) not in before:
            yield problem
    ends = np.cumsum([margin.cells for margin in margins])
    worst = int(np.argmax(np.abs(sums - goals) / np.maximum(1, np.abs(goals))))
    place = int(np.searchsorted(ends, worst, side="right"))
    own, cell = margins[place], worst - int(ends[place]) + margins[place].cells
    rival = next(_rivals(margins, place, goals, tolerance), None)
    if rival is not None:
        why = f"it is the furthest from its targets, whose sums are not those of {rival.name}"
        yield Problem("contradiction", own.name, cell, why)
    elif (own.name, cell) not in before:
        yield Problem("not met", own.name, cell, "it is the furthest from its targets")


def _rivals(margins: Sequence[Margin], place: int, goals: Floats, tolerance: float) -> Iterator[Margin]:
    """Margins that no cube has together with the one in this place: what both tell differs by more than could be left
    of gaps within the tolerance, and by more than rounding."""
    own = margins[place]
    starts = np.cumsum([0, *(margin.cells for margin in margins)])
    tables = [goals[a:b] for a, b in pairwise(starts.tolist())]
    totals = np.add.reduceat(goals, starts[:-1])
    rooms = tolerance * (np.diff(starts) + own.cells) + ROUNDING
    differ = np.abs(totals - totals[place]) > rooms * np.maximum(1, np.abs(totals))
    for i, margin in enumerate(margins):
        alone = {*own.places}.isdisjoint(margin.places)  # then both tell the total, and nothing else
        if i == place or (alone and not differ[i]):
            continue
        if inconsistent_pairs([own, margin], [tables[place], tables[i]], float(rooms[i])):
            yield margin


def _named(margins: Sequence[Margin], kind: str, why: str, where: Flags) -> Iterator[Problem]:
    if not where.any():
        return
    begins = 0
    for margin in margins:
        cells = np.flatnonzero(where[begins : begins + margin.cells])
        begins += margin.cells
        more = f", and so in {len(cells) - NAMED} more cells" if len(cells) > NAMED else ""
        for cell in cells[:NAMED].tolist():
            yield Problem(kind, margin.name, cell, why + more)
