"""A cube on the web: any of its variables and coarser ones, everything else added up, each number with its error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np

from discreet.errors import AskedWrongly, ParameterError
from discreet.post.cube import Cube
from discreet.post.sampling import Reliability, reliability
from discreet.serve.asking import About, Answer, Floats, Measure, Question, Status, Variable, at_most, checked

LEVEL = Fraction(9, 10)
CAUTION, WITHHOLD = 0.15, 0.3  # coefficients of variation
MARKS = {
    Reliability.RELIABLE: Status.RELIABLE,
    Reliability.CAUTION: Status.CAUTION,
    Reliability.WITHHOLD: Status.UNRELIABLE,
}


@dataclass(frozen=True, eq=False)
class CubeTable:
    """A published cube, or counts with noise of one law in every cell: both add up."""

    about: About
    cube: Cube
    labels: Mapping[str, Sequence[str]]  # of the codes of variables that have any
    names: Mapping[str, str]  # of variables
    additive = True

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        axes = [self._variable(axis.name, axis.codes) for axis in self.cube.model.axes]
        coarser = [
            self._variable(level.name, level.codes, self.cube.model.axes[level.axis].name, level.groups)
            for level in self.cube.model.levels
        ]
        return (*axes, *coarser)

    def _variable(
        self, name: str, codes: Sequence[Sequence[str]], of: str = "", groups: tuple[int, ...] = ()
    ) -> Variable:
        texts = tuple("/".join(code) for code in codes)
        labels = tuple(self.labels.get(name) or texts)
        return Variable(name, self.names.get(name, name), texts, labels, of, groups)

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        counts = self.cube.model.measure == "count"
        decimals = 0 if counts and not self.cube.model.controls else 1
        what = "Number of records" if counts else "Weighted total"
        return (
            Measure("estimate", what, decimals),
            Measure("se", "Standard error", 1, "estimate"),
            Measure("low90", "90% interval, low", decimals, "estimate"),
            Measure("high90", "90% interval, high", decimals, "estimate"),
        )

    def cells(self, question: Question) -> int:
        shown, _, measures = self._checked(question)
        return prod(len(v) for v in shown) * len(measures)

    def _checked(self, question: Question) -> tuple[tuple[Variable, ...], tuple[Variable, ...], tuple[Measure, ...]]:
        """Codes that a limit of a coarser or a finer variable leaves out are not shown."""
        shown, limited, measures = checked(self, question)
        return tuple(self._within(v, limited) for v in shown), limited, measures

    def _within(self, shown: Variable, limited: Sequence[Variable]) -> Variable:
        whole = {v.id: v for v in self.variables}
        axis = whole[shown.of or shown.id]
        left = np.ones(len(axis), np.bool_)
        for v in limited:
            if (v.of or v.id) == axis.id and v.id != shown.id:
                left &= np.isin(_groups(whole[v.id]), [whole[v.id].codes.index(code) for code in v.codes])
        there = {whole[shown.id].codes[i] for i in np.unique(_groups(whole[shown.id])[left])}
        codes = [code for code in shown.codes if code in there]
        if not codes:
            raise AskedWrongly("no cell of the cube is chosen", where="where", do="choose codes that go together")
        return shown if len(codes) == len(shown) else shown.chosen(codes)

    def answer(self, question: Question, most: int) -> Answer:
        shown, limited, measures = self._checked(question)
        at_most(self, shown, len(measures), most)
        try:
            found = self.cube.table(question.shown, _where(question), level=LEVEL)
        except ParameterError as error:  # such as codes of which no cell has both
            raise AskedWrongly(error.what, where=error.where, do=error.do) from None
        place = self._places(shown, found.codes)
        size = prod(len(v) for v in shown)
        numbers: dict[str, Floats] = {}
        columns = {"estimate": found.estimate, "se": found.se, "low90": found.low, "high90": found.high}
        for measure in measures:
            numbers[measure.id] = np.full(size, np.nan)
            numbers[measure.id][place] = columns[measure.id]
        status = np.full(size, Status.ABSENT, object)
        status[place] = [
            MARKS[Reliability(m)] for m in reliability(found.estimate, found.se, caution=CAUTION, withhold=WITHHOLD)
        ]
        within = tuple((v, v.codes) for v in limited)
        return Answer(
            self.about.title, shown, measures, numbers, [Status(mark) for mark in status], self.about.notes, within
        )

    def _places(
        self, shown: tuple[Variable, ...], codes: tuple[tuple[str, ...], ...]
    ) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Where each row of the cube's table is in the answer, whose codes are in the order asked for."""
        width = {axis.name: len(axis.columns) for axis in (*self.cube.model.axes, *self.cube.model.levels)}
        found, first = np.zeros(len(codes[0]) if codes else 1, np.int64), 0
        for v in shown:
            parts = codes[first : first + width[v.id]]
            first += width[v.id]
            order = {code: i for i, code in enumerate(v.codes)}
            texts = parts[0] if len(parts) == 1 else ["/".join(code) for code in zip(*parts, strict=True)]
            found = found * len(v) + np.array([order[text] for text in texts], np.int64)
        return found


def _groups(v: Variable) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The group of each code of the axis that a variable is of."""
    return np.array(v.groups, np.int64) if v.of else np.arange(len(v))


def _where(question: Question) -> dict[str, list[str]]:
    """What limits the cells: codes chosen of shown variables, and of others."""
    found: dict[str, list[str]] = {}
    for name, codes in (*question.by, *question.where):
        if not codes:
            continue
        found[name] = [code for code in codes if code in found.get(name, codes)]  # shown, and limited further
    return found
