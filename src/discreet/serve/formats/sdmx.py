"""SDMX-CSV 2.0: one row per observation, with identifiers that SDMX allows.

Status follows the code list CL_OBS_STATUS: A is a normal value, U one of low reliability, Q a missing value that is
suppressed, O a missing value without a stated reason. A cell that the release does not have is O, not M ("data cannot
exist"): the release does not state why the cell is absent. Our finer marks have their own column, RELIABILITY.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from unicodedata import normalize

import numpy as np

from discreet.arrays import Floats
from discreet.formatting import guarded
from discreet.serve.formats.columns import briefly, distinct, marks, places, rounded
from discreet.serve.formats.text import decimal, lines
from discreet.serve.query_model import Answer, Status, TableSummary

AGENCY = "DISCREET"
FIRST = ("STRUCTURE", "STRUCTURE_ID", "ACTION")
LAST = ("MEASURE", "OBS_VALUE", "OBS_STATUS", "DECIMALS", "RELIABILITY")
LIMITED = "LIMITED_TO"
CODE = re.compile(r"[A-Za-z0-9_@$-]+")  # SDMX's IDType


def write(answer: Answer, summary: TableSummary) -> bytes:
    within, width = briefly(answer), len(answer.measures)
    names = distinct((identifier(v.id) for v in answer.variables), (*FIRST, *LAST, LIMITED))
    columns: list[Sequence[str]] = [[fixed] * (len(answer) * width) for fixed in ("dataflow", structure(summary), "I")]
    for k, v in enumerate(answer.variables):
        valid = codes(v.codes)
        columns.append([valid[i] for i in np.repeat(places(answer, k), width).tolist()])
    measures = distinct(identifier(m.id) for m in answer.measures)
    status, numbers = [marks(answer, m) for m in answer.measures], [rounded(answer, m) for m in answer.measures]
    columns += [
        measures * len(answer),
        _woven([decimal(n, m.decimals) for n, m in zip(numbers, answer.measures, strict=True)]),
        _woven([_status(n, s) for n, s in zip(numbers, status, strict=True)]),
        [str(max(m.decimals, 0)) for m in answer.measures] * len(answer),
        _woven(status),
    ]
    if within:
        columns.append([guarded(within)] * (len(answer) * width))
    return lines([*FIRST, *names, *LAST, *([LIMITED] if within else [])], zip(*columns, strict=True))


def structure(summary: TableSummary) -> str:
    """The dataflow: the table, with the release date as its version; a simulation is named so."""
    name = identifier(summary.id) + ("_SIMULATION" if summary.simulation else "")
    try:
        day = date.fromisoformat(summary.updated[:10])
    except ValueError:
        return f"{AGENCY}:{name}"
    return f"{AGENCY}:{name}({day.year}.{day.month}.{day.day})"


def identifier(name: str) -> str:
    """A name as an SDMX NCNameIDType, in upper case."""
    plain = normalize("NFKD", name.upper()).encode("ascii", "ignore").decode().upper()
    text = re.sub(r"[^A-Z0-9]+", "_", plain)
    return text if re.match(r"[A-Z]", text) else f"_{text.lstrip('_')}"


def codes(texts: Sequence[str]) -> list[str]:
    """Codes that SDMX allows: invalid characters become underscores. So do the two valid characters that would begin a
    formula in a spreadsheet, since an identifier cannot be guarded by an apostrophe."""
    valid = {text for text in texts if CODE.fullmatch(text) and guarded(text) == text}
    odd = [text for text in texts if text not in valid]
    changed = dict(zip(odd, distinct((_valid(text) for text in odd), valid), strict=True))
    return [changed.get(text, text) for text in texts]


def _valid(text: str) -> str:
    valid = re.sub(r"[^A-Za-z0-9_@$-]", "_", text) or "_"
    return valid if guarded(valid) == valid else f"_{valid[1:]}"


def _status(numbers: Floats, status: Sequence[str]) -> list[str]:
    """A code of CL_OBS_STATUS for each number: missing exactly where there is no number."""
    statuses = []
    for none, mark in zip(np.isnan(numbers).tolist(), status, strict=True):
        if none:
            statuses.append("Q" if mark == Status.SUPPRESSED else "O")
        else:
            statuses.append("A" if mark == Status.RELIABLE else "U")
    return statuses


def _woven(columns: Sequence[Sequence[str]]) -> list[str]:
    """The columns interleaved: the first of each, then the second of each, and so on."""
    return [text for row in zip(*columns, strict=True) for text in row]
