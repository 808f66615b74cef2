"""Relations on a connection that is the caller's, and Ibis tables: only wanted columns are computed, texts may have any
length, and the connection is left as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import polars as pl
import pyarrow as pa
import pytest

from discreet.engine.intake.derived import CodeText, Identifier, Number
from discreet.engine.readers import frames, open_source
from discreet.errors import SourceError
from support.neighbouring_releases import ReleaseOffice
from support.readings import readings, uses

LARGE = "SELECT current_setting('arrow_large_buffer_size')"
FRAMES: dict[str, Callable[[duckdb.DuckDBPyConnection], Any]] = {
    "relation": lambda connection: connection.table("t"),
    "ibis": lambda connection: ibis.duckdb.from_connection(connection).table("t"),
}


@pytest.fixture
def connection() -> Any:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 'ok' AS s, '7x' AS other UNION ALL SELECT '7', 'x' ORDER BY ALL")
        yield connection


@pytest.mark.parametrize("kind", FRAMES)
def test_a_column_that_nobody_wants_is_not_computed(connection: Any, kind: str) -> None:
    """One value that it stops at stopped the release."""
    connection.execute("CREATE VIEW v AS SELECT s, CAST(other AS INTEGER) AS broken FROM t")
    frame = connection.table("v") if kind == "relation" else ibis.duckdb.from_connection(connection).table("v")
    assert sorted(row[1] for row in readings(frame, uses("s"))) == ["7", "ok"]
    with pytest.raises(SourceError, match="cannot be read from its DuckDB connection") as refusal:
        readings(frame, (Number("broken"),))
    assert "7x" not in str(refusal.value)


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("before", [False, True])
def test_texts_come_with_offsets_of_64_bits_and_the_setting_stays(connection: Any, kind: str, before: bool) -> None:
    """Of 2 GiB in a batch those of 32 bits stopped the release."""
    connection.execute(f"SET arrow_large_buffer_size = {before}")
    scan = open_source(FRAMES[kind](connection), Path())
    (piece,) = scan.pieces
    types = {batch.schema.field("s").type for batch in piece.read(("s",))}
    assert types == {pa.large_string()} == set(scan.kinds["s"])
    assert connection.execute(LARGE).fetchall() == [(before,)]
    assert connection.execute("SELECT count(*) FROM duckdb_views() WHERE view_name LIKE 'discreet%'").fetchall() == [
        (0,)
    ]


def test_the_setting_stays_where_a_relation_fails(connection: Any) -> None:
    with pytest.raises(SourceError):
        readings(connection.sql("SELECT CAST(other AS INTEGER) AS s FROM t"), (Number("s"),))
    assert connection.execute(LARGE).fetchall() == [(False,)]


@pytest.mark.parametrize("kind", FRAMES)
def test_rows_of_which_no_column_is_wanted_are_counted(connection: Any, kind: str) -> None:
    (piece,) = open_source(FRAMES[kind](connection), Path()).pieces
    assert sum(batch.num_rows for batch in piece.read(())) == 2


@pytest.mark.parametrize("kind", FRAMES)
def test_two_tables_of_one_connection_in_one_release(tmp_path: Path, kind: str) -> None:
    """A connection does one thing at a time."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE jobs AS SELECT 'p' || i AS person_id, i AS worker FROM range(2) t(i)")
        connection.execute("CREATE TABLE workers AS SELECT i AS worker, 'farm' AS sector FROM range(2) t(i)")
        backend = ibis.duckdb.from_connection(connection) if kind == "ibis" else connection
        held = {name: backend.table(name) for name in ("jobs", "workers")}
        actual = ReleaseOffice(tmp_path / "office").run(
            dict.fromkeys(held, ""), frame=held, more={"join": {"workers": "worker"}}
        )
    assert actual.complete, (actual.refused, actual.stopped)
    assert actual.occupied() == {("farm",): 2}


def test_two_columns_of_one_name_are_refused(connection: Any) -> None:
    with pytest.raises(SourceError, match=r"two columns with the same name|cannot be converted to Arrow"):
        open_source(connection.sql("SELECT s, other AS S, 1 AS s FROM t"), Path())


# --- Ibis -----------------------------------------------------------------------------------------------------------


def test_a_sum_of_whole_numbers_is_one_or_none() -> None:
    """In DuckDB it has 128 bits, and Ibis says 64: one that has more is that record's alone. It stopped the release."""
    backend = ibis.duckdb.connect()
    backend.con.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES ('a', 7), ('b', {2**63 - 1}), ('b', 1)) v(s, n)")
    summed = backend.table("t").group_by("s").aggregate(n=lambda t: t.n.sum())
    actual = readings(summed, (CodeText("s", None), Identifier("n", whole=True)))
    assert sorted(actual) == [("a", 7), ("b", None)]


def test_an_ibis_table_that_mentions_public_ones() -> None:
    backend = ibis.duckdb.connect()
    backend.con.execute("CREATE TABLE t AS SELECT 'ok' AS s, 1 AS k")
    listed = ibis.memtable({"k": [1], "name": ["one"]})
    assert readings(backend.table("t").join(listed, "k"), (CodeText("name", None), *uses("s"))) == [("one", 0, "ok")]


def test_an_ibis_table_of_polars_is_read_as_polars_reads_it() -> None:
    frame = pl.DataFrame({"s": ["ok", None], "wide": [1, 2]}, schema={"s": pl.Categorical, "wide": pl.Int128})
    backend = ibis.polars.connect({"t": frame.select("s")})
    assert readings(backend.table("t"), uses("s")) == readings(frame, uses("s")) == [(0, "ok"), (None, None)]
    renamed = backend.table("t").select(code="s")
    assert readings(renamed, uses("code")) == [(0, "ok"), (None, None)]


@pytest.mark.full
@pytest.mark.parametrize("kind", FRAMES)
def test_more_than_2_gib_of_text_in_one_batch(kind: str) -> None:
    with duckdb.connect() as connection:
        rows = "SELECT repeat(chr(97 + (i % 2)::INT), 64 << 20) AS x, 'ok' AS s FROM range(33) r(i)"
        connection.execute(f"CREATE TABLE t AS {rows}")
        assert readings(FRAMES[kind](connection), uses("s")) == [(0, "ok")] * 33
        assert readings(FRAMES[kind](connection), (Identifier("x", whole=False),)) == [(None,)] * 33


def test_a_connection_that_is_closed_is_refused_in_our_words(connection: Any) -> None:
    relation = connection.table("t")
    connection.close()
    with pytest.raises(SourceError, match="cannot be converted to Arrow"):
        frames.scan(relation)
