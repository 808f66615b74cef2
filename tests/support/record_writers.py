"""Records as sources of every kind: each writer takes records and an empty folder, and returns what is opened."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat

from support.hostile_values import column
from support.record_independence import HostileRecord

Write = Callable[[Sequence[HostileRecord], Path], Any]
Sink = Callable[[pa.Table, Path], Any]


def as_table(kind: pa.DataType, kept: Sequence[HostileRecord]) -> pa.Table:
    made = column(kind, [r.x for r in kept])
    return pa.table({"tag": pa.array([r.tag for r in kept], pa.string()), "x": made, "y": [r.y for r in kept]})


def through(sink: Sink, kind: pa.DataType) -> Write:
    """Records as an Arrow table of a column type, handed to something that keeps tables."""
    return lambda kept, folder: sink(as_table(kind, kept), folder)


# --- frames ---------------------------------------------------------------------------------------------------------


def whole(table: pa.Table, _: Path) -> pa.Table:
    return table


def chunked(table: pa.Table, _: Path) -> pa.Table:
    """In pieces of two, some of them empty, each with a dictionary of its own."""
    pieces = [table.slice(i, 2) for i in range(0, table.num_rows, 2)]
    if pa.types.is_dictionary(table.schema.field("x").type):
        pieces = [_own_dictionary(piece) for piece in pieces]
    return pa.concat_tables([table.slice(0, 0), *pieces, table.slice(0, 0)])


def full_dictionaries(index: pa.DataType, sink: Sink) -> Write:
    """In pieces whose dictionaries have as many entries as their indices can count: words of their own, and others that
    are unused. Merged they would need a longer index."""
    most = 1 << (index.bit_width - pa.types.is_signed_integer(index))

    def write(kept: Sequence[HostileRecord], folder: Path) -> Any:
        pieces = []
        for i in range(0, max(len(kept), 1), most - 1):
            piece = kept[i : i + most - 1]
            entries = [r.x for r in piece] + [f"unused {i} {j}" for j in range(most - len(piece))]
            places = pa.array(range(len(piece)), index)
            pieces.append(
                pa.table(
                    {
                        "tag": pa.array([r.tag for r in piece], pa.string()),
                        "x": pa.DictionaryArray.from_arrays(places, pa.array(entries, pa.string())),
                        "y": pa.array([r.y for r in piece], pa.string()),
                    }
                )
            )
        return sink(pa.concat_tables(pieces), folder)

    return write


def _own_dictionary(piece: pa.Table) -> pa.Table:
    old = piece.column("x").combine_chunks()
    if pa.types.is_string_view(old.dictionary.type):  # Arrow takes nothing from views
        return piece
    used = sorted({i for i in old.indices.to_pylist() if i is not None})
    place = {old_place: i for i, old_place in enumerate(used)}
    indices = pa.array([None if i is None else place[i] for i in old.indices.to_pylist()], old.indices.type)
    made = pa.DictionaryArray.from_arrays(indices, old.dictionary.take(pa.array(used, pa.int64())))
    return piece.set_column(1, "x", made)


def sliced(table: pa.Table, _: Path) -> pa.Table:
    """A window on a longer table."""
    rows = table.num_rows
    if pa.types.is_dictionary(
        table.schema.field("x").type
    ):  # Arrow puts no two dictionaries with missing entries together
        return table
    longer = pa.concat_tables([table, table, table]).combine_chunks()
    return longer.slice(rows, rows)


def polars(table: pa.Table, _: Path) -> pl.DataFrame:
    return pl.from_arrow(table)  # type: ignore[return-value]


def polars_lazy(table: pa.Table, folder: Path) -> Any:
    return polars(table, folder).lazy()


def polars_categories(table: pa.Table, folder: Path) -> Any:
    return polars(table, folder).with_columns(pl.col("x").cast(pl.Categorical))


def polars_enum(table: pa.Table, folder: Path) -> Any:
    """Of a declared list, in pieces."""
    frame = polars(table, folder)
    words = pl.Enum([*frame["x"].drop_nulls().unique().sort(), "nobody's"])
    frame = frame.with_columns(pl.col("x").cast(pl.String).cast(words))
    return pl.concat([frame.head(2), frame.slice(2)], rechunk=False)


def relation(table: pa.Table, _: Path) -> Any:
    connection = _memory().cursor()
    connection.register("t", table)
    return connection.sql("SELECT * FROM t")


def pandas_of(dtype: Any) -> Write:
    """A frame whose x has this dtype; None: pandas chooses it, by what is there."""

    def write(kept: Sequence[HostileRecord], _: Path) -> pd.DataFrame:
        x = pd.Series([r.x for r in kept]) if dtype is None else pd.Series([r.x for r in kept], dtype=dtype)
        return pd.DataFrame({"tag": [r.tag for r in kept], "x": x, "y": [r.y for r in kept]})

    return write


def pandas_arrow(table: pa.Table, _: Path) -> pd.DataFrame:
    """Columns of Arrow's in pandas, in the same pieces."""
    return pd.DataFrame(
        {
            name: pd.Series(c, dtype=pd.ArrowDtype(c.type))
            for name, c in zip(table.column_names, table.columns, strict=True)
        }
    )


def pandas_chunked(table: pa.Table, folder: Path) -> pd.DataFrame:
    return pandas_arrow(chunked(table, folder), folder)


def ibis_duckdb(table: pa.Table, _: Path) -> Any:
    return ibis.duckdb.connect().create_table("t", table)


def ibis_polars(table: pa.Table, folder: Path) -> Any:
    return ibis.polars.connect({"t": polars(table, folder)}).table("t")


# --- Parquet --------------------------------------------------------------------------------------------------------


def writable(table: pa.Table) -> pa.Table:
    """Arrow writes no dictionary with a missing entry."""
    kind = table.schema.field("x").type
    if not pa.types.is_dictionary(kind):
        return table
    entries = table.column("x").combine_chunks().dictionary_decode()
    return table.set_column(1, pa.field("x", kind), entries.dictionary_encode().cast(kind))


def parquet(table: pa.Table, folder: Path, **options: Any) -> str:
    pq.write_table(writable(table), folder / "t.parquet", **options)
    return "t.parquet"


def parquet_delta(table: pa.Table, folder: Path, texts: str) -> str:
    """The encodings of the second version."""
    kind = table.schema.field("x").type
    own = texts if pa.types.is_string(kind) or pa.types.is_large_string(kind) else "PLAIN"
    own = "DELTA_BINARY_PACKED" if pa.types.is_integer(kind) else "BYTE_STREAM_SPLIT" if kind == pa.float64() else own
    encodings = {"tag": texts, "x": own, "y": texts}
    return parquet(table, folder, use_dictionary=False, column_encoding=encodings, row_group_size=5)


def parquet_noted(table: pa.Table, folder: Path, encoding: str) -> str:
    """Dictionaries to whoever wrote them, and an encoding that Arrow makes none of."""
    noted = table.set_column(1, "x", table.column("x").cast(pa.string()).dictionary_encode())
    encodings = {"x": encoding, "tag": "PLAIN", "y": "PLAIN"}
    return parquet(noted, folder, use_dictionary=False, column_encoding=encodings, row_group_size=5)


def parquet_files(table: pa.Table, folder: Path, rows: int = 3, **options: Any) -> str:
    """Files of a few records, in folders, one of them empty; every other one has its columns in another order, and one
    more whose name differs in case."""
    for n, i in enumerate([*range(0, table.num_rows, rows), table.num_rows]):
        place = folder / "parts" / f"year={n % 2}"
        place.mkdir(parents=True, exist_ok=True)
        piece = writable(table.slice(i, rows))
        if n % 2:
            twin = pa.array(["7"] * piece.num_rows, pa.string())
            piece = piece.append_column("X", twin).select(["X", "y", "x", "tag"])
        pq.write_table(piece, place / f"{n}.parquet", **options)
    return "parts"


@cache
def _memory() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def parquet_by_duckdb(table: pa.Table, folder: Path, options: str = "") -> str:
    with _memory().cursor() as connection:
        connection.register("t", table)
        connection.execute(f"COPY (SELECT * FROM t) TO '{folder}/t.parquet' (FORMAT parquet{options})")
    return "t.parquet"


def parquet_by_polars(table: pa.Table, folder: Path, **options: Any) -> str:
    polars(table, folder).write_parquet(folder / "t.parquet", **options)
    return "t.parquet"


def parquet_by_pandas(write: Write) -> Write:
    """What pandas makes of its own frame; the type may depend on what is there."""

    def written(kept: Sequence[HostileRecord], folder: Path) -> str:
        write(kept, folder).to_parquet(folder / "t.parquet")
        return "t.parquet"

    return written


PARQUET: dict[str, Sink] = {
    "plain": partial(parquet, use_dictionary=False, write_statistics=False),
    "groups1": partial(parquet, row_group_size=1),
    "groups3": partial(parquet, row_group_size=3, write_page_index=True),
    "pages": partial(parquet, data_page_size=1, dictionary_pagesize_limit=8, write_batch_size=1),
    "v2": partial(parquet, data_page_version="2.0", data_page_size=1, compression="zstd", write_page_checksum=True),
    "old": partial(parquet, version="1.0", store_schema=False, compression="none"),
    "sorted": partial(parquet, sorting_columns=[pq.SortingColumn(1)], compression="gzip"),
    "delta": partial(parquet_delta, texts="DELTA_BYTE_ARRAY"),
    "delta-length": partial(parquet_delta, texts="DELTA_LENGTH_BYTE_ARRAY"),
    "files": parquet_files,
    "files1": partial(parquet_files, rows=1, use_dictionary=False),
    "duckdb": parquet_by_duckdb,
    "duckdb-groups": partial(parquet_by_duckdb, options=", ROW_GROUP_SIZE 2048, PARQUET_VERSION v2"),
    "polars": parquet_by_polars,
    "polars-groups": partial(parquet_by_polars, row_group_size=2, statistics="full", data_page_size=1),
}
FOREIGN = ("duckdb", "duckdb-groups", "polars", "polars-groups")  # they know fewer types, and check texts

# --- tables of databases --------------------------------------------------------------------------------------------


def duckdb_file(table: pa.Table, folder: Path, cast: str = "x") -> dict[str, str]:
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("t", table)
        connection.execute(f"CREATE TABLE people AS SELECT tag, {cast} AS x, y FROM t")
    return {"duckdb": "t.duckdb", "table": "people"}


class Postgres:
    """Tables of a database; values are written as SQL."""

    _numbers = count()

    def __init__(self, url: str, kind: str) -> None:
        self.url, self.kind = url, kind

    def __call__(self, kept: Sequence[HostileRecord], _: Path) -> dict[str, str]:
        from support.postgres_server import execute

        rows = ", ".join(f"('{r.tag}', {r.x}, '{r.y}')" for r in kept)
        fill = [f"INSERT INTO people VALUES {rows}"] if kept else []
        create = f"CREATE TABLE people (tag text, x {self.kind}, y text)"
        execute(self.url, "DROP TABLE IF EXISTS people", create, *fill)
        return {"postgres": self.url, "table": "people"}


# --- SAS and Stata --------------------------------------------------------------------------------------------------


def sas(kept: Sequence[HostileRecord], folder: Path) -> str:
    from support.sas_writer import write_sas7bdat

    columns = {"tag": [r.tag for r in kept], "x": [r.x for r in kept], "y": [r.y for r in kept]}
    write_sas7bdat(folder / "t.sas7bdat", columns)
    return "t.sas7bdat"


def stata(kept: Sequence[HostileRecord], folder: Path, dtype: str, version: int = 15, **options: Any) -> Any:
    frame = pandas_of(dtype)(kept, folder)
    if dtype == "object":
        frame["x"] = frame["x"].fillna("")
    pyreadstat.write_dta(frame, str(folder / "t.dta"), version=version, **options)
    return {"path": "t.dta", "labels": "text" if options else "codes"}


def stata_by_pandas(kept: Sequence[HostileRecord], folder: Path, dtype: str, version: int = 118) -> str:
    pandas_of(dtype)(kept, folder).to_stata(folder / "t.dta", write_index=False, version=version)
    return "t.dta"


# --- CSV ------------------------------------------------------------------------------------------------------------

ENDS = {"n": [b"\n"], "rn": [b"\r\n"], "r": [b"\r"], "mixed": [b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r\n"]}


def csv(
    kept: Sequence[HostileRecord],
    folder: Path,
    ends: str = "n",
    delimiter: str = ",",
    bom: bool = False,
    final: bool = True,
    packed: bool = False,
    files: int = 0,
    first: str = "x",
    ending: str = "",
) -> Any:
    """Lines of raw bytes: x as it is given, before or after the tag; a record whose y is None is a line by itself.
    `files`: records per file; `ending`: the line ending."""
    mark = delimiter.encode()
    names = ["x", "y", "tag"] if first == "x" else ["tag", "x", "y"]

    def line(record: HostileRecord) -> bytes:
        values = {"x": record.x, "y": str(record.y).encode(), "tag": record.tag.encode()}
        made = record.x if record.y is None else mark.join(values[name] for name in names)
        return bytes(made) + ENDS[ends][int(record.tag[1:]) % len(ENDS[ends])]

    header = (b"\xef\xbb\xbf" if bom else b"") + mark.join(name.encode() for name in names) + ENDS[ends][0]
    groups = [kept[i : i + files] for i in range(0, len(kept), files)] if files else [kept]
    (folder / "parts").mkdir()
    for n, group in enumerate(groups or [[]]):
        content = header + b"".join(map(line, group))
        content = content if final else content.removesuffix(ENDS[ends][-1])
        path = folder / "parts" / f"{n}{ending or '.csv.gz' if packed else '.csv'}"
        path.write_bytes(gzip.compress(content, 1) if packed else content)
    return {"path": "parts"} if ending else {"path": "parts", "format": "csv", "delimiter": delimiter}
