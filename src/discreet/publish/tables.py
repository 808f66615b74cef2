"""Writes protected rows as Parquet, CSV and Stata files. Deterministic: equal rows give equal bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from discreet.errors import PublishError
from discreet.formatting import guarded, guarded_table
from discreet.privacy.protected import Protected
from discreet.publish.description import FORMATS, SIMULATION, FileFormats, part_names
from discreet.publish.storage import HashedFile, Storage

if TYPE_CHECKING:
    from discreet.publish.description import Column


def schema_of(columns: Iterable[Column]) -> pa.Schema:
    """The Arrow schema of published columns: codes, integers, real numbers."""
    kinds = {"code": pa.dictionary(pa.int32(), pa.string()), "integer": pa.int64(), "number": pa.float64()}
    return pa.schema([(c.name, kinds[c.type]) for c in columns])


@dataclass(frozen=True)
class WrittenTable:
    """The files of one table, or of one part of it, with their SHA-256."""

    files: dict[str, str]
    rows: int


def write_table(
    place: Storage,
    table: str,
    schema: pa.Schema,
    batches: Iterator[Protected[pa.RecordBatch]],
    simulated: bool,
    part: int | None = None,
    formats: FileFormats = FORMATS,
    *,
    bare: bool = False,
    packed: bool = False,
) -> WrittenTable:
    """Stream one table, or one part of it, to storage in each format; a batch is written while the next is computed.
    `bare` codes need neither quotes nor guards; `packed` columns are small integers, stored in few bits in Parquet."""
    names = part_names(table, simulated, part, formats)
    rows, writing = 0, list[Future[None]]()
    with ExitStack() as stack:
        files = [stack.enter_context(place.create(name)) for name in names]
        writers = [
            stack.enter_context(_WRITERS[kind](file, schema, simulated, bare, packed))
            for kind, file in zip(formats, files, strict=True)
        ]
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=len(writers)))
        for protected in batches:
            if protected.simulated != simulated:
                raise PublishError("simulated and real rows cannot be mixed", where=f"table {table}")
            batch = protected.value
            for before in writing:
                before.result()
            writing = [pool.submit(writer.write, batch) for writer in writers]
            rows += batch.num_rows
        for last in writing:
            last.result()
    return WrittenTable({name: file.sha256() for name, file in zip(names, files, strict=True)}, rows)


class _Parquet:
    """Writes Parquet; the file's metadata says whether it is a simulation."""

    def __init__(self, file: HashedFile, schema: pa.Schema, simulated: bool, bare: bool, packed: bool) -> None:  # noqa: ARG002
        self._mark = {"discreet": SIMULATION if simulated else "protected; see manifest.json"}
        options: dict[str, Any] = {"compression": "zstd"}
        if packed:
            encoding = dict.fromkeys(schema.names, "DELTA_BINARY_PACKED")
            options = {"compression": "none", "use_dictionary": False, "column_encoding": encoding}
        self._writer = pq.ParquetWriter(file, schema.with_metadata(self._mark), **options)

    def write(self, batch: pa.RecordBatch) -> None:
        for column in batch.columns:
            if pa.types.is_dictionary(column.type) and len(column.dictionary.unique()) < len(column.dictionary):
                # Arrow 26 allocates space for every entry and fills only the distinct ones: the rest of the page is
                # whatever was in memory before, confidential or not.
                raise PublishError("lists a category twice", where="a table's codes", do="report this as a defect")
        self._writer.write_batch(batch.replace_schema_metadata(self._mark))

    def __enter__(self) -> _Parquet:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()


class _CSV:
    """Writes CSV. Texts are quoted and guarded against spreadsheet formulas where needed; numbers are not."""

    def __init__(self, file: HashedFile, schema: pa.Schema, simulated: bool, bare: bool, packed: bool) -> None:  # noqa: ARG002
        plain = [(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in schema]
        self._plain, self._bare = pa.schema(plain), bare
        style = "none" if bare else "needed"
        options = pcsv.WriteOptions(quoting_style=style, quoting_header=style)
        header = pa.schema([(guarded(name), kind) for name, kind in plain])
        self._writer = pcsv.CSVWriter(file, header, write_options=options)

    def write(self, batch: pa.RecordBatch) -> None:
        plain = batch.cast(self._plain)
        self._writer.write_batch(plain if self._bare else guarded_table(plain))

    def __enter__(self) -> _CSV:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()


class _Stata:
    """Writes Stata's format; the file's label says whether it is a simulation."""

    def __init__(self, file: HashedFile, schema: pa.Schema, simulated: bool, bare: bool, packed: bool) -> None:  # noqa: ARG002
        from discreet.publish.stata import StataFile

        self._writer = StataFile(file, schema, SIMULATION if simulated else "protected; see manifest.json")

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write(batch)

    def __enter__(self) -> _Stata:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._writer.close()


_WRITERS: dict[str, Any] = {"parquet": _Parquet, "csv": _CSV, "dta": _Stata}
