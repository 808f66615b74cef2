"""SDMX-CSV 2.0: a row for each observation, identifiers as SDMX allows them.

Status follows the code list CL_OBS_STATUS: A is a normal value, U one of low reliability, Q a missing value that is
suppressed, O a missing value without a stated reason. A cell that the release does not have is O, not M ("data cannot
exist"): the release does not say why it is not there. Our finer marks stand in a column of their own.
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
from discreet.serve.query_model import About, Answer, Status

AGENCY = "DISCREET"
FIRST = ("STRUCTURE", "STRUCTURE_ID", "ACTION")
LAST = ("MEASURE", "OBS_VALUE", "OBS_STATUS", "DECIMALS", "RELIABILITY")
LIMITED = "LIMITED_TO"
CODE = re.compile(r"[A-Za-z0-9_@$-]+")  # SDMX's IDType


def write(answer: Answer, about: About) -> bytes:
    within, width = briefly(answer), len(answer.measures)
    names = distinct((identifier(v.id) for v in answer.variables), (*FIRST, *LAST, LIMITED))
    columns: list[Sequence[str]] = [[fixed] * (len(answer) * width) for fixed in ("dataflow", structure(about), "I")]
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


def structure(about: About) -> str:
    """The dataflow: the table, its version the day of the release. A simulation says so."""
    name = identifier(about.id) + ("_SIMULATION" if about.simulation else "")
    try:
        day = date.fromisoformat(about.updated[:10])
    except ValueError:
        return f"{AGENCY}:{name}"
    return f"{AGENCY}:{name}({day.year}.{day.month}.{day.day})"


def identifier(name: str) -> str:
    """A name as SDMX's NCNameIDType has it, in upper case."""
    plain = normalize("NFKD", name.upper()).encode("ascii", "ignore").decode().upper()
    found = re.sub(r"[^A-Z0-9]+", "_", plain)
    return found if re.match(r"[A-Z]", found) else f"_{found.lstrip('_')}"


def codes(texts: Sequence[str]) -> list[str]:
    """Codes as SDMX allows them: those that are valid stay, others have underscores. So have the two valid signs that
    would begin a formula: an identifier has no apostrophe."""
    valid = {text for text in texts if CODE.fullmatch(text) and guarded(text) == text}
    odd = [text for text in texts if text not in valid]
    changed = dict(zip(odd, distinct((_valid(text) for text in odd), valid), strict=True))
    return [changed.get(text, text) for text in texts]


def _valid(text: str) -> str:
    found = re.sub(r"[^A-Za-z0-9_@$-]", "_", text) or "_"
    return found if guarded(found) == found else f"_{found[1:]}"


def _status(numbers: Floats, status: Sequence[str]) -> list[str]:
    """A code of CL_OBS_STATUS for each number: it must not call a number missing, nor a gap a number."""
    found = []
    for none, mark in zip(np.isnan(numbers).tolist(), status, strict=True):
        if none:
            found.append("Q" if mark == Status.SUPPRESSED else "O")
        else:
            found.append("A" if mark == Status.RELIABLE else "U")
    return found


def _woven(columns: Sequence[Sequence[str]]) -> list[str]:
    """The first of each, then the second of each, and so on."""
    return [text for row in zip(*columns, strict=True) for text in row]
