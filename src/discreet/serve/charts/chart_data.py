"""The data of a chart: one measure with its interval, and the mark of every cell."""

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
from discreet.serve.query_model import MEANING, NORMAL90, Answer, Measure, Status, TableVariable, reliability_marks

NORMAL95 = NormalDist().inv_cdf(0.975)  # standard errors in a 95% margin of error
NO_NUMBER = "–"  # the mark of a cell whose number is missing although the cell is not suppressed
WITHOUT_NUMBER = (Status.SUPPRESSED, Status.ABSENT)
ERROR = re.compile(r"(^|_)(se|sd|moe\d\d|low\d\d|high\d\d|width)$|^se_")
UNDECLARED_ERRORS = {
    "estimate": ("se", "low90", "high90", "low95", "high95"),
    "measured": ("moe90",),
}  # errors by name, although not declared as such
PERCENTILE = re.compile(r"^(?P<of>.*_)?p(?P<at>\d\d)$")


@dataclass(frozen=True, eq=False)
class Interval:
    """Interval ends of a measure, and a description of the level."""

    low: Floats
    high: Floats
    level: str


@dataclass(frozen=True, eq=False)
class ChartData:
    """A measure of an answer; suppressed and absent cells have no number."""

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

    def axis_names(self, axes: Sequence[int]) -> str:
        """The labels of these variables."""
        return " · ".join(clean(self.variable(a).label) or clean(self.variable(a).id) for a in axes)

    def mark(self, cell: int) -> str:
        status = self.status[cell]
        return status.value if status in WITHOUT_NUMBER or self.has_number(cell) else NO_NUMBER

    def is_unreliable(self, cell: int) -> bool:
        return self.status[cell] is Status.UNRELIABLE

    def has_number(self, cell: int) -> bool:
        return bool(np.isfinite(self.value[cell]))

    def any_missing(self, cells: Iterable[int]) -> bool:
        """Whether any of these cells has no number."""
        return not all(map(self.has_number, cells))

    def cells(self, axes: Iterable[int]) -> list[int]:
        """The cells for all combinations of these variables' codes, at the first codes of the others."""
        shape, cells = self.answer.shape, [0]
        for a in axes:
            step = prod(shape[a + 1 :])
            cells = [cell + step * i for cell in cells for i in range(shape[a])]
        return cells

    def text(self, cell: int) -> str:
        """The number with its mark, or just the mark."""
        mark = self.mark(cell)
        return f"{number(self.value[cell], self.decimals)} {mark}".rstrip() if self.has_number(cell) else mark

    def bounds(self, cell: int) -> tuple[float, float] | None:
        if self.interval is None or not self.has_number(cell):
            return None
        low, high = float(self.interval.low[cell]), float(self.interval.high[cell])
        return (min(low, high), max(low, high)) if np.isfinite(low) and np.isfinite(high) else None

    def describe(self, cell: int) -> str:
        """A description of one cell."""
        what = self.label(cell) or self.main.label
        if not self.has_number(cell):
            return f"{what}: {meaning(self.mark(cell))}"
        text = f"{what}: {number(self.value[cell], self.decimals)}"
        if ends := self.bounds(cell):
            text += f" ({self.level} {number(ends[0], self.decimals)} to {number(ends[1], self.decimals)})"
        return f"{text}, {meaning(self.mark(cell))}" if self.mark(cell) else text

    @property
    def level(self) -> str:
        return self.interval.level if self.interval else ""

    def label(self, cell: int, axes: Sequence[int] | None = None) -> str:
        """The labels of a cell's codes, for these variables."""
        places = np.unravel_index(cell, self.answer.shape) if self.answer.shape else ()
        labelled = self.axes if axes is None else axes
        return " · ".join(label_of(self.answer.variables[a], int(places[a])) for a in labelled)

    def numbers_of(self, cells: Sequence[int]) -> list[float]:
        """All values that an axis must cover."""
        values = [float(self.value[c]) for c in cells if self.has_number(c)]
        return values + [end for c in cells for end in self.bounds(c) or ()]


def meaning(mark: str) -> str:
    return "no number is published" if mark == NO_NUMBER else MEANING[Status(mark)]


def label_of(variable: TableVariable, place: int) -> str:
    return clean(variable.labels[place]) or clean(variable.codes[place]) or "(no label)"


def primary_measures(answer: Answer) -> list[Measure]:
    """Measures that are not the error of another measure."""
    return [m for m in answer.measures if not m.error_of and not ERROR.search(m.id) and m.id in answer.numbers]


def read_chart_data(answer: Answer, measure: str = "") -> ChartData | None:
    """The requested measure, or the first; None if there is nothing to draw."""
    measures = [m for m in primary_measures(answer) if m.id == measure] if measure else primary_measures(answer)
    if not measures and not measure:
        measures = [m for m in answer.measures if m.id in answer.numbers]
    if not measures or not len(answer):
        return None
    value, around = _plotted(answer, measures[0].id), interval(answer, measures[0].id)
    return ChartData(answer, measures[0], value, around, _marks_of(answer, measures[0].id, value, around))


def _marks_of(answer: Answer, name: str, value: Floats, around: Interval | None) -> list[Status]:
    """The answer's marks describe its first measure with an error; other measures are marked by their own errors."""
    given = [Status(s) for s in answer.status]  # tables may give it as plain text
    first = next((m.id for m in primary_measures(answer) if interval(answer, m.id) is not None), name)
    if name == first or around is None:
        return given
    error = (around.high - around.low) / (2 * (NORMAL95 if around.level.startswith("95") else NORMAL90))
    known = np.isfinite(value) & np.isfinite(error)
    own = zip(given, known.tolist(), reliability_marks(value, error), strict=True)
    return [mark if here and before not in WITHOUT_NUMBER else before for before, here, mark in own]


def _plotted(answer: Answer, name: str) -> Floats:
    """The numbers of a measure, NaN where the cell is suppressed or absent."""
    value = np.array(answer.numbers[name], np.float64)
    without = np.fromiter((s in WITHOUT_NUMBER for s in answer.status), np.bool_, len(value))
    with np.errstate(invalid="ignore"):
        value[without | ~(np.abs(value) <= HUGE)] = np.nan
        value[np.abs(value) < TINY] = 0.0
    return value


def interval(answer: Answer, name: str) -> Interval | None:
    """The published interval, or one from the measure's margin of error or standard error."""
    own = {m.id: m.id for m in answer.measures if m.error_of == name and m.id in answer.numbers}
    own |= {end: end for end in UNDECLARED_ERRORS.get(name, ()) if end in answer.numbers and end not in own}
    by_end = {end.removeprefix(f"{name}_"): column for end, column in own.items()}
    for level in ("90", "95"):
        if f"low{level}" in by_end and f"high{level}" in by_end:
            low, high = (_plotted(answer, by_end[f"{end}{level}"]) for end in ("low", "high"))
            return Interval(low, high, f"{level}% confidence interval")
    for end, scale in (("moe90", 1.0), ("se", NORMAL90)):
        if end in by_end:
            value, error = _plotted(answer, name), np.abs(_plotted(answer, by_end[end])) * scale
            return Interval(value - error, value + error, "90% confidence interval")
    return None


def percentiles(answer: Answer) -> dict[int, str]:
    """Measures that are percentiles of one quantity, if they include the median and a symmetric pair."""
    families: dict[str, dict[int, str]] = {}
    for m in primary_measures(answer):
        name = "p50" if m.id == "median" else m.id
        if match := PERCENTILE.match(name):
            families.setdefault(match["of"] or "", {})[int(match["at"])] = m.id
    for family in families.values():
        if 50 in family and any(100 - at in family for at in family if at < 50):
            return family
    return {}
