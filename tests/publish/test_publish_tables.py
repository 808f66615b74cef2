"""Protected rows to files: the same bytes for the same rows, codes as text, simulations marked."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.codelists import flat
from discreet.domain import Domain
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.protected import Protected
from discreet.privacy.unit import Record
from discreet.publish.tables import SIMULATION, sha256, stem, write_table

PROMISE = Guarantee(unit=Record(), epsilon=1)
CODES = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema([("state", CODES), ("count", pa.int64())])


def batches(
    codes: list[str], size: int = 100, simulated: bool = False, schema: pa.Schema = SCHEMA
) -> Iterator[Protected[pa.RecordBatch]]:
    space = Domain((flat("state", codes, None, "state", None, ""),))
    for first in range(0, len(codes), size):
        cells = np.arange(first, min(first + size, len(codes)), dtype=np.int64)
        arrays = [*space.describe(cells), pa.array(cells - 2)]
        yield Protected(pa.RecordBatch.from_arrays(arrays, schema=schema), PROMISE, simulated)


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_csv_keeps_leading_zeros_and_negative_counts(tmp_path: Path) -> None:
    written = write_table(tmp_path, "t", SCHEMA, batches(["01", "002", "3"]), simulated=False)
    assert written.files == ("t.parquet", "t.csv")
    assert written.rows == 3
    assert rows(tmp_path / "t.csv") == [["state", "count"], ["01", "-2"], ["002", "-1"], ["3", "0"]]
    assert '"01"' in (tmp_path / "t.csv").read_text()  # quoted: a spreadsheet sees text


def test_parquet_keeps_dictionary_columns(tmp_path: Path) -> None:
    write_table(tmp_path, "t", SCHEMA, batches(["01", "02"]), simulated=False)
    table = pq.read_table(tmp_path / "t.parquet")
    assert pa.types.is_dictionary(table.schema.field("state").type)
    assert table.schema.field("count").type == pa.int64()
    assert table.to_pydict() == {"state": ["01", "02"], "count": [-2, -1]}


@pytest.mark.parametrize("simulated", [False, True])
def test_simulations_are_marked_in_names_and_metadata(tmp_path: Path, simulated: bool) -> None:
    written = write_table(tmp_path, "t", SCHEMA, batches(["1"], simulated=simulated), simulated)
    assert all(("simulation" in name) == simulated for name in written.files)
    assert sorted(p.name for p in tmp_path.glob("t*")) == sorted(written.files)
    mark = pq.read_schema(tmp_path / written.files[0]).metadata[b"discreet"].decode()
    assert (mark == SIMULATION) == simulated
    assert stem("t", simulated) == ("t.simulation" if simulated else "t")


@pytest.mark.parametrize("simulated", [False, True])
def test_the_mark_comes_from_the_rows(tmp_path: Path, simulated: bool) -> None:
    with pytest.raises(Exception, match="simulat"):
        write_table(tmp_path, "t", SCHEMA, batches(["1"], simulated=simulated), not simulated)


def test_equal_rows_give_equal_bytes(tmp_path: Path) -> None:
    codes = [f"{i:04}" for i in range(2000)]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_table(tmp_path / name, "t", SCHEMA, batches(codes), simulated=False)
    for file in ("t.parquet", "t.csv"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_an_empty_table_has_its_header(tmp_path: Path) -> None:
    assert write_table(tmp_path, "t", SCHEMA, iter(()), simulated=False).rows == 0
    assert rows(tmp_path / "t.csv") == [["state", "count"]]
    assert pq.read_table(tmp_path / "t.parquet").num_rows == 0


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=6),
        min_size=1,
        max_size=8,
        unique=True,
    )
)
def test_any_code_survives_both_formats(tmp_path: Path, codes: list[str]) -> None:
    write_table(tmp_path, "t", SCHEMA, batches(codes, size=3), simulated=False)
    assert [row[0] for row in rows(tmp_path / "t.csv")[1:]] == codes
    assert pq.read_table(tmp_path / "t.parquet").column("state").to_pylist() == codes


def test_odd_column_names_survive(tmp_path: Path) -> None:
    schema = pa.schema([('a,"b"', CODES), ("count", pa.int64())])
    write_table(tmp_path, "t", schema, batches(["1"], schema=schema), simulated=False)
    assert rows(tmp_path / "t.csv")[0] == ['a,"b"', "count"]


def test_a_failing_source_leaves_no_handle_open(tmp_path: Path) -> None:
    def failing() -> Iterator[Any]:
        yield from batches(["1"])
        raise MemoryError

    with pytest.raises(MemoryError):
        write_table(tmp_path, "t", SCHEMA, failing(), simulated=False)
    for file in list(tmp_path.glob("t*")):
        file.unlink()
    assert not list(tmp_path.glob("t*"))


def test_sha256_is_the_digest_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256(tmp_path / "x") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
