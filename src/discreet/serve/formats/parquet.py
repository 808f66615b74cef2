"""Parquet: codes and labels as dictionaries, numbers as float64, and the guarantee in the file's metadata."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet.serve.formats.columns import headings, limits, marks, meanings, places, rounded
from discreet.serve.query_model import Answer, Status, TableSummary

MARKS = tuple(mark.value for mark in Status)


def write(answer: Answer, summary: TableSummary) -> bytes:
    columns: list[pa.Array] = []
    words: list[dict[str, str]] = []
    for k, v in enumerate(answer.variables):
        at = places(answer, k)
        columns += [_dictionary(v.codes, at), _dictionary(v.labels, at)]
        words += [{"label": v.label}, {"label": v.label}]
    for m in answer.measures:
        columns.append(pa.array(rounded(answer, m), pa.float64(), from_pandas=True))
        words.append({"label": m.label, "decimals": str(m.decimals), "error_of": m.error_of})
    order = {mark: i for i, mark in enumerate(MARKS)}
    status = np.fromiter((order[mark] for mark in marks(answer)), np.int32, len(answer))
    columns.append(_dictionary(MARKS, status))
    words.append({"label": "Status"})
    fields = [
        pa.field(name, column.type, metadata={key: text for key, text in word.items() if text})
        for name, column, word in zip(headings(answer), columns, words, strict=True)
    ]
    table = pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=_about(answer, summary)))
    file = BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


def _dictionary(texts: Sequence[str], at: NDArray[np.int32]) -> pa.DictionaryArray:
    """A dictionary array. Equal texts are listed once: for duplicates, Arrow writes uninitialized memory."""
    order = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    place = np.array([order[text] for text in texts], np.int32)[at]
    return pa.DictionaryArray.from_arrays(pa.array(place, pa.int32()), pa.array(list(order), pa.string()))


def _about(answer: Answer, summary: TableSummary) -> dict[str, str]:
    """Metadata of the file."""
    return {
        "title": answer.title,
        "table": summary.id,
        "release": summary.release,
        "updated": summary.updated,
        "simulation": "yes" if summary.simulation else "no",
        "guarantee": summary.guarantee,
        "noise": summary.noise,
        "caveats": _json(summary.caveats),
        "notes": _json(answer.notes),
        "limited_to": _json(limits(answer)),
        "status": _json(meanings()),
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
