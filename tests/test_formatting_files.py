"""No text of a file that we write is a formula, every one can be read back, and numbers stay numbers."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from discreet.cli.output import write_csv
from discreet.domain.codelists import read_columns, read_published
from discreet.formatting import guarded, guarded_column, guarded_table, unguarded
from discreet.publish.lehd.sidecars import Sidecars
from discreet.report.blocks import as_csv

FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠A", "-"]
NUMBERS = ["-1", "+2.5", "-1,234.5", "-1e-05", "-3%"]
BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
texts = st.text(st.sampled_from("'=+-@\t\r\n＝1.,e%a\"\\") | st.characters(codec="utf-8"), max_size=6)


@given(texts)
@example("'")
@example("'=1")
def test_no_text_is_a_formula_and_each_is_read_back(text: str) -> None:
    actual = guarded(text)
    assert unguarded(actual) == text
    assert actual in (text, f"'{text}")
    if actual.startswith(BEGINNINGS):
        float(actual.replace(",", "").removesuffix("%"))  # a number


@given(texts, texts)
def test_guarding_is_injective(one: str, other: str) -> None:
    assert (guarded(one) == guarded(other)) == (one == other)


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_guarded(text: str) -> None:
    assert guarded(text) == f"'{text}"


@pytest.mark.parametrize("text", [*NUMBERS, "", "01", "a=b", "a'b", " x", "é", "1-2"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert guarded(text) == text


def test_an_apostrophe_of_somebody_else_stays() -> None:
    assert unguarded("'s-Gravenhage") == "'s-Gravenhage"
    assert unguarded(guarded("'s-Gravenhage")) == "'s-Gravenhage"


@given(st.lists(st.none() | texts, max_size=6))
@example([*FORMULAS, *NUMBERS, None])
def test_a_column_is_guarded_as_its_texts_are(actual: list[str | None]) -> None:
    expected = [None if text is None else guarded(text) for text in actual]
    plain = pa.array(actual, pa.string())
    assert guarded_column(plain).to_pylist() == expected
    assert guarded_table(pa.table({"a": plain.dictionary_encode(), "=b": pa.nulls(len(actual), pa.int64())})) == (
        pa.table({"a": pa.array(expected, pa.string()), "'=b": pa.nulls(len(actual), pa.int64())})
    )


def test_negative_numbers_are_not_touched(tmp_path: Path) -> None:
    table = pa.table({"code": ["=1", "a"], "n": [-1, 2], "x": [-0.5, 1.5]})
    write_csv(table, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == '"code","n","x"\n"\'=1",-1,-0.5\n"a",2,1.5\n'
    assert as_csv(["=a", "b"], [["=1", -1.5], ["-3.5", -2]]) == "'=a,b\n'=1,-1.5\n-3.5,-2\n"


def test_labels_beside_a_layout_are_guarded() -> None:
    actual = Sidecars({"institution": {"00100200": ("00100200", "=HYPERLINK(1)")}})
    (text,) = actual.texts(False, None, "r").values()  # type: ignore[arg-type]
    assert list(csv.reader(io.StringIO(text)))[1] == ["00100200", "'=HYPERLINK(1)"]


def test_public_numbers_of_cells_may_come_from_a_table_of_ours(tmp_path: Path) -> None:
    write_csv(pa.table({"=place": ["=a", "'b", "c"], "count": [1, 2, 3]}), tmp_path / "t.csv")
    assert read_published(tmp_path / "t.csv", ["=place", "count"], "x") == [("=a", "1"), ("'b", "2"), ("c", "3")]
    assert read_columns(tmp_path / "t.csv", ["'=place"], "x") == [("'=a",), ("''b",), ("c",)]


def test_a_code_list_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("code\n'=a\n''b\n")
    assert read_columns(tmp_path / "t.csv", ["code"], "x") == [("'=a",), ("''b",)]
