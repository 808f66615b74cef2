"""A published table served as it is: its cells are looked up, never summed."""

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
    Answer,
    Measure,
    Status,
    TableQuery,
    TableSummary,
    TableVariable,
    reliability_marks,
    require_size,
    resolve_query,
    unspecified,
)

LARGEST = 2**62  # cells that can be numbered
RESTORE = "restore the release from a copy"


@dataclass(frozen=True, eq=False)
class StoredTable:
    """Rows of Parquet files, looked up by their codes. They are in memory, read from the bytes that were verified."""

    summary: TableSummary
    rows: pa.Table
    variables: tuple[TableVariable, ...]  # one for each column of codes
    measures: tuple[Measure, ...]
    additive = False

    def fitting(self) -> StoredTable:
        """This table, after checking that all codes are listed, no cell occurs twice, and measures are numeric."""
        if prod(len(v) for v in self.variables) > LARGEST:
            raise PublishError("has too many combinations of codes", where=f"table {self.summary.id}", do=RESTORE)
        place = self._places(self.rows, self.variables)
        if len(np.unique(place)) < len(place):
            raise PublishError("has duplicate cells", where=f"table {self.summary.id}", do=RESTORE)
        for m in self.measures:
            self.rows[m.id].cast(pa.float64())
        return self

    def cells(self, query: TableQuery) -> int:
        shown, limited, measures = resolve_query(self, query)
        self._complete(shown, limited)
        return prod(len(v) for v in shown) * len(measures)

    def answer(self, query: TableQuery, most: int) -> Answer:
        shown, limited, measures = resolve_query(self, query)
        require_size(self, shown, len(measures), most)
        self._complete(shown, limited)
        rows = self._rows(shown, limited, measures)
        size = prod(len(v) for v in shown)
        place = self._places(rows, shown)
        numbers: dict[str, Floats] = {}
        for name in dict.fromkeys([*(m.id for m in measures), *self._errors]):
            numbers[name] = np.full(size, np.nan)
            numbers[name][place] = rows[name].cast(pa.float64()).to_numpy()
        present = np.zeros(size, np.bool_)
        present[place] = True
        marks = {m.id: self._marks(m, numbers, present) for m in measures if not m.error_of}
        status = _worst_marks(list(marks.values()), present)
        selected = {m.id: numbers[m.id] for m in measures}
        within = tuple((v, v.codes) for v in limited)
        return Answer(self.summary.title, shown, measures, selected, status, self.summary.notes, within, marks)

    def _places(self, rows: pa.Table, shown: Sequence[TableVariable]) -> Int64s:
        """The index of each row's cell among all combinations of the variables' codes."""
        place = np.zeros(rows.num_rows, np.int64)
        for v in shown:
            codes = pc.index_in(rows[v.id].cast(pa.string()), pa.array(v.codes, pa.string()))
            if codes.null_count:
                raise PublishError(
                    "has a code that is not in the codebook", where=f"table {self.summary.id}, {v.id}", do=RESTORE
                )
            place = place * len(v) + codes.to_numpy()
        return place

    def _complete(self, shown: Sequence[TableVariable], limited: Sequence[TableVariable]) -> None:
        """Cells cannot be summed, so each variable must be shown or limited to one code."""
        for v in limited:
            if len(v) != 1 and v.id not in {s.id for s in shown}:
                raise InvalidQuery(
                    f"{v.id} is limited to several codes", where="where", do="name one code, or show the variable"
                )
        if missing := unspecified(self, {v.id for v in (*shown, *limited)}):
            raise InvalidQuery(
                f"{missing[0]} is neither shown nor limited to one code",
                where="by",
                do="cells of this table cannot be summed: show the variable, or choose one code",
            )

    def _rows(
        self, shown: Sequence[TableVariable], limited: Sequence[TableVariable], measures: Sequence[Measure]
    ) -> pa.Table:
        """The rows with these codes. Users' input is compared as a value, never interpreted."""
        names = dict.fromkeys([*(v.id for v in shown), *(m.id for m in measures), *self._errors])
        condition = pc.scalar(True)
        for v in (*shown, *limited):
            condition &= pc.field(v.id).cast(pa.string()).isin(pa.array(v.codes, pa.string()))
        return self.rows.select([*names, *(v.id for v in limited if v.id not in names)]).filter(condition)

    @cached_property
    def _errors(self) -> tuple[str, ...]:
        return tuple(m.id for m in self.measures if m.error_of)

    def _marks(self, measure: Measure, numbers: dict[str, Floats], present: Flags) -> list[Status]:
        """Marks from the measure's own error; without one, a count that is not positive is still marked."""
        value, error = numbers[measure.id], self._error(measure.id, numbers)
        if error is None and measure.decimals:  # not a count, so it may have any sign
            marks = [Status.SUPPRESSED if none else Status.RELIABLE for none in np.isnan(value).tolist()]
        else:
            marks = reliability_marks(value, np.zeros(len(value)) if error is None else error)
        return [mark if here else Status.ABSENT for mark, here in zip(marks, present.tolist(), strict=True)]

    def _error(self, name: str, numbers: dict[str, Floats]) -> Floats | None:
        """The standard error of a measure, derived from the error that is published for it."""
        own = [m.id for m in self.measures if m.error_of == name]
        for column in own:
            if column == "se" or column.endswith("_se"):
                return numbers[column]
            if column.endswith("moe90"):
                return numbers[column] / NORMAL90
        low, high = (next((c for c in own if c.endswith(end)), None) for end in ("_low90", "_high90"))
        return None if low is None or high is None else (numbers[high] - numbers[low]) / (2 * NORMAL90)


def _worst_marks(marks: Sequence[Sequence[Status]], present: Flags) -> list[Status]:
    """The worst mark of each cell. A cell counts as suppressed only if all of its measures are."""
    order = [Status.SUPPRESSED, Status.RELIABLE, Status.CAUTION, Status.UNRELIABLE, Status.ABSENT]
    if not marks:
        return [Status.RELIABLE if here else Status.ABSENT for here in present]
    return [max(each, key=order.index) for each in zip(*marks, strict=True)]
