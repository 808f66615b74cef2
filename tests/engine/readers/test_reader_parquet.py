"""Parquet files are read by the types of their columns, whatever their metadata and encodings."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engine.intake.derived import CodeText, Identifier, Number
from discreet.engine.readers import open_source, parquet
from discreet.errors import SourceError
from discreet.spec import FileSource
from support.readings import each_alone, readings, uses

INDICES = (pa.int8(), pa.uint16(), pa.int32(), pa.int64())


def noted(path: Path, values: list[Any], index: pa.DataType, **options: Any) -> str:
    words = pa.array(values, pa.string()).dictionary_encode().cast(pa.dictionary(index, pa.string()))
    pq.write_table(pa.table({"s": words}), path, use_dictionary=False, **options)
    return str(path)


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
def test_a_noted_dictionary_in_any_encoding_is_text(tmp_path: Path, index: pa.DataType, encoding: str) -> None:
    """Without a record it was accepted, with one it was refused: Arrow insisted on the dictionary."""
    options = {"column_encoding": {"s": encoding}}
    made = uses("s", id="s")
    rows = each_alone(
        ["ok", None, "7"], lambda vs: readings(noted(tmp_path / "x.parquet", [*vs], index, **options), made)
    )
    assert [row[1:] for row in rows] == [("ok", "ok"), (None, None), ("7", "7")]
    assert readings(noted(tmp_path / "x.parquet", [], index, **options), made) == []


def test_more_words_than_a_noted_index_can_count(tmp_path: Path) -> None:
    """Each row group has few enough, as pandas writes categories; a file put together of them has more."""
    pieces = [pa.array([f"{letter}{i}" for i in range(100)]).dictionary_encode() for letter in "ab"]
    narrow = [piece.cast(pa.dictionary(pa.int8(), pa.string())) for piece in pieces]
    with pq.ParquetWriter(tmp_path / "x.parquet", pa.schema([("s", narrow[0].type)])) as writer:
        for piece in narrow:
            writer.write_table(pa.table({"s": piece}))
    actual = readings(str(tmp_path / "x.parquet"), (Identifier("s", whole=False),))
    assert actual == [(f"{letter}{i}",) for letter in "ab" for i in range(100)]


def test_long_columns_are_read_as_texts_and_short_ones_as_dictionaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 2 GiB of words Arrow makes no dictionary: a release of a code column stopped at its last record."""
    words = ["ok", "7", None, "a" * 500] * 300
    pq.write_table(pa.table({"s": words}), tmp_path / "x.parquet", row_group_size=600)
    actual, types = [], []
    for most in (100, 1 << 30):
        monkeypatch.setattr(parquet, "DICTIONARY", most)
        scan = open_source(FileSource(path="x.parquet"), tmp_path)
        types.append({batch.column(0).type for piece in scan.pieces for batch in piece.read(("s",), ("s",))})
        actual.append(readings(str(tmp_path / "x.parquet"), uses("s")))
    assert types == [{pa.string()}, {pa.dictionary(pa.int32(), pa.string())}]
    assert actual[0] == actual[1]


READ: dict[str, tuple[pa.Array, str]] = {  # what Arrow notes of a column may be its own kind of the same type
    "large_string": (pa.array(["7"], pa.large_string()), "7"),
    "string_view": (pa.array(["7"], pa.string_view()), "7"),
    "date64": (pa.array([dt.date(2020, 1, 31)], pa.date64()), "2020-01-31"),
    "decimal256": (pa.array([Decimal(7)], pa.decimal256(20, 0)), "7"),
    "uint32": (pa.array([2**32 - 1], pa.uint32()), str(2**32 - 1)),
    "uint64": (pa.array([2**64 - 1], pa.uint64()), str(2**64 - 1)),
    "float16": (pa.array([7.0], pa.float32()).cast(pa.float16()), "7"),
    "null": (pa.nulls(1), None),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("note", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_a_column_reads_the_same_with_and_without_a_note(tmp_path: Path, name: str, note: bool, version: str) -> None:
    column, text = READ[name]
    pq.write_table(pa.table({"s": column}), tmp_path / "x.parquet", store_schema=note, version=version)
    assert readings(str(tmp_path / "x.parquet"), (CodeText("s", None),)) == [(text,)]


REFUSED = {
    "duration": pa.array([1], pa.duration("s")), "timestamp": pa.array([1], pa.timestamp("us", "Europe/Vienna")),
    "uuid": pa.array([b"0" * 16], pa.uuid()), "time": pa.array([1], pa.time64("us")),
    "bool8": pa.array([1], pa.int8()).cast(pa.bool8()), "binary": pa.array([b"1"]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_type_that_is_only_noted_is_refused_as_noted(tmp_path: Path, name: str) -> None:
    """A duration lies there as a whole number: what it means decides."""
    for column in (REFUSED[name], REFUSED[name].slice(0, 0)):
        pq.write_table(pa.table({"s": column}), tmp_path / "x.parquet")
        for made in (Identifier("s", whole=False), CodeText("s", None), Number("s")):
            with pytest.raises(SourceError, match=f"column 's' is of type .*{name}|is used as an identifier.*{name}"):
                readings(str(tmp_path / "x.parquet"), (made,))


def test_columns_and_values_that_are_called_as_the_note_is(tmp_path: Path) -> None:
    name = "ARROW:schema"
    table = pa.table({name: [name, "ok"], "s": pa.array([name, "7"]).dictionary_encode()})
    pq.write_table(table.replace_schema_metadata({"a": name, name + "x": "y"}), tmp_path / "x.parquet")
    assert readings(str(tmp_path / "x.parquet"), (CodeText(name, None), CodeText("s", None))) == [
        (name, name),
        ("ok", "7"),
    ]


@pytest.mark.full
def test_more_than_2_gib_of_distinct_words_in_a_row_group(tmp_path: Path) -> None:
    long = [chr(97 + i % 26) * ((64 << 20) + i) for i in range(33)]
    words = pa.chunked_array([*([word] for word in long), ["ok"]])
    pq.write_table(pa.table({"s": words}), tmp_path / "x.parquet", row_group_size=1 << 20)
    assert pq.read_metadata(tmp_path / "x.parquet").num_row_groups == 1
    actual = readings(str(tmp_path / "x.parquet"), (uses("s")[0], Identifier("s", whole=False)))
    assert actual == [*[(None, None)] * 33, (0, "ok")]
