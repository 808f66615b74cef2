"""The numbers of a page: an answer as rows and columns, with margins that are questions of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats
from discreet.serve.pages.builder_state import BuilderState, errors_of, main_measures, question
from discreet.serve.pages.words import distinct
from discreet.serve.query_model import (
    NORMAL90,
    Answer,
    Measure,
    QueryableTable,
    Status,
    TableQuery,
    TableVariable,
    judged,
)

Kind = Literal["", "margin", "interval", "se"]
STEADY = 0.15  # the coefficient of variation of a base up to which the error of a share is told


@dataclass(frozen=True, eq=False)
class Layer:
    """One measure, rows by columns, and last of each the margin if there is one."""

    measure: Measure
    value: Floats
    kind: Kind
    error: Floats  # the half width, or the standard error
    low: Floats
    high: Floats
    status: NDArray[np.object_]
    percent: bool = False


@dataclass(frozen=True, eq=False)
class NumberGrid:
    """Layers of the same shape. `totals`: the last row and the last column are margins."""

    answer: Answer
    question: TableQuery
    rows: tuple[TableVariable, ...]
    column: TableVariable | None
    layers: tuple[Layer, ...]
    totals: bool
    notes: tuple[str, ...]

    @property
    def height(self) -> int:
        """Rows without the margin."""
        return prod(len(v) for v in self.rows)

    @property
    def width(self) -> int:
        return len(self.column) if self.column else 1


def grid(asked: BuilderState, table: QueryableTable, most: int) -> NumberGrid:
    """Ask the table, and for margins ask it again: a sum of displayed numbers would have their rounding."""
    asking = question(asked, table)
    answer = table.answer(asking, most)
    whole = {v.id: v for v in table.variables}
    answer = replace(
        answer,
        status=[Status(mark) for mark in answer.status],  # tables may give them as plain text
        variables=tuple(distinct(v, whole[v.id]) for v in answer.variables),
        limited=tuple((distinct(v, whole[v.id]), codes) for v, codes in answer.limited),
    )
    rows = answer.variables[: len(asked.rows)]
    column = answer.variables[-1] if asked.columns else None
    share, notes = _share(asked, rows, column)
    wider = table.additive and (asked.totals or bool(share))
    layers = []
    for main in main_measures(asked, table):
        own = TableQuery(asking.by, asking.where, (main.id, *(m.id for m in errors_of(table, main))))
        if wider:
            numbers, status = _with_margins(own, table, most, bool(rows), column is not None)
        else:
            numbers, status = _inner(own, table, most, column is not None)
        layer = _layer(main, errors_of(table, main), numbers, status, asked.error)
        layers.append(_shares(layer, share, _independent(table), asked.error, numbers) if share else layer)
    if share and not _independent(table):
        notes.append(
            "Percentages are without an error: how the errors of a part and of the whole go together is not published."
        )
    elif share:
        notes.append(
            "Errors of percentages are first-order: the noise of cells is independent, so a part's is also in the "
            f"whole's. Where the whole has a coefficient of variation above {STEADY:.0%}, none is given."
        )
    if wider and not asked.totals:
        layers = [_cut(layer, len(rows) > 0, column is not None) for layer in layers]
    return NumberGrid(answer, asking, rows, column, tuple(layers), wider and asked.totals, tuple(notes))


def _share(asked: BuilderState, rows: Sequence[TableVariable], column: TableVariable | None) -> tuple[str, list[str]]:
    """What percentages are of; nothing, with a note, if every one would be 100%."""
    if asked.share == "rows" and column is None:
        return "", ["Percentages of rows need a variable in the columns: numbers are shown instead."]
    if asked.share == "columns" and not rows:
        return "", ["Percentages of columns need a variable in the rows: numbers are shown instead."]
    return asked.share, []


def _independent(table: QueryableTable) -> bool:
    """Whether cells have noise of their own and no other error: then a part's noise is in the whole's, and no more."""
    return table.additive and table.about.independent


Numbers = Mapping[str, Floats]


def _inner(asking: TableQuery, table: QueryableTable, most: int, columns: bool) -> tuple[Numbers, NDArray[np.object_]]:
    found = table.answer(asking, most)
    width = len(found.variables[-1]) if columns else 1
    status = np.empty(len(found), object)
    status[:] = list(found.status)
    return {name: values.reshape(-1, width) for name, values in found.numbers.items()}, status.reshape(-1, width)


def _with_margins(
    asking: TableQuery, table: QueryableTable, most: int, rows: bool, columns: bool
) -> tuple[Numbers, NDArray[np.object_]]:
    """The same, with a last row and column where there is something to add up over."""
    count = len(asking.by) - columns
    down, across = asking.by[:count], asking.by[count:]
    blocks = [[_inner(asking, table, most, columns)]]
    if columns:
        blocks[0].append(_inner(_without(asking, down, across), table, most, False))
    if rows:
        blocks.append([_inner(_without(asking, across, down), table, most, columns)])
        if columns:
            blocks[1].append(_inner(_without(asking, (), asking.by), table, most, False))
    numbers = {name: np.block([[part[0][name] for part in line] for line in blocks]) for name in asking.measures}
    return numbers, np.block([[part[1] for part in line] for line in blocks])


Chosen = tuple[tuple[str, tuple[str, ...]], ...]


def _without(asking: TableQuery, kept: Chosen, left: Chosen) -> TableQuery:
    """The question without some variables: limited to the codes of them that are shown."""
    return TableQuery(kept, (*asking.where, *((name, codes) for name, codes in left if codes)), asking.measures)


def _layer(
    main: Measure, errors: Sequence[Measure], numbers: Numbers, status: NDArray[np.object_], wanted: str
) -> Layer:
    """A measure with the error that is published of it, as wanted if there is such a one."""
    value = numbers[main.id]
    nothing = np.full(value.shape, np.nan)
    found = {ending: next((m.id for m in errors if m.id.endswith(ending)), "") for ending in ("moe90", "low90", "se")}
    low, high = nothing, nothing
    kind: Kind = ""
    error = nothing
    if found["se"] and (wanted == "se" or not (found["moe90"] or found["low90"])):
        kind, error = "se", numbers[found["se"]]
    elif found["moe90"]:
        kind, error = "margin", numbers[found["moe90"]]
    elif found["low90"]:
        low = numbers[found["low90"]]
        high = numbers[next(m.id for m in errors if m.id.endswith("high90"))]
        error = high - value
        kind = "margin" if _symmetric(value, low, high, main.decimals) else "interval"
    half = (high - low) / 2 if kind == "interval" else error
    status = _marked(value, half if kind == "se" else half / NORMAL90, status)
    if wanted == "none":
        kind, error, low, high = "", nothing, nothing, nothing
    return Layer(main, value, kind, error, low, high, status)


def _marked(value: Floats, se: Floats, status: NDArray[np.object_]) -> NDArray[np.object_]:
    """Numbers that are published of cells of which others are withheld: marked by their own errors."""
    among = (status == Status.SUPPRESSED) & ~np.isnan(value)
    own = status.copy()
    own[among] = judged(value[among], se[among])
    return own


def _symmetric(value: Floats, low: Floats, high: Floats, decimals: int) -> bool:
    """Whether intervals reach as far down as up, but for those that end at 0 because nothing is less."""
    there = ~np.isnan(value) & ~np.isnan(low) & ~np.isnan(high)
    mirrored = 2 * value[there] - high[there]
    step = 1.01 * 10.0**-decimals
    ends = (np.abs(low[there]) < step) & (mirrored < step)
    return bool(np.all(ends | (np.abs(low[there] - mirrored) <= step)))


def _shares(layer: Layer, share: str, independent: bool, wanted: str, numbers: Numbers) -> Layer:
    """Percentages of a margin. x/N with x in N, noise independent between cells: var = (σ²ₓ(1 − 2p) + p²σ²_N)/N²."""
    last_row, last_column = slice(-1, None), slice(-1, None)
    place = {"rows": (slice(None), last_column), "columns": (last_row, slice(None)), "all": (last_row, last_column)}
    base = layer.value[place[share]]
    with np.errstate(divide="ignore", invalid="ignore"):
        sure = layer.status[place[share]] != Status.UNRELIABLE
        value = np.where(sure & (base > 0), layer.value / base, np.nan)
        error = np.full(value.shape, np.nan)
        se = next((values for name, values in numbers.items() if name.endswith("se")), None)
        if independent and se is not None and wanted != "none":
            whole = se[place[share]]
            variance = (se**2 * (1 - 2 * value) + value**2 * whole**2) / base**2
            error = np.where((whole < STEADY * base) & (value != 1), np.sqrt(np.maximum(variance, 0)), np.nan)
    kind: Kind = "" if np.isnan(error).all() else "se" if wanted == "se" else "margin"
    nothing = np.full(value.shape, np.nan)
    half = error if wanted == "se" else NORMAL90 * error
    return Layer(layer.measure, value, kind, half, nothing, nothing, layer.status, percent=True)


def _cut(layer: Layer, rows: bool, columns: bool) -> Layer:
    """Without the margins, which were only asked for to divide by."""
    kept = (slice(None, -1 if rows else None), slice(None, -1 if columns else None))
    value, error, low, high = (part[kept] for part in (layer.value, layer.error, layer.low, layer.high))
    return replace(layer, value=value, error=error, low=low, high=high, status=layer.status[kept])
