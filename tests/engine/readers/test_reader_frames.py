"""Frames of Python libraries: a column is read or refused by its type, and values are converted one by one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.domain.bins import Bins
from discreet.engine.intake.derived import Bin, CodeText, Identifier, Number
from discreet.engine.readers import open_source
from discreet.errors import SourceError
from support.readings import Row, category, each_alone, readings, released_csv, uses


class Text(str):
    def __str__(self) -> str:
        raise RuntimeError

    isascii = encode = __str__  # type: ignore[assignment]


class Whole(int):
    def __repr__(self) -> str:
        raise RuntimeError

    __str__ = __repr__
    __abs__ = __lt__ = __gt__ = __index__ = __repr__  # type: ignore[assignment]


class Real(float):
    def __repr__(self) -> str:
        raise RuntimeError

    is_integer = __float__ = __abs__ = __repr__  # type: ignore[assignment]


class Day(dt.date):
    def isoformat(self) -> str:
        raise RuntimeError


class Exact(Decimal):
    def __str__(self) -> str:
        raise RuntimeError

    __format__ = is_finite = __eq__ = __bool__ = __str__  # type: ignore[assignment]
    __hash__ = Decimal.__hash__


class Named(UUID):
    def __str__(self) -> str:
        raise RuntimeError

    __eq__ = __str__  # type: ignore[assignment]
    __hash__ = UUID.__hash__


class Nobody:
    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise RuntimeError

    def __eq__(self, _: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


ODD: list[tuple[Any, str | None]] = [
    (10**5000, None), (-(10**5000), None), (2**70, str(2**70)), ([1], None), ({}, None), (np.array([1, 2]), None),
    (np.longdouble(1.5), None), (1j, None), ("\ud800", None), (b"x", None), (Decimal("1.0"), "1"),
    (Decimal("-0.00"), "0"), (Decimal("12.50"), "12.5"), (Decimal("7E+3"), "7000"), (Decimal(10**999), str(10**999)),
    (Decimal(10**1000), None), (Decimal("1E-1001"), None), (Decimal("1E+999999999"), None), (Decimal("NaN"), None),
    (Decimal("sNaN"), None), (Decimal("-Infinity"), None), (Exact("7.00"), "7"),
    (UUID("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    (Named(int=7), str(UUID(int=7))), (UUID.__new__(UUID), None),
    (dt.datetime(2020, 1, 1), None), (pd.Timestamp("2020"), None), (pd.NA, None), (pd.NaT, None), (Text("ok"), "ok"),
    (Whole(7), "7"), (Real(2.5), "2.5"), (Real(7), "7"), (Day(2020, 1, 31), "2020-01-31"), (Nobody(), None),
    (np.datetime64("2020-01-31"), "2020-01-31"), (np.datetime64("2020-01-31T00:00:00.000000001"), None),
    (np.datetime64("NaT"), None), (np.datetime64(10**12, "D"), None), (np.timedelta64(1, "ns"), None),
    (np.str_("ok"), "ok"), (np.int64(7), "7"), (np.bool_(True), "true"), (np.void(b"x"), None), (dt.time(1), None),
    (float("nan"), None), (pd.Period("2020"), None),
]  # fmt: skip


def objects(values: Sequence[Any]) -> Any:
    held = np.empty(len(values), object)
    for i, value in enumerate(values):
        held[i] = value
    return pd.DataFrame({"s": pd.Series(held, dtype=object)})


@pytest.mark.parametrize("i", range(len(ODD)))
def test_an_object_of_any_kind(i: int) -> None:
    value, becomes = ODD[i]
    rows = each_alone(["ok", value, 7, 7.0, None], lambda values: readings(objects(values), uses("s", "s", "s")))
    assert [row[1] for row in rows] == ["ok", becomes, "7", "7", None]


LARGE: list[tuple[Any, str | None, float | None]] = [  # code, value
    (1e300, None, 1e300), (1e-5, None, 1e-5), (1e16, None, 1e16), (5e-324, None, 5e-324), (-0.0, "0", 0.0),
    (float("inf"), None, None), (-float("inf"), None, None), (float("nan"), None, None), (2.0**53, None, 2.0**53),
    (2.0**53 - 1, "9007199254740991", 2.0**53 - 1), (np.float32(0.1), "0.10000000149011612", 0.10000000149011612),
    (np.float64(1e300), None, 1e300), (np.float16(2.5), "2.5", 2.5), (Real(1e300), None, 1e300), ("1e5", "1e5", 1e5),
    ("9" * 400, "9" * 400, None), (10**30, str(10**30), 1e30), (10**400, str(10**400), None), (2.5, "2.5", 2.5),
]  # fmt: skip


def test_real_numbers_among_objects_are_those_of_a_column_of_real_numbers() -> None:
    """No text is both their code and their value: 1e300 is a value, whatever else is in the column."""
    made = (CodeText("s", None), Number("s"), Bin("s", Bins((0, 1, 3))))
    rows = each_alone([v for v, *_ in LARGE], lambda values: readings(objects(values), made))
    assert [row[:2] for row in rows] == [(text, number) for _, text, number in LARGE]
    reals = [i for i, (v, *_) in enumerate(LARGE) if isinstance(v, float)]
    assert [rows[i] for i in reals] == readings(series([float.__pos__(LARGE[i][0]) for i in reals], "float64"), made)
    several = pd.DataFrame({"s": pd.Series([LARGE[i][0] for i in (0, 3, 5, 14)], dtype=object).astype("category")})
    assert readings(several, made) == [rows[i] for i in (0, 3, 5, 14)]


def test_equal_numbers_are_one_id_and_others_are_not() -> None:
    """Decimals of Python were missing, each of them; 7, 7.0 and 7.00 are one person, 7 and 7.1 are two."""
    values = [7, Decimal("7"), Decimal("7.0"), Decimal("7.00"), Decimal("0.7E+1"), 7.0, "7"]
    actual = readings(objects(values), (Identifier("s", whole=False),))
    assert set(actual) == {("7",)}
    long = [10**40, 10**40 + 1, Decimal(10**40), Decimal(10**40 + 1), Decimal("7." + "0" * 60 + "1")]
    actual = readings(objects(long), (Identifier("s", whole=False),))
    assert len(set(actual)) == 3
    assert actual[:2] == actual[2:4]


def test_decimals_among_objects_are_values() -> None:
    values = [Decimal("7.50"), Decimal("1e-7"), Decimal("-0"), Decimal("7"), Decimal("NaN")]
    made = (Number("s"), Bin("s", Bins((0, 2, 5, 9))))
    assert readings(objects(values), made) == [(7.5, 2), (1e-7, 0), (0.0, 0), (7.0, 2), (None, None)]


@pytest.mark.parametrize("dtype", ["longdouble", "float16", "float32"])
def test_real_numbers_raise_nothing_whatever_numpy_was_told(dtype: str) -> None:
    """A long double beyond all doubles is infinite, and none: NumPy's warning stopped whoever makes errors of them."""
    longer = [np.finfo(np.longdouble).max, np.longdouble(5e-324) / 2] if dtype == "longdouble" else []
    values = np.array([7, 1.5, np.inf, np.nan, *longer], np.longdouble).astype(dtype)
    with np.errstate(all="raise"):
        actual = readings(pd.DataFrame({"s": values}), (Number("s"),))
    assert actual == [(7.0,), (1.5,), (None,), (None,), (None,), (0.0,)][: len(values)]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_pieces_of_a_column_of_pandas_are_read_where_they_lie(kind: pa.DataType) -> None:
    """Put together, texts of more than 2 GiB or dictionaries of more than 127 words stopped the release."""
    pieces = [["ok", "7"], [], ["7"], [None, "x", "ok"]]
    made = [pa.array(words, pa.string()) for words in pieces]
    made = (
        [m.dictionary_encode().cast(kind) for m in made]
        if pa.types.is_dictionary(kind)
        else [m.cast(kind) for m in made]
    )
    frame = pd.DataFrame({"s": pd.Series(pa.chunked_array(made, kind), dtype=pd.ArrowDtype(kind)), "other": range(6)})
    (piece,) = open_source(frame, Path()).pieces
    batches = [batch for batch in piece.read(("other", "s")) if batch.num_rows]
    assert [batch.num_rows for batch in batches] == [2, 1, 3]
    for batch, own in zip(batches, (made[0], made[2], made[3]), strict=True):
        mine, theirs = ([b.address for b in array.buffers()[1:] if b] for array in (batch.column("s"), own))
        assert mine == theirs
    assert [row[1] for row in readings(frame, uses("s"))] == ["ok", "7", "7", None, "x", "ok"]


def test_128_words_of_an_index_of_8_bits_stop_nothing(tmp_path: Path) -> None:
    def frame(words: int) -> pd.DataFrame:
        pieces = [[f"a{i}" for i in range(64)], [f"b{i}" for i in range(words - 64)]]
        kind = pa.dictionary(pa.int8(), pa.string())
        held = pa.chunked_array([pa.array(w).dictionary_encode().cast(kind) for w in pieces])
        return pd.DataFrame({"s": pd.Series(held, dtype=pd.ArrowDtype(kind))})

    assert released_csv(tmp_path / "127", frame=frame(127)) == released_csv(tmp_path / "128", frame=frame(128))


@pytest.mark.full
def test_more_than_2_gib_of_text_in_a_column_of_pandas() -> None:
    held = pa.chunked_array([*(pa.array(["a" * (64 << 20)] * 4) for _ in range(9)), pa.array(["ok"])])
    frame = pd.DataFrame({"s": pd.Series(held, dtype=pd.ArrowDtype(pa.string()))})
    assert readings(frame, (uses("s")[0], Identifier("s", whole=False))) == [*[(None, None)] * 36, (0, "ok")]


def test_categories_of_several_kinds() -> None:
    def read(values: Sequence[Any]) -> list[Row]:
        return readings(pd.DataFrame({"s": pd.Series(list(values), dtype=object).astype("category")}), uses("s"))

    rows = each_alone(["ok", 7, 2.5, None, "\ud800", True, dt.date(2020, 1, 31)], read)
    assert [row[1] for row in rows] == ["ok", "7", "2.5", None, None, "true", "2020-01-31"]
    assert [row[1] for row in each_alone([7, 8, None], read)] == ["7", "8", None]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_bytes_that_are_no_text(kind: pa.DataType) -> None:
    bad = pa.array([b"ok", b"\xff\xfe", None], pa.binary() if kind == pa.string() else pa.large_binary()).view(kind)
    expected = [(0, "ok"), (None, None), (None, None)]
    assert readings(pa.table({"s": bad}), uses("s")) == expected
    assert readings(pd.DataFrame({"s": pd.arrays.ArrowExtensionArray(pa.chunked_array([bad]))}), uses("s")) == expected
    view = pa.array([b"ok", b"\xff\xfe", None], pa.binary_view()).view(pa.string_view())
    assert readings(pa.table({"s": view}), uses("s")) == expected
    large = pa.array([b"ok", b"\xff\xfe", None], pa.large_binary()).view(pa.large_string())
    strings = pd.arrays.ArrowStringArray(pa.chunked_array([large]))
    assert readings(pd.DataFrame({"s": strings}), uses("s")) == expected


def series(values: Sequence[Any], dtype: Any) -> Any:
    return pd.DataFrame({"s": pd.Series(list(values), dtype=dtype)})


@pytest.mark.parametrize(
    ("dtype", "values", "texts"),
    [
        ("Int64", [7, None, 2**62], ["7", None, str(2**62)]),
        ("UInt64", [2**64 - 1, None], [str(2**64 - 1), None]),
        ("Float64", [2.5, None, 7.0], ["2.5", None, "7"]),
        ("boolean", [True, None], ["true", None]),
        ("string[python]", ["ok", None, "\ud800"], ["ok", None, None]),
        ("str", ["ok", None], ["ok", None]),
        ("float16", [7.0, None, 0.5], ["7", None, None]),
        (np.longdouble, [7.0, 0.5], ["7", "0.5"]),
        ("int64[pyarrow]", [7, None], ["7", None]),
        (pd.ArrowDtype(pa.date32()), [dt.date(2020, 1, 31), None], ["2020-01-31", None]),
        (pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string())), ["ok", None], ["ok", None]),
    ],
)
def test_pandas_types(dtype: Any, values: list[Any], texts: list[str | None]) -> None:
    rows = each_alone(values, lambda vs: readings(series(vs, dtype), (CodeText("s", None),)))
    assert [row[0] for row in rows] == texts


@pytest.mark.parametrize(
    "column",
    [
        pd.arrays.SparseArray([0.0, np.nan, 1.0]),
        pd.period_range("2020", periods=2, freq="M"),
        pd.interval_range(0, 2),
        pd.to_datetime(["2020-01-01", None]),
        pd.to_timedelta([1, 2]),
        np.array([1j]),
        np.array([1, 2], dtype=">i8"),
        pd.array([[1], None], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
    ],
)
def test_pandas_types_that_are_refused_where_they_are_used(column: Any) -> None:
    frame = pd.DataFrame({"s": column, "other": "ok"})
    for made in ((category("s", "ok"),), (Number("s"),), (Identifier("s", whole=False),)):
        for held in (frame, frame.iloc[:0]):
            with pytest.raises(SourceError, match="column 's'"):
                readings(held, made)
    assert readings(frame, uses("other")) == [(0, "ok")] * len(frame)


def test_whole_numbers_beside_a_missing_one_are_no_identifiers() -> None:
    for values in ([1, None], [1.0]):
        with pytest.raises(SourceError, match="is used as an identifier"):
            readings(pd.DataFrame({"s": values}), (Identifier("s", whole=False),))


def test_names_of_columns() -> None:
    with pytest.raises(SourceError, match="two columns with the same name"):
        readings(pd.DataFrame([["ok", "x"]], columns=["s", "s"]), uses("s"))
    with pytest.raises(SourceError, match="two columns with the same name"):
        readings(pa.table([["ok"], ["x"]], names=["s", "s"]), uses("s"))
    assert readings(pd.DataFrame([["ok", "x"]], columns=["s", 1]), uses("s")) == [(0, "ok")]
    pairs = pd.MultiIndex.from_tuples([("s", "a"), ("s", "b")])
    with pytest.raises(KeyError):  # it has no such column
        readings(pd.DataFrame([["ok", "x"]], columns=pairs), uses("s"))


REFUSED: dict[str, Callable[[], Any]] = {
    "uuid": lambda: pa.array([b"0" * 16], pa.uuid()),
    "run_end_encoded": lambda: pa.RunEndEncodedArray.from_arrays([2], ["ok"]),
    "fixed_size_binary": lambda: pa.array([b"0"], pa.binary(1)),
    "month_day_nano": lambda: pa.array([None], pa.month_day_nano_interval()),
    "binary": lambda: pa.array([b"ok"]),
    "timestamp": lambda: pa.array([dt.datetime(2020, 1, 1)]),
    "dictionary": lambda: pa.array([b"ok"]).dictionary_encode(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arrow_types_that_are_refused(name: str) -> None:
    for made in ((category("s", "ok"),), (Number("s"),), (Identifier("s", whole=False),)):
        with pytest.raises(SourceError, match=name):
            readings(pa.table({"s": REFUSED[name]()}), made)


def test_dictionaries_of_numbers() -> None:
    table = pa.table({"s": pa.array([7, None, 8], pa.int32()).dictionary_encode()})
    assert readings(table, uses("s", "s", "s")) == [
        (1, "7", 7.0, 2, "7"),
        (None, None, None, None, None),
        (None, "8", 8.0, 2, "8"),
    ]
    assert readings(table, (Identifier("s", whole=True),)) == [(7,), (None,), (8,)]


def test_polars_types() -> None:
    frame = pl.DataFrame({"s": ["ok", None]}, schema={"s": pl.Categorical}).with_columns(
        pl.Series("wide", [1, 2], pl.Int128),
        pl.Series("any", [object(), object()], pl.Object),
        pl.Series("exact", [Decimal("1.50"), None], pl.Decimal(38, 2)),
        pl.Series("listed", ["ok", None], pl.Enum(["ok"])),
    )
    made = (*uses("s"), Number("exact"), CodeText("listed", None))
    assert readings(frame, made) == [(0, "ok", 1.5, "ok"), (None, None, None, None)]
    assert readings(frame.lazy(), made) == readings(frame, made)
    for column, kind in {"wide": "Int128", "any": "Object", "exact": "decimal128"}.items():
        with pytest.raises(SourceError, match=kind):
            readings(frame, (Identifier(column, whole=False),))


def test_ibis_tables() -> None:
    backend = ibis.duckdb.connect()
    backend.con.execute(
        "CREATE TABLE t AS SELECT 'ok' s, 1::UHUGEINT a, 1::HUGEINT b, 1::BIGNUM c, '1'::BIT d, "
        "'infinity'::DATE e, 1.5::DECIMAL(9, 2) f, '\\xFF'::BLOB g"
    )
    table = backend.table("t")
    assert readings(table, (*uses("s"), CodeText("e", None), Number("f"))) == [(0, "ok", None, 1.5)]
    for column in "abcdg":
        with pytest.raises(SourceError, match=f"column '{column}'"):
            readings(table, (Identifier(column, whole=False),))


def test_a_release_of_odd_objects_is_that_of_their_texts(tmp_path: Path) -> None:
    """They lack a category, as what is missing does: the same counts, and the same noise of a simulation."""
    odd = released_csv(tmp_path / "odd", frame=objects(["ok", "7", *(value for value, _ in ODD)]))
    assert odd == released_csv(tmp_path / "plain", frame=objects(["ok", "7", *(text for _, text in ODD)]))
