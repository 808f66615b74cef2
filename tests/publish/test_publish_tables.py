"""Writing protected rows: deterministic, codes as text, simulations marked."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from discreet.domain import Attribute, Domain
from discreet.formatting import guarded, unguarded
from discreet.privacy.guarantee import Guarantee, Record
from discreet.privacy.protected import Protected
from discreet.publish.description import SIMULATION, file_names, stem
from discreet.publish.storage import LocalFolder, sha256
from discreet.publish.tables import write_table
from support.hypothesis_profile import examples

GUARANTEE = Guarantee(unit=Record(), epsilon=1)
CODES = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema([("state", CODES), ("count", pa.int64())])


def batches(
    codes: list[str], size: int = 100, simulated: bool = False, schema: pa.Schema = SCHEMA
) -> Iterator[Protected[pa.RecordBatch]]:
    space = Domain((Attribute.flat("state", codes, None, "state", None, ""),))
    for first in range(0, len(codes), size):
        cells = np.arange(first, min(first + size, len(codes)), dtype=np.int64)
        arrays = [*space.code_arrays(cells), pa.array(cells - 2)]
        yield Protected(pa.RecordBatch.from_arrays(arrays, schema=schema), GUARANTEE, simulated)


def place(folder: Path) -> LocalFolder:
    scratch = folder / ".parts"
    scratch.mkdir(parents=True, exist_ok=True)
    return LocalFolder(folder, scratch)


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_csv_keeps_leading_zeros_and_negative_counts(tmp_path: Path) -> None:
    written = write_table(place(tmp_path), "t", SCHEMA, batches(["01", "002", "3"]), simulated=False)
    assert written.files == {name: sha256(tmp_path / name) for name in ("t.parquet", "t.csv")}
    assert written.rows == 3
    assert rows(tmp_path / "t.csv") == [["state", "count"], ["01", "-2"], ["002", "-1"], ["3", "0"]]
    assert '"01"' in (tmp_path / "t.csv").read_text()  # quoted: a spreadsheet sees text


def test_parquet_keeps_dictionary_columns(tmp_path: Path) -> None:
    write_table(place(tmp_path), "t", SCHEMA, batches(["01", "02"]), simulated=False)
    table = pq.read_table(tmp_path / "t.parquet")
    assert pa.types.is_dictionary(table.schema.field("state").type)
    assert table.schema.field("count").type == pa.int64()
    assert table.to_pydict() == {"state": ["01", "02"], "count": [-2, -1]}


@pytest.mark.parametrize("simulated", [False, True])
def test_simulations_are_marked_in_names_and_metadata(tmp_path: Path, simulated: bool) -> None:
    written = write_table(place(tmp_path), "t", SCHEMA, batches(["1"], simulated=simulated), simulated)
    assert all(("simulation" in name) == simulated for name in written.files)
    assert sorted(p.name for p in tmp_path.glob("t*")) == sorted(written.files)
    mark = pq.read_schema(tmp_path / next(iter(written.files))).metadata[b"discreet"].decode()
    assert (mark == SIMULATION) == simulated
    assert stem("t", simulated) == ("t.simulation" if simulated else "t")


@pytest.mark.parametrize("simulated", [False, True])
def test_the_mark_comes_from_the_rows(tmp_path: Path, simulated: bool) -> None:
    with pytest.raises(Exception, match="simulat"):
        write_table(place(tmp_path), "t", SCHEMA, batches(["1"], simulated=simulated), not simulated)


def test_equal_rows_give_equal_bytes(tmp_path: Path) -> None:
    codes = [f"{i:04}" for i in range(2000)]
    for name in ("one", "two"):
        write_table(place(tmp_path / name), "t", SCHEMA, batches(codes), simulated=False)
    for file in ("t.parquet", "t.csv"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_an_empty_table_has_its_header(tmp_path: Path) -> None:
    assert write_table(place(tmp_path), "t", SCHEMA, iter(()), simulated=False).rows == 0
    assert rows(tmp_path / "t.csv") == [["state", "count"]]
    assert pq.read_table(tmp_path / "t.parquet").num_rows == 0


@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=6),
        min_size=1,
        max_size=8,
        unique=True,
    )
)
def test_any_code_survives_both_formats(tmp_path: Path, codes: list[str]) -> None:
    write_table(place(tmp_path), "t", SCHEMA, batches(codes, size=3), simulated=False)
    shown = [row[0] for row in rows(tmp_path / "t.csv")[1:]]
    assert list(map(unguarded, shown)) == codes
    assert list(map(guarded, codes)) == shown
    assert pq.read_table(tmp_path / "t.parquet").column("state").to_pylist() == codes


def test_no_code_and_no_column_of_a_csv_file_is_a_formula(tmp_path: Path) -> None:
    schema = pa.schema([("=state", CODES), ("count", pa.int64())])
    codes = ["=cmd|' /C calc'!A0", "@a", "-1", "'b"]
    write_table(place(tmp_path), "t", schema, batches(codes, schema=schema), simulated=False)
    assert [row[0] for row in rows(tmp_path / "t.csv")] == ["'=state", "'=cmd|' /C calc'!A0", "'@a", "-1", "''b"]
    assert pq.read_table(tmp_path / "t.parquet").column("=state").to_pylist() == codes


def test_codes_that_need_no_guard_are_written_unchanged(tmp_path: Path) -> None:
    write_table(place(tmp_path), "t", SCHEMA, batches(["01", "a,b", "x y"]), simulated=False)
    expected = sha256(tmp_path / "t.csv")
    (tmp_path / "old.csv").write_text('"state","count"\n"01",-2\n"a,b",-1\n"x y",0\n')
    assert expected == sha256(tmp_path / "old.csv"), (tmp_path / "t.csv").read_text()


def test_odd_column_names_survive(tmp_path: Path) -> None:
    schema = pa.schema([('a,"b"', CODES), ("count", pa.int64())])
    write_table(place(tmp_path), "t", schema, batches(["1"], schema=schema), simulated=False)
    assert rows(tmp_path / "t.csv")[0] == ['a,"b"', "count"]


def test_a_part_has_a_number_and_a_folder(tmp_path: Path) -> None:
    one = write_table(place(tmp_path), "t", SCHEMA, batches(["01", "02"]), simulated=False, part=0)
    two = write_table(place(tmp_path), "t", SCHEMA, batches(["03"]), simulated=False, part=12)
    assert set(one.files) == {"t.parquet/part-00000.parquet", "t.csv/part-00000.csv"}
    assert set(two.files) == {"t.parquet/part-00012.parquet", "t.csv/part-00012.csv"}
    assert (one.rows, two.rows) == (2, 1)
    assert {n: sha256(tmp_path / n) for n in (*one.files, *two.files)} == one.files | two.files
    assert pq.read_table(tmp_path / "t.parquet").column("state").to_pylist() == ["01", "02", "03"]
    assert rows(tmp_path / "t.csv" / "part-00012.csv") == [["state", "count"], ["03", "-2"]]  # its header too
    assert list((tmp_path / ".parts").iterdir()) == []


@pytest.mark.parametrize("simulated", [False, True])
@pytest.mark.parametrize("parts", [1, 3])
def test_the_names_in_the_description_are_those_written(tmp_path: Path, simulated: bool, parts: int) -> None:
    actual: list[str] = []
    for part in range(parts):
        content = batches(["1"], simulated=simulated)
        number = part if parts > 1 else None
        actual += write_table(place(tmp_path), "t", SCHEMA, content, simulated, number).files
    assert file_names("t", simulated, parts) == actual


def test_a_failing_source_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> Iterator[Any]:
        yield from batches(["1"])
        raise MemoryError

    with pytest.raises(MemoryError):
        write_table(place(tmp_path), "t", SCHEMA, failing(), simulated=False)
    assert place(tmp_path).names() == set()


def test_sha256_is_the_digest_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256(tmp_path / "x") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
