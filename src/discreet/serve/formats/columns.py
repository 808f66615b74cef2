"""An answer as columns of equal length, and the words that go with it: what all formats are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats
from discreet.publish.description import SIMULATION
from discreet.serve.query_model import MEANING, About, Answer, Measure, Status

SOME = 5  # codes that are named where every row repeats them
WHOLE = 2.0**53  # floats from here on have no decimals


def rounded(answer: Answer, measure: Measure) -> Floats:
    """The numbers of a measure to its decimals; NaN where there is none, never −0."""
    found = np.asarray(answer.numbers[measure.id], np.float64)
    known = np.where(np.isfinite(found), found, np.nan)
    small = np.abs(known) < WHOLE
    return np.where(small, np.round(np.where(small, known, 0.0), measure.decimals) + 0.0, known)


def marks(answer: Answer, measure: Measure | None = None) -> list[str]:
    """The mark of each number of a measure; or of each cell, the worst. Empty where it is reliable."""
    return [str(mark) for mark in (answer.status if measure is None else answer.marked(measure))]


def places(answer: Answer, variable: int) -> NDArray[np.int32]:
    """Which code of a variable each cell has."""
    shape = answer.shape
    inner, outer = prod(shape[variable + 1 :]), prod(shape[:variable])
    return np.tile(np.repeat(np.arange(shape[variable], dtype=np.int32), inner), outer)


def distinct(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """The names, numbered from the second of a kind."""
    used, found = set(taken), list[str]()
    for name in names:
        free, number = name, 1
        while free in used:
            number += 1
            free = f"{name}_{number}"
        used.add(free)
        found.append(free)
    return found


def headings(answer: Answer, *extra: str) -> list[str]:
    """A code and a label of each variable, the measures, the status, and what else a format has."""
    codes = [name for v in answer.variables for name in (v.id, f"{v.id}_label")]
    return distinct([*codes, *(m.id for m in answer.measures), "status", *extra])


def briefly(answer: Answer) -> str:
    """What everything is limited to, short enough to be repeated."""
    return "; ".join(f"{v.id} = {' + '.join(_some(codes))}" for v, codes in answer.limited)


def _some(codes: Sequence[str]) -> list[str]:
    return list(codes) if len(codes) <= SOME else [*codes[:SOME], f"{len(codes) - SOME} more"]


def limits(answer: Answer) -> list[str]:
    """What everything is limited to, each code with its label."""
    found = []
    for v, codes in answer.limited:
        label = dict(zip(v.codes, v.labels, strict=True))
        named = (f"{code} ({label[code]})" if label.get(code, code) != code else code for code in codes)
        found.append(f"{v.label}: {', '.join(named)}")
    return found


def remarks(answer: Answer, about: About) -> list[tuple[str, str]]:
    """All that should be known about the numbers, as headings and sentences."""
    found = [("Simulation", SIMULATION)] * about.simulation
    found += [("Table", answer.title), ("Release", about.release), ("Published", about.updated)]
    found += [("Limited to", text) for text in limits(answer)]
    found += [("Guarantee", about.guarantee)]
    found += [("Caveat", text) for text in about.caveats]
    found += [("Noise", about.noise)]
    found += [("Note", text) for text in answer.notes if text != SIMULATION]
    return [(heading, text) for heading, text in found if text]


def meanings() -> dict[str, str]:
    """What each mark means; a number without one is reliable."""
    return {mark.value: words for mark, words in MEANING.items() if mark is not Status.RELIABLE}
