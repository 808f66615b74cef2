"""PostgreSQL tables, streamed through Arrow. A column is read by its declared type, checked before any row is read.

Texts are fetched as the bytes stored by the server, which would abort a whole query if it could not convert one. They
are decoded here, one by one; a text that cannot be decoded, or whose decoding is not unique, is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from discreet.engine.readers import DecimalText, Reader, Scan, UnsupportedType, rows_without_columns
from discreet.errors import SourceError
from discreet.spec import PostgresSource

_FITS = {
    "bool": pa.bool_(), "int2": pa.int16(), "int4": pa.int32(), "int8": pa.int64(), "float4": pa.float32(),
    "float8": pa.float64(), "date": pa.date32(),
}  # fmt: skip
_TEXTS = {"text", "varchar", "bpchar", "name", "char"}  # and enumerations
_CODECS = {
    "UTF8": None, "SQL_ASCII": None,  # UTF-8 is validated later, value by value
    "EUC_CN": "gb2312", "EUC_JIS_2004": "euc_jis_2004", "EUC_JP": "euc_jp", "EUC_KR": "euc_kr", "JOHAB": "johab",
    "KOI8R": "koi8_r", "KOI8U": "koi8_u", "LATIN1": "iso8859_1", "LATIN2": "iso8859_2", "LATIN3": "iso8859_3",
    "LATIN4": "iso8859_4", "LATIN5": "iso8859_9", "LATIN6": "iso8859_10", "LATIN7": "iso8859_13",
    "LATIN8": "iso8859_14", "LATIN9": "iso8859_15", "LATIN10": "iso8859_16", "ISO_8859_5": "iso8859_5",
    "ISO_8859_6": "iso8859_6", "ISO_8859_7": "iso8859_7", "ISO_8859_8": "iso8859_8", "WIN866": "cp866",
    "WIN874": "cp874", "WIN1250": "cp1250", "WIN1251": "cp1251", "WIN1252": "cp1252", "WIN1253": "cp1253",
    "WIN1254": "cp1254", "WIN1255": "cp1255", "WIN1256": "cp1256", "WIN1257": "cp1257", "WIN1258": "cp1258",
}  # fmt: skip

# A domain has its base type; any other type that is not PostgreSQL's own keeps its name.
_COLUMNS = """
SELECT a.attname::text AS column, coalesce(b.typname, t.typname)::text AS type,
  coalesce(b.typtype, t.typtype) = 'e' AS enumeration,
  coalesce(b.typnamespace, t.typnamespace) = 'pg_catalog'::regnamespace AS own,
  CASE WHEN b.oid IS NULL THEN a.atttypmod ELSE t.typtypmod END AS modifier,
  current_setting('server_encoding') AS encoding
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_type b ON t.typtype = 'd' AND b.oid = t.typbasetype
WHERE a.attrelid = {table}::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""


def scan(source: PostgresSource) -> Scan:
    """Open a PostgreSQL table."""
    table = PostgresTable.opened(source.postgres, source.table)
    return Scan.of(table.where, [table.kinds], [table])


@dataclass(frozen=True)
class PostgresTable(Reader):
    """One table, read by one query."""

    failure = "cannot be read from PostgreSQL"
    remedy = "check the connection and the table's name"

    uri: str
    table: str
    where: str
    kinds: Mapping[str, pa.DataType]
    types: Mapping[str, str]  # PostgreSQL's names of its own types, by column
    codec: str | None

    @classmethod
    def opened(cls, uri: str, table: str) -> PostgresTable:
        where = f"source table {table}"
        driver = _driver(where)
        rows = cls.redact(lambda: _columns(driver, uri, table), where)
        encoding = rows[0]["encoding"] if rows else "UTF8"
        if encoding not in _CODECS:
            raise SourceError(
                f"the database is in the encoding {encoding}", where=where, do="copy the table to one in UTF-8"
            )
        kinds = {row["column"]: _kind(row) for row in rows}
        types = {row["column"]: row["type"] for row in rows if row["own"]}
        return cls(uri, table, where, kinds, types, _CODECS[encoding])

    def batches(self, columns: list[str], repeated: Collection[str]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        chosen = ", ".join(f"{self._selected(name)} AS c{i}" for i, name in enumerate(columns)) or "1 AS one"
        with _driver(self.where).connect(self.uri) as connection, connection.cursor() as cursor:
            _set(cursor, client_encoding="SQL_ASCII")  # bytes as they are
            cursor.execute(f"SELECT {chosen} FROM {_relation(self.table)}")  # noqa: S608 - quoted
            for batch in cursor.fetch_record_batch():
                if not columns:
                    yield rows_without_columns(batch.num_rows)
                    continue
                arrays = [self._array(values) for values in batch.columns]
                yield pa.RecordBatch.from_arrays(arrays, names=columns)

    def _selected(self, name: str) -> str:
        match self.types.get(name):
            case "numeric":
                return f"nullif({_quoted(name)}, 'NaN')::pg_catalog.text"  # the driver formats them differently
            case "uuid" | "bpchar":  # which strips trailing blanks: insignificant in SQL
                return f"{_quoted(name)}::pg_catalog.text"
            case _:
                return _quoted(name)

    def _array(self, values: pa.Array) -> pa.Array:
        if self.codec is None or not pa.types.is_string(values.type) or pc.all(pc.string_is_ascii(values)).as_py():
            return values
        texts = [_decoded(value, self.codec) for value in values.cast(pa.binary()).to_pylist()]
        return pa.array(texts, pa.large_string())


def _columns(driver: Any, uri: str, table: str) -> list[dict[str, Any]]:
    name = ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))
    with driver.connect(uri) as connection, connection.cursor() as cursor:
        _set(cursor, client_encoding="UTF8")
        cursor.execute(_COLUMNS.replace("{table}", "'" + name.replace("'", "''") + "'"))
        columns: list[dict[str, Any]] = cursor.fetch_arrow_table().to_pylist()
        return columns


def _set(cursor: Any, **settings: str) -> None:
    for name, value in {"standard_conforming_strings": "on", **settings}.items():
        cursor.execute(f"SET {name} TO {value}")


def _kind(row: Mapping[str, Any]) -> pa.DataType:
    name, own = row["type"], row["own"]
    if row["enumeration"] or (own and name in _TEXTS) or (own and name == "uuid"):
        return pa.large_string()
    if own and name == "numeric":
        return _decimals(row["modifier"])
    return _FITS.get(name, UnsupportedType(name)) if own else UnsupportedType(name)


def _decimals(modifier: int) -> pa.DataType:
    """With a declared precision and scale 0: integers, each written in one way. Otherwise decimals as text."""
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    if modifier < 0:
        return DecimalText("numeric")
    return (
        pa.decimal256(precision, 0) if scale == 0 and precision <= 76 else DecimalText(f"numeric({precision},{scale})")
    )


def _decoded(value: bytes | None, codec: str) -> str | None:
    """The text that only these bytes encode, or None: some encodings have two codes for a letter, and Python decodes
    some differently. ASCII bytes are ASCII in each of them, even where Python decodes a backslash differently."""
    if value is None or value.isascii():
        return None if value is None else value.decode("ascii")
    try:
        text = value.decode(codec)
        return text if text.encode(codec) == value and not text.isascii() else None
    except UnicodeError:
        return None


def _relation(table: str) -> str:
    return ".".join(_quoted(part) for part in table.split("."))


def _quoted(name: str) -> str:
    """An identifier in ASCII, which does not depend on the client's encoding."""
    plain = name.replace('"', '""')
    if plain.isascii():
        return f'"{plain}"'
    escaped = plain.replace("\\", "\\\\")
    return 'U&"' + "".join(c if c.isascii() else f"\\+{ord(c):06x}" for c in escaped) + '"'


def _driver(where: str) -> Any:
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise SourceError("needs the PostgreSQL driver", where=where, do="pip install 'discreet[postgres]'") from None
    return dbapi
