"""A grid as a page shows it: sorted, ranked, paginated; each number as text with its error, mark and links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from discreet.serve.pages.builder_state import BuilderState
from discreet.serve.pages.grid import Layer, NumberGrid
from discreet.serve.pages.texts import comma_list, distinguish_labels, margin, number, percent
from discreet.serve.query_model import MEANING, Answer, QueryableTable, Status, TableVariable

SHORT = {
    Status.CAUTION: "use with caution",
    Status.UNRELIABLE: "unreliable",
    Status.SUPPRESSED: "suppressed",
    Status.ABSENT: "not in the release",
}
ERRORS = {
    "±": "± is the 90% margin of error due to noise (and to sampling, where the notes say so): about 9 in 10 such "
    "intervals contain the number without that error.",
    " to ": "“a to b” is a 90% confidence interval, for error due to noise (and to sampling, where the notes say so): "
    "about 9 in 10 such intervals contain the number without that error.",
    "se ": "se is the standard error.",
}
OF = {"": "", "rows": "of each row", "columns": "of each column", "all": "of all"}
PAGE_CELLS, PAGE_ROWS, MOST_COLUMNS = 4000, 200, 60

Link = Callable[[BuilderState], str]


@dataclass(frozen=True)
class PageCell:
    value: str
    error: str = ""
    mark: str = ""
    mark_text: str = ""  # the meaning of the mark
    total: bool = False
    below: bool = False  # the error needs its own line
    room: bool = False  # the column shows errors: reserve space even where there is none
    negative: bool = False  # below 0, with an interval of non-negative values


@dataclass(frozen=True)
class TableHeading:
    """A heading, possibly with a link to its codes or to sort by it."""

    label: str
    link: str = ""
    repeated: bool = False  # same as in the row above
    order: str = ""  # ascending or descending, if rows are sorted by it
    span: int = 1


@dataclass(frozen=True)
class PageRow:
    rank: str
    heads: tuple[TableHeading, ...]
    cells: tuple[PageCell, ...]
    total: bool = False


@dataclass(frozen=True)
class TableView:
    """An answer as the page of a table shows it."""

    caption: str
    row_names: tuple[TableHeading, ...]
    over: str  # label of the column variable
    groups: tuple[TableHeading, ...]  # the upper line of headings, if there are two
    columns: tuple[TableHeading, ...]
    rows: tuple[PageRow, ...]
    ranked: bool
    legend: tuple[tuple[str, str], ...]
    errors: tuple[str, ...]
    notes: tuple[str, ...]
    first: int
    count: int  # number of rows
    pages: tuple[tuple[str, str], ...]  # label and link
    up: tuple[tuple[str, str], ...]  # links to coarser variables
    which: str  # which rows are shown, if not all
    meanings: tuple[tuple[str, str], ...]  # definitions of the columns from the codebook
    chart: Answer
    marks: dict[str, list[Status]]  # by measure, in the order of the chart


def view(grid: NumberGrid, state: BuilderState, table: QueryableTable, link: Link) -> TableView:
    """Lay out the grid."""
    order, ranks = _ordered(grid, state)
    which = _row_selection(grid, state)
    if state.top:
        order = order[: state.top]
    columns = list(range(min(grid.width, MOST_COLUMNS)))
    notes = list(grid.notes)
    if grid.width > MOST_COLUMNS:
        notes.append(f"Only the first {MOST_COLUMNS} of {grid.width:,} columns are shown; the files have all of them.")
    if grid.totals and grid.column:
        columns.append(grid.width)
    per_page = max(10, min(PAGE_ROWS, PAGE_CELLS // (len(columns) * len(grid.layers))))
    pages = max(1, -(-len(order) // per_page))
    page = min(state.page, pages)
    seen = order[(page - 1) * per_page : page * per_page]
    rows = _rows(grid, state, link, seen, ranks, columns)
    if grid.totals and grid.rows:
        total = f"Total of all {grid.height:,} rows" if which or pages > 1 else "Total"
        heads = (TableHeading(total), *(TableHeading("") for _ in grid.rows[1:]))
        rows.append(PageRow("", heads, _cells(grid, grid.height, columns), total=True))
    groups, leaves = _headings(grid, state, link, columns)
    marks = {cell.mark for row in rows for cell in row.cells if cell.mark}
    if state.sort.endswith("value"):
        notes.append("Where margins of error overlap, ranks may be due to chance.")
    return TableView(
        caption=_caption(grid, state, table, which),
        row_names=_row_names(grid, state, link),
        over=grid.column.label if grid.column else "",
        groups=groups,
        columns=leaves,
        rows=tuple(rows),
        ranked=ranks is not None and bool(grid.rows),
        legend=tuple((mark.value, MEANING[mark]) for mark in Status if mark.value in marks),
        errors=tuple(
            text for sign, text in ERRORS.items() if any(sign in cell.error for row in rows for cell in row.cells)
        ),
        notes=(*notes, *_cell_notes(grid, state, rows, which)),
        first=(page - 1) * per_page + 1,
        count=len(order),
        pages=_pages(state, link, page, pages),
        up=_up(state, table, link),
        which=which,
        meanings=tuple((m.label, m.meaning) for m in grid.answer.measures if m.meaning),
        chart=_in_order(grid, order),
        marks={layer.measure.id: _marks(grid, layer, order) for layer in grid.layers},
    )


def _row_selection(grid: NumberGrid, state: BuilderState) -> str:
    """A text such as “5 largest of 59”, if not all rows are shown."""
    if not 0 < state.top < grid.height:
        return ""
    kind = {"-value": "largest", "value": "smallest"}.get(state.sort, "first")
    return f"{state.top:,} {kind} of {grid.height:,}"


def _cell_notes(grid: NumberGrid, state: BuilderState, rows: list[PageRow], which: str) -> list[str]:
    """Notes on the cells that are shown."""
    notes, cells = list[str](), [cell for row in rows for cell in row.cells]
    percents = grid.layers[0].percent
    if percents and any(cell.value == "–" for cell in cells):
        notes.append("“–” means that the base of the percentage is unreliable, so no percentage is given.")
    if percents and which and state.share != "rows":
        notes.append(f"Percentages are based on all {grid.height:,} rows, not only those shown.")
    if any(cell.negative for cell in cells):
        notes.append("Read a negative estimate as 0: this quantity cannot be negative.")
    inner = (slice(grid.height), slice(grid.width))
    marks = grid.layers[0].status[inner]
    if all(bool(np.isnan(layer.value[inner]).all()) for layer in grid.layers) and marks.size:
        suppressed, absent = int((marks == Status.SUPPRESSED).sum()), int((marks == Status.ABSENT).sum())
        notes.append(
            f"None of {marks.size:,} cells has a number: {suppressed:,} suppressed, {absent:,} not in the release. "
            "Other codes may have numbers."
        )
    return notes


def _ordered(grid: NumberGrid, state: BuilderState) -> tuple[list[int], list[int] | None]:
    """Row indices in order, and the rank of each row if sorted by value. Rows without a number come last."""
    places = list(range(grid.height))
    if state.sort in ("label", "-label"):
        labels = list(product(*(v.labels for v in grid.rows)))
        return sorted(places, key=lambda i: labels[i], reverse=state.sort[0] == "-"), None
    if not state.sort:
        return places, None
    layer = _sorted_by(grid, state)
    codes = grid.column.codes if grid.column else ()
    default = grid.width if _by_total(grid, state) else 0
    values = layer.value[: grid.height, codes.index(state.key) if state.key in codes else default]
    sign = -1.0 if state.sort[0] == "-" else 1.0
    order = sorted(places, key=lambda i: (bool(np.isnan(values[i])), sign * values[i] if values[i] == values[i] else 0))
    ranks, before = [0] * len(places), np.nan
    for position, i in enumerate(order, start=1):
        ranks[i] = ranks[order[position - 2]] if values[i] == before else position
        before = values[i]
        if np.isnan(values[i]):
            ranks[i] = 0
    return order, ranks


def _sorted_by(grid: NumberGrid, state: BuilderState) -> Layer:
    """The measure by which rows are sorted; by default the first."""
    return next((one for one in grid.layers if one.measure.id == state.what), grid.layers[0])


def _by_total(grid: NumberGrid, state: BuilderState) -> bool:
    """Whether rows are sorted by their total by default: not where every total is 100%."""
    return grid.totals and grid.column is not None and state.share != "rows"


def _rows(
    grid: NumberGrid, state: BuilderState, link: Link, seen: list[int], ranks: list[int] | None, columns: list[int]
) -> list[PageRow]:
    shape = [len(v) for v in grid.rows]
    down = [_drill(v, state, link) for v in grid.rows]
    rows, before = [], ("",) * len(shape)
    for i in seen:
        places = np.unravel_index(i, shape) if shape else ()
        labels = tuple(v.labels[int(p)] for v, p in zip(grid.rows, places, strict=True))
        heads = tuple(
            TableHeading(text, go(v.codes[int(p)]), repeated=n < len(shape) - 1 and labels[: n + 1] == before[: n + 1])
            for n, (v, p, text, go) in enumerate(zip(grid.rows, places, labels, down, strict=True))
        )
        before = labels
        rank = f"{ranks[i]:,}" if ranks and ranks[i] else ""
        rows.append(PageRow(rank, heads or (TableHeading("All"),), _cells(grid, i, columns)))
    return rows


def _drill(shown: TableVariable, state: BuilderState, link: Link) -> Callable[[str], str]:
    """A function from the code of a group to the link that shows its members."""
    if not shown.finer:
        return lambda _: ""
    finer = shown.finer

    def go(code: str) -> str:
        only = {name: codes for name, codes in state.only.items() if name != shown.id}
        rows = tuple(finer if name == shown.id else name for name in state.rows)
        return link(replace(state, rows=rows, only={**only, shown.id: (code,)}, page=1, chart=""))

    return go


def _up(state: BuilderState, table: QueryableTable, link: Link) -> tuple[tuple[str, str], ...]:
    """Links from variables to coarser ones."""
    links = []
    for coarser in table.variables:
        if coarser.finer and coarser.finer in state.shown:
            rows = tuple(coarser.id if name == coarser.finer else name for name in state.rows)
            columns = coarser.id if state.columns == coarser.finer else state.columns
            only = {name: codes for name, codes in state.only.items() if name not in (coarser.id, coarser.finer)}
            up = replace(state, rows=rows, columns=columns, only=only, page=1, key="", chart="")
            links.append((f"By {coarser.label.lower()}", link(up)))
    return tuple(links)


def _cells(grid: NumberGrid, row: int, columns: list[int]) -> tuple[PageCell, ...]:
    return tuple(
        _cell(layer, row, column, row == grid.height or column == grid.width)
        for column in columns
        for layer in grid.layers
    )


def _cell(layer: Layer, row: int, column: int, total: bool) -> PageCell:
    mark, value = Status(layer.status[row, column]), layer.value[row, column]
    below, room = layer.kind == "interval", layer.kind in ("margin", "se")
    if np.isnan(value):
        if mark in (Status.SUPPRESSED, Status.ABSENT):
            return PageCell("", mark=mark.value, mark_text=SHORT[mark], total=total, below=below, room=room)
        return PageCell("–", total=total, below=below, room=room)
    decimals, error = layer.measure.decimals, layer.error[row, column]
    text = percent(value) if layer.percent else number(value, decimals)
    error_text = ""
    negative = bool(value < 0 <= layer.low[row, column])
    if layer.kind == "interval" or negative:  # an interval cut off at 0 has no half-width
        error_text = f"{number(layer.low[row, column], decimals)} to {number(layer.high[row, column], decimals)}"
    elif layer.kind and not np.isnan(error):
        size = margin(100 * error, 1) if layer.percent else margin(error, max(decimals, int(layer.kind == "se")))
        error_text = f"{'±' if layer.kind == 'margin' else 'se'} {size}"
    return PageCell(text, error_text, mark.value, SHORT.get(mark, ""), total, below, room, negative)


def _headings(
    grid: NumberGrid, state: BuilderState, link: Link, columns: list[int]
) -> tuple[tuple[TableHeading, ...], tuple[TableHeading, ...]]:
    """One line of headings, or two: columns, and the measures within each."""
    codes = [*(grid.column.codes if grid.column else ("",)), ""]
    labels = [*(grid.column.labels if grid.column else ("",)), "Total"]
    several = len(grid.layers) > 1
    leaves = []
    for place in columns:
        for layer in grid.layers:
            name = layer.measure.label
            if grid.column and not several:
                name = labels[place]
            leaves.append(_sorting(grid, state, link, name, codes[place], layer, place))
    if not (grid.column and several):
        return (), tuple(leaves)
    return tuple(TableHeading(labels[place], span=len(grid.layers)) for place in columns), tuple(leaves)


def _sorting(
    grid: NumberGrid, state: BuilderState, link: Link, name: str, code: str, layer: Layer, place: int
) -> TableHeading:
    """A heading whose link sorts rows by it: largest first, then smallest first."""
    what = layer.measure.id if len(grid.layers) > 1 else ""
    default = "" if _by_total(grid, state) or not grid.column else grid.column.codes[0]
    codes = grid.column.codes if grid.column else ()
    key = state.key if state.key in codes else default
    here = state.sort.endswith("value") and key == code and _sorted_by(grid, state) is layer
    if grid.column and place == grid.width and not _by_total(grid, state):
        return TableHeading(name)
    descending = here and state.sort == "-value"
    go = replace(state, sort="value" if descending else "-value", key=code, what=what, page=1)
    order = ("descending" if descending else "ascending") if here else ""
    return TableHeading(name, link(go) if grid.rows else "", order=order)


def _row_names(grid: NumberGrid, state: BuilderState, link: Link) -> tuple[TableHeading, ...]:
    go = link(replace(state, sort="-label" if state.sort == "label" else "label", key="", what="", page=1))
    order = {"label": "ascending", "-label": "descending"}.get(state.sort, "")
    return tuple(
        TableHeading(v.label, go if n == 0 else "", order=order if n == 0 else "") for n, v in enumerate(grid.rows)
    )


def _caption(grid: NumberGrid, state: BuilderState, table: QueryableTable, which: str) -> str:
    names = [layer.measure.label for layer in grid.layers]
    what = comma_list([names[0], *(name.lower() for name in names[1:])]) if len(names) <= 4 else table.summary.title
    by = comma_list([v.label.lower() for v in (*grid.rows, *([grid.column] if grid.column else []))])
    text = f"{what} by {by}" if by else what
    groups = [
        (distinguish_labels(v, v), state.only[v.id])
        for v in table.variables
        if v.finer in state.shown and state.only.get(v.id)
    ]
    limits = [_limit(v, codes) for v, codes in (*groups, *grid.answer.limits)]
    percents = f", percent {OF[state.share]}" if grid.layers[0].percent else ""
    return text + percents + (f", {which}" if which else "") + ("; " + "; ".join(limits) if limits else "")


def _limit(limited: TableVariable, codes: tuple[str, ...]) -> str:
    label = dict(zip(limited.codes, limited.labels, strict=True))
    some = [label[code] for code in codes[:5]] + ([f"{len(codes) - 5} more"] if len(codes) > 5 else [])
    return f"{limited.label.lower()}: {comma_list(some)}"


def _pages(state: BuilderState, link: Link, page: int, pages: int) -> tuple[tuple[str, str], ...]:
    if pages == 1:
        return ()
    near = sorted({1, *range(max(1, page - 2), min(pages, page + 2) + 1), pages})
    return tuple((f"{n:,}", "" if n == page else link(replace(state, page=n))) for n in near)


def _in_order(grid: NumberGrid, order: list[int]) -> Answer:
    """The answer for the chart, with rows sorted as in the table. Two variables in the rows stay as published."""
    if len(grid.rows) != 1:
        return grid.answer
    width = grid.width
    indices = np.array(order, np.int64)
    rows = grid.rows[0].with_codes([grid.rows[0].codes[i] for i in order])
    numbers = {name: values.reshape(-1, width)[indices].ravel() for name, values in grid.answer.numbers.items()}
    marks = [grid.answer.status[i * width + j] for i in order for j in range(width)]
    return replace(grid.answer, variables=(rows, *grid.answer.variables[1:]), numbers=numbers, status=marks)


def _marks(grid: NumberGrid, layer: Layer, order: list[int]) -> list[Status]:
    indices = order if len(grid.rows) == 1 else range(grid.height)
    return [Status(layer.status[i, j]) for i in indices for j in range(grid.width)]
