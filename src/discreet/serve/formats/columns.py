"""An answer as columns of equal length, with its notes: shared by all formats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats
from discreet.publish.description import SIMULATION
from discreet.serve.query_model import MEANING, Answer, Measure, Status, TableSummary

SOME = 5  # codes listed where every row repeats the list
WHOLE = 2.0**53  # floats from here on have no decimals


def rounded(answer: Answer, measure: Measure) -> Floats:
    """The numbers of a measure, rounded to its decimals; NaN where there is none, never −0."""
    numbers = np.asarray(answer.numbers[measure.id], np.float64)
    known = np.where(np.isfinite(numbers), numbers, np.nan)
    small = np.abs(known) < WHOLE
    return np.where(small, np.round(np.where(small, known, 0.0), measure.decimals) + 0.0, known)


def marks(answer: Answer, measure: Measure | None = None) -> list[str]:
    """The mark of each number of a measure, or the worst of each cell. Empty where reliable."""
    return [str(mark) for mark in (answer.status if measure is None else answer.marks_for(measure))]


def places(answer: Answer, variable: int) -> NDArray[np.int32]:
    """The index of each cell's code of a variable."""
    shape = answer.shape
    inner, outer = prod(shape[variable + 1 :]), prod(shape[:variable])
    return np.tile(np.repeat(np.arange(shape[variable], dtype=np.int32), inner), outer)


def distinct(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """The names made distinct: repeated ones get a number from the second on."""
    used, unique = set(taken), list[str]()
    for name in names:
        free, number = name, 1
        while free in used:
            number += 1
            free = f"{name}_{number}"
        used.add(free)
        unique.append(free)
    return unique


def headings(answer: Answer, *extra: str) -> list[str]:
    """Column names: code and label of each variable, the measures, the status, and extra columns of a format."""
    codes = [name for v in answer.variables for name in (v.id, f"{v.id}_label")]
    return distinct([*codes, *(m.id for m in answer.measures), "status", *extra])


def briefly(answer: Answer) -> str:
    """The limits of a query, short enough to be repeated in every row."""
    return "; ".join(f"{v.id} = {' + '.join(_some(codes))}" for v, codes in answer.limits)


def _some(codes: Sequence[str]) -> list[str]:
    return list(codes) if len(codes) <= SOME else [*codes[:SOME], f"{len(codes) - SOME} more"]


def limits(answer: Answer) -> list[str]:
    """The limits of a query, each code with its label."""
    texts = []
    for v, codes in answer.limits:
        label = dict(zip(v.codes, v.labels, strict=True))
        named = (f"{code} ({label[code]})" if label.get(code, code) != code else code for code in codes)
        texts.append(f"{v.label}: {', '.join(named)}")
    return texts


def remarks(answer: Answer, summary: TableSummary) -> list[tuple[str, str]]:
    """Notes about the numbers, as headings and sentences."""
    entries = [("Simulation", SIMULATION)] * summary.simulation
    entries += [("Table", answer.title), ("Release", summary.release), ("Published", summary.updated)]
    entries += [("Limited to", text) for text in limits(answer)]
    entries += [("Guarantee", summary.guarantee)]
    entries += [("Caveat", text) for text in summary.caveats]
    entries += [("Noise", summary.noise)]
    entries += [("Note", text) for text in answer.notes if text != SIMULATION]
    return [(heading, text) for heading, text in entries if text]


def meanings() -> dict[str, str]:
    """The meaning of each mark; a number without a mark is reliable."""
    return {mark.value: words for mark, words in MEANING.items() if mark is not Status.RELIABLE}
