"""Why a cube could not be raked to its targets, as text: margins and cells are named, values are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from discreet.arrays import Flags
from discreet.methods.hypercube.control_feasibility import inconsistent_pairs
from discreet.post.cubes.margins import Floats, Margin, Problem

NAMED = 100  # cells listed per margin, at most
ROUNDING = 1e-12  # relative: smaller differences are rounding errors

NO_CELLS = ("no cells", "all its cells are zero, but the target is not")
NO_TARGET = ("target not positive", "the target is negative")
NO_SUM = ("sum not positive", "its cells add up to zero or less, but the target is positive")
EMPTIED = ("no cells", "its cells were scaled to zero by other targets, but its target is not zero")


def obstacles(margins: Sequence[Margin], sums: Floats, goals: Floats, empty: Flags) -> Iterator[Problem]:
    """Problems that are visible before raking and with which it practically never converges. A target of 0 is not
    one."""
    nonzero = goals != 0
    below = goals < 0
    for (kind, why), where in (
        (NO_CELLS, nonzero & empty),
        (NO_TARGET, nonzero & ~empty & below),
        (NO_SUM, nonzero & ~empty & ~below & (sums <= 0)),
    ):
        yield from _named(margins, kind, why, where)


def unmet(
    margins: Sequence[Margin], sums: Floats, goals: Floats, tolerance: float, known: Sequence[Problem]
) -> Iterator[Problem]:
    """Why targets were not met: slices that other targets scaled to zero, and the margin with the largest relative
    gap."""
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
        why = f"largest gap; its targets are inconsistent with those of {rival.name}"
        yield Problem("inconsistent", own.name, cell, why)
    elif (own.name, cell) not in before:
        yield Problem("not met", own.name, cell, "largest gap")


def _rivals(margins: Sequence[Margin], place: int, goals: Floats, tolerance: float) -> Iterator[Margin]:
    """Margins that are inconsistent with the one in this place: a shared sum differs by more than gaps within the
    tolerance, and rounding, could explain."""
    own = margins[place]
    starts = np.cumsum([0, *(margin.cells for margin in margins)])
    tables = [goals[a:b] for a, b in pairwise(starts.tolist())]
    totals = np.add.reduceat(goals, starts[:-1])
    rooms = tolerance * (np.diff(starts) + own.cells) + ROUNDING
    differ = np.abs(totals - totals[place]) > rooms * np.maximum(1, np.abs(totals))
    for i, margin in enumerate(margins):
        alone = {*own.places}.isdisjoint(margin.places)  # then they share the total only
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
        more = f", also in {len(cells) - NAMED} more cells" if len(cells) > NAMED else ""
        for cell in cells[:NAMED].tolist():
            yield Problem(kind, margin.name, cell, why + more)
