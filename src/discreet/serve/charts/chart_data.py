"""What of an answer is drawn: one measure with its interval, and the mark of every cell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from statistics import NormalDist

import numpy as np

from discreet.arrays import Floats
from discreet.serve.charts.scale import HUGE, TINY, decimals_for, number
from discreet.serve.charts.svg import clean
from discreet.serve.query_model import MEANING, NORMAL90, Answer, Measure, Status, TableVariable, judged

NORMAL95 = NormalDist().inv_cdf(0.975)  # standard errors in a margin at 95%
NOTHING = "–"  # the mark of a cell whose number is missing, though it is not withheld as a whole
HIDDEN = (Status.SUPPRESSED, Status.ABSENT)
ERROR = re.compile(r"(^|_)(se|sd|moe\d\d|low\d\d|high\d\d|width)$|^se_")
OWN = {"estimate": ("se", "low90", "high90", "low95", "high95"), "measured": ("moe90",)}  # though not said to be theirs
PERCENTILE = re.compile(r"^(?P<of>.*_)?p(?P<at>\d\d)$")


@dataclass(frozen=True, eq=False)
class Interval:
    """Where a number lies, with how much probability, in words."""

    low: Floats
    high: Floats
    level: str


@dataclass(frozen=True, eq=False)
class ChartData:
    """A measure of an answer, hidden cells without a number."""

    answer: Answer
    main: Measure
    value: Floats
    interval: Interval | None
    status: Sequence[Status]  # of this measure

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """Variables with more than one code."""
        return tuple(i for i, v in enumerate(self.answer.variables) if len(v) > 1)

    @cached_property
    def decimals(self) -> int:
        return decimals_for(self.value.tolist(), self.main.decimals)

    def variable(self, axis: int) -> TableVariable:
        return self.answer.variables[axis]

    def named(self, axes: Sequence[int]) -> str:
        """The variables' names."""
        return " · ".join(clean(self.variable(a).label) or clean(self.variable(a).id) for a in axes)

    def mark(self, cell: int) -> str:
        status = self.status[cell]
        return status.value if status in HIDDEN or self.there(cell) else NOTHING

    def pale(self, cell: int) -> bool:
        return self.status[cell] is Status.UNRELIABLE

    def there(self, cell: int) -> bool:
        return bool(np.isfinite(self.value[cell]))

    def gaps(self, cells: Iterable[int]) -> bool:
        """Whether one of these cells has no number."""
        return not all(map(self.there, cells))

    def cells(self, axes: Iterable[int]) -> list[int]:
        """A cell for each combination of these variables' codes, of the others' first codes."""
        shape, found = self.answer.shape, [0]
        for a in axes:
            step = prod(shape[a + 1 :])
            found = [cell + step * i for cell in found for i in range(shape[a])]
        return found

    def text(self, cell: int) -> str:
        """The number with its mark, or the mark alone."""
        mark = self.mark(cell)
        return f"{number(self.value[cell], self.decimals)} {mark}".rstrip() if self.there(cell) else mark

    def ends(self, cell: int) -> tuple[float, float] | None:
        if self.interval is None or not self.there(cell):
            return None
        low, high = float(self.interval.low[cell]), float(self.interval.high[cell])
        return (min(low, high), max(low, high)) if np.isfinite(low) and np.isfinite(high) else None

    def about(self, cell: int) -> str:
        """One cell in words."""
        what = self.label(cell) or self.main.label
        if not self.there(cell):
            return f"{what}: {meaning(self.mark(cell))}"
        text = f"{what}: {number(self.value[cell], self.decimals)}"
        if ends := self.ends(cell):
            text += f" ({self.level} {number(ends[0], self.decimals)} to {number(ends[1], self.decimals)})"
        return f"{text}, {meaning(self.mark(cell))}" if self.mark(cell) else text

    @property
    def level(self) -> str:
        return self.interval.level if self.interval else ""

    def label(self, cell: int, axes: Sequence[int] | None = None) -> str:
        """Of the codes of a cell, of these variables."""
        places = np.unravel_index(cell, self.answer.shape) if self.answer.shape else ()
        wanted = self.axes if axes is None else axes
        return " · ".join(label_of(self.answer.variables[a], int(places[a])) for a in wanted)

    def numbers_of(self, cells: Sequence[int]) -> list[float]:
        """What an axis must have room for."""
        found = [float(self.value[c]) for c in cells if self.there(c)]
        return found + [end for c in cells for end in self.ends(c) or ()]


def meaning(mark: str) -> str:
    return "no number is published" if mark == NOTHING else MEANING[Status(mark)]


def label_of(variable: TableVariable, place: int) -> str:
    return clean(variable.labels[place]) or clean(variable.codes[place]) or "(no label)"


def mains(answer: Answer) -> list[Measure]:
    """Measures that are not the error of another."""
    return [m for m in answer.measures if not m.about and not ERROR.search(m.id) and m.id in answer.numbers]


def read(answer: Answer, measure: str = "") -> ChartData | None:
    """The measure asked for, or the first; None if there is nothing to draw."""
    found = [m for m in mains(answer) if m.id == measure] if measure else mains(answer)
    if not found and not measure:
        found = [m for m in answer.measures if m.id in answer.numbers]
    if not found or not len(answer):
        return None
    value, around = _shown(answer, found[0].id), interval(answer, found[0].id)
    return ChartData(answer, found[0], value, around, _judged(answer, found[0].id, value, around))


def _judged(answer: Answer, name: str, value: Floats, around: Interval | None) -> list[Status]:
    """The marks of an answer are about its first measure that has an error; another is judged by its own."""
    given = [Status(s) for s in answer.status]  # tables may hand over its text
    first = next((m.id for m in mains(answer) if interval(answer, m.id) is not None), name)
    if name == first or around is None:
        return given
    error = (around.high - around.low) / (2 * (NORMAL95 if around.level.startswith("95") else NORMAL90))
    known = np.isfinite(value) & np.isfinite(error)
    own = zip(given, known.tolist(), judged(value, error), strict=True)
    return [mark if here and before not in HIDDEN else before for before, here, mark in own]


def _shown(answer: Answer, name: str) -> Floats:
    """The numbers of a measure, NaN where the cell is withheld or absent."""
    value = np.array(answer.numbers[name], np.float64)
    hidden = np.fromiter((s in HIDDEN for s in answer.status), np.bool_, len(value))
    with np.errstate(invalid="ignore"):
        value[hidden | ~(np.abs(value) <= HUGE)] = np.nan
        value[np.abs(value) < TINY] = 0.0
    return value


def interval(answer: Answer, name: str) -> Interval | None:
    """As published; else from a margin or a standard error of the measure."""
    own = {m.id: m.id for m in answer.measures if m.about == name and m.id in answer.numbers}
    own |= {end: end for end in OWN.get(name, ()) if end in answer.numbers and end not in own}
    by_end = {end.removeprefix(f"{name}_"): column for end, column in own.items()}
    for level in ("90", "95"):
        if f"low{level}" in by_end and f"high{level}" in by_end:
            low, high = (_shown(answer, by_end[f"{end}{level}"]) for end in ("low", "high"))
            return Interval(low, high, f"{level}% interval")
    for end, scale in (("moe90", 1.0), ("se", NORMAL90)):
        if end in by_end:
            value, error = _shown(answer, name), np.abs(_shown(answer, by_end[end])) * scale
            return Interval(value - error, value + error, "90% interval")
    return None


def percentiles(answer: Answer) -> dict[int, str]:
    """The measures that are percentiles of one thing, if the median and two around it are there."""
    families: dict[str, dict[int, str]] = {}
    for m in mains(answer):
        name = "p50" if m.id == "median" else m.id
        if found := PERCENTILE.match(name):
            families.setdefault(found["of"] or "", {})[int(found["at"])] = m.id
    for family in families.values():
        if 50 in family and any(100 - at in family for at in family if at < 50):
            return family
    return {}
