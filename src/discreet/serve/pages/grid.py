"""The numbers of a page: an answer as rows and columns, with totals that are queries of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats
from discreet.serve.pages.builder_state import BuilderState, errors_of, main_measures, table_query
from discreet.serve.pages.texts import distinguish_labels
from discreet.serve.query_model import (
    NORMAL90,
    Answer,
    Measure,
    QueryableTable,
    Status,
    TableQuery,
    TableVariable,
    reliability_marks,
)

Kind = Literal["", "margin", "interval", "se"]
MAX_BASE_CV = 0.15  # coefficient of variation of a base up to which errors of percentages are given


@dataclass(frozen=True, eq=False)
class Layer:
    """One measure, rows by columns; the last row and column are totals if there are any."""

    measure: Measure
    value: Floats
    kind: Kind
    error: Floats  # the half-width, or the standard error
    low: Floats
    high: Floats
    status: NDArray[np.object_]
    percent: bool = False


@dataclass(frozen=True, eq=False)
class NumberGrid:
    """Layers of equal shape. `totals`: the last row and the last column are totals."""

    answer: Answer
    query: TableQuery
    rows: tuple[TableVariable, ...]
    column: TableVariable | None
    layers: tuple[Layer, ...]
    totals: bool
    notes: tuple[str, ...]

    @property
    def height(self) -> int:
        """Rows without the total."""
        return prod(len(v) for v in self.rows)

    @property
    def width(self) -> int:
        return len(self.column) if self.column else 1


def grid(state: BuilderState, table: QueryableTable, max_numbers: int) -> NumberGrid:
    """Query the table, and for totals query it again: sums of displayed numbers would accumulate their rounding."""
    query = table_query(state, table)
    answer = table.answer(query, max_numbers)
    by_id = {v.id: v for v in table.variables}
    answer = replace(
        answer,
        status=[Status(mark) for mark in answer.status],  # tables may give it as plain text
        variables=tuple(distinguish_labels(v, by_id[v.id]) for v in answer.variables),
        limits=tuple((distinguish_labels(v, by_id[v.id]), codes) for v, codes in answer.limits),
    )
    rows = answer.variables[: len(state.rows)]
    column = answer.variables[-1] if state.columns else None
    share, notes = _share(state, rows, column)
    wider = table.additive and (state.totals or bool(share))
    layers = []
    for main in main_measures(state, table):
        own = TableQuery(query.by, query.where, (main.id, *(m.id for m in errors_of(table, main))))
        if wider:
            numbers, status = _with_margins(own, table, max_numbers, bool(rows), column is not None)
        else:
            numbers, status = _inner(own, table, max_numbers, column is not None)
        layer = _layer(main, errors_of(table, main), numbers, status, state.error)
        layers.append(_shares(layer, share, _independent(table), state.error, numbers) if share else layer)
    if share and not _independent(table):
        notes.append(
            "No error is given for percentages: the joint distribution of errors of part and whole is not published."
        )
    elif share:
        notes.append(
            "Errors of percentages are first-order approximations, for noise that is independent between cells. Where "
            f"the coefficient of variation of the base exceeds {MAX_BASE_CV:.0%}, no error is given."
        )
    if wider and not state.totals:
        layers = [_without_margins(layer, len(rows) > 0, column is not None) for layer in layers]
    return NumberGrid(answer, query, rows, column, tuple(layers), wider and state.totals, tuple(notes))


def _share(state: BuilderState, rows: Sequence[TableVariable], column: TableVariable | None) -> tuple[str, list[str]]:
    """The base of percentages; none, with a note, if every percentage would be 100%."""
    if state.share == "rows" and column is None:
        return "", ["Row percentages need a variable in the columns; numbers are shown instead."]
    if state.share == "columns" and not rows:
        return "", ["Column percentages need a variable in the rows; numbers are shown instead."]
    return state.share, []


def _independent(table: QueryableTable) -> bool:
    """Whether noise is independent between cells and the only error: then it is known how a part affects the whole."""
    return table.additive and table.summary.has_independent_noise


Numbers = Mapping[str, Floats]


def _inner(
    query: TableQuery, table: QueryableTable, max_numbers: int, columns: bool
) -> tuple[Numbers, NDArray[np.object_]]:
    answer = table.answer(query, max_numbers)
    width = len(answer.variables[-1]) if columns else 1
    status = np.empty(len(answer), object)
    status[:] = list(answer.status)
    return {name: values.reshape(-1, width) for name, values in answer.numbers.items()}, status.reshape(-1, width)


def _with_margins(
    query: TableQuery, table: QueryableTable, max_numbers: int, rows: bool, columns: bool
) -> tuple[Numbers, NDArray[np.object_]]:
    """The numbers with a last row and column of totals, where there is a variable to sum over."""
    count = len(query.by) - columns
    down, across = query.by[:count], query.by[count:]
    blocks = [[_inner(query, table, max_numbers, columns)]]
    if columns:
        blocks[0].append(_inner(_without(query, down, across), table, max_numbers, False))
    if rows:
        blocks.append([_inner(_without(query, across, down), table, max_numbers, columns)])
        if columns:
            blocks[1].append(_inner(_without(query, (), query.by), table, max_numbers, False))
    numbers = {name: np.block([[part[0][name] for part in line] for line in blocks]) for name in query.measures}
    return numbers, np.block([[part[1] for part in line] for line in blocks])


Chosen = tuple[tuple[str, tuple[str, ...]], ...]


def _without(query: TableQuery, by: Chosen, omitted: Chosen) -> TableQuery:
    """The query without some variables, limited to their codes that are shown."""
    return TableQuery(by, (*query.where, *((name, codes) for name, codes in omitted if codes)), query.measures)


def _layer(
    main: Measure, errors: Sequence[Measure], numbers: Numbers, status: NDArray[np.object_], choice: str
) -> Layer:
    """A measure with its published error, in the chosen form if available."""
    value = numbers[main.id]
    nothing = np.full(value.shape, np.nan)
    columns = {ending: next((m.id for m in errors if m.id.endswith(ending)), "") for ending in ("moe90", "low90", "se")}
    low, high = nothing, nothing
    kind: Kind = ""
    error = nothing
    if columns["se"] and (choice == "se" or not (columns["moe90"] or columns["low90"])):
        kind, error = "se", numbers[columns["se"]]
    elif columns["moe90"]:
        kind, error = "margin", numbers[columns["moe90"]]
    elif columns["low90"]:
        low = numbers[columns["low90"]]
        high = numbers[next(m.id for m in errors if m.id.endswith("high90"))]
        error = high - value
        kind = "margin" if _symmetric(value, low, high, main.decimals) else "interval"
    half = (high - low) / 2 if kind == "interval" else error
    status = _marked(value, half if kind == "se" else half / NORMAL90, status)
    if choice == "none":
        kind, error, low, high = "", nothing, nothing, nothing
    return Layer(main, value, kind, error, low, high, status)


def _marked(value: Floats, se: Floats, status: NDArray[np.object_]) -> NDArray[np.object_]:
    """Marks, where published numbers of partly suppressed cells are marked by their own errors."""
    among = (status == Status.SUPPRESSED) & ~np.isnan(value)
    own = status.copy()
    own[among] = reliability_marks(value[among], se[among])
    return own


def _symmetric(value: Floats, low: Floats, high: Floats, decimals: int) -> bool:
    """Whether all intervals are symmetric, apart from those that are cut off at 0."""
    present = ~np.isnan(value) & ~np.isnan(low) & ~np.isnan(high)
    mirrored = 2 * value[present] - high[present]
    step = 1.01 * 10.0**-decimals
    ends = (np.abs(low[present]) < step) & (mirrored < step)
    return bool(np.all(ends | (np.abs(low[present] - mirrored) <= step)))


def _shares(layer: Layer, share: str, independent: bool, choice: str, numbers: Numbers) -> Layer:
    """Percentages of a total. For p = x/N, x part of N and independent noise: var(p) ≈ (σ²ₓ(1 − 2p) + p²σ²_N)/N²."""
    last_row, last_column = slice(-1, None), slice(-1, None)
    place = {"rows": (slice(None), last_column), "columns": (last_row, slice(None)), "all": (last_row, last_column)}
    base = layer.value[place[share]]
    with np.errstate(divide="ignore", invalid="ignore"):
        sure = layer.status[place[share]] != Status.UNRELIABLE
        value = np.where(sure & (base > 0), layer.value / base, np.nan)
        error = np.full(value.shape, np.nan)
        se = next((values for name, values in numbers.items() if name.endswith("se")), None)
        if independent and se is not None and choice != "none":
            base_error = se[place[share]]
            variance = (se**2 * (1 - 2 * value) + value**2 * base_error**2) / base**2
            error = np.where((base_error < MAX_BASE_CV * base) & (value != 1), np.sqrt(np.maximum(variance, 0)), np.nan)
    kind: Kind = "" if np.isnan(error).all() else "se" if choice == "se" else "margin"
    nothing = np.full(value.shape, np.nan)
    half = error if choice == "se" else NORMAL90 * error
    return Layer(layer.measure, value, kind, half, nothing, nothing, layer.status, percent=True)


def _without_margins(layer: Layer, rows: bool, columns: bool) -> Layer:
    """The layer without totals, which were only needed as bases."""
    inner = (slice(None, -1 if rows else None), slice(None, -1 if columns else None))
    value, error, low, high = (part[inner] for part in (layer.value, layer.error, layer.low, layer.high))
    return replace(layer, value=value, error=error, low=low, high=high, status=layer.status[inner])
