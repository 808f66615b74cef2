"""An additive table: any of its variables and coarser ones, summed over all others, each number with its error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np

from discreet.errors import InvalidQuery, ParameterError
from discreet.post.cubes.cube import Cube
from discreet.serve.query_model import (
    Answer,
    Measure,
    TableQuery,
    TableSummary,
    TableVariable,
    reliability_marks,
    require_size,
    resolve_query,
)

LEVEL = Fraction(9, 10)


@dataclass(frozen=True, eq=False)
class AdditiveTable:
    """A published cube, or counts with independent noise of one distribution in every cell: both can be summed."""

    summary: TableSummary
    cube: Cube
    labels: Mapping[str, Sequence[str]]  # by variable: labels of its codes, if it has any
    names: Mapping[str, str]  # labels of variables
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
            Measure("low90", "90% confidence interval, lower bound", decimals, "estimate"),
            Measure("high90", "90% confidence interval, upper bound", decimals, "estimate"),
        )

    def cells(self, query: TableQuery) -> int:
        shown, _, measures = self._checked(query)
        return prod(len(v) for v in shown) * len(measures)

    def _checked(
        self, query: TableQuery
    ) -> tuple[tuple[TableVariable, ...], tuple[TableVariable, ...], tuple[Measure, ...]]:
        """Without the codes that a limit of a coarser or finer variable excludes."""
        shown, limited, measures = resolve_query(self, query)
        return tuple(self._within(v, limited) for v in shown), limited, measures

    def _within(self, shown: TableVariable, limited: Sequence[TableVariable]) -> TableVariable:
        by_id = {v.id: v for v in self.variables}
        axis = by_id[shown.finer or shown.id]
        left = np.ones(len(axis), np.bool_)
        for v in limited:
            if (v.finer or v.id) == axis.id and v.id != shown.id:
                chosen = set(v.codes)
                selected = np.array([code in chosen for code in by_id[v.id].codes], np.bool_)
                left &= selected[_groups(by_id[v.id])]
        remaining = {by_id[shown.id].codes[i] for i in np.unique(_groups(by_id[shown.id])[left])}
        codes = [code for code in shown.codes if code in remaining]
        if not codes:
            raise InvalidQuery("the limits exclude every cell", where="where", do="choose codes that occur together")
        return shown if len(codes) == len(shown) else shown.with_codes(codes)

    def answer(self, query: TableQuery, most: int) -> Answer:
        shown, limited, measures = self._checked(query)
        require_size(self, shown, len(measures), most)
        try:
            table = self.cube.table(query.shown, _where(query), level=LEVEL)
        except ParameterError as error:  # such as codes that never occur together
            raise InvalidQuery(error.what, where=error.where, do=error.do) from None
        order = np.argsort(self._places(shown, table.codes))  # codes come in the order of the query
        columns = {"estimate": table.estimate, "se": table.se, "low90": table.low, "high90": table.high}
        numbers = {measure.id: columns[measure.id][order] for measure in measures}
        status = reliability_marks(table.estimate[order], table.se[order])
        within = tuple((v, v.codes) for v in limited)
        return Answer(self.summary.title, shown, measures, numbers, status, self.summary.notes, within)

    def _places(
        self, shown: tuple[TableVariable, ...], codes: tuple[tuple[str, ...], ...]
    ) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The index of each row of the cube's table in the answer, whose codes are in the order of the query."""
        width = {axis.name: len(axis.columns) for axis in (*self.cube.model.axes, *self.cube.model.levels)}
        places, first = np.zeros(len(codes[0]) if codes else 1, np.int64), 0
        for v in shown:
            parts = codes[first : first + width[v.id]]
            first += width[v.id]
            order = {code: i for i, code in enumerate(v.codes)}
            texts = parts[0] if len(parts) == 1 else ["/".join(code) for code in zip(*parts, strict=True)]
            places = places * len(v) + np.array([order[text] for text in texts], np.int64)
        return places


def _groups(v: TableVariable) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The group of each code of the axis that a variable belongs to."""
    return np.array(v.groups, np.int64) if v.finer else np.arange(len(v))


def _where(query: TableQuery) -> dict[str, list[str]]:
    """All limits on cells: codes selected for shown variables, and for others."""
    limits: dict[str, list[str]] = {}
    for name, codes in (*query.by, *query.where):
        if codes:
            before = set(limits.get(name, codes))  # shown, and further limited
            limits[name] = [code for code in codes if code in before]
    return limits
