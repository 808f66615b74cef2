"""A grid as a page shows it: ordered, ranked, in pages, each number as text with its error, its mark and its links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from discreet.serve.pages.builder_state import BuilderState
from discreet.serve.pages.grid import Layer, NumberGrid
from discreet.serve.pages.words import distinct, listed, margin, number, percent
from discreet.serve.query_model import MEANING, Answer, QueryableTable, Status, TableVariable

SHORT = {
    Status.CAUTION: "use with caution",
    Status.UNRELIABLE: "not reliable",
    Status.SUPPRESSED: "withheld",
    Status.ABSENT: "no such combination",
}
ERRORS = {
    "±": "± is the margin of error at 90%: in 9 of 10 cases the number without error lies within it.",
    " to ": "“a to b” are the ends of a 90% interval: in 9 of 10 cases the number without error lies within it.",
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
    says: str = ""  # the mark in words
    total: bool = False
    below: bool = False  # the error needs a line of its own
    room: bool = False  # numbers of the column have errors: without one, its place is kept
    negative: bool = False  # below 0, with an interval that is not


@dataclass(frozen=True)
class Head:
    """A heading, perhaps with a link: to its codes, or to sort by it."""

    label: str
    link: str = ""
    again: bool = False  # as in the row above
    order: str = ""  # ascending or descending, if the rows are in its order
    span: int = 1


@dataclass(frozen=True)
class Row:
    rank: str
    heads: tuple[Head, ...]
    cells: tuple[PageCell, ...]
    total: bool = False


@dataclass(frozen=True)
class View:
    """Everything that the page of a table shows of an answer."""

    caption: str
    row_names: tuple[Head, ...]
    over: str  # the variable in the columns
    groups: tuple[Head, ...]  # the upper line of headings, if there are two
    columns: tuple[Head, ...]
    rows: tuple[Row, ...]
    ranked: bool
    legend: tuple[tuple[str, str], ...]
    errors: tuple[str, ...]
    notes: tuple[str, ...]
    first: int
    count: int  # rows in all
    pages: tuple[tuple[str, str], ...]  # label and link
    up: tuple[tuple[str, str], ...]  # to coarser variables
    which: str  # which of all rows are shown, if not all are
    meanings: tuple[tuple[str, str], ...]  # what columns are, as the codebook has it
    chart: Answer
    marks: dict[str, list[Status]]  # of each measure, in the chart's order


def view(found: NumberGrid, asked: BuilderState, table: QueryableTable, link: Link) -> View:
    """Lay out the grid."""
    order, ranks = _ordered(found, asked)
    which = _which(found, asked)
    if asked.top:
        order = order[: asked.top]
    columns = list(range(min(found.width, MOST_COLUMNS)))
    notes = list(found.notes)
    if found.width > MOST_COLUMNS:
        notes.append(f"Of {found.width:,} columns the first {MOST_COLUMNS} are shown; files have all.")
    if found.totals and found.column:
        columns.append(found.width)
    per_page = max(10, min(PAGE_ROWS, PAGE_CELLS // (len(columns) * len(found.layers))))
    pages = max(1, -(-len(order) // per_page))
    page = min(asked.page, pages)
    seen = order[(page - 1) * per_page : page * per_page]
    rows = _rows(found, asked, link, seen, ranks, columns)
    if found.totals and found.rows:
        total = f"Total of all {found.height:,} rows" if which or pages > 1 else "Total"
        heads = (Head(total), *(Head("") for _ in found.rows[1:]))
        rows.append(Row("", heads, _cells(found, found.height, columns), total=True))
    groups, leaves = _headings(found, asked, link, columns)
    marks = {cell.mark for row in rows for cell in row.cells if cell.mark}
    if asked.sort.endswith("value"):
        notes.append("Numbers whose margins overlap may have their ranks by chance.")
    return View(
        caption=_caption(found, asked, table, which),
        row_names=_row_names(found, asked, link),
        over=found.column.label if found.column else "",
        groups=groups,
        columns=leaves,
        rows=tuple(rows),
        ranked=ranks is not None and bool(found.rows),
        legend=tuple((mark.value, MEANING[mark]) for mark in Status if mark.value in marks),
        errors=tuple(
            text for sign, text in ERRORS.items() if any(sign in cell.error for row in rows for cell in row.cells)
        ),
        notes=(*notes, *_told(found, asked, rows, which)),
        first=(page - 1) * per_page + 1,
        count=len(order),
        pages=_pages(asked, link, page, pages),
        up=_up(asked, table, link),
        which=which,
        meanings=tuple((m.label, m.meaning) for m in found.answer.measures if m.meaning),
        chart=_in_order(found, order),
        marks={layer.measure.id: _marks(found, layer, order) for layer in found.layers},
    )


def _which(found: NumberGrid, asked: BuilderState) -> str:
    """5 largest of 59, if not all rows are shown."""
    if not 0 < asked.top < found.height:
        return ""
    kind = {"-value": "largest", "value": "smallest"}.get(asked.sort, "first")
    return f"{asked.top:,} {kind} of {found.height:,}"


def _told(found: NumberGrid, asked: BuilderState, rows: list[Row], which: str) -> list[str]:
    """What has to be said of the cells that are shown."""
    notes, cells = list[str](), [cell for row in rows for cell in row.cells]
    percents = found.layers[0].percent
    if percents and any(cell.value == "–" for cell in cells):
        notes.append("– stands where the whole is not reliable: a percentage of it would say nothing.")
    if percents and which and asked.share != "rows":
        notes.append(f"Percentages are of all {found.height:,} rows, not of those shown.")
    if any(cell.negative for cell in cells):
        notes.append("An estimate below 0 counts as 0: no such number is negative.")
    inner = (slice(found.height), slice(found.width))
    marks = found.layers[0].status[inner]
    if all(bool(np.isnan(layer.value[inner]).all()) for layer in found.layers) and marks.size:
        withheld, absent = int((marks == Status.SUPPRESSED).sum()), int((marks == Status.ABSENT).sum())
        notes.append(
            f"None of {marks.size:,} has a number: {withheld:,} withheld, {absent:,} not in the release. "
            "Other codes may have some."
        )
    return notes


def _ordered(found: NumberGrid, asked: BuilderState) -> tuple[list[int], list[int] | None]:
    """Places of rows in order, and the rank of each place if they are by value. What has no number comes last."""
    places = list(range(found.height))
    if asked.sort in ("label", "-label"):
        labels = list(product(*(v.labels for v in found.rows)))
        return sorted(places, key=lambda i: labels[i], reverse=asked.sort[0] == "-"), None
    if not asked.sort:
        return places, None
    layer = _sorted_by(found, asked)
    codes = found.column.codes if found.column else ()
    default = found.width if _by_total(found, asked) else 0
    values = layer.value[: found.height, codes.index(asked.key) if asked.key in codes else default]
    sign = -1.0 if asked.sort[0] == "-" else 1.0
    order = sorted(places, key=lambda i: (bool(np.isnan(values[i])), sign * values[i] if values[i] == values[i] else 0))
    ranks, before = [0] * len(places), np.nan
    for position, i in enumerate(order, start=1):
        ranks[i] = ranks[order[position - 2]] if values[i] == before else position
        before = values[i]
        if np.isnan(values[i]):
            ranks[i] = 0
    return order, ranks


def _sorted_by(found: NumberGrid, asked: BuilderState) -> Layer:
    """The measure by which rows are sorted: the first, if none is named."""
    return next((one for one in found.layers if one.measure.id == asked.what), found.layers[0])


def _by_total(found: NumberGrid, asked: BuilderState) -> bool:
    """Whether rows are sorted by their total, if nothing else is said: not where every total is 100%."""
    return found.totals and found.column is not None and asked.share != "rows"


def _rows(
    found: NumberGrid, asked: BuilderState, link: Link, seen: list[int], ranks: list[int] | None, columns: list[int]
) -> list[Row]:
    shape = [len(v) for v in found.rows]
    down = [_drill(v, asked, link) for v in found.rows]
    rows, before = [], ("",) * len(shape)
    for i in seen:
        places = np.unravel_index(i, shape) if shape else ()
        labels = tuple(v.labels[int(p)] for v, p in zip(found.rows, places, strict=True))
        heads = tuple(
            Head(text, go(v.codes[int(p)]), again=n < len(shape) - 1 and labels[: n + 1] == before[: n + 1])
            for n, (v, p, text, go) in enumerate(zip(found.rows, places, labels, down, strict=True))
        )
        before = labels
        rank = f"{ranks[i]:,}" if ranks and ranks[i] else ""
        rows.append(Row(rank, heads or (Head("All"),), _cells(found, i, columns)))
    return rows


def _drill(shown: TableVariable, asked: BuilderState, link: Link) -> Callable[[str], str]:
    """From a group to its codes."""
    if not shown.of:
        return lambda _: ""
    finer = shown.of

    def go(code: str) -> str:
        only = {name: codes for name, codes in asked.only.items() if name != shown.id}
        rows = tuple(finer if name == shown.id else name for name in asked.rows)
        return link(replace(asked, rows=rows, only={**only, shown.id: (code,)}, page=1, chart=""))

    return go


def _up(asked: BuilderState, table: QueryableTable, link: Link) -> tuple[tuple[str, str], ...]:
    """From codes back to their groups."""
    links = []
    for coarser in table.variables:
        if coarser.of and coarser.of in asked.shown:
            rows = tuple(coarser.id if name == coarser.of else name for name in asked.rows)
            columns = coarser.id if asked.columns == coarser.of else asked.columns
            only = {name: codes for name, codes in asked.only.items() if name not in (coarser.id, coarser.of)}
            up = replace(asked, rows=rows, columns=columns, only=only, page=1, key="", chart="")
            links.append((f"By {coarser.label.lower()}", link(up)))
    return tuple(links)


def _cells(found: NumberGrid, row: int, columns: list[int]) -> tuple[PageCell, ...]:
    return tuple(
        _cell(layer, row, column, row == found.height or column == found.width)
        for column in columns
        for layer in found.layers
    )


def _cell(layer: Layer, row: int, column: int, total: bool) -> PageCell:
    mark, value = Status(layer.status[row, column]), layer.value[row, column]
    below, room = layer.kind == "interval", layer.kind in ("margin", "se")
    if np.isnan(value):
        if mark in (Status.SUPPRESSED, Status.ABSENT):
            return PageCell("", mark=mark.value, says=SHORT[mark], total=total, below=below, room=room)
        return PageCell("–", total=total, below=below, room=room)
    decimals, error = layer.measure.decimals, layer.error[row, column]
    text = percent(value) if layer.percent else number(value, decimals)
    told = ""
    negative = bool(value < 0 <= layer.low[row, column])
    if layer.kind == "interval" or negative:  # an interval that begins at 0 has no half
        told = f"{number(layer.low[row, column], decimals)} to {number(layer.high[row, column], decimals)}"
    elif layer.kind and not np.isnan(error):
        size = margin(100 * error, 1) if layer.percent else margin(error, max(decimals, int(layer.kind == "se")))
        told = f"{'±' if layer.kind == 'margin' else 'se'} {size}"
    return PageCell(text, told, mark.value, SHORT.get(mark, ""), total, below, room, negative)


def _headings(
    found: NumberGrid, asked: BuilderState, link: Link, columns: list[int]
) -> tuple[tuple[Head, ...], tuple[Head, ...]]:
    """One line of headings, or two: columns, and measures in each."""
    codes = [*(found.column.codes if found.column else ("",)), ""]
    labels = [*(found.column.labels if found.column else ("",)), "Total"]
    several = len(found.layers) > 1
    leaves = []
    for place in columns:
        for layer in found.layers:
            name = layer.measure.label
            if found.column and not several:
                name = labels[place]
            leaves.append(_sorting(found, asked, link, name, codes[place], layer, place))
    if not (found.column and several):
        return (), tuple(leaves)
    return tuple(Head(labels[place], span=len(found.layers)) for place in columns), tuple(leaves)


def _sorting(
    found: NumberGrid, asked: BuilderState, link: Link, name: str, code: str, layer: Layer, place: int
) -> Head:
    """A heading whose link puts the rows in its order: largest first, then smallest first."""
    what = layer.measure.id if len(found.layers) > 1 else ""
    default = "" if _by_total(found, asked) or not found.column else found.column.codes[0]
    codes = found.column.codes if found.column else ()
    key = asked.key if asked.key in codes else default
    here = asked.sort.endswith("value") and key == code and _sorted_by(found, asked) is layer
    if found.column and place == found.width and not _by_total(found, asked):
        return Head(name)
    descending = here and asked.sort == "-value"
    go = replace(asked, sort="value" if descending else "-value", key=code, what=what, page=1)
    order = ("descending" if descending else "ascending") if here else ""
    return Head(name, link(go) if found.rows else "", order=order)


def _row_names(found: NumberGrid, asked: BuilderState, link: Link) -> tuple[Head, ...]:
    go = link(replace(asked, sort="-label" if asked.sort == "label" else "label", key="", what="", page=1))
    order = {"label": "ascending", "-label": "descending"}.get(asked.sort, "")
    return tuple(Head(v.label, go if n == 0 else "", order=order if n == 0 else "") for n, v in enumerate(found.rows))


def _caption(found: NumberGrid, asked: BuilderState, table: QueryableTable, which: str) -> str:
    names = [layer.measure.label for layer in found.layers]
    what = listed([names[0], *(name.lower() for name in names[1:])]) if len(names) <= 4 else table.about.title
    by = listed([v.label.lower() for v in (*found.rows, *([found.column] if found.column else []))])
    text = f"{what} by {by}" if by else what
    groups = [
        (distinct(v, v), asked.only[v.id]) for v in table.variables if v.of in asked.shown and asked.only.get(v.id)
    ]
    limits = [_limit(v, codes) for v, codes in (*groups, *found.answer.limited)]
    percents = f", percent {OF[asked.share]}" if found.layers[0].percent else ""
    return text + percents + (f", {which}" if which else "") + ("; " + "; ".join(limits) if limits else "")


def _limit(limited: TableVariable, codes: tuple[str, ...]) -> str:
    label = dict(zip(limited.codes, limited.labels, strict=True))
    some = [label[code] for code in codes[:5]] + ([f"{len(codes) - 5} more"] if len(codes) > 5 else [])
    return f"{limited.label.lower()}: {listed(some)}"


def _pages(asked: BuilderState, link: Link, page: int, pages: int) -> tuple[tuple[str, str], ...]:
    if pages == 1:
        return ()
    near = sorted({1, *range(max(1, page - 2), min(pages, page + 2) + 1), pages})
    return tuple((f"{n:,}", "" if n == page else link(replace(asked, page=n))) for n in near)


def _in_order(found: NumberGrid, order: list[int]) -> Answer:
    """The answer with its rows as the table has them, for the chart. Two variables in the rows stay as published."""
    if len(found.rows) != 1:
        return found.answer
    width = found.width
    kept = np.array(order, np.int64)
    rows = found.rows[0].chosen([found.rows[0].codes[i] for i in order])
    numbers = {name: values.reshape(-1, width)[kept].ravel() for name, values in found.answer.numbers.items()}
    marks = [found.answer.status[i * width + j] for i in order for j in range(width)]
    return replace(found.answer, variables=(rows, *found.answer.variables[1:]), numbers=numbers, status=marks)


def _marks(found: NumberGrid, layer: Layer, order: list[int]) -> list[Status]:
    kept = order if len(found.rows) == 1 else range(found.height)
    return [Status(layer.status[i, j]) for i in kept for j in range(found.width)]
