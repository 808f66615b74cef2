"""File formats of answers. Equal answers give equal bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from discreet.serve.formats import excel, jsonstat, parquet, sdmx, text
from discreet.serve.query_model import Answer, TableSummary


@dataclass(frozen=True)
class Format:
    """A file format: how to write it, and how to name the file (`extension` is without a dot)."""

    id: str
    media_type: str
    extension: str
    write: Callable[[Answer, TableSummary], bytes]
    label: str


FORMATS: dict[str, Format] = {
    form.id: form
    for form in (
        Format("json-stat2", "application/json", "json", jsonstat.write, "JSON-stat 2"),
        Format("csv", "text/csv; charset=utf-8", "csv", text.write, "CSV"),
        Format(
            "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx", excel.write, "Excel"
        ),
        Format("parquet", "application/vnd.apache.parquet", "parquet", parquet.write, "Parquet"),
        Format("sdmx-csv", "application/vnd.sdmx.data+csv; version=2.0.0", "sdmx.csv", sdmx.write, "SDMX-CSV"),
    )
}


def safe_name(name: str) -> str:
    """The name with characters that are safe in file names."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in name)
