"""Comma-separated values (RFC 4180), UTF-8, one row per cell."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO

import numpy as np

from discreet.arrays import Floats
from discreet.formatting import guarded
from discreet.serve.formats.columns import briefly, headings, marks, places, rounded
from discreet.serve.query_model import Answer, TableSummary


def write(answer: Answer, summary: TableSummary) -> bytes:
    extra = {"limited_to": briefly(answer), "simulation": "yes" if summary.simulation else ""}
    extra = {name: text for name, text in extra.items() if text}
    columns: list[Sequence[str]] = []
    for k, v in enumerate(answer.variables):
        at = places(answer, k).tolist()
        for texts in (v.codes, v.labels):
            safe = [guarded(text) for text in texts]
            columns.append([safe[i] for i in at])
    columns += [decimal(rounded(answer, m), m.decimals) for m in answer.measures]
    columns.append(marks(answer))
    columns += [[guarded(text)] * len(answer) for text in extra.values()]
    return lines([guarded(name) for name in headings(answer, *extra)], zip(*columns, strict=True))


def lines(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """A header and rows, with line ends as RFC 4180 requires."""
    file = StringIO(newline="")
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(heading)
    writer.writerows(rows)
    return file.getvalue().encode()


def decimal(numbers: Floats, decimals: int) -> list[str]:
    """Each number with its decimals; empty where there is none."""
    shape = f".{max(decimals, 0)}f"
    missing = np.isnan(numbers).tolist()
    return ["" if none else format(x, shape) for x, none in zip(numbers.tolist(), missing, strict=True)]
