"""Protected rows to files: Parquet for machines, CSV for everybody, Stata. Equal rows give equal bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from discreet.errors import PublishError
from discreet.formatting import guarded, guarded_table
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.protected import Protected
from discreet.publish.storage import Hashed, Storage

if TYPE_CHECKING:
    from discreet.publish.description import Column

Kinds = tuple[Literal["parquet", "csv", "dta"], ...]
KINDS: Kinds = ("parquet", "csv")
SIMULATION = "SIMULATION: drawn with a fixed test key. It protects nobody and must not be published."


def in_words(guarantee: Guarantee, simulated: bool) -> str:
    """What is promised; of a simulation, what would be."""
    return f"With a secret key this would be promised: {guarantee.in_words()}" if simulated else guarantee.in_words()


def schema_of(columns: Iterable[Column]) -> pa.Schema:
    """How they are written: codes, whole numbers, real ones."""
    kinds = {"code": pa.dictionary(pa.int32(), pa.string()), "integer": pa.int64(), "number": pa.float64()}
    return pa.schema([(c.name, kinds[c.type]) for c in columns])


@dataclass(frozen=True)
class Written:
    """One table, or one part of it, as files: their names and SHA-256."""

    files: dict[str, str]
    rows: int


def stem(table: str, simulated: bool) -> str:
    """A simulation says so in the name of every file."""
    return f"{table}.simulation" if simulated else table


def file_names(table: str, simulated: bool, parts: int, kinds: Kinds = KINDS) -> list[str]:
    """The files of a table. A large one is a folder of parts: `jobs.parquet/part-00000.parquet`."""
    return [n for part in ([None] if parts == 1 else range(parts)) for n in _names(table, simulated, part, kinds)]


def _names(table: str, simulated: bool, part: int | None, kinds: Kinds) -> list[str]:
    name = stem(table, simulated)
    return [f"{name}.{kind}" + ("" if part is None else f"/part-{part:05}.{kind}") for kind in kinds]


def write_table(
    place: Storage,
    table: str,
    schema: pa.Schema,
    batches: Iterator[Protected[pa.RecordBatch]],
    simulated: bool,
    part: int | None = None,
    kinds: Kinds = KINDS,
    *,
    bare: bool = False,
    packed: bool = False,
) -> Written:
    """Stream one table, or one part of it, to its place, as Parquet and CSV: a batch is written while the next is made.
    `bare` codes are of a form that needs neither quotes nor guards; `packed` are small whole numbers, which Parquet can
    store in a few bits."""
    names = _names(table, simulated, part, kinds)
    rows, writing = 0, list[Future[None]]()
    with ExitStack() as stack:
        files = [stack.enter_context(place.create(name)) for name in names]
        writers = [
            stack.enter_context(_WRITERS[kind](file, schema, simulated, bare, packed))
            for kind, file in zip(kinds, files, strict=True)
        ]
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=len(writers)))
        for protected in batches:
            if protected.simulated != simulated:
                raise PublishError("simulated and real rows do not mix", where=f"table {table}")
            batch = protected.value
            for before in writing:
                before.result()
            writing = [pool.submit(writer.write, batch) for writer in writers]
            rows += batch.num_rows
        for last in writing:
            last.result()
    return Written({name: file.sha256() for name, file in zip(names, files, strict=True)}, rows)


class _Parquet:
    """Marked in its metadata."""

    def __init__(self, file: Hashed, schema: pa.Schema, simulated: bool, bare: bool, packed: bool) -> None:  # noqa: ARG002
        self._mark = {"discreet": SIMULATION if simulated else "protected; see manifest.json"}
        options: dict[str, Any] = {"compression": "zstd"}
        if packed:
            encoding = dict.fromkeys(schema.names, "DELTA_BINARY_PACKED")
            options = {"compression": "none", "use_dictionary": False, "column_encoding": encoding}
        self._writer = pq.ParquetWriter(file, schema.with_metadata(self._mark), **options)

    def write(self, batch: pa.RecordBatch) -> None:
        for column in batch.columns:
            if pa.types.is_dictionary(column.type) and len(column.dictionary.unique()) < len(column.dictionary):
                # Arrow 26 makes room for every entry and fills only the distinct ones: the rest of the page is what
                # lay in memory before, confidential or not.
                raise PublishError("lists a category twice", where="a table's codes", do="report it")
        self._writer.write_batch(batch.replace_schema_metadata(self._mark))

    def __enter__(self) -> _Parquet:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()


class _CSV:
    """Texts are quoted and guarded where they must be, numbers are not: codes stay codes."""

    def __init__(self, file: Hashed, schema: pa.Schema, simulated: bool, bare: bool, packed: bool) -> None:  # noqa: ARG002
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
    """For Stata; marked in its label."""

    def __init__(self, file: Hashed, schema: pa.Schema, simulated: bool, bare: bool, packed: bool) -> None:  # noqa: ARG002
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
