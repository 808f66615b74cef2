"""Values as texts and numbers, and the columns derived from them, against Python: every type and form of an array,
and hostile values. The result for a value never depends on other values."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.domain.bins import LARGEST, Bins
from discreet.engine.intake.derived import (
    Bin,
    Category,
    CodeText,
    DerivedColumn,
    Identifier,
    Indicator,
    KeyPart,
    LookedUpCategory,
    Number,
    NumberStatus,
    SampleCondition,
    ValueStatus,
)
from discreet.engine.intake.derived.columns import MISSING, UNDECLARED, TextIndex
from discreet.engine.intake.normalise import (
    FIRST_DAY,
    LAST_DAY,
    NUMBER,
    OBJECTS,
    REAL,
    absent,
    check_code,
    check_id,
    check_number,
    compared,
    numbers,
    texts,
)
from discreet.errors import SourceError
from discreet.spec import GroupsDomain, ValuesDomain
from support.arrow_arrays import days, decimals, forms, loose
from support.hypothesis_profile import examples

quick = examples(60)
Make = Callable[[pa.Array], list[Any]]
REALS = [0.0, -0.0, 1.0, -7.0, 2.5, 0.1 + 0.2, 1 / 3, 0.001, 0.00099999, -0.001, 1e-5, 5e-324, 1e7, 9999999.5,
         -9999999.5, 10000000.5, 2.0**53 - 1, 1 - 2.0**53, 2.0**53, 2.0**53 + 2, -(2.0**53), 1e15 + 0.5, 1e20, 1e300,
         -1e300, math.nan, -math.nan, math.inf, -math.inf, 16777217.0, 1175941.25, None]  # fmt: skip
INTEGERS = {
    pa.int8(): [0, -1, 127, -128], pa.int16(): [0, 2**15 - 1, -(2**15)], pa.int32(): [7, 2**31 - 1, -(2**31)],
    pa.int64(): [0, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)], pa.uint8(): [0, 255],
    pa.uint16(): [2**16 - 1], pa.uint32(): [0, 2**32 - 1], pa.uint64(): [0, 1, 2**41, 2**53 + 1, 2**63 - 1, 2**63,
    2**64 - 1],
}  # fmt: skip
WORDS = ["", " ", "7", " 7", "7 ", "+7", "-7", "--7", "+", ".", "5.", ".5", "-.5e-07", "7.1e-07", "1e1", "1E+99",
         "1e100", "1e-99", "007", "7.0", "-0", "-0.0", "0x9", "1_0", "1,000", "NaN", "nan", "inf", "-Infinity",
         "ten", "true", "٣", "７", "7\n", "\t7", "7 7", "7\0", "\0", "5\u0085", "7\u00a0", "\ufeff7", "é", "e\u0301",
         "😀", "\ufffd", "'; --", "9" * 40, "9" * 41, "0." + "9" * 20, "0." + "9" * 21, "1" + "0" * 39 + "e99",
         "x" * 300, "9" * 308, "-" + "9" * 400, "0." + "0" * 400 + "1", "1e400", "-1e999999999", "1e-400",
         "-1e-999999999", "0e999999999", "1e1000000000", "1e-1000000000", "0" * 999 + "7",
         "7" + "0" * 999 + "e-999"]  # fmt: skip
BROKEN = [b"\xff\xfe", b"7\x80", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80", b"\xc3", b"\xff" * 40]
DAYS = [FIRST_DAY - 1, FIRST_DAY, -141_428, -141_427, -1, 0, 20_000, LAST_DAY, LAST_DAY + 1, 2**31 - 1, -(2**31)]
DECIMALS = [pa.decimal128(38, 0), pa.decimal128(38, 38), pa.decimal128(12, 2), pa.decimal128(5, -2),
            pa.decimal128(38, -38), pa.decimal256(76, 0), pa.decimal256(76, 60), pa.decimal256(76, 2),
            pa.decimal256(70, -6), pa.decimal32(6, 2), pa.decimal64(18, 3)]  # fmt: skip


# --- the rules, in Python -------------------------------------------------------------------------------------------


def text_of(value: Any, kind: pa.DataType) -> str | None:
    """The text of a code."""
    if value is None:
        return None
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isfinite(value) and value == int(value) and abs(value) < 2**53:
            return str(int(value))
        return repr(value) if kind == pa.float64() and 1e-3 <= abs(value) < 1e7 else None
    return str(value)


def number_of(value: Any, pattern: str = REAL) -> float | None:
    """The number that a value represents."""
    if isinstance(value, bytes):
        value = text_of(value, pa.string())
    if isinstance(value, str):
        value = float(value) if re.fullmatch(pattern.replace("$", "\\Z"), value) else None
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return float(value) + 0.0


def same(actual: Sequence[Any], expected: Sequence[Any]) -> None:
    """Equal to the bit: −0 is not 0 here."""
    assert [repr(value) for value in actual] == [repr(value) for value in expected]


def exact(values: pa.Array) -> list[Decimal | None]:
    with localcontext(prec=200):
        return [None if value is None else Decimal(value) for value in values.to_pylist()]


# --- texts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()], ids=str)
def test_reals_as_codes(kind: pa.DataType) -> None:
    values = pa.array(REALS, pa.float64(), from_pandas=False).cast(kind, safe=False)
    for form in forms(values):
        assert texts(form).type == pa.large_string()
        assert texts(form).to_pylist() == [text_of(value, kind) for value in values.to_pylist()]


@quick
@given(st.lists(st.one_of(st.none(), st.floats(), st.floats(-1e8, 1e8), st.integers(-(2**54), 2**54).map(float))))
def test_any_double_as_a_code(values: list[float | None]) -> None:
    actual = texts(pa.array(values, pa.float64(), from_pandas=False)).to_pylist()
    assert actual == [text_of(value, pa.float64()) for value in values]


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_whole_numbers_as_codes(kind: pa.DataType) -> None:
    values = [*INTEGERS[kind], None]
    for form in forms(pa.array(values, kind)):
        assert texts(form).to_pylist() == [text_of(value, kind) for value in values]


@pytest.mark.parametrize("kind", [pa.decimal128(38, 0), pa.decimal256(76, 0), pa.decimal32(9, 0)], ids=str)
def test_whole_decimals_as_codes(kind: pa.DataType) -> None:
    values = [0, 7, -7, 10 ** (kind.precision - 1), 10**kind.precision - 1, 1 - 10**kind.precision]
    for form in forms(decimals(values, kind)):
        assert texts(form).to_pylist() == [str(value) for value in values]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_text_that_is_not_utf8_is_missing_and_its_neighbours_are_not(kind: pa.DataType) -> None:
    fine = [word.encode() for word in WORDS]
    for broken in ([], *([bad] for bad in BROKEN), BROKEN):
        values = [*fine[:20], *broken, None, *fine[20:]]
        for form in (loose(values, kind), pa.concat_arrays([loose([b"\xff"], kind), loose(values, kind)]).slice(1)):
            assert texts(form).to_pylist() == [text_of(value, kind) for value in values]
    if kind != pa.string_view():
        for form in forms(loose([*fine, *BROKEN, None], kind)):
            assert texts(form).to_pylist() == [*WORDS, *[None] * (len(BROKEN) + 1)]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()], ids=str)
def test_dates_as_codes(kind: pa.DataType) -> None:
    further = [] if kind == pa.date32() else [2**32, 2**32 + 20_000, -(2**33), 10**11]  # more than 32 bits of days
    expected = [
        (dt.date(1970, 1, 1) + dt.timedelta(day)).isoformat() if FIRST_DAY <= day <= LAST_DAY else None for day in DAYS
    ]
    assert expected[1] == "0001-01-01"
    assert expected[7] == "9999-12-31"
    for form in forms(pa.concat_arrays([days([*DAYS, *further], kind), pa.nulls(1, kind)])):
        assert texts(form).to_pylist() == [*expected, *[None] * (len(further) + 1)]


def test_truths_nothing_and_empty_arrays() -> None:
    for form in forms(pa.array([True, False, None])):
        assert texts(form).to_pylist() == ["true", "false", None]
    for form in forms(pa.nulls(2)):
        assert texts(form).to_pylist() == numbers(form).to_pylist() == [None, None]
    for kind in (pa.string(), pa.int8(), pa.uint64(), pa.float32(), pa.decimal128(9, 2), pa.null()):
        for form in forms(pa.array([], kind)):
            assert texts(form).type == pa.large_string()
            assert numbers(form).type == pa.float64()
            assert [len(part) for part in (texts(form), numbers(form), *compared(form))] == [0] * 5
    for kind in (pa.bool_(), pa.date32(), pa.date64()):
        for form in forms(pa.array([], kind)):
            assert texts(form) == pa.array([], pa.large_string())


# --- numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()], ids=str)
def test_floats(kind: pa.DataType) -> None:
    values = pa.array(REALS, pa.float64(), from_pandas=False).cast(kind, safe=False)
    for form in forms(values):
        assert numbers(form).type == pa.float64()
        same(numbers(form).to_pylist(), [number_of(value) for value in values.to_pylist()])


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_integers(kind: pa.DataType) -> None:
    """Beyond 2^53 the nearest double."""
    values = [*INTEGERS[kind], None]
    for form in forms(pa.array(values, kind)):
        same(numbers(form).to_pylist(), [number_of(value) for value in values])


@pytest.mark.parametrize("kind", DECIMALS, ids=str)
def test_decimals_of_any_scale(kind: pa.DataType) -> None:
    """The nearest double."""
    most = 10**kind.precision - 1
    values = decimals([0, 1, -1, 7, most, -most, most // 3, 10 ** (kind.precision - 1)], kind)
    for form in forms(pa.concat_arrays([values, pa.nulls(1, kind)])):
        same(numbers(form).to_pylist(), [number_of(value) for value in [*exact(values), None]])


@pytest.mark.parametrize("pattern", [REAL, NUMBER])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_text_that_is_a_number_and_text_that_is_none(kind: pa.DataType, pattern: str) -> None:
    values = [*(word.encode() for word in WORDS), *BROKEN, None]
    for form in forms(loose(values, kind)):
        same(numbers(form, pattern).to_pylist(), [number_of(value, pattern) for value in values])


def test_which_texts_are_numbers() -> None:
    """The two patterns, spelt out: plain and scientific notation."""
    plain = {"7", " 7", "7 ", "+7", "-7", "007", "7.0", "-0", "-0.0", "9" * 40, "9" * 41, "0." + "9" * 20,
             "0." + "9" * 21, "9" * 308, "0." + "0" * 400 + "1", "0" * 999 + "7"}  # fmt: skip
    program = {"5.", ".5", "-.5e-07", "7.1e-07", "1e1", "1E+99", "1e100", "1e-99", "1" + "0" * 39 + "e99", "1e-400",
               "-1e-999999999", "0e999999999", "7" + "0" * 999 + "e-999"}  # fmt: skip
    for pattern, expected in ((NUMBER, plain), (REAL, plain | program)):
        actual = numbers(pa.array(WORDS), pattern).to_pylist()
        assert {word for word, value in zip(WORDS, actual, strict=True) if value is not None} == expected
        assert all(value is None or math.isfinite(value) for value in actual)


@quick
@given(st.lists(st.one_of(st.none(), st.text(max_size=6), st.text("0123456789+-.eE ", max_size=8))))
def test_any_text_as_a_number(values: list[str | None]) -> None:
    for pattern in (REAL, NUMBER):
        same(numbers(pa.array(values, pa.string()), pattern).to_pylist(), [number_of(v, pattern) for v in values])


# --- objects --------------------------------------------------------------------------------------------------------


def objects() -> tuple[pa.Array, list[str | float | None]]:
    """Texts and floats in one column, neither of which affects how the other is read."""
    plain: list[str | float | None] = [*WORDS, *REALS]
    reals = [v if isinstance(v, float) else None for v in plain]
    parts = [
        pa.array([v if isinstance(v, str) else None for v in plain], pa.large_string()),
        pa.array(reals, pa.float64(), from_pandas=False),
    ]
    return pa.StructArray.from_arrays(parts, fields=[*OBJECTS]), plain


def test_objects_are_texts_or_real_numbers() -> None:
    values, plain = objects()
    for form in forms(values):
        assert texts(form).type == pa.large_string()
        assert texts(form).to_pylist() == [text_of(value, pa.float64()) for value in plain]
        for pattern in (REAL, NUMBER):
            same(numbers(form, pattern).to_pylist(), [number_of(value, pattern) for value in plain])
        assert absent(form).to_pylist() == [v is None or v != v for v in plain]
    decided(values, [number_of(value, NUMBER) for value in plain])


def test_what_is_not_there_and_what_cannot_be_read() -> None:
    """NaN and invalid text are missing; infinite numbers and other texts are present, but not numeric."""
    real = pa.array([1.5, None, math.nan, math.inf, -math.inf], from_pandas=False)
    text = loose([b"1.5", None, b"\xff", b"9" * 400, b"-1e400", b"inf", b"x", b"1e5", b""])
    for form in forms(real):
        assert absent(form).to_pylist() == [False, True, True, False, False]
        assert NumberStatus("v", True).make([form]).to_pylist() == [0, 1, 1, 2, 2]
    for form in forms(text):
        assert absent(form).to_pylist() == [False, True, True] + [False] * 6
        assert NumberStatus("v", True).make([form]).to_pylist() == [0, 1, 1, 2, 2, 2, 2, 2, 2]
        assert NumberStatus("v", False).make([form]).to_pylist() == [0, 1, 1, 2, 2, 2, 2, 0, 2]


# --- comparisons with borders ---------------------------------------------------------------------------------------

BORDERS = [-LARGEST, -LARGEST + 1, -1000, -1, 0, 1, 7, 1000, 2**31, 2**32, LARGEST - 1, LARGEST]


def decided(values: pa.Array, expected: Sequence[Any]) -> None:
    """Every comparison with an edge has the result that exact numbers have."""
    for form in forms(values):
        low, high, there = compared(form)
        assert there.tolist() == [value is not None for value in expected]
        for border in BORDERS:
            known = [(i, value) for i, value in enumerate(expected) if value is not None]
            assert [bool(low[i] >= border) for i, _ in known] == [value >= border for _, value in known]
            assert [bool(high[i] <= border) for i, _ in known] == [value <= border for _, value in known]


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_whole_numbers_are_compared_exactly(kind: pa.DataType) -> None:
    values = [*INTEGERS[kind], *(b + d for b in BORDERS for d in (-1, 0, 1) if _fits(b + d, kind)), None]
    decided(pa.array(values, kind), values)


def _fits(value: int, kind: pa.DataType) -> bool:
    try:
        pa.scalar(value, kind)
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


@pytest.mark.parametrize("kind", DECIMALS, ids=str)
def test_decimals_are_compared_exactly(kind: pa.DataType) -> None:
    """Also the largest, which cannot be rounded up within their type, and those one digit from an edge."""
    most, unit = 10**kind.precision - 1, 10**kind.scale if kind.scale >= 0 else None
    digits = [0, 1, -1, most, -most]
    if unit is not None:
        digits += [b * unit + d for b in BORDERS for d in (-1, 0, 1) if abs(b * unit + d) <= most]
    values = decimals(digits, kind)
    decided(pa.concat_arrays([values, pa.nulls(1, kind)]), [*exact(values), None])


def test_reals_are_compared_as_they_are() -> None:
    beside = [math.nextafter(b, to) for b in BORDERS for to in (-math.inf, math.inf)]
    values = [*REALS, *map(float, BORDERS), *beside]
    decided(
        pa.array(values, pa.float64(), from_pandas=False),
        [None if v is None or not math.isfinite(v) else v for v in values],
    )


def test_texts_are_compared_by_their_nearest_double() -> None:
    values = [*WORDS, *map(str, BORDERS), "0.99999999999999999999", None]
    decided(pa.array(values), [number_of(value, NUMBER) for value in values])


# --- neighbours -----------------------------------------------------------------------------------------------------

KINDS: dict[str, pa.Array] = {
    "float64": pa.array(REALS, pa.float64(), from_pandas=False),
    "float32": pa.array(REALS, pa.float64(), from_pandas=False).cast(pa.float32(), safe=False),
    "uint64": pa.array([*INTEGERS[pa.uint64()], None], pa.uint64()),
    "decimal": decimals([0, 1, 10**76 - 1, 1 - 10**76], pa.decimal256(76, 2)),
    "text": loose([*(word.encode() for word in WORDS), *BROKEN, None]),
    "objects": objects()[0],
}
VOCABULARY = ("7", "0", "-7", "2.5", "", "é", "true", str(2**64 - 1))
VALUES: list[DerivedColumn] = [
    Number("v"), Bin("v", Bins((-5, 0, 10, 1000))), SampleCondition("v", 1, 10**9), SampleCondition("v", None, -1),
    NumberStatus("v", True), NumberStatus("v", False),
]  # fmt: skip
CODED: list[DerivedColumn] = [
    Indicator("v", VOCABULARY), SampleCondition("v", equals=VOCABULARY), KeyPart("v", None, VOCABULARY),
    KeyPart("v", 3, ("007", "000")), CodeText("v", None), CodeText("v", 4), Identifier("v", whole=False),
    *(
        made(ValuesDomain(values=list(VOCABULARY), undeclared=rule).attributes("v", Path())[0])
        for made in (Category, LookedUpCategory, ValueStatus)
        for rule in ("drop", "other")
    ),
]  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_the_result_for_a_value_never_depends_on_another(name: str) -> None:
    """Alone, among all others, in any order and in any form: the same."""
    values = KINDS[name]
    for made in [*VALUES, *([] if name == "decimal" else CODED)]:
        together = made.make([values])
        assert together.type == made.type
        alone = [made.make([values.slice(i, 1)]).to_pylist()[0] for i in range(len(values))]
        same(together.to_pylist(), alone)
        same(made.make([values.take(np.arange(len(values))[::-1])]).to_pylist(), alone[::-1])
        for form in forms(values):
            assert made.make([form]).type == made.type
            same(made.make([form]).to_pylist(), alone)


# --- derived columns ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in KINDS if name != "decimal"])
def test_codes_by_their_texts(name: str) -> None:
    values, n = KINDS[name], len(VOCABULARY)
    written = texts(values).to_pylist()
    place = {word: i for i, word in enumerate(VOCABULARY)}
    assert TextIndex.of(VOCABULARY).find(values).tolist() == [
        MISSING if text is None else place.get(text, UNDECLARED) for text in written
    ]
    assert Indicator("v", VOCABULARY).make([values]).to_pylist() == [
        None if text is None else float(text in place) for text in written
    ]
    assert SampleCondition("v", equals=VOCABULARY).make([values]).to_pylist() == [text in place for text in written]
    assert Identifier("v", whole=False).make([values]).to_pylist() == written
    assert CodeText("v", 4).make([values]).to_pylist() == [
        None if text is None else text.rjust(4, "0") for text in written
    ]
    assert KeyPart("v", None, VOCABULARY).make([values]).to_pylist() == [
        None if text is None else place.get(text, n) for text in written
    ]
    dropped, folded = (
        ValuesDomain(values=list(VOCABULARY), undeclared=rule).attributes("v", Path())[0] for rule in ("drop", "other")
    )
    code = dropped.lookup
    known = [None if text is None else code.get((text,)) for text in written]
    assert Category(dropped).make([values]).to_pylist() == known
    assert Category(folded).make([values]).to_pylist() == [folded.other_code if k is None else k for k in known]
    for attribute in (dropped, folded):
        listed = LookedUpCategory(attribute).make([values]).to_pylist()
        assert listed == [None if t is None else code.get((t,), n) for t in written]
        outcomes = ValueStatus(attribute).make([values]).to_pylist()
        assert outcomes == [1 if t is None else 0 if t in place else 2 for t in written]


def test_codes_of_several_columns(tmp_path: Path) -> None:
    """Combinations are declared; if one part is missing, the combination is missing."""
    (tmp_path / "pairs.csv").write_text("a,b,c\nx,01,t\nx,02,t\ny,01,f\nz,03,f\n")
    domain = GroupsDomain(groups="pairs.csv", columns=["a", "b", "c"], width={"b": 2}, provenance="test")
    (attribute,) = domain.attributes("pair", tmp_path)
    parts = [["x", "y", "z", "q", None], [1.0, 2.0, 3.0, math.nan, None, 77.0], ["t", "f", None, "u"]]
    rows = [(a, b, c) for a in parts[0] for b in parts[1] for c in parts[2]]
    columns = [
        pa.array(list(c), k, from_pandas=False)
        for c, k in zip(zip(*rows, strict=True), (None, None, None), strict=True)
    ]
    keys = [(a, None if b is None or math.isnan(b) else f"{int(b):02}", c) for a, b, c in rows]
    expected = [None if None in key else attribute.lookup.get(key) for key in keys]
    assert len([code for code in expected if code is not None]) == 4
    assert Category(attribute).make(columns).to_pylist() == expected
    assert ValueStatus(attribute).make(columns).to_pylist() == [
        1 if None in key else 0 if key in attribute.lookup else 2 for key in keys
    ]


@pytest.mark.parametrize("name", KINDS)
def test_values_by_their_size(name: str) -> None:
    values, bins = KINDS[name], Bins((-5, 0, 10, 1000))
    with localcontext(prec=200):
        raw = [v.decode(errors="replace") if isinstance(v, bytes) else v for v in _listed(values)]
        sizes = [number_of(v, NUMBER) if isinstance(v, str) else v for v in raw]
        sizes = [None if v is None or (isinstance(v, float) and not math.isfinite(v)) else v for v in sizes]
        assert Bin("v", bins).make([values]).to_pylist() == [
            None if v is None else sum(v >= border for border in bins.edges[1:-1]) for v in sizes
        ]
        for least, most in ((1, None), (None, 9), (-7, 7), (8, 3)):
            low, high = (-math.inf if least is None else least), (math.inf if most is None else most)
            assert SampleCondition("v", least, most).make([values]).to_pylist() == [
                v is not None and low <= v <= high for v in sizes
            ]
        same(Number("v").make([values]).to_pylist(), [number_of(v) for v in raw])
        for plain, pattern in ((True, NUMBER), (False, REAL)):
            assert NumberStatus("v", plain).make([values]).to_pylist() == [
                1 if v is None or v != v else 2 if number_of(v, pattern) is None else 0 for v in _listed(values)
            ]


def _listed(values: pa.Array) -> list[Any]:
    if values.type == OBJECTS:
        return objects()[1]
    return texts(values).to_pylist() if pa.types.is_string(values.type) else values.to_pylist()


def test_a_value_must_lie_in_the_range_and_be_a_code_where_both_are_asked_for() -> None:
    held = SampleCondition("v", 2, None, ("1", "2", "3"))
    assert held.make([pa.array(["1", "2", "3", "4", None, "x"])]).to_pylist() == [
        False,
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8()], ids=str)
def test_dictionaries_as_long_as_their_indices_reach(kind: pa.DataType) -> None:
    """So narrow a type has no index left for missing values."""
    words = [str(i) for i in range(128 if kind == pa.int8() else 256)]
    full = pa.DictionaryArray.from_arrays(pa.array([*range(len(words)), None], kind), pa.array(words))
    assert TextIndex.of(words).find(full).tolist() == [*range(len(words)), MISSING]
    assert texts(full).to_pylist() == [*words, None]
    assert numbers(full).to_pylist() == [*map(float, words), None]
    assert compared(full)[2].tolist() == [True] * len(words) + [False]


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_identifiers_are_whole_numbers_where_64_bits_hold_them(kind: pa.DataType) -> None:
    values = [*INTEGERS[kind], None]
    assert Identifier.fits(kind) == (kind != pa.uint64())
    assert Identifier.fits(pa.dictionary(pa.int32(), kind)) == (kind != pa.uint64())
    for form in forms(pa.array(values, kind)):
        assert Identifier("v", whole=False).make([form]).to_pylist() == [None if v is None else str(v) for v in values]
        if Identifier.fits(kind):
            whole = Identifier("v", whole=True).make([form])
            assert whole.type == pa.int64()
            assert whole.to_pylist() == values
    assert Identifier("v", whole=True).name == Identifier("v", whole=False).name


# --- refused by type ------------------------------------------------------------------------------------------------

INT, DAY_TIME = pa.int32(), pa.timestamp("us")
ALWAYS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.null(),
    OBJECTS,
    pa.int8(),
    pa.uint64(),
    pa.dictionary(INT, pa.string()),
]
NEVER = [pa.binary(), pa.large_binary(), pa.binary_view(), DAY_TIME, pa.timestamp("ns"), pa.time64("us"),
         pa.duration("s"), pa.list_(INT), pa.struct([("x", INT)]), pa.dictionary(INT, pa.binary()),
         pa.run_end_encoded(INT, INT)]  # fmt: skip
SOME = {  # code, number, id
    pa.bool_(): (True, False, True), pa.date32(): (True, False, True), pa.date64(): (True, False, True),
    pa.float64(): (True, True, False), pa.float32(): (True, True, False), pa.float16(): (True, True, False),
    pa.decimal128(20, 0): (True, True, True), pa.decimal256(76, 0): (True, True, True),
    pa.decimal128(20, 2): (False, True, False), pa.decimal128(20, -2): (False, True, False),
    pa.decimal256(76, 60): (False, True, False), pa.decimal256(76, 61): (False, False, False),
    pa.decimal128(38, -38): (False, True, False), pa.decimal256(76, -1): (False, False, False),
    pa.dictionary(INT, pa.float64()): (True, True, False), pa.dictionary(INT, pa.date32()): (True, False, True),
}  # fmt: skip


def test_what_a_column_may_be_is_decided_by_its_type() -> None:
    """A float can be a code or a value, but not an identifier: large ones would merge. Nor can a decimal fraction."""
    expected = {**dict.fromkeys(ALWAYS, (True,) * 3), **dict.fromkeys(NEVER, (False,) * 3), **SOME}
    for kind, allowed in expected.items():
        for check, fine in zip((check_code, check_number, check_id), allowed, strict=True):
            if fine:
                check("v", kind, "source s")
                continue
            with pytest.raises(SourceError, match=r"column 'v' .*is of type") as refusal:
                check("v", kind, "source s")
            assert refusal.value.where == "source s"
            assert str(kind) in str(refusal.value)


def test_a_rule_asks_for_what_it_compares() -> None:
    SampleCondition("v", equals=("true",)).check("v", pa.bool_(), "s")
    SampleCondition("v", at_least=1).check("v", pa.decimal128(9, 2), "s")
    for made, kind in (
        (SampleCondition("v", at_least=1), pa.bool_()),
        (SampleCondition("v", at_most=1), pa.date32()),
        (SampleCondition("v", at_least=1, equals=("1",)), pa.date32()),
        (SampleCondition("v", at_least=1, equals=("1",)), pa.decimal128(9, 2)),
        (Number("v"), pa.bool_()),
        (Bin("v", Bins((0, 1))), pa.date32()),
        (NumberStatus("v", True), pa.date32()),
        (Indicator("v", ("1",)), pa.decimal128(9, 2)),
        (Identifier("v", whole=False), pa.float64()),
    ):
        with pytest.raises(SourceError):
            made.check("v", kind, "s")


def test_no_two_declarations_share_a_name() -> None:
    """Even if an engine ignores case."""
    made: list[DerivedColumn] = [
        *(Number(c) for c in ("v", "V")), *(Identifier(c, whole=False) for c in ("v", "V")), Bin("v", Bins((0, 1))),
        Bin("v", Bins((0, 2))), SampleCondition("v", 1), SampleCondition("v", None, 1),
        SampleCondition("v", equals=("1",)), SampleCondition("v", equals=("1", "2")), Indicator("v", ("1",)),
        KeyPart("v", None, ("1",)), KeyPart("v", 1, ("1",)), NumberStatus("v", True), NumberStatus("v", False),
        CodeText("v", None), CodeText("v", 1),
    ]  # fmt: skip
    assert len({column.name.lower() for column in made}) == len(made)
