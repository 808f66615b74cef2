"""From values to bins in the engine, against plain Python: every type of column, and all non-numeric values."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from discreet.domain import Domain
from discreet.domain.bins import PSEO, Bins
from discreet.engine.audit import Audit, audit
from discreet.engine.derived_values import BinnedValue, in_sample, with_bins
from discreet.engine.duckdb import duckdb_engine
from discreet.engine.intake.derived import CodeText, SampleCondition, identifier
from discreet.engine.intake.stream import Intake
from discreet.engine.tabulate import bound_contributions, count_cells
from discreet.errors import SourceError
from discreet.methods.earnings.spec import SampleRule
from discreet.methods.histograms import histogram_domain
from discreet.noise.key import Secret
from discreet.pipeline.check import lines
from discreet.privacy.guarantee import Person, Record
from discreet.spec import FileSource, ValuesDomain
from support.earnings import Registrar, arrow, graduates, spec, table
from support.engines import take_records
from support.hypothesis_profile import examples

SMALL = Bins((-5, 0, 10, 1000))
INFINITE = pa.array([math.inf, -math.inf, math.nan, 0.0], from_pandas=False)
properties = examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
INT, FLOAT, TEXT = pa.int64(), pa.float64(), pa.string()


def actual(
    values: Sequence[Any], kind: pa.DataType, bins: Bins, *rules: SampleCondition, **more: pa.Array
) -> list[int | None]:
    """The bins that DuckDB finds."""
    made = BinnedValue("b", "v", bins, rules)
    source = pa.table({"id": range(len(values)), "v": pa.array(values, kind, from_pandas=False), **more})
    with duckdb_engine() as engine:
        read = take_records(engine, source, Path(), [], Person(column="id", max_records=1), [made]).table
        batches = engine.batches(read.order_by(identifier("id")).select("b"))
        return [value for batch in batches for value in batch.column(0).to_pylist()]


def as_number(value: Any) -> float | Decimal | int | None:
    """The number that a value represents: none if it is not in plain notation, or not finite."""
    if isinstance(value, str):
        value = float(value) if re.fullmatch(r" *[+-]?[0-9]+(\.[0-9]+)? *", value, re.ASCII) else None
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value  # type: ignore[no-any-return]


def bin_of(value: Any, bins: Bins) -> int | None:
    """The definition of bins, edge by edge."""
    number = as_number(value)
    return None if number is None else sum(number >= border for border in bins.edges[1:-1])


# --- bins -----------------------------------------------------------------------------------------------------------


@properties
@given(st.lists(st.one_of(st.none(), st.integers(-20, 1010), st.integers(-(2**63), 2**63 - 1)), max_size=20))
def test_integers(values: list[int | None]) -> None:
    assert actual(values, INT, SMALL) == [bin_of(v, SMALL) for v in values]


@properties
@given(st.lists(st.one_of(st.none(), st.floats(), st.sampled_from([0.0, -0.0, 10.0, 1000.0, -5.0])), max_size=20))
def test_floats(values: list[float | None]) -> None:
    assert actual(values, FLOAT, SMALL) == [bin_of(v, SMALL) for v in values]


@properties
@given(st.lists(st.one_of(st.none(), st.decimals(-1100, 1100, places=2, allow_nan=False)), max_size=20))
def test_decimals(values: list[Decimal | None]) -> None:
    assert actual(values, pa.decimal128(12, 2), SMALL) == [bin_of(v, SMALL) for v in values]


GARBAGE = [
    "",
    "\t7",
    "7 7",
    "7\n",
    " ",
    "1_0",
    "1e1",
    "0x9",
    "NaN",
    "inf",
    "ten",
    "1,000",
    "٣",
    "--1",
    "+",
    ".",
    "5.",
    ".5",
    "7\n",
    "７",
    "9" * 400,  # no double is so large
    "-" + "9" * 400,
]


@properties
@given(
    st.lists(
        st.one_of(
            st.none(),
            st.sampled_from(GARBAGE),
            st.integers(-1100, 1100).map(str),
            st.decimals(-1100, 1100, places=3, allow_nan=False).map(lambda d: f"{d:f}"),
            st.text(max_size=6).filter(lambda text: "\0" not in text),
        ),
        max_size=20,
    )
)
def test_text(values: list[str | None]) -> None:
    assert actual(values, TEXT, SMALL) == [bin_of(v, SMALL) for v in values]


@pytest.mark.parametrize("text", GARBAGE)
def test_text_that_is_no_number_is_no_value(text: str) -> None:
    assert actual([text, "5"], TEXT, SMALL) == [None, 1]


@pytest.mark.parametrize(
    "text", ["+10", " 10", "10  ", "10", "010", "10.0", "10.000", "9." + "9" * 20, "9." + "9" * 99, "9" * 40, "9" * 300]
)
def test_text_that_is_one(text: str) -> None:
    assert actual([text], TEXT, SMALL) == [2]  # the nearest double of 9.99… is 10


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.uint8(), pa.uint64(), pa.float32(), pa.decimal128(9, 0)])
def test_every_kind_of_number_is_compared_as_a_number(kind: pa.DataType) -> None:
    """An edge may be outside the range of the column's type."""
    values = [0, 9, 10, 100, None]
    typed = pa.array([None if v is None else Decimal(v) if pa.types.is_decimal(kind) else v for v in values], kind)
    assert actual(typed.to_pylist(), kind, Bins((0, 10, 2**40 - 1, 2**40))) == [0, 0, 1, 1, None]


@pytest.mark.parametrize("kind", [INT, FLOAT, TEXT, pa.decimal128(20, 2)])
def test_the_edges_of_pseo(kind: pa.DataType) -> None:
    """On an edge, one below it, below the first and above the last."""
    values: list[int] = [-1, 0, 9_999, *(b + d for b in PSEO.edges for d in (-1, 0)), 10**9]
    typed = [str(v) if kind == TEXT else Decimal(v) if pa.types.is_decimal(kind) else v for v in values]
    assert actual(typed, kind, PSEO) == [bin_of(v, PSEO) for v in values]
    assert actual(typed, kind, PSEO)[-1] == 20


def test_what_is_infinite_or_no_number() -> None:
    assert actual([math.inf, -math.inf, math.nan, None], FLOAT, SMALL) == [None] * 4
    for said in ({"at_least": -(2**40)}, {"at_most": 2**40}):
        assert actual([5] * 4, INT, SMALL, rule(column="w", **said), w=INFINITE) == [None, None, None, 1]


def test_one_bin_and_no_bins() -> None:
    assert actual([-7, 7, None], INT, Bins((0, 1))) == [0, 0, None]
    with duckdb_engine() as engine:
        read = take_records(engine, pa.table({"v": [1]}), Path(), [], Record()).table
        assert with_bins(read, []) is read


# --- the sample -----------------------------------------------------------------------------------------------------


def rule(**said: Any) -> SampleCondition:
    return SampleRule(**{"column": "v", **said}).holds


@properties
@given(
    st.lists(st.one_of(st.none(), st.floats(-20, 20), st.just(math.nan), st.just(math.inf)), max_size=15),
    st.integers(-10, 10),
    st.integers(-10, 10),
)
def test_at_least_and_at_most(values: list[float | None], least: int, most: int) -> None:
    for rules in ([rule(at_least=least)], [rule(at_most=most)], [rule(at_least=least, at_most=most)]):
        low = rules[0].at_least if rules[0].at_least is not None else -math.inf
        high = rules[0].at_most if rules[0].at_most is not None else math.inf
        expected = [
            bin_of(v, SMALL) if (number := as_number(v)) is not None and low <= number <= high else None for v in values
        ]
        assert actual(values, FLOAT, SMALL, *rules) == expected
    both = actual(values, FLOAT, SMALL, rule(at_least=least), rule(at_most=most))
    assert both == actual(values, FLOAT, SMALL, rule(at_least=least, at_most=most))


COLUMNS: dict[str, tuple[pa.Array, list[str], list[bool]]] = {
    "text": (pa.array(["a", "A", " a", None, "", "b"]), ["a", "b"], [True, False, False, False, False, True]),
    "empty text": (pa.array(["a", None, ""]), [""], [False, False, True]),
    "boolean": (pa.array([True, False, None]), ["true"], [True, False, False]),
    "whole": (pa.array([1, 2, None]), ["1"], [True, False, False]),
    "real": (pa.array([1.0, 1.5, math.nan, None], from_pandas=False), ["1", "NaN"], [True, False, False, False]),
    "date": (pa.array([dt.date(2020, 1, 1), None]), ["2020-01-01"], [True, False]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_equals_compares_codes_and_nothing_equals_what_is_missing(name: str) -> None:
    column, codes, holds = COLUMNS[name]
    values = [5] * len(column)
    said = rule(column="w", equals=codes)
    assert actual(values, INT, SMALL, said, w=column) == [1 if hold else None for hold in holds]


def test_a_rule_on_another_column_and_several_rules_all_hold() -> None:
    other = pa.array([1, 2, 3, None, 2])
    rules = (rule(at_least=0), rule(column="w", at_least=2, at_most=2))
    assert actual([5, 5, 5, 5, -1], INT, SMALL, *rules, w=other) == [None, 1, None, None, None]
    text = pa.array(["1", "2", "x", None, "2"])
    assert actual([5, 5, 5, 5, -1], INT, SMALL, *rules, w=text) == [None, 1, None, None, None]


def test_a_rule_may_ask_for_numbers_and_codes_of_one_column() -> None:
    said = rule(column="w", at_least=2, equals=["1", "2", "3"])
    assert actual([5] * 5, INT, SMALL, said, w=pa.array(["1", "2", "3", "4", None])) == [None, 1, 1, None, None]


def test_a_record_without_a_value_has_no_bin_whatever_the_rules_say() -> None:
    said = rule(column="w", equals=["yes"])
    assert actual([None, math.nan, 5.0], FLOAT, SMALL, said, w=pa.array(["yes"] * 3)) == [None, None, 1]


def test_descriptions_of_rules() -> None:
    made = BinnedValue(
        "b", "pay", PSEO, (rule(column="pay", at_least=10_000, at_most=99_999), rule(column="e", equals=["y"]))
    )
    assert [column for derived in made.derived for column in derived.reads] == ["pay", "pay", "e"]
    said = made.description()
    assert said.startswith("pay: only records with pay of at least 10,000 and at most 99,999")
    assert "and `e` one of (y) are counted; " in said
    assert said.endswith("values below 10,000 belong to the first of 21 bins")
    assert BinnedValue("b", "pay", PSEO).description() == "pay: values below 10,000 belong to the first of 21 bins"


def test_records_without_a_bin_are_in_no_cell() -> None:
    """Even if undeclared codes are recoded to "other": a missing value is in no bin."""
    group = ValuesDomain(values=["x"], undeclared="other").attributes("g", Path())[0]
    domain = histogram_domain(Domain((group,)), "b", SMALL.count)
    made = BinnedValue("b", "v", SMALL, (rule(at_most=500),))
    source = pa.table({"g": ["x", "x", "z", None, "x", "x"], "v": [-9.0, 5.0, 5.0, 11.0, None, 501.0]})
    with duckdb_engine() as engine:
        read = take_records(engine, source, Path(), [domain], Record(), [made]).table
        rows = bound_contributions(engine, read, [domain], Record(), Secret(bytes(16)))
        counted = count_cells(engine, rows, domain)
        cells = {
            c: n for b in engine.batches(counted) for c, n in zip(*(x.to_pylist() for x in b.columns), strict=True)
        }
    assert cells == {0: 1, 1: 1, 4: 1, 5: 1}  # x: below and in the middle; other: in the middle and in the last


# --- columns that are no values -------------------------------------------------------------------------------------

STRANGE = {
    "date": pa.array([dt.date(2020, 1, 1)]),
    "boolean": pa.array([True]),
    "timestamp": pa.array([dt.datetime(2020, 1, 1)]),
    "list": pa.array([[1]]),
    "binary": pa.array([b"1"]),
}


def columns_checked(made: BinnedValue, **columns: pa.Array) -> None:
    with duckdb_engine() as engine:
        take_records(engine, pa.table(columns), Path(), [], Record(), [made])


@pytest.mark.parametrize("kind", STRANGE)
def test_a_value_must_be_a_number(kind: str) -> None:
    with pytest.raises(SourceError, match=r"'v' is of type .*, which is not numeric") as caught:
        columns_checked(BinnedValue("b", "v", SMALL), v=STRANGE[kind])
    assert caught.value.where == "source frame"
    assert caught.value.do == "provide it as integers or floating-point numbers"


def test_numbers_and_text_are_values() -> None:
    for column in (pa.array([1]), pa.array([1.5]), pa.array(["1"]), pa.array([Decimal("1.5")])):
        columns_checked(BinnedValue("b", "v", SMALL), v=column)


@pytest.mark.parametrize("said", [{"at_least": 1}, {"at_most": 1}])
def test_a_rule_of_size_needs_a_number_too(said: dict[str, int]) -> None:
    made = BinnedValue("b", "w", SMALL, (rule(**said),))
    columns_checked(made, v=pa.array([1]), w=pa.array([1]))
    with pytest.raises(SourceError, match=r"column 'v' .* not numeric"):
        columns_checked(made, v=STRANGE["date"], w=pa.array([1]))


def test_a_column_of_codes_is_no_column_of_values() -> None:
    """A column is checked for its use only."""
    made = BinnedValue("b", "v", SMALL, (rule(column="w", equals=["1"]), rule(column="x", at_least=1)))
    one, date, real, money = pa.array([1]), STRANGE["date"], pa.array([1.5]), pa.array([Decimal("1.5")])
    columns_checked(made, v=money, w=date, x=real)
    for columns, says in (
        ({"v": date, "w": one, "x": one}, "column 'v' .* not numeric"),
        ({"v": one, "w": one, "x": date}, "column 'x' .* not numeric"),
        ({"v": one, "w": STRANGE["list"], "x": one}, "column 'w' .* cannot be matched with codes"),
        ({"v": one, "w": money, "x": one}, "column 'w' .* cannot be matched with codes"),
        ({"v": one, "x": one}, "has no column 'w'"),
    ):
        with pytest.raises(SourceError, match=says):
            columns_checked(made, **columns)


AMBIGUOUS: dict[str, dict[str, Any]] = {
    "compared as well": {"sample": [{"column": "pay", "equals": ["true"]}]},
    "a code as well": {"by": ["paid"]},
}


@pytest.mark.parametrize("kind", ["date", "boolean"])
@pytest.mark.parametrize("case", AMBIGUOUS)
def test_a_value_that_is_a_code_as_well_must_still_be_a_number(tmp_path: Path, case: str, kind: str) -> None:
    records = arrow(graduates(1))
    strange = pa.chunked_array([STRANGE[kind].take([0] * records.num_rows)])
    office = Registrar(tmp_path / "office", records.set_column(6, "pay", strange))
    domains = {**spec()["domains"], "paid": {"values": ["true", "2020-01-01"], "column": "pay"}}
    opened = office.open(spec(table(**AMBIGUOUS[case]), domains=domains))
    with pytest.raises(SourceError, match="not numeric"):
        opened.check()


# --- the audit ------------------------------------------------------------------------------------------------------


def looked(values: list[float | None], *rules: SampleCondition) -> Audit:
    made = BinnedValue("b", "v", SMALL, rules)
    domain = histogram_domain(Domain(()), "b", SMALL.count)
    with duckdb_engine() as engine:
        source = pa.table({"v": pa.array(values, FLOAT, from_pandas=False)})
        read = take_records(engine, source, Path(), [domain], Record(), [made], inspect=True)
        return audit(engine, read, [domain], Record(), [made])


@properties
@given(st.lists(st.one_of(st.none(), st.floats()), max_size=20), st.integers(-10, 10))
def test_the_audit_counts_who_is_left_out_and_who_lies_below(values: list[float | None], least: int) -> None:
    numbers = [as_number(v) for v in values]
    seen = looked(values, rule(at_least=least))
    assert seen.records == len(values)
    actual = seen.values[0]
    assert actual.missing == sum(v is None or math.isnan(v) for v in values)
    assert actual.unreadable == sum(v is not None and math.isinf(v) for v in values)
    assert actual.outside == sum(n is not None and n < least for n in numbers)
    assert actual.below == sum(n is not None and least <= n < SMALL.edges[0] for n in numbers)
    assert seen.clean == (actual.below == actual.unreadable == 0)
    assert seen.attributes == ()  # bins are not a code list that somebody could mend


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize("others", [[], [None], [math.inf]])
def test_no_number_is_missing_whatever_else_is_in_the_file(
    tmp_path: Path, kind: pa.DataType, others: list[float | None]
) -> None:
    """An engine may answer `isnan` from the least and the largest value that Parquet lists, which leave NaN out: with
    one record more or less a thousand others would have counted. No engine is asked any more."""
    values = pa.array([math.nan] * 1000 + [25_000.0, 30_000.0, *others], kind, from_pandas=False)
    pq.write_table(pa.table({"pay": values}), tmp_path / "pay.parquet")
    made = BinnedValue("bin", "pay", SMALL, (SampleRule(column="pay", at_least=1).holds,))
    with duckdb_engine() as engine:
        source = FileSource(path=str(tmp_path / "pay.parquet"))
        read = take_records(engine, source, tmp_path, [], Record(), [made], inspect=True).table
        kept = read.filter(in_sample(read, made)).aggregate(n=ibis._.count())
        assert [row["n"] for batch in engine.batches(kept) for row in batch.to_pylist()] == [2]
        for fate, number in (("missing", 1000 + others.count(None)), ("unreadable", others.count(math.inf))):
            gone = read.filter(made.outcomes(read)[fate]).aggregate(n=ibis._.count())
            assert [row["n"] for batch in engine.batches(gone) for row in batch.to_pylist()] == [number]


@pytest.mark.parametrize("others", [[], [None], [math.inf]])
def test_no_number_is_no_code_whatever_else_is_in_the_file(tmp_path: Path, others: list[float | None]) -> None:
    values = pa.array([math.nan, -math.nan, 25.5, 30.0, *others], pa.float64(), from_pandas=False)
    pq.write_table(pa.table({"code": values}), tmp_path / "codes.parquet")
    with duckdb_engine() as engine:
        scan, shown = engine.open(FileSource(path=str(tmp_path / "codes.parquet")), tmp_path), CodeText("code", None)
        read = engine.ingest(scan, Intake((shown,)))
        texts = [v for batch in engine.batches(read) for v in batch[shown.name].to_pylist()]
        assert texts == [None, None, "25.5", "30", *[None] * len(others)]


def test_leaving_out_breaks_no_rule_and_lying_below_does() -> None:
    assert looked([1.0, None, 99.0], rule(at_most=50)).clean
    assert not looked([1.0, -6.0]).clean
    assert looked([1.0, -6.0], rule(at_least=0)).clean
    assert looked([-5.0]).clean  # on the border


def pays(*amounts: int | None) -> pa.Table:
    records = arrow(graduates(1))
    return records.slice(0, len(amounts)).set_column(6, "pay", pa.array(amounts, INT))


def test_the_lines_of_check(tmp_path: Path) -> None:
    office = Registrar(tmp_path / "office", pays(5, -1, -2, 30_000, None, 7))
    opened = office.open(spec(table(sample=[{"column": "pay", "at_most": 20_000}])))
    said = lines(opened.check(), opened.spec)
    left = [line for line in said if line.startswith("pay: ") and "are left out" in line]
    assert len(left) == 1
    assert sum(int(n) for n in re.findall(r"(\d+) (?:records without|with one|outside)", left[0])) == 2
    assert "pay: 2 records below 1 are counted in the first bin" in said
    assert said[-1] == "These records will be dropped or recoded as declared; the release will run."
    assert not any("bin:" in line for line in said)


def test_strict_mode_refuses_values_below_the_first_border_and_nothing_else(tmp_path: Path) -> None:
    office = Registrar(tmp_path / "office", pays(5, None, 30_000))
    office.published(spec(table(suppress_below=1), strict=True))
    office.enrol(pays(5, -1))
    opened = office.open(spec(table(suppress_below=1), strict=True))
    with pytest.raises(SourceError, match="strict mode: records break the declared rules"):
        opened.run(tmp_path / "out", simulation="strict")
    assert opened.ledger.verify().names() == set()
    sampled = table(suppress_below=1, sample=[{"column": "pay", "at_least": 0}])
    office.published(spec(sampled, strict=True))


# --- no value may stop a release ------------------------------------------------------------------------------------

WIDE = Bins((0, 1000, 5000, 2_000_000, 3_000_000))  # the upper ones do not fit into six digits before the point


@pytest.mark.parametrize("digits", [32, 33, 34, 35, 37, 38, 18, 0])
def test_decimals_that_no_border_fits_into(digits: int) -> None:
    """One record for every comparison: an engine brings borders to the column's type only when it meets a record."""
    kind, most = pa.decimal128(38, digits), Decimal(10) ** (38 - digits)
    values = [Decimal(v) for v in (0, 1, 999, 1000, 4999, 5000, 99999, -7) if abs(v) < most]
    expected = [int(WIDE.number(np.array([float(v)]))[0]) for v in values]
    with localcontext(prec=50):
        exact = [v.quantize(Decimal(1).scaleb(-digits)) for v in values]
        for value, place in zip(exact, expected, strict=True):
            assert actual([value], kind, WIDE) == [place]
            assert actual([value, None], kind, WIDE, rule(at_least=-(10**9), at_most=10**9)) == [place, None]
            assert actual([value], kind, WIDE, rule(at_least=10**9)) == [None]
            assert actual([value], kind, WIDE, rule(at_most=-(10**9))) == [None]


@pytest.mark.parametrize("kind", [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()])
def test_unsigned_numbers_and_negative_borders(kind: pa.DataType) -> None:
    assert actual([0, 9, 10, None], kind, SMALL, rule(at_least=-3)) == [1, 1, 2, None]
    assert actual([0, 9], kind, SMALL, rule(at_most=-1)) == [None, None]
    assert actual([0, 9], kind, Bins((-7, -5, -3, 5))) == [2, 2]
