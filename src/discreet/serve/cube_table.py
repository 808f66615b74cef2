"""A cube on the web: any of its variables and coarser ones, everything else added up, each number with its error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np

from discreet.errors import InvalidQuery, ParameterError
from discreet.post.cubes.cube import Cube
from discreet.serve.query_model import About, Answer, Measure, TableQuery, TableVariable, at_most, checked, judged

LEVEL = Fraction(9, 10)


@dataclass(frozen=True, eq=False)
class AdditiveTable:
    """A published cube, or counts with noise of one distribution in every cell: both add up."""

    about: About
    cube: Cube
    labels: Mapping[str, Sequence[str]]  # of the codes of variables that have any
    names: Mapping[str, str]  # of variables
    additive = True

    @cached_property
    def variables(self) -> tuple[TableVariable, ...]:
        axes = [self._variable(axis.name, axis.codes) for axis in self.cube.model.axes]
        coarser = [
            self._variable(level.name, level.codes, self.cube.model.axes[level.axis].name, level.groups)
            for level in self.cube.model.levels
        ]
        return (*axes, *coarser)

    def _variable(
        self, name: str, codes: Sequence[Sequence[str]], of: str = "", groups: tuple[int, ...] = ()
    ) -> TableVariable:
        texts = tuple("/".join(code) for code in codes)
        labels = tuple(self.labels.get(name) or texts)
        return TableVariable(name, self.names.get(name, name), texts, labels, of, groups)

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

    def cells(self, question: TableQuery) -> int:
        shown, _, measures = self._checked(question)
        return prod(len(v) for v in shown) * len(measures)

    def _checked(
        self, question: TableQuery
    ) -> tuple[tuple[TableVariable, ...], tuple[TableVariable, ...], tuple[Measure, ...]]:
        """Codes that a limit of a coarser or a finer variable leaves out are not shown."""
        shown, limited, measures = checked(self, question)
        return tuple(self._within(v, limited) for v in shown), limited, measures

    def _within(self, shown: TableVariable, limited: Sequence[TableVariable]) -> TableVariable:
        whole = {v.id: v for v in self.variables}
        axis = whole[shown.of or shown.id]
        left = np.ones(len(axis), np.bool_)
        for v in limited:
            if (v.of or v.id) == axis.id and v.id != shown.id:
                chosen = set(v.codes)
                kept = np.array([code in chosen for code in whole[v.id].codes], np.bool_)
                left &= kept[_groups(whole[v.id])]
        there = {whole[shown.id].codes[i] for i in np.unique(_groups(whole[shown.id])[left])}
        codes = [code for code in shown.codes if code in there]
        if not codes:
            raise InvalidQuery("no cell of the cube is chosen", where="where", do="choose codes that go together")
        return shown if len(codes) == len(shown) else shown.chosen(codes)

    def answer(self, question: TableQuery, most: int) -> Answer:
        shown, limited, measures = self._checked(question)
        at_most(self, shown, len(measures), most)
        try:
            found = self.cube.table(question.shown, _where(question), level=LEVEL)
        except ParameterError as error:  # such as codes of which no cell has both
            raise InvalidQuery(error.what, where=error.where, do=error.do) from None
        order = np.argsort(self._places(shown, found.codes))  # codes come in the order asked for
        columns = {"estimate": found.estimate, "se": found.se, "low90": found.low, "high90": found.high}
        numbers = {measure.id: columns[measure.id][order] for measure in measures}
        status = judged(found.estimate[order], found.se[order])
        within = tuple((v, v.codes) for v in limited)
        return Answer(self.about.title, shown, measures, numbers, status, self.about.notes, within)

    def _places(
        self, shown: tuple[TableVariable, ...], codes: tuple[tuple[str, ...], ...]
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


def _groups(v: TableVariable) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The group of each code of the axis that a variable is of."""
    return np.array(v.groups, np.int64) if v.of else np.arange(len(v))


def _where(question: TableQuery) -> dict[str, list[str]]:
    """What limits the cells: codes chosen of shown variables, and of others."""
    found: dict[str, list[str]] = {}
    for name, codes in (*question.by, *question.where):
        if codes:
            before = set(found.get(name, codes))  # shown, and limited further
            found[name] = [code for code in codes if code in before]
    return found
