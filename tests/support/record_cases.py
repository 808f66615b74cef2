"""Test cases: every reader, adversarial records of every type, written in many ways.

`PYTHONPATH=tests python tests/support/record_cases.py [READER…] [full]` runs them all and prints how many pairs of
sources were compared; `full`: with every record left out in turn.
"""

from __future__ import annotations

import datetime as dt
import sys
import time
from collections import Counter
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa

from support import record_writers as writers
from support.hostile_values import BYTES, FLOATS, KINDS, TEXT_KINDS, TEXTS, WHOLE, family, values_of
from support.record_independence import HostileRecord, IntakeOnly, RawScan, RecordCase, every_record, records, split

CSV = "discreet.engine.readers.csvfile."
SMALL = {
    "parquet": {"discreet.engine.readers.parquet.BATCH_ROWS": 2},
    "frames": {"discreet.engine.readers.frames.BATCH_ROWS": 2},
    "statistical": {"discreet.engine.readers.statistical.CHUNK_ROWS": 2},
}
FEW_BYTES = {**SMALL["parquet"], "discreet.engine.readers.parquet.DICTIONARY": 90}  # some row groups have more

# --- CSV ------------------------------------------------------------------------------------------------------------

FIELDS = (
    b"", b" ", b"7", b"007", b"\xef\xbb\xbf7", b"\xef\xbb\xbf", b'""', b'"7"', b'"a,b"', b'"a""b"', b'"',
    b'a"b', b'"a', b"a,b",
    b'"a\nb"', b'"a\rb"', b'"7"x', b'"\xff"', b"\x00", b'"7\x00"', b"a;b\tc", b"\x1a", b"#7", b"\\", b"\\,7", b"'a'",
    b'"\xef\xbb\xbf7"', b"7\xc2\x85", b"\xe2\x80\xa8", b"1e5", *BYTES, *(b"a" * n for n in (31, 32, 33, 34, 60)),
    b'"' + b"a" * 60 + b'"',
)  # fmt: skip
LINES = (b"", b"  ", b",", b",,", b",,,", b'"', b'""', b'"""', b"\xef\xbb\xbf", b"\x00", b'"a","b"', b"7,a,t",
         b"\n\n", b"\r",
         b"x,y,tag", b"a" * 100, b'"' * 50)  # fmt: skip
CSV_RECORDS = (
    *records(FIELDS),
    *(HostileRecord(f"t{len(FIELDS) + i:03}", line, None) for i, line in enumerate(LINES)),
)
CSV_WAYS: dict[str, dict[str, Any]] = {
    "plain": {}, "rn": {"ends": "rn"}, "r": {"ends": "r"}, "mixed": {"ends": "mixed"}, "bom": {"bom": True,
    "final": False},
    "tag-first": {"first": "tag", "final": False, "ends": "r"}, "gz": {"delimiter": ";", "packed": True},
    "files": {"files": 3, "ends": "mixed"}, "tab": {"delimiter": "\t", "ends": "rn", "final": False},
    "blank": {"delimiter": " "}, "tsv-gz": {"delimiter": "\t", "packed": True, "ending": ".TSV.GZ"},
}  # fmt: skip
BLOCKS: dict[str, dict[str, Any]] = {
    "whole": {},
    "block7": {CSV + "BLOCK": 7, CSV + "HEADER": 3},
    "block13-short": {CSV + "BLOCK": 13, CSV + "LONGEST": 40},
    "block64-short": {CSV + "BLOCK": 64, CSV + "LONGEST": 40},
}


def csv_cases() -> list[RecordCase]:
    return [
        RecordCase("csv", f"{way}-{block}", CSV_RECORDS, partial(writers.csv, **options), settings, traits=(way, block))
        for way, options in CSV_WAYS.items()
        for block, settings in BLOCKS.items()
    ]


# --- Arrow types, through many hands --------------------------------------------------------------------------------


def _in_duckdb(kind: pa.DataType) -> bool:
    return not (
        kind in (pa.float16(), pa.string_view(),
        pa.null()) or pa.types.is_dictionary(kind) or pa.types.is_date64(kind)
        or (pa.types.is_decimal(kind) and (kind.bit_width != 128 or kind.scale < 0)) or kind in KINDS[-8:]
    )  # fmt: skip


def _in_polars(kind: pa.DataType) -> bool:
    return _in_duckdb(kind) and kind not in (pa.decimal128(38, 37),)


def _in_parquet(kind: pa.DataType) -> bool:
    return not (
        (pa.types.is_decimal(kind) and (kind.scale < 0 or kind.bit_width < 128)) or kind == pa.duration("s")
        or (pa.types.is_dictionary(kind) and (pa.types.is_decimal(kind.value_type) or kind.value_type in (pa.bool_(),
            pa.string_view(), pa.uint64(), pa.int32(), pa.int64(), pa.float64(), pa.float32(), pa.date32())))
    )  # fmt: skip


def _case(reader: str, way: str, kind: pa.DataType, sink: writers.Sink, clean: bool = False, **more: Any) -> RecordCase:
    values = values_of(kind, few=way not in ("whole", "groups3"))
    if clean:  # whoever checks texts does so before us
        values = [v for v in values if not isinstance(v, bytes)]
    distinct = not pa.types.is_date64(kind)  # milliseconds of a day
    made, traits = writers.through(sink, kind), (family(kind), way)
    return RecordCase(reader, f"{way}-{kind}", records(values), made, distinct=distinct, traits=traits, **more)


def arrow_cases() -> list[RecordCase]:
    out = []
    for kind in KINDS:
        out += [_case("arrow", "whole", kind, writers.whole), _case("arrow", "sliced", kind, writers.sliced)]
        out += [_case("arrow", "chunked", kind, writers.chunked, settings=SMALL["frames"])]
    # including unused entries, as many as the index can count
    many = records([f"w{i}" for i in range(126)])
    return [
        *out,
        RecordCase(
            "arrow",
            "full-dictionary",
            many,
            writers.through(writers.whole, pa.dictionary(pa.int8(), pa.string())),
            traits=("full",),
        ),
    ]


def capacity_cases() -> list[RecordCase]:
    """As much as an index, an offset or a limit can hold, and more, in pieces that each hold less."""
    out = []
    for index, words in ((pa.int8(), 140), (pa.uint8(), 270)):
        held = records([f"w{i}" for i in range(words)])
        for way, sink in (("arrow", writers.whole), ("pandas", writers.pandas_arrow)):
            write = writers.full_dictionaries(index, sink)
            name, looks = f"full-dictionaries-{index}", ("repeated", "id")
            out.append(RecordCase(way, name, held, write, looks=looks, distinct=True, traits=("full",)))
    long = records([*("ab"[i % 2] * (10 * i) for i in range(12)), None, "7", "a"])
    for way, sink in (("groups3", writers.PARQUET["groups3"]), ("v2", writers.PARQUET["v2"])):
        out.append(
            RecordCase(
                "parquet",
                f"long-{way}",
                long,
                writers.through(sink, pa.string()),
                FEW_BYTES,
                distinct=True,
                traits=(way,),
            )
        )
    return out


def parquet_cases() -> list[RecordCase]:
    out = []
    texts = [value for value in TEXTS if value != "9" * 400]
    for encoding in ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"):
        write = writers.through(partial(writers.parquet_noted, encoding=encoding), pa.string())
        traits = (f"noted {encoding}",)
        out.append(
            RecordCase(
                "parquet",
                f"noted-{encoding}",
                records(texts),
                write,
                SMALL["parquet"],
                True,
                distinct=True,
                traits=traits,
            )
        )
    for kind in filter(_in_parquet, KINDS):
        for way, sink in writers.PARQUET.items():
            foreign = way in writers.FOREIGN
            if foreign and not (_in_polars(kind) if "polars" in way else _in_duckdb(kind)):
                continue
            out.append(_case("parquet", way, kind, sink, foreign, settings=SMALL["parquet"]))
    return out


def other_frames() -> list[RecordCase]:
    out = []
    for kind in filter(_in_polars, KINDS):
        out.append(_case("polars", "frame", kind, writers.polars, True))
        if kind in TEXT_KINDS:
            out.append(_case("polars", "lazy", kind, writers.polars_lazy, True))
            out.append(_case("polars", "categories", kind, writers.polars_categories, True))
            out.append(_case("polars", "enum", kind, writers.polars_enum, True))
    out += [_case("relation", "sql", kind, writers.relation, True) for kind in filter(_in_duckdb, KINDS)]
    for kind in (pa.string(), pa.int64(), pa.uint64(), pa.float64(), pa.date32(), pa.decimal128(38, 0), pa.bool_()):
        out.append(_case("ibis", "duckdb", kind, writers.ibis_duckdb, True))
        if kind != pa.date32():  # Ibis itself stops at a day that Polars cannot print
            out.append(_case("ibis", "polars", kind, writers.ibis_polars, True))
    out += [_case("duckdb", "table", kind, writers.duckdb_file, True) for kind in filter(_in_duckdb, KINDS)]
    return out


# --- pandas ---------------------------------------------------------------------------------------------------------

MIXED = (
    None, float("nan"), pd.NA, pd.NaT, "7", 7, 7.0, 7.5, True, False, np.True_, np.int8(7), np.float32(0.1),
    -0.0, float("inf"),
    2**53 + 1, 10**30, 10**1001, 1e300, 5e-324, Decimal("7"), Decimal("NaN"), Decimal("7.00"), Decimal("0E+9"),
    Decimal("-7.5"), Decimal("1E+1000"), Decimal("1E-999999"), Decimal("sNaN"), UUID(int=7), dt.date(2026, 1, 31),
    dt.datetime(2026, 1, 31), pd.Timestamp("2026-01-31"), np.datetime64("2026-01-31"), b"7", "\ud800", "é", "",
    " ", (1,), 1j,
    "nan", "NULL", np.longdouble("0.1"), np.timedelta64(1, "D"),
)  # fmt: skip
_LETTERS = tuple(v for v in TEXTS if v is None or v.isprintable())
_SHORT = (None, 0, 7, -1, 100, 127)
_HALVES = (None, 0.5, 7.0, -1.0, float("nan"), 0.0)
_CODES, _SEVERAL = (None, 7, 2**53 + 1, 2**62 + 1, -1), (None, 7, "7", 7.5, 1e300, True)


def _declared(values: tuple[Any, ...]) -> pd.CategoricalDtype:
    """Categories, whether they occur or not: of those that do, pandas would choose a type by their values."""
    return pd.CategoricalDtype(list(dict.fromkeys(value for value in values if value is not None and value == value)))


DTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "object": ("object", MIXED), "object-text": ("object", TEXTS), "category-text": (_declared(TEXTS), TEXTS),
    "category-int": (_declared(_CODES), _CODES), "category-float": (_declared(_HALVES), _HALVES),
    "category-mixed": (_declared(_SEVERAL), _SEVERAL),
    "string": ("string", TEXTS), "str": ("str", TEXTS), "string-python": ("string[python]", TEXTS),
    "string-pyarrow": ("string[pyarrow]", TEXTS),
    "Int64": ("Int64", tuple(v for v in WHOLE if v is None or abs(v) < 2**63)), "UInt64": ("UInt64", (None, 0,
    7, 2**64 - 1)),
    "Int8": ("Int8", _SHORT), "Float64": ("Float64", FLOATS), "Float32": ("Float32", _HALVES),
    "float64": ("float64", FLOATS), "float32": ("float32", _HALVES), "float16": ("float16", _HALVES),
    "longdouble": ("longdouble", FLOATS), "int64": ("int64", (0, 7, -1, 2**53 + 1, 2**63 - 1, -(2**63))),
    "bool": ("bool", (True, False, True)), "boolean": ("boolean", (None, True, False)),
    "arrow-text": (pd.ArrowDtype(pa.string()), TEXTS), "arrow-int": (pd.ArrowDtype(pa.int64()), (None, 7, 2**53 + 1)),
    "arrow-float": (pd.ArrowDtype(pa.float64()), FLOATS), "datetime": ("datetime64[ns]", (None, "2026-01-31",
    "1700-01-01")),
    "arrow-date": (pd.ArrowDtype(pa.date32()), (None, dt.date(1, 1, 1), dt.date(9999, 12, 31))),
    "arrow-decimal": (pd.ArrowDtype(pa.decimal128(38, 2)), (None, Decimal("7.50"), Decimal("-0.01"))),
}  # fmt: skip
CHOSEN: dict[str, tuple[Any, ...]] = {  # pandas looks at all values, then chooses a type: no id, but the same values
    "int-or-missing": (None, 0, 7, -1, 100, 2**40), "truth-or-missing": (True, False, None, True),
    "text-or-missing": ("7", None, "a", "007"), "float-or-text": (7.0, 7.5, "a", -1.0), "int-or-text": (7, 0,
    "a", -1),
    "large-float-or-text": (1e300, 1e-5, "a", float("inf"), 1e16),
    "int-or-float": (7, 0, 0.5, -1), "truth-or-int": (True, 7, False, 0), "text-or-date": ("7", dt.date(2026,
    1, 31), "a"),
}  # fmt: skip


def _plain(name: str) -> str:
    """Without the way it is stored, or the width."""
    return {"str": "string"}.get(plain := name.split("-", maxsplit=1)[0].rstrip("0123456789"), plain)


def pandas_cases() -> list[RecordCase]:
    out = [
        RecordCase("pandas", name, records(values), writers.pandas_of(dtype), SMALL["frames"], traits=(_plain(name),))
        for name, (dtype, values) in DTYPES.items()
    ]
    for name, values in CHOSEN.items():
        for way, dtype in (("chosen", None), ("categories", "category")):
            # False and 0 are one category to pandas, which of the two says the first record: so it has one of them
            apart = [v for i, v in enumerate(values) if not any(v == w and type(v) is not type(w) for w in values[:i])]
            held, write = records(apart if way == "categories" else values), writers.pandas_of(dtype)
            out.append(RecordCase("pandas", f"{way}-{name}", held, write, SMALL["frames"], False, traits=(way,)))
    dictionaries = [k for k in KINDS if pa.types.is_dictionary(k) and k.value_type in TEXT_KINDS[:2]]
    for kind in (*TEXT_KINDS[:2], pa.int64(), pa.float64(), *dictionaries):
        out.append(_case("pandas", "pieces", kind, writers.pandas_chunked, settings=SMALL["frames"]))
    return out


# --- SAS and Stata --------------------------------------------------------------------------------------------------

_SAS_FLOATS = (
    *(v for v in FLOATS if v is None or (v == v and abs(v) < 1e300 and (v == 0 or abs(v) > 1e-300))),
    2.0**53 + 2,
)
_LATER = tuple(v for v in TEXTS if v is None or (v and v.strip() and "\x00" not in v and len(v) < 200))


def statistical_cases() -> list[RecordCase]:
    out = [
        RecordCase("sas", "numbers", records(_SAS_FLOATS), writers.sas, SMALL["statistical"], traits=("real",)),
        RecordCase(
            "sas", "texts", records(["a" * 70, *_LATER[1:]]), writers.sas, SMALL["statistical"], False, traits=("text",)
        ),
    ]
    whole, floats = [None, 0, 7, -1, 100], [None, 0.0, -0.0, 0.5, 7.0, 7.5, 1e300, 5e-324, 0.1]
    for version in (8, 10, 12, 13, 14, 15):
        for dtype, values in (("Int32", whole), ("float64", floats), ("object", _LATER)):
            fits = [v for v in values if version >= 14 or not isinstance(v, str) or v.isascii()]
            write = partial(writers.stata, dtype=dtype, version=version)
            traits = (_plain(dtype), "since 14" if version >= 14 else "before 14")
            out.append(
                RecordCase("stata", f"{version}-{dtype}", records(fits), write, SMALL["statistical"], traits=traits)
            )
    labels = {"variable_value_labels": {"x": {7: "a", 8: "7"}}}
    for dtype, values in (("Int32", whole), ("float64", [None, 7.0, 8.0, 9.0, 9.5])):
        write = partial(writers.stata, dtype=dtype, **labels)
        held, traits = records([*values, 8, 9]), (f"labels of {dtype}",)
        out.append(RecordCase("stata", f"labels-{dtype}", held, write, SMALL["statistical"], traits=traits))
    shared = {"variable_value_labels": {"x": {7: "a", 8: "a", 9: "7"}}}  # several codes, one label
    write = partial(writers.stata, dtype="Int32", **shared)
    held = records([7, 8, 9, None])
    out.append(
        RecordCase("stata", "shared-labels", held, write, SMALL["statistical"], distinct=True, traits=("shared",))
    )
    for version in (114, 117, 118, 119):
        for dtype, values in (("float64", floats), ("int32", (0, 7, -1, 2**31 - 101))):
            write = partial(writers.stata_by_pandas, dtype=dtype, version=version)
            held, traits = records(values), (f"{_plain(dtype)} by pandas", "xml" if version >= 117 else "old")
            name = f"pandas-{version}-{dtype}"
            out.append(RecordCase("stata", name, held, write, SMALL["statistical"], traits=traits))
    return out


ALL = {
    "csv": csv_cases, "arrow": arrow_cases, "capacity": capacity_cases, "parquet": parquet_cases,
    "frames": other_frames, "pandas": pandas_cases, "statistical": statistical_cases,
}  # fmt: skip


def main(wanted: list[str], full: bool) -> None:
    pairs: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    for name, made in ALL.items():
        if wanted and name not in wanted:
            continue
        start = time.time()
        for case in made():
            try:
                report = (every_record if full else split)(case, RawScan() if name == "csv" else IntakeOnly())
            except Exception as error:
                print("CANNOT WRITE", case, type(error).__name__, str(error)[:100])
                continue
            pairs[case.reader] += report.pairs
            cases[case.reader] += 1
            for line in report.actual[:3]:
                print(line[:400])
        print(f"{name}: {time.time() - start:.0f} s")
    print("\n".join(f"{reader}: {cases[reader]} cases, {pairs[reader]} pairs" for reader in cases))


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if name != "full"], "full" in sys.argv)
