"""JSON-stat 2.0 as PxWeb writes it: the measures are the last dimension, ContentsCode."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.publish.description import SIMULATION
from discreet.serve.formats.columns import distinct, limits, marks, meanings, rounded
from discreet.serve.query_model import About, Answer, Measure, TableVariable

CONTENTS = "ContentsCode"
LARGEST = 2.0**53  # JSON readers keep integers below it


def write(answer: Answer, about: About) -> bytes:
    """The value of cell i and measure j stands at i · measures + j."""
    width = len(answer.measures)
    values: list[float | None] = [None] * (len(answer) * width)
    for j, measure in enumerate(answer.measures):
        values[j::width] = _numbers(rounded(answer, measure), measure.decimals)
    head = _json(described(answer, about)).removesuffix("}")
    return f'{head},"value":{_json(values)},"status":{_status([marks(answer, m) for m in answer.measures])}}}'.encode()


def described(answer: Answer, about: About) -> dict[str, Any]:
    """The document but for its numbers and their marks."""
    ids = [v.id for v in answer.variables]
    contents = distinct([CONTENTS], ids)[0]
    return {
        "version": "2.0",
        "class": "dataset",
        "label": answer.title,
        "source": about.release,
        "updated": about.updated,
        "note": notes(answer, about),
        "role": {"metric": [contents]},
        "id": [*ids, contents],
        "size": [*answer.shape, len(answer.measures)],
        "dimension": {
            **{v.id: dimension(v) for v in answer.variables},
            contents: measured(answer.measures),
        },
        "extension": extension(about)
        | {"limitedTo": [{"variable": v.id, "label": v.label, "codes": list(codes)} for v, codes in answer.limited]},
    }


def dimension(variable: TableVariable) -> dict[str, Any]:
    """A variable with its codes and their labels."""
    return {
        "label": variable.label,
        "category": {
            "index": {code: i for i, code in enumerate(variable.codes)},
            "label": dict(zip(variable.codes, variable.labels, strict=True)),
        },
    }


def measured(measures: Sequence[Measure]) -> dict[str, Any]:
    """The measures as a dimension: what each is, its decimals, and whose error it tells."""
    return {
        "label": "Measure",
        "category": {
            "index": {m.id: i for i, m in enumerate(measures)},
            "label": {m.id: m.label for m in measures},
            "unit": {m.id: {"decimals": m.decimals} for m in measures},
        },
        "extension": {"errorOf": {m.id: m.about for m in measures if m.about}},
    }


def notes(answer: Answer, about: About) -> list[str]:
    """Sentences for readers."""
    within = [f"Limited to {text}" for text in limits(answer)]
    found = ([SIMULATION] * about.simulation, within, answer.notes, [about.guarantee], about.caveats)
    return list(dict.fromkeys(text for texts in found for text in texts if text))


def extension(about: About) -> dict[str, Any]:
    """What JSON-stat has no words for. The meaning of marks stands where Eurostat has it."""
    return {
        "px": {"tableid": about.id, "contents": about.title},
        "release": about.release,
        "method": about.method,
        "simulation": about.simulation,
        "guarantee": about.guarantee,
        "caveats": list(about.caveats),
        "noise": about.noise,
        "status": {"label": meanings()},
    }


def _numbers(column: Floats, decimals: int) -> list[Any]:
    """Numbers as JSON has them, null where there is none."""
    missing = np.isnan(column)
    whole = decimals <= 0 and bool(np.all(missing | (np.abs(column) < LARGEST)))
    found: list[Any] = (np.where(missing, 0, column).astype(np.int64) if whole else column).tolist()
    for i in np.flatnonzero(missing).tolist():
        found[i] = None
    return found


def _status(columns: Sequence[Sequence[str]]) -> str:
    """The marks by position, the reliable left out. Written here: an object of so many keys is slow to make twice."""
    flat = [mark for cell in zip(*columns, strict=True) for mark in cell]
    tail = {mark: f'":{_json(mark)}' for mark in set(flat)}
    found = [f'"{i}{tail[mark]}' for i, mark in enumerate(flat) if mark]
    return f"{{{','.join(found)}}}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
