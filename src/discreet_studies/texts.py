"""Texts of a study kept as data: printed numbers (CSV), table columns and claims (YAML), the report (Markdown)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import isnan
from pathlib import Path
from string import Formatter
from typing import cast

import yaml
from jinja2 import Environment, StrictUndefined

from discreet.privacy.exact import format_exact
from discreet.report.blocks import Block, Figure, Heading, Paragraph, Table
from discreet.synth.lists import Entry, entries

HERE = Path(__file__).parent
NOTHING = 1e-6  # smaller numbers are printed as 0


def published(study: str, name: str, kind: type[Entry]) -> tuple[Entry, ...]:
    """A table of the paper, read from `STUDY/published/NAME.csv`."""
    return entries(name, kind, HERE / study / "published")


@cache
def definitions(study: str, name: str) -> dict[str, dict[str, str]]:
    """`STUDY/NAME.yaml`: texts by the name of the table or claim."""
    return cast("dict[str, dict[str, str]]", yaml.safe_load((HERE / study / f"{name}.yaml").read_text("utf-8")))


def number(value: float) -> str:
    """Three decimals, or three significant digits below 0.1; 0 below a millionth."""
    if isnan(value):
        return "–"
    if abs(value) < NOTHING:
        return "0"
    if abs(value) >= 1e6:
        return f"{value:.1e}"
    return f"{value:,.3f}" if abs(value) >= 0.1 else f"{value:#.3g}"


def short(value: float | Fraction) -> str:
    """Three significant digits."""
    return f"{float(value):.3g}" if value < 1000 else f"{float(value):,.0f}"


FORMATS: Mapping[str, Callable[..., str]] = {
    "exact": format_exact,
    "number": number,
    "short": short,
    "digits": lambda value: f"{float(value):.4g}",
    "yes": lambda holds: "yes" if holds else "no",
}


class RowFormatter(Formatter):
    """`str.format` over one row's fields, where `#` is the row number; adds our own formats and a dash for missing
    values."""

    def get_value(self, key: int | str, args: Sequence[object], kwargs: Mapping[str, object]) -> object:  # noqa: ARG002
        row, place = args
        if key == "#":
            return place
        return row[str(key)] if isinstance(row, Mapping) else getattr(row, str(key))

    def format_field(self, value: object, format_spec: str) -> str:
        if value is None or (isinstance(value, float) and isnan(value)):
            return "–"
        own = FORMATS.get(format_spec)
        return own(value) if own else format(value, format_spec)


ROW_FORMATTER = RowFormatter()


def say(text: str, row: object, place: int = 0) -> str:
    """Fill a text with the fields of a row."""
    return ROW_FORMATTER.vformat(text, (row, place), {})


def table(study: str, name: str, rows: Iterable[object]) -> Table:
    """Rows under the columns that `tables.yaml` declares. `*FIELD` expands to one column per entry of that field."""
    entries = list(rows)
    heads: list[str] = []
    lines: list[list[str]] = [[] for _ in entries]
    for head, shown in definitions(study, "tables")[name].items():
        spread = head.removeprefix("*")
        heads += [head] if spread == head else list(_entries(entries[0], spread)) if entries else []
        for place, (row, line) in enumerate(zip(entries, lines, strict=True), 1):
            if spread == head:
                line.append(say(shown, row, place))
            else:
                line += [ROW_FORMATTER.format_field(value, shown) for value in _entries(row, spread).values()]
    return Table(name, heads, lines)


def _entries(row: object, field: str) -> Mapping[str, object]:
    return cast("Mapping[str, object]", ROW_FORMATTER.get_value(field, (row, 0), {}))


def blocks(study: str, tables: Mapping[str, Table], facts: Mapping[str, object]) -> list[Block]:
    """Render the Markdown template `STUDY/report.md`. A paragraph `[NAME]` is replaced by the table of that name."""
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701
    environment.filters["f"] = ROW_FORMATTER.format_field
    text = environment.from_string((HERE / study / "report.md").read_text("utf-8")).render(facts)
    return [_block(" ".join(part.split("\n")), tables) for part in text.strip().split("\n\n") if part.strip()]


def _block(text: str, tables: Mapping[str, Table]) -> Block:
    text = text.strip()
    if text.startswith("#"):
        marks, _, words = text.partition(" ")
        return Heading(len(marks), words)
    if text.startswith("![") and text.endswith(".svg)"):
        caption, _, file = text[2:-1].rpartition("](")
        return Figure(file, caption)
    if text.startswith("[") and text[1:-1] in tables:
        return tables[text[1:-1]]
    return Paragraph(text)
