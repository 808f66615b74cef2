"""A published Parquet file contains what was written to it, and no other byte of the process's memory.

Arrow 26 reserves a dictionary page for every entry of a dictionary and writes each distinct one: of a dictionary with
entries that occur twice the rest of the page is whatever lay in that memory before. The columns of a list of groups are
such: an institution is there once for each programme. What lay there before can be a record.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.domain import Domain
from discreet.domain.codelists import from_groups
from discreet.errors import PublishError
from discreet.privacy.guarantee import Guarantee, Record
from discreet.privacy.protected import Protected
from discreet.publish.storage import LocalFolder
from discreet.publish.tables import write_table

GUARANTEE = Guarantee(unit=Record(), epsilon=1)


def whole(data: bytes, place: int) -> tuple[int, int]:
    """An integer of Thrift's compact protocol, and the remaining bytes."""
    value = shift = 0
    while True:
        byte = data[place]
        value, shift, place = value | (byte & 127) << shift, shift + 7, place + 1
        if not byte & 128:
            return value >> 1 ^ -(value & 1), place


def struct(data: bytes, place: int) -> tuple[dict[int, object], int]:
    """A page header: integers, and structures of them."""
    actual: dict[int, object] = {}
    field = 0
    while data[place]:
        kind, field, place = data[place] & 15, field + (data[place] >> 4), place + 1
        if kind > 2:  # a boolean is its kind
            actual[field], place = struct(data, place) if kind == 12 else whole(data, place)
    return actual, place + 1


def dictionary_page(data: bytes, start: int) -> tuple[int, bytes]:
    """The number of entries of a dictionary page, and its bytes."""
    header, place = struct(data, start)
    size, packed, about = header[2], header[3], header[7]
    assert isinstance(size, int)
    assert isinstance(packed, int)
    assert isinstance(about, dict)
    content = pa.decompress(data[place : place + packed], decompressed_size=size, codec="zstd")
    return about[1], content.to_pybytes()


def leftovers(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The bytes of each dictionary page of texts that belong to none of its entries."""
    about = pq.read_metadata(pa.BufferReader(data))
    for group in range(about.num_row_groups):
        for column in range(about.num_columns):
            chunk = about.row_group(group).column(column)
            if chunk.physical_type == "BYTE_ARRAY" and chunk.dictionary_page_offset is not None:
                entries, page = dictionary_page(data, chunk.dictionary_page_offset)
                place = 0
                for _ in range(entries):
                    place += 4 + int.from_bytes(page[place : place + 4], "little")
                yield chunk.path_in_schema, page[place:]


def programmes(folder: Path, count: int) -> Domain:
    """Two institutions with many programmes each."""
    path = folder / "programmes.csv"
    rows = "".join(f"0010010{i % 2},{i:07}\n" for i in range(count))
    path.write_text(f"institution,cip\n{rows}")
    shown = {"programme": ["institution", "cip"], "institutions": ["institution"]}
    return Domain((from_groups("programme", path, shown, ["i", "c"], None, "here")[0],))


def written(folder: Path, columns: list[pa.Array], names: list[str]) -> bytes:
    batch = pa.RecordBatch.from_arrays(columns, names)
    write_table(LocalFolder(folder, folder), "t", batch.schema, iter([Protected(batch, GUARANTEE, False)]), False)
    return (folder / "t.parquet").read_bytes()


def test_the_test_itself_reads_pages(tmp_path: Path) -> None:
    column = pa.array(["x", "yy", "x"]).dictionary_encode()
    assert list(leftovers(written(tmp_path, [column], ["c"]))) == [("c", b"")]


def test_the_dictionaries_of_cells_have_no_entry_twice(tmp_path: Path) -> None:
    domain = programmes(tmp_path, 10)
    for column in domain.code_arrays(np.arange(domain.cells)):
        entries = column.dictionary.to_pylist()
        assert len(set(entries)) == len(entries)


def test_no_page_has_bytes_that_were_not_written(tmp_path: Path) -> None:
    domain = programmes(tmp_path, 50)
    data = written(tmp_path, domain.code_arrays(np.arange(domain.cells)), list(domain.columns))
    assert [rest for _, rest in leftovers(data) if rest] == []


def test_no_freed_memory_is_in_a_published_file(tmp_path: Path) -> None:
    """Records are read as by an engine and freed; then a table is written."""
    domain = programmes(tmp_path, 20_000)
    columns = domain.code_arrays(np.arange(domain.cells))
    for _ in range(5):
        records = [pa.array([f"XSECRETPERSONX{i:07}" for i in range(10_000)]) for _ in range(20)]
        del records
        data = written(tmp_path, columns, list(domain.columns))
        assert [rest for _, rest in leftovers(data) if b"XSECRET" in rest] == []


def test_the_writer_refuses_dictionaries_that_arrow_would_leave_unwritten(tmp_path: Path) -> None:
    double = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array(["x", "y", "x"]))
    with pytest.raises(PublishError, match="lists a category twice"):
        written(tmp_path, [double], ["c"])
    assert not (tmp_path / "t.parquet").exists()
