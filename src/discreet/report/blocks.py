"""Building blocks of a report, written as Markdown and as one self-contained HTML page."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from discreet.formatting import guarded

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;display:block;overflow-x:auto;margin:1rem 0;font-size:14px}"
    "th,td{border-bottom:1px solid #ccc;padding:.25rem .6rem;text-align:left;vertical-align:top}"
    "figure{margin:1.5rem 0;overflow-x:auto}figcaption{font-size:14px}"
)


@dataclass(frozen=True)
class Heading:
    """A heading of level 1, 2 or 3."""

    level: int
    text: str

    def markdown(self) -> str:
        return f"{'#' * self.level} {self.text}"

    def html(self, folder: Path) -> str:  # noqa: ARG002 (all blocks have it)
        return f"<h{self.level}>{escape(self.text)}</h{self.level}>"


@dataclass(frozen=True)
class Paragraph:
    """Plain text."""

    text: str

    def markdown(self) -> str:
        return self.text

    def html(self, folder: Path) -> str:  # noqa: ARG002
        return f"<p>{escape(self.text)}</p>"


@dataclass(frozen=True)
class Table:
    """A table of text, also written to files: `name`.csv and `name`.md."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)

    def html(self, folder: Path) -> str:  # noqa: ARG002
        head = "".join(f"<th>{escape(cell)}</th>" for cell in self.columns)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


@dataclass(frozen=True)
class Figure:
    """An SVG file in the report's folder."""

    file: str
    caption: str

    def markdown(self) -> str:
        return f"![{self.caption}]({self.file})\n\n*{self.caption}*"

    def html(self, folder: Path) -> str:
        picture = (folder / self.file).read_text(encoding="utf-8")
        return f"<figure>{picture}<figcaption>{escape(self.caption)}</figcaption></figure>"


Block = Heading | Paragraph | Table | Figure


def as_markdown(blocks: Iterable[Block]) -> str:
    """The blocks as Markdown, separated by blank lines."""
    return "\n\n".join(block.markdown() for block in blocks) + "\n"


def as_html(title: str, blocks: Iterable[Block], folder: Path) -> str:
    """The blocks as one HTML page with embedded figures."""
    body = "\n".join(block.html(folder) for block in blocks)
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV, with spreadsheet formulas guarded."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(map(guarded, columns))
    lines.writerows([guarded(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return out.getvalue()


def write_report(out: Path, title: str, blocks: Sequence[Block], data: Mapping[str, str]) -> list[Path]:
    """Write `report.md`, `report.html`, each table and further files; returns all files in the folder, report first."""
    texts = {"report.md": as_markdown(blocks), "report.html": as_html(title, blocks, out), **data}
    for table in (block for block in blocks if isinstance(block, Table)):
        texts[f"tables/{table.name}.csv"] = as_csv(table.columns, table.rows)
        texts[f"tables/{table.name}.md"] = table.markdown() + "\n"
    for name, text in texts.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text, encoding="utf-8")
    rest = sorted(path for path in out.rglob("*") if path.is_file() and path.name != "report.md")
    return [out / "report.md", *rest]
