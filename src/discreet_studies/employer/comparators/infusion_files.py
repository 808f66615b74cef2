"""Infused counts as files that cannot be mistaken for a release: file names and the manifest say so."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from discreet.errors import PublishError
from discreet.formats import COMPARATOR
from discreet.formatting import guarded_table
from discreet.privacy.exact import format_exact
from discreet.publish.manifest import FILE
from discreet_studies.employer.comparators.infusion import NO_GUARANTEE, InfusedCounts, Infusion

SUFFIX = "NOT-PROTECTED"
NOTICE = (
    "COMPARATOR, NOT PROTECTED: it must not be published. It simulates noise infusion to measure its errors and "
    "to test attacks. The parameters are ours; those of an agency are secret and may differ."
)


def write_comparator(
    folder: Path,
    table: str,
    labels: Mapping[str, pa.Array],
    measures: tuple[str, ...],
    infused: InfusedCounts,
    method: Infusion,
) -> list[Path]:
    """Write `labels` (one value per cell) and the infused counts of `measures` as CSV and Parquet into a new folder."""
    rows, columns = infused.values.shape
    if len(measures) != columns or any(len(values) != rows for values in labels.values()):
        raise PublishError("labels and counts differ in length", where=f"table {table}", do="give one label per cell")
    if set(labels) & set(measures) or not table.isprintable() or "/" in table:
        raise PublishError(
            "names that cannot be used as column or file names",
            where=f"table {table}",
            do="choose distinct plain names",
        )
    if folder.exists():
        raise PublishError("already exists", where=str(folder), do="name a folder that does not exist yet")
    counts = infused.rounded()
    data = pa.table({**labels, **{name: pa.array(counts[:, i]) for i, name in enumerate(measures)}})
    data = data.replace_schema_metadata({"discreet": f"{NOTICE} {NO_GUARANTEE}"})
    parts = {f"{table}.{SUFFIX}.csv": io.BytesIO(), f"{table}.{SUFFIX}.parquet": io.BytesIO()}
    as_csv, as_parquet = parts.values()
    pcsv.write_csv(guarded_table(data), as_csv)
    pq.write_table(data, as_parquet)
    files = {name: file.getvalue() for name, file in parts.items()}
    manifest = {
        "format": COMPARATOR,
        "notice": NOTICE,
        "guarantee": None,
        "guarantee_in_words": NO_GUARANTEE,
        "table": table,
        "method": "input noise infusion (Haney et al. 2017, section 5.1)",
        "parameters": {
            "s": format_exact(method.s),
            "t": format_exact(method.t),
            "limit": format_exact(method.limit),
            "shape": method.shape,
            "small_counts": "drawn with P(k) = (n_k + 1)/(n + L), n_k the table's own true counts of k",
        },
        "simulation": True,
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    files[FILE] = (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode()
    folder.mkdir(parents=True, mode=0o700)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in files]
