"""Protected rows to files: Parquet for machines, CSV for everybody. Equal rows give equal bytes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from discreet.errors import PublishError
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.protected import Protected
from discreet.publish.place import Place

KINDS = ("parquet", "csv")
SIMULATION = "SIMULATION: drawn with a fixed test key. It protects nobody and must not be published."


def in_words(guarantee: Guarantee, simulated: bool) -> str:
    """What is promised; of a simulation, what would be."""
    return f"With a secret key this would be promised: {guarantee.in_words()}" if simulated else guarantee.in_words()


@dataclass(frozen=True)
class Written:
    """One table, or one part of it, as files: their names and SHA-256."""

    files: dict[str, str]
    rows: int


def stem(table: str, simulated: bool) -> str:
    """A simulation says so in the name of every file."""
    return f"{table}.simulation" if simulated else table


def file_names(table: str, simulated: bool, parts: int) -> list[str]:
    """The files of a table. A large one is a folder of parts: `jobs.parquet/part-00000.parquet`."""
    return [n for part in ([None] if parts == 1 else range(parts)) for n in _names(table, simulated, part)]


def _names(table: str, simulated: bool, part: int | None) -> tuple[str, str]:
    name = stem(table, simulated)
    parquet, csv = (f"{name}.{kind}" + ("" if part is None else f"/part-{part:05}.{kind}") for kind in KINDS)
    return parquet, csv


def write_table(
    place: Place,
    table: str,
    schema: pa.Schema,
    batches: Iterator[Protected[pa.RecordBatch]],
    simulated: bool,
    part: int | None = None,
) -> Written:
    """Stream one table, or one part of it, to its place, as Parquet and CSV."""
    names = _names(table, simulated, part)
    marked = schema.with_metadata({"discreet": SIMULATION if simulated else "protected; see manifest.json"})
    plain = pa.schema([(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in schema])
    rows = 0
    with ExitStack() as stack:
        parquet, csv = (stack.enter_context(place.create(name)) for name in names)
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
    return Written({name: file.sha256() for name, file in zip(names, (parquet, csv), strict=True)}, rows)


_CSV = pcsv.WriteOptions(quoting_style="needed")  # texts are quoted, numbers are not: codes stay codes


def _write_text(lines: pcsv.CSVWriter, batch: pa.RecordBatch, plain: pa.Schema) -> None:
    lines.write_batch(batch.cast(plain))
