"""A published table on the web as it is: its cells are looked up, not added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.arrays import Flags, Floats, Int64s
from discreet.errors import InvalidQuery, PublishError
from discreet.serve.query_model import (
    NORMAL90,
    About,
    Answer,
    Measure,
    Status,
    TableQuery,
    TableVariable,
    at_most,
    checked,
    judged,
    unnamed,
)

LARGEST = 2**62  # cells that can be numbered
RESTORE = "restore the release from a copy"


@dataclass(frozen=True, eq=False)
class StoredTable:
    """Rows of Parquet files, found by their codes. They are in memory, from the very bytes that were verified."""

    about: About
    rows: pa.Table
    variables: tuple[TableVariable, ...]  # one for each column of codes
    measures: tuple[Measure, ...]
    additive = False

    def fitting(self) -> StoredTable:
        """This table, if each row has codes that are listed, no two rows the same ones, and its numbers are numbers."""
        if prod(len(v) for v in self.variables) > LARGEST:
            raise PublishError("has too many codes", where=f"table {self.about.id}", do=RESTORE)
        place = self._places(self.rows, self.variables)
        if len(np.unique(place)) < len(place):
            raise PublishError("has a cell twice", where=f"table {self.about.id}", do=RESTORE)
        for m in self.measures:
            self.rows[m.id].cast(pa.float64())
        return self

    def cells(self, question: TableQuery) -> int:
        shown, limited, measures = checked(self, question)
        self._complete(shown, limited)
        return prod(len(v) for v in shown) * len(measures)

    def answer(self, question: TableQuery, most: int) -> Answer:
        shown, limited, measures = checked(self, question)
        at_most(self, shown, len(measures), most)
        self._complete(shown, limited)
        rows = self._rows(shown, limited, measures)
        size = prod(len(v) for v in shown)
        place = self._places(rows, shown)
        numbers: dict[str, Floats] = {}
        for name in dict.fromkeys([*(m.id for m in measures), *self._errors]):
            numbers[name] = np.full(size, np.nan)
            numbers[name][place] = rows[name].cast(pa.float64()).to_numpy()
        there = np.zeros(size, np.bool_)
        there[place] = True
        marks = {m.id: self._marks(m, numbers, there) for m in measures if not m.about}
        status = _worst(list(marks.values()), there)
        kept = {m.id: numbers[m.id] for m in measures}
        within = tuple((v, v.codes) for v in limited)
        return Answer(self.about.title, shown, measures, kept, status, self.about.notes, within, marks)

    def _places(self, rows: pa.Table, shown: Sequence[TableVariable]) -> Int64s:
        """Where each row is among all combinations of the variables' codes."""
        place = np.zeros(rows.num_rows, np.int64)
        for v in shown:
            codes = pc.index_in(rows[v.id].cast(pa.string()), pa.array(v.codes, pa.string()))
            if codes.null_count:
                raise PublishError("has a code that is not listed", where=f"table {self.about.id}, {v.id}", do=RESTORE)
            place = place * len(v) + codes.to_numpy()
        return place

    def _complete(self, shown: Sequence[TableVariable], limited: Sequence[TableVariable]) -> None:
        """Cells are not added up, so each variable must be shown or limited to one code."""
        for v in limited:
            if len(v) != 1 and v.id not in {s.id for s in shown}:
                raise InvalidQuery(f"{v.id} is limited to several codes", where="where", do="name one, or show them")
        if missing := unnamed(self, {v.id for v in (*shown, *limited)}):
            raise InvalidQuery(
                f"{missing[0]} is neither shown nor limited to one code",
                where="by",
                do="the cells of this table do not add up: show it, or choose one code",
            )

    def _rows(
        self, shown: Sequence[TableVariable], limited: Sequence[TableVariable], measures: Sequence[Measure]
    ) -> pa.Table:
        """The rows with these codes. What users say is compared as a value, never read as a program."""
        names = dict.fromkeys([*(v.id for v in shown), *(m.id for m in measures), *self._errors])
        wanted = pc.scalar(True)
        for v in (*shown, *limited):
            wanted &= pc.field(v.id).cast(pa.string()).isin(pa.array(v.codes, pa.string()))
        return self.rows.select([*names, *(v.id for v in limited if v.id not in names)]).filter(wanted)

    @cached_property
    def _errors(self) -> tuple[str, ...]:
        return tuple(m.id for m in self.measures if m.about)

    def _marks(self, measure: Measure, numbers: dict[str, Floats], there: Flags) -> list[Status]:
        """By its own error; a count without one that is not positive is told at least."""
        value, error = numbers[measure.id], self._error(measure.id, numbers)
        if error is None and measure.decimals:  # no count, and so of any sign
            marks = [Status.SUPPRESSED if none else Status.RELIABLE for none in np.isnan(value).tolist()]
        else:
            marks = judged(value, np.zeros(len(value)) if error is None else error)
        return [mark if here else Status.ABSENT for mark, here in zip(marks, there.tolist(), strict=True)]

    def _error(self, name: str, numbers: dict[str, Floats]) -> Floats | None:
        """The standard error of a measure, from what is published of it."""
        own = [m.id for m in self.measures if m.about == name]
        for column in own:
            if column == "se" or column.endswith("_se"):
                return numbers[column]
            if column.endswith("moe90"):
                return numbers[column] / NORMAL90
        low, high = (next((c for c in own if c.endswith(end)), None) for end in ("_low90", "_high90"))
        return None if low is None or high is None else (numbers[high] - numbers[low]) / (2 * NORMAL90)


def _worst(marks: Sequence[Sequence[Status]], there: Flags) -> list[Status]:
    """Of all measures of a cell. One that is withheld while others are told does not withhold these."""
    order = [Status.SUPPRESSED, Status.RELIABLE, Status.CAUTION, Status.UNRELIABLE, Status.ABSENT]
    if not marks:
        return [Status.RELIABLE if here else Status.ABSENT for here in there]
    return [max(each, key=order.index) for each in zip(*marks, strict=True)]
