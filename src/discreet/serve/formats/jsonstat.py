"""JSON-stat 2.0 as in PxWeb: the measures are the last dimension, ContentsCode."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.publish.description import SIMULATION
from discreet.serve.formats.columns import distinct, limits, marks, meanings, rounded
from discreet.serve.query_model import Answer, Measure, TableSummary, TableVariable

CONTENTS = "ContentsCode"
LARGEST = 2.0**53  # JSON readers keep integers exact below it


def write(answer: Answer, summary: TableSummary) -> bytes:
    """The value of cell i and measure j is at position i · measures + j."""
    width = len(answer.measures)
    values: list[float | None] = [None] * (len(answer) * width)
    for j, measure in enumerate(answer.measures):
        values[j::width] = _numbers(rounded(answer, measure), measure.decimals)
    head = _json(document(answer, summary)).removesuffix("}")
    return f'{head},"value":{_json(values)},"status":{_status([marks(answer, m) for m in answer.measures])}}}'.encode()


def document(answer: Answer, summary: TableSummary) -> dict[str, Any]:
    """The document without its numbers and their marks."""
    ids = [v.id for v in answer.variables]
    contents = distinct([CONTENTS], ids)[0]
    return {
        "version": "2.0",
        "class": "dataset",
        "label": answer.title,
        "source": summary.release,
        "updated": summary.updated,
        "note": notes(answer, summary),
        "role": {"metric": [contents]},
        "id": [*ids, contents],
        "size": [*answer.shape, len(answer.measures)],
        "dimension": {
            **{v.id: dimension(v) for v in answer.variables},
            contents: measure_dimension(answer.measures),
        },
        "extension": extension(summary)
        | {"limitedTo": [{"variable": v.id, "label": v.label, "codes": list(codes)} for v, codes in answer.limits]},
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


def measure_dimension(measures: Sequence[Measure]) -> dict[str, Any]:
    """The measures as a dimension: label, decimals, and of which measure each is the error."""
    return {
        "label": "Measure",
        "category": {
            "index": {m.id: i for i, m in enumerate(measures)},
            "label": {m.id: m.label for m in measures},
            "unit": {m.id: {"decimals": m.decimals} for m in measures},
        },
        "extension": {"errorOf": {m.id: m.error_of for m in measures if m.error_of}},
    }


def notes(answer: Answer, summary: TableSummary) -> list[str]:
    """Sentences for readers."""
    within = [f"Limited to {text}" for text in limits(answer)]
    groups = ([SIMULATION] * summary.simulation, within, answer.notes, [summary.guarantee], summary.caveats)
    return list(dict.fromkeys(text for texts in groups for text in texts if text))


def extension(summary: TableSummary) -> dict[str, Any]:
    """What JSON-stat has no fields for. The meaning of marks is where Eurostat puts it."""
    return {
        "px": {"tableid": summary.id, "contents": summary.title},
        "release": summary.release,
        "method": summary.method,
        "simulation": summary.simulation,
        "guarantee": summary.guarantee,
        "caveats": list(summary.caveats),
        "noise": summary.noise,
        "status": {"label": meanings()},
    }


def _numbers(column: Floats, decimals: int) -> list[Any]:
    """Numbers for JSON, null where there is none."""
    missing = np.isnan(column)
    integers = decimals <= 0 and bool(np.all(missing | (np.abs(column) < LARGEST)))
    numbers: list[Any] = (np.where(missing, 0, column).astype(np.int64) if integers else column).tolist()
    for i in np.flatnonzero(missing).tolist():
        numbers[i] = None
    return numbers


def _status(columns: Sequence[Sequence[str]]) -> str:
    """The marks by position, without the reliable ones. Written as text: building a dict of all keys first is slow."""
    flat = [mark for cell in zip(*columns, strict=True) for mark in cell]
    tail = {mark: f'":{_json(mark)}' for mark in set(flat)}
    entries = [f'"{i}{tail[mark]}' for i, mark in enumerate(flat) if mark]
    return f"{{{','.join(entries)}}}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
