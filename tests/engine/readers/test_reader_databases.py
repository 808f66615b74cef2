"""Tables of databases: a column is read or refused by its declared type, and no record stops another's reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

import duckdb
import pytest

from discreet.engine.intake.derived import CodeText, DerivedColumn, Identifier, Number
from discreet.engine.readers.postgres import _CODECS, _decoded
from discreet.errors import SourceError
from support.postgres_server import PostgresServer
from support.readings import Row, category, each_alone, readings, released_csv, uses


class Tables:
    """A database in some encoding, with tables created by SQL."""

    def __init__(self, server: PostgresServer, encoding: str) -> None:
        from adbc_driver_postgresql import dbapi

        self.connect, self.url = dbapi.connect, server.database(encoding)

    def run(self, *statements: str) -> None:
        with closing(self.connect(self.url)) as connection:
            for statement in statements:
                with connection.cursor() as cursor:
                    cursor.execute(statement)
            connection.commit()

    def rows(self, kind: str, values: Sequence[str], made: Sequence[DerivedColumn]) -> list[Row]:
        inserts = [f"INSERT INTO t VALUES ({value})" for value in values]
        self.run("DROP TABLE IF EXISTS t", f"CREATE TABLE t (s {kind})", *inserts)
        return readings({"postgres": self.url, "table": "t"}, made)


@cache
def tables_in(server: PostgresServer, encoding: str) -> Tables:
    """One database of an encoding for each process: tests of a module may be run in several turns."""
    return Tables(server, encoding)


@pytest.fixture(scope="module")
def utf8(server: PostgresServer) -> Tables:
    return tables_in(server, "UTF8")


@pytest.fixture(scope="module")
def others(server: PostgresServer) -> dict[str, Tables]:
    return {encoding: tables_in(server, encoding) for encoding in ("SQL_ASCII", "LATIN1", "EUC_JP")}


ODD = {  # a text that UTF-8 lacks, or that is none, and what becomes of it
    "SQL_ASCII": (r"E'\xff\xfe'", ""),
    "LATIN1": (r"E'\xe4'", "ä"),
    "EUC_JP": (r"convert_from('\x8fa2b7', 'EUC_JP')", ""),  # Python reads it as ~, which has a byte of its own
}
# Two ways to write what Python reads alike: another person each, of whom one at most is read.
TWICE = {
    "EUC_JP": [r"E'7~'", r"E'7\x8f\xa2\xb7'", r"E'\xb0\xa1'"],
    "EUC_KR": [r"E'\xb0\xa1'", r"E'\xa4\xd4\xa4\xa1\xa4\xbf\xa4\xd4'", r"E'\xb0\xa2'"],
    "EUC_JIS_2004": [r"E'\xaa\xa2'", r"E'\x8f\xa2\xaf'", r"E'\xb0\xa1'"],
}


@pytest.mark.parametrize("kind", ["text", "varchar(9)", "char(2)", "name"])
@pytest.mark.parametrize("encoding", ODD)
def test_texts_that_the_client_cannot_hold(others: dict[str, Tables], encoding: str, kind: str) -> None:
    odd, becomes = ODD[encoding]
    rows = each_alone(["'ok'", odd, "NULL", "'7x'"], lambda values: others[encoding].rows(kind, values, uses("s")))
    assert rows[0] == (0, "ok")
    assert rows[2:] == [(None, None), (None, "7x")]
    assert (rows[1][1] or "").rstrip() == becomes


@pytest.mark.parametrize("encoding", TWICE)
def test_two_texts_of_a_database_are_never_one_person(server: PostgresServer, encoding: str) -> None:
    """They are two keys in PostgreSQL, and were read as one person, whose records displaced each other."""
    tables = tables_in(server, encoding)
    made = (Identifier("s", whole=False),)
    rows = each_alone(TWICE[encoding], lambda values: tables.rows("text PRIMARY KEY", values, made))
    known = [text for (text,) in rows if text is not None]
    assert len(known) == len(set(known)) == 2
    assert rows[2] == ("亜" if encoding != "EUC_KR" else "각",)


def _units() -> Iterator[bytes]:
    """All sequences of one and two bytes, of three that a code beyond the usual is made of, and what Korean syllables
    can be put together of."""
    ranks = [bytes([a]) for a in range(256)]
    yield from ranks
    yield from (a + b for a in ranks for b in ranks)
    yield from (lead + a + b for lead in (b"\x8e", b"\x8f") for a in ranks[128:] for b in ranks[128:])
    jamo = [b"\xa4" + bytes([i]) for i in (0xA1, 0xA4, 0xBF, 0xC0, 0xD4)]
    yield from (b"\xa4\xd4" + a + b + c for a in jamo for b in jamo for c in jamo)


@pytest.mark.parametrize("encoding", [name for name, codec in _CODECS.items() if codec is not None])
def test_no_two_sequences_of_bytes_are_one_text(encoding: str) -> None:
    codec, seen = _CODECS[encoding], dict[str, bytes]()
    for unit in _units():
        for value in (unit, b"7" + unit):
            if (text := _decoded(value, str(codec))) is not None:
                assert seen.setdefault(text, value) == value, (text, seen[text], value)
    assert len(seen) >= 2 * 128 + 100  # ASCII, and letters


def test_the_clients_own_encoding_changes_nothing(others: dict[str, Tables], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "UTF8")
    rows = others["SQL_ASCII"].rows("text", [r"'ok'", r"E'\xff\xfe'"], uses("s"))
    assert rows == [(0, "ok"), (None, None)]


def test_names_of_columns_in_other_alphabets(others: dict[str, Tables]) -> None:
    tables = others["LATIN1"]
    tables.run(r'CREATE TABLE U&"t\00fcr" (U&"n\00e4m""e" text, "plain\x" int)')
    tables.run(r"""INSERT INTO U&"t\00fcr" VALUES (E'\xe4', 7)""")
    actual = readings({"postgres": tables.url, "table": "tür"}, (*uses('näm"e'), CodeText("plain\\x", None)))
    assert actual == [(None, "ä", "7")]


def test_one_byte_that_is_no_text(utf8: Tables) -> None:
    values = ["'o'", r"""convert_from('\x37','UTF8')::"char" """, r"""'\344'::"char" """, "NULL"]
    rows = each_alone(values, lambda vs: utf8.rows('"char"', vs, uses("s")))
    assert rows[:2] == [(None, "o"), (1, "7")]
    assert rows[3] == (None, None)


@pytest.mark.parametrize("kind", ["char(3)", "bpchar", "character(5)", "padded"])
def test_blanks_at_the_end_of_a_padded_text_make_no_other(utf8: Tables, kind: str) -> None:
    """They are insignificant in SQL for these types: 'a' and 'a  ' were two ids, and '7' did not match its code."""
    utf8.run("DROP TABLE IF EXISTS t", "DROP DOMAIN IF EXISTS padded", "CREATE DOMAIN padded AS char(4)")
    values = ["'7'", "'7  '", "' 7'", "''", "NULL", "'é '"]
    rows = each_alone(values, lambda vs: utf8.rows(kind, vs, uses("s", id="s")))
    assert [row[1] for row in rows] == ["7", "7", " 7", "", None, "é"]
    assert rows[0] == rows[1] == (1, "7", "7")


@pytest.mark.parametrize("kind", ["text", "varchar(5)"])
def test_blanks_at_the_end_of_other_texts_are_theirs(utf8: Tables, kind: str) -> None:
    assert utf8.rows(kind, ["'7'", "'7 '"], (Identifier("s", whole=False),)) == [("7",), ("7 ",)]


@pytest.mark.parametrize("name", ["numeric", "bpchar", "uuid", "int4"])
def test_a_type_of_somebodys_own_is_not_taken_for_postgresqls(utf8: Tables, name: str) -> None:
    """An enumeration called numeric was read as numbers: the query stopped, whatever the table held."""
    utf8.run("DROP TABLE IF EXISTS t", f'DROP TYPE IF EXISTS public."{name}"')
    utf8.run(f"CREATE TYPE public.\"{name}\" AS ENUM ('7', '7.0', 'ok ')")
    try:
        rows = utf8.rows(f'public."{name}"', ["'7'", "'7.0'", "'ok '", "NULL"], uses("s", id="s"))
        assert [row[1:] for row in rows] == [("7", "7"), ("7.0", "7.0"), ("ok ", "ok "), (None, None)]
    finally:
        utf8.run("DROP TABLE IF EXISTS t", f'DROP TYPE public."{name}"')


def test_numeric_is_a_value_and_no_identifier(utf8: Tables) -> None:
    values = ["7", "7.0", "7.00", "'NaN'", "'Infinity'", "1e100", "NULL", "0.1", "1e400", "1e-400"]
    rows = each_alone(values, lambda vs: utf8.rows("numeric", vs, (Number("s"),)))
    assert rows == [(7.0,), (7.0,), (7.0,), (None,), (None,), (1e100,), (None,), (0.1,), (None,), (0.0,)]
    for made in ((Identifier("s", whole=False),), (CodeText("s", None),)):
        for held in ([], ["7.0"]):
            with pytest.raises(SourceError, match=r"of type numeric"):
                utf8.rows("numeric", held, made)
    with pytest.raises(SourceError, match=r"numeric\(9,2\).*can merge two identifiers"):
        utf8.rows("numeric(9,2)", [], (Identifier("s", whole=False),))


def test_whole_numerics_are_identifiers(utf8: Tables) -> None:
    values = ["7", "7.0", "'NaN'", "98765432109876543210"]
    made = (Identifier("s", whole=False), Number("s"))
    rows = each_alone(values, lambda vs: utf8.rows("numeric(20,0)", vs, made))
    assert rows == [("7", 7.0), ("7", 7.0), (None, None), ("98765432109876543210", 98765432109876543210.0)]


def test_dates_uuids_enumerations_and_domains(utf8: Tables) -> None:
    dates = ["'2020-01-31'", "'infinity'", "'-infinity'", "'5874897-12-31'", "'0044-03-15 BC'"]
    rows = each_alone(dates, lambda vs: utf8.rows("date", vs, uses("s")))
    assert [row[1] for row in rows] == ["2020-01-31", None, None, None, None]
    uuid = "00000000-0000-0000-0000-00000000000a"
    assert utf8.rows("uuid", [f"'{uuid.upper()}'"], uses("s", id="s")) == [(None, uuid, uuid)]
    utf8.run("DROP TABLE IF EXISTS t", "CREATE TYPE mood AS ENUM ('ok', 'bad')", "CREATE DOMAIN few AS varchar(3)")
    assert utf8.rows("mood", ["'ok'"], uses("s")) == [(0, "ok")]
    assert utf8.rows("few", ["'ok'"], uses("s")) == [(0, "ok")]
    assert utf8.rows("bool", ["true", "NULL"], uses("s")) == [(None, "true"), (None, None)]
    assert utf8.rows("float8", ["'NaN'", "7"], uses("s", "s")) == [(None, None, None, None), (1, "7", 7.0, 2)]


@pytest.mark.parametrize(
    "kind",
    ["oid", "money", "timestamp", "timestamptz", "json", "jsonb", "bytea", "interval", "int4[]", "bit(3)", "inet"],
)
def test_other_types_of_postgresql_are_refused(utf8: Tables, kind: str) -> None:
    with pytest.raises(SourceError, match="of type _?" + kind.partition("(")[0].partition("[")[0]):
        utf8.rows(kind, [], (category("s", "ok"),))
    with pytest.raises(SourceError, match="not numeric"):
        utf8.rows(kind, [], (Number("s"),))


def test_a_failing_query_tells_no_value(utf8: Tables) -> None:
    utf8.run("DROP TABLE IF EXISTS t", "CREATE VIEW v AS SELECT 'SECRET'::text::int AS s")
    with pytest.raises(SourceError, match="cannot be read from PostgreSQL") as refusal:
        readings({"postgres": utf8.url, "table": "v"}, uses("s"))
    assert "SECRET" not in str(refusal.value)
    assert refusal.value.__context__ is None


def test_a_release_of_a_table_with_a_broken_text(others: dict[str, Tables], tmp_path: Path) -> None:
    for encoding, tables in others.items():
        source = {"postgres": tables.url, "table": "t"}
        tables.rows("text", ["'ok'", ODD[encoding][0], "'7'"], uses("s"))
        with_it = released_csv(tmp_path / f"{encoding}1", source)
        tables.rows("text", ["'ok'", "'7'"], uses("s"))
        assert released_csv(tmp_path / f"{encoding}2", source) == with_it


# --- DuckDB ---------------------------------------------------------------------------------------------------------


def held(path: Path, kind: str, values: Sequence[str], made: Sequence[DerivedColumn]) -> list[Row]:
    """The same of a table in a file and of a relation."""
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t (s {kind}, other UHUGEINT)")
        for value in values:
            connection.execute(f"INSERT INTO t VALUES ({value}, 340282366920938463463374607431768211455)")
        actual = readings(connection.sql("FROM t"), made)
    assert readings({"duckdb": str(path), "table": "t"}, made) == actual
    return actual


UNFIT = [
    "HUGEINT", "UHUGEINT", "BIT", "BLOB", "TIME", "TIMETZ", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_NS", "INTERVAL",
    "INTEGER[]", "INTEGER[3]", "STRUCT(a INTEGER)", "MAP(INTEGER, INTEGER)", "BIGNUM", "JSON", "UNION(a INTEGER)",
]  # fmt: skip


@pytest.mark.parametrize("kind", UNFIT)
def test_other_types_of_duckdb_are_refused_under_their_names(tmp_path: Path, kind: str) -> None:
    name = kind.replace("TZ", " WITH TIME ZONE")
    for made in ((category("s", "ok"),), (Number("s"),), (Identifier("s", whole=False),)):
        with pytest.raises(SourceError) as refusal:
            held(tmp_path / "x.duckdb", kind, [], made)
        assert f"is of type {name}," in str(refusal.value)


def test_values_of_duckdb_one_by_one(tmp_path: Path) -> None:
    def read(kind: str, values: Sequence[str]) -> list[Row]:
        return each_alone(values, lambda vs: held(tmp_path / "x.duckdb", kind, vs, (CodeText("s", None),)))

    assert read("DATE", ["'2020-01-31'", "'infinity'", "'-infinity'", "'5881580-07-10'"])[1:] == [(None,)] * 3
    assert read("FLOAT", ["'nan'", "'inf'", "7"]) == [(None,), (None,), ("7",)]
    assert read("UBIGINT", ["18446744073709551615"]) == [("18446744073709551615",)]
    assert read("ENUM('a [x]', 'ok')", ["'ok'", "NULL", "'a [x]'"]) == [("ok",), (None,), ("a [x]",)]
    assert read("VARCHAR", ["'a' || chr(0)", "'ok'"]) == [("a\0",), ("ok",)]
    assert read("DECIMAL(38,0)", ["99999999999999999999999999999999999999"]) == [("9" * 38,)]
    values = ["'99999999999999999999999999999999999.999'", "-1.5"]
    actual = held(tmp_path / "x.duckdb", "DECIMAL(38,3)", values, uses("s", "s")[2:])
    assert actual == [(1e35, 2), (-1.5, 0)]
