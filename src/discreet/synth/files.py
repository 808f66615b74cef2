"""Writes the files of a synthetic agency: confidential ones as Parquet, public lists as CSV."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.errors import ParameterError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Files = TypeVar("Files", bound=DataclassInstance)

Progress = Callable[[int, int], None]
BATCH_ROWS = 1 << 20


def public_folder(folder: Path) -> Path:
    """The folder of an agency's public lists, created if necessary."""
    public = folder / "public"
    try:
        public.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ParameterError(
            "the output folder is a file or below one", where=str(folder), do="give a folder"
        ) from error
    return public


def agency_files(kind: type[Files], folder: Path, confidential: Collection[str]) -> Files:
    """An instance of `kind` with a path for each field."""
    public, names = public_folder(folder), [field.name for field in fields(kind)]
    return kind(*(folder / f"{name}.parquet" if name in confidential else public / f"{name}.csv" for name in names))


@contextmanager
def parquet_file(path: Path, schema: pa.Schema, **options: Any) -> Iterator[pq.ParquetWriter]:
    """A writer whose file gets its name when complete: an interrupted run leaves no file that looks complete.

    The Arrow schema is not stored, so codes are read back as plain strings.
    """
    unfinished = path.with_suffix(".parquet.part")
    with pq.ParquetWriter(unfinished, schema, compression="snappy", store_schema=False, **options) as writer:
        yield writer
    unfinished.replace(path)


def write_csv(path: Path, header: tuple[str, ...], rows: Iterable[Iterable[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
