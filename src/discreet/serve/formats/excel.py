"""An Excel workbook: the numbers on one sheet, notes about them on another. No formulas."""

from __future__ import annotations

from datetime import datetime
from io import BytesIO
from math import isnan
from typing import Any

from discreet.errors import QueryTooLarge
from discreet.serve.formats.columns import headings, marks, meanings, places, remarks, rounded
from discreet.serve.query_model import Answer, TableSummary

ROWS = 1_048_575  # in a sheet, without the header
TEXT = 32_767  # characters in a cell
EARLIEST = datetime(1980, 1, 1)  # the earliest date in a ZIP archive
WIDTHS = (8, 40)
OPTIONS = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}


def write(answer: Answer, summary: TableSummary) -> bytes:
    import xlsxwriter

    if len(answer) > ROWS:
        raise QueryTooLarge(
            f"the answer has {len(answer):,} rows, more than an Excel sheet can hold",
            where=summary.id,
            do="request CSV or Parquet",
        )
    file = BytesIO()
    with xlsxwriter.Workbook(file, OPTIONS) as book:
        book.set_properties(
            {"title": answer.title, "subject": summary.release, "created": _day(summary.updated), "author": "discreet"}
        )
        _data(book, answer, summary)
        _notes(book, answer, summary)
    return file.getvalue()


def _data(book: Any, answer: Answer, summary: TableSummary) -> None:
    sheet = book.add_worksheet("Data (simulation)" if summary.simulation else "Data")
    bold = book.add_format({"bold": True, "bottom": 1})
    names = headings(answer)
    for column, name in enumerate(names):
        sheet.write_string(0, column, name[:TEXT], bold)
        sheet.set_column(column, column, min(max(len(name) + 2, WIDTHS[0]), WIDTHS[1]))
    column = 0
    for k, v in enumerate(answer.variables):
        at = places(answer, k).tolist()
        for texts in (v.codes, v.labels):
            cut = [text[:TEXT] for text in texts]
            sheet.write_column(1, column, [cut[i] for i in at])
            column += 1
    for m in answer.measures:
        shape = book.add_format({"num_format": "#,##0" + ("." + "0" * m.decimals if m.decimals > 0 else "")})
        sheet.write_column(1, column, [None if isnan(x) else x for x in rounded(answer, m).tolist()], shape)
        column += 1
    sheet.write_column(1, column, marks(answer))
    sheet.freeze_panes(1, 0)


def _notes(book: Any, answer: Answer, summary: TableSummary) -> None:
    sheet = book.add_worksheet("Notes")
    bold, wrap = book.add_format({"bold": True, "valign": "top"}), book.add_format({"text_wrap": True})
    sheet.set_column(0, 0, 24)
    sheet.set_column(1, 1, 100)
    rows = remarks(answer, summary)
    rows += [(m.id, m.label) for m in answer.measures]
    rows += [(f"status {mark}", words) for mark, words in meanings().items()]
    rows.append(("status empty", "reliable"))
    for row, (heading, text) in enumerate(rows):
        sheet.write_string(row, 0, heading[:TEXT], bold)
        sheet.write_string(row, 1, text[:TEXT], wrap)


def _day(updated: str) -> datetime:
    """The date of the release, so that equal answers give equal workbooks."""
    try:
        return max(datetime.fromisoformat(updated).replace(tzinfo=None), EARLIEST)
    except ValueError:
        return EARLIEST
