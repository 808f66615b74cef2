"""Protected rows to files: Parquet for machines, CSV for everybody. Equal rows give equal bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from discreet.errors import PublishError
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.protected import Protected

SIMULATION = "SIMULATION: drawn with a fixed test key. It protects nobody and must not be published."


def in_words(guarantee: Guarantee, simulated: bool) -> str:
    """What is promised; of a simulation, what would be."""
    return f"With a secret key this would be promised: {guarantee.in_words()}" if simulated else guarantee.in_words()


@dataclass(frozen=True)
class Written:
    """One table as files."""

    files: tuple[str, ...]
    rows: int


def stem(table: str, simulated: bool) -> str:
    """A simulation says so in the name of every file."""
    return f"{table}.simulation" if simulated else table


def write_table(
    folder: Path, table: str, schema: pa.Schema, batches: Iterator[Protected[pa.RecordBatch]], simulated: bool
) -> Written:
    """Stream one table into `folder`, as Parquet and CSV."""
    name = stem(table, simulated)
    parquet, csv = folder / f"{name}.parquet", folder / f"{name}.csv"
    marked = schema.with_metadata({"discreet": SIMULATION if simulated else "protected; see manifest.json"})
    plain = pa.schema([(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in schema])
    rows = 0
    with ExitStack() as stack:
        columns = stack.enter_context(pq.ParquetWriter(parquet, marked, compression="zstd"))
        lines = stack.enter_context(pcsv.CSVWriter(csv, plain, write_options=_CSV))
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=1))
        for protected in batches:
            if protected.simulated != simulated:
                raise PublishError("simulated and real rows do not mix", where=f"table {table}")
            batch = protected.value
            text = pool.submit(_write_text, lines, batch, plain)
            columns.write_batch(batch.replace_schema_metadata(marked.metadata))
            text.result()
            rows += batch.num_rows
    return Written((parquet.name, csv.name), rows)


_CSV = pcsv.WriteOptions(quoting_style="needed")  # texts are quoted, numbers are not: codes stay codes


def _write_text(lines: pcsv.CSVWriter, batch: pa.RecordBatch, plain: pa.Schema) -> None:
    lines.write_batch(batch.cast(plain))


def sha256(path: Path) -> str:
    """The digest of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
