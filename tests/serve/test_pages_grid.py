"""Numbers of pages: margins of error, percentages and their errors, ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from discreet.serve.catalogue import TableCatalogue
from discreet.serve.pages import texts
from discreet.serve.pages.builder_state import BuilderState, complete_state, parse_state, table_query
from discreet.serve.pages.chart_view import page_chart
from discreet.serve.pages.grid import Layer, _layer, _shares, grid
from discreet.serve.pages.view import view
from discreet.serve.query_model import Measure, QueryableTable, Status
from support.served_cubes import cubes, pay

COUNT = Measure("estimate", "Count")
LOW, HIGH, SE = (Measure(name, name, error_of="estimate") for name in ("low90", "high90", "se"))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> QueryableTable:
    return TableCatalogue.of([cubes(tmp_path_factory.mktemp("grid"))]).table("cube")


def layer(value: list[float], wanted: str = "", **errors: list[float]) -> Layer:
    numbers = {"estimate": np.array([value], float), **{name: np.array([own], float) for name, own in errors.items()}}
    about = [m for m in (LOW, HIGH, SE) if m.id in errors]
    return _layer(COUNT, about, numbers, np.full((1, len(value)), "", object), wanted)


def test_symmetric_intervals_are_margins_even_where_they_end_at_zero() -> None:
    actual = layer([50, 3], low90=[40, 0], high90=[60, 13])
    assert actual.kind == "margin"
    assert actual.error.tolist() == [[10, 10]]


def test_other_intervals_are_shown_by_their_ends() -> None:
    assert layer([50, 3], low90=[45, 0], high90=[60, 13]).kind == "interval"


def test_standard_errors_are_shown_if_chosen_and_published() -> None:
    errors = {"low90": [40.0], "high90": [60.0]}
    assert layer([50], "se", se=[6], **errors).kind == "se"
    assert layer([50], "se", **errors).kind == "margin"
    assert layer([50], "none", **errors).kind == ""
    assert layer([50], se=[6]).kind == "se"


@pytest.mark.parametrize("share", ["rows", "columns", "all"])
def test_errors_of_percentages_are_those_of_independent_noise(share: str) -> None:
    """Against simulated noise; an error that treated part and whole as independent would be detected."""
    rng, sd = np.random.default_rng(3), 9.0
    cells = np.array([[800.0, 150.0, 60.0], [300.0, 500.0, 90.0]])

    def wide(inner: np.ndarray) -> np.ndarray:
        rows = np.concatenate([inner, inner.sum(-1, keepdims=True)], -1)
        return np.concatenate([rows, rows.sum(-2, keepdims=True)], -2)

    se = np.sqrt(wide(np.full(cells.shape, sd**2)))
    status, nothing = np.full(se.shape, Status.RELIABLE, object), np.full(se.shape, np.nan)

    def shares(value: np.ndarray) -> Layer:
        one = Layer(COUNT, value, "margin", nothing, nothing, nothing, status)
        return _shares(one, share, True, "se", {"estimate": value, "se": se})

    drawn = np.array([shares(wide(cells + rng.normal(0, sd, cells.shape))).value for _ in range(4000)])
    told = shares(wide(cells)).error
    there = ~np.isnan(told)
    assert there[:2, :3].all()
    assert np.abs(drawn.std(0)[there] / told[there] - 1).max() < 0.06


def test_percentages_of_unreliable_bases_are_not_given() -> None:
    value, nothing = np.array([[5.0, 3.0, 8.0]]), np.full((1, 3), np.nan)
    status = np.array([["", "", Status.UNRELIABLE]], object)
    actual = _shares(Layer(COUNT, value, "", nothing, nothing, nothing, status), "rows", False, "", {})
    assert np.isnan(actual.value).all()


def test_numbers_beside_suppressed_ones_are_marked_by_their_own_errors() -> None:
    numbers = {"estimate": np.array([[100.0, 100.0, 100.0, np.nan]]), "se": np.array([[5.0, 20.0, 40.0, np.nan]])}
    actual = _layer(COUNT, [SE], numbers, np.full((1, 4), Status.SUPPRESSED, object), "")
    assert actual.status.tolist() == [["", "u", "x", "s"]]


def test_equal_numbers_share_a_rank(table: QueryableTable) -> None:
    asked = BuilderState(rows=("strength",), sort="-value")
    actual = grid(asked, table, 1000)
    same = replace(actual.layers[0], value=np.array([[7.0], [9.0], [7.0]]))
    laid = view(replace(actual, layers=(same,)), asked, table, lambda _: "")
    assert [row.rank for row in laid.rows] == ["1", "2", "2"]


def test_charts_have_the_order_of_the_rows(table: QueryableTable) -> None:
    asked = BuilderState(rows=("strength",), columns="outdoors", sort="-label", top=2)
    actual = grid(asked, table, 1000)
    chart = view(actual, asked, table, lambda _: "").chart
    assert chart.variables[0].codes == ("medium", "light")
    before = actual.answer.numbers["estimate"].reshape(3, 2)
    assert chart.numbers["estimate"].reshape(2, 2).tolist() == before[[1, 0]].tolist()


def test_a_state_survives_its_url(table: QueryableTable) -> None:
    from urllib.parse import parse_qsl

    for asked in [
        BuilderState(),
        BuilderState(
            rows=("major", "strength"), columns="outdoors", only={"outdoors": ("yes",)}, totals=True, share="all"
        ),
        BuilderState(rows=("strength",), sort="-value", key="yes", top=5, page=3, error="se", chart="bars"),
    ]:
        assert parse_state(parse_qsl(asked.query(), keep_blank_values=True), table) == asked


def test_selected_groups_limit_the_codes_shown(table: QueryableTable) -> None:
    asked = complete_state(BuilderState(rows=("occupation",), only={"major": ("11",)}), table)
    assert table_query(asked, table).by == (("occupation", ("11-1011", "11-1021")),)
    assert table_query(asked, table).where == ()
    other = BuilderState(rows=("strength",), only={"major": ("11",)})
    assert table_query(other, table).where == (("major", ("11",)),)


def test_numbers_and_enumerations_as_text() -> None:
    assert texts.number(-1234.5, 1) == "−1,234.5"
    assert texts.number(-0.04, 1) == "0.0"
    assert texts.margin(0.01, 1) == "<0.1"
    assert texts.margin(0, 1) == "0.0"
    assert texts.comma_list(["a", "b", "c"]) == "a, b and c"
    assert texts.comma_list([]) == ""


def test_the_factor_of_a_guarantee_as_a_number(table: QueryableTable) -> None:
    def told(power: str) -> str:
        return texts.factor_as_number(replace(table.summary, guarantee=f"a factor of at most e^{power} when"))

    assert told("0.5") == "e^0.5 is about 1.6."
    assert told("4") == "e^4 is about 55."
    assert told("24") == "e^24 is more than 10¹⁰."
    assert texts.factor_as_number(replace(table.summary, guarantee="nothing")) == ""


def test_nothing_of_the_engine_is_loaded(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys, discreet.serve.pages, discreet.serve.pages.chart_view\n"
        "bad = ('discreet.engine', 'discreet.methods', 'discreet.noise', 'discreet.pipeline', 'discreet.spec')\n"
        "sys.exit(str([m for m in sys.modules if m.startswith(bad)] or '') or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_charts_of_percentiles_have_the_marks_of_the_median(tmp_path: Path) -> None:
    table = pay(tmp_path)
    rows = table.rows
    for name, factor in (("p25", 0.5), ("p75", 1.5)):
        rows = rows.append_column(name, pc.multiply(rows["p50"], factor))
    table = replace(table, rows=rows, measures=(*table.measures, Measure("p25", "Lower"), Measure("p75", "Upper")))
    asked = complete_state(BuilderState(rows=("school",), at={"degree": "2", "year": "2021"}), table)
    laid = view(grid(asked, table, 1000), asked, table, lambda _: "")
    assert [mark.value for mark in laid.marks["p50"]] == ["", "", ":"]
    actual = page_chart(laid, asked, table, lambda _: "")
    assert actual is not None
    assert actual.kind == "ranges"
    assert "use with caution" not in actual.svg  # as of the first measure, the count
    bars = page_chart(laid, replace(asked, chart="bars"), table, lambda _: "")
    assert bars is not None
    assert "use with caution" in bars.svg


def test_first_codes_are_those_with_most_numbers(tmp_path: Path) -> None:
    table = pay(tmp_path)
    rows = table.rows.filter(pc.not_equal(table.rows["degree"].cast("string"), "1"))
    sparse = replace(table, rows=rows)
    assert complete_state(BuilderState(rows=("school",)), table).at == {"degree": "1", "year": "2020"}
    assert complete_state(BuilderState(rows=("school",)), sparse).at == {"degree": "2", "year": "2020"}
    assert (
        complete_state(BuilderState(rows=("school",), at={"degree": "1"}), sparse).at["degree"] == "1"
    )  # what is said, holds


def test_a_table_without_a_number_says_so_and_has_no_chart(tmp_path: Path) -> None:
    table = pay(tmp_path)
    empty = replace(table, rows=table.rows.filter(pc.equal(table.rows["degree"].cast("string"), "2")))
    asked = complete_state(BuilderState(rows=("school",), at={"degree": "1", "year": "2020"}), empty)
    laid = view(grid(asked, empty, 1000), asked, empty, lambda _: "")
    assert any(
        note.startswith("None of 3 cells has a number: 0 suppressed, 3 not in the release.") for note in laid.notes
    )
    assert page_chart(laid, asked, empty, lambda _: "") is None


def test_labels_that_are_not_unique_have_their_codes(tmp_path: Path) -> None:
    table = pay(tmp_path)
    school = replace(table.variables[0], labels=("Same", "Same", "Other"))
    table = replace(table, variables=(school, *table.variables[1:]))
    asked = complete_state(BuilderState(rows=("school",), only={"school": ("a", "c")}), table)
    laid = view(grid(asked, table, 1000), asked, table, lambda _: "")
    assert [row.heads[0].label for row in laid.rows] == ["Same (a)", "Other"]
    assert laid.chart.variables[0].labels == ("Same (a)", "Other")
    across = complete_state(BuilderState(rows=("year",), columns="school"), table)
    groups = view(grid(across, table, 1000), across, table, lambda _: "").groups
    assert [head.label for head in groups] == ["Same (a)", "Same (b)", "Other"]


def test_only_the_measure_sorted_by_has_an_arrow(tmp_path: Path) -> None:
    table = pay(tmp_path)

    def orders(**more: Any) -> list[str]:
        asked = complete_state(replace(BuilderState(rows=("school",), sort="-value"), **more), table)
        return [head.order for head in view(grid(asked, table, 1000), asked, table, lambda _: "").columns]

    assert orders() == ["descending", ""]
    assert orders(what="p50") == ["", "descending"]
    assert orders(what="nonsense") == ["descending", ""]
    assert orders(columns="year", key="2021", what="p50") == ["", "", "", "descending"]


def test_estimates_below_zero_are_explained_where_they_are_shown(table: QueryableTable) -> None:
    asked = BuilderState(rows=("strength",))
    actual = grid(asked, table, 1000)
    status = np.full((3, 1), Status.RELIABLE, object)

    def told(value: list[float], low: list[float], high: list[float]) -> tuple[list[str], bool]:
        arrays = [np.array(numbers).reshape(3, 1) for numbers in (value, low, high)]
        one = Layer(COUNT, arrays[0], "margin", arrays[2] - arrays[0], arrays[1], arrays[2], status)
        laid = view(replace(actual, layers=(one,)), asked, table, lambda _: "")
        return [row.cells[0].error for row in laid.rows], any(
            "Read a negative estimate as 0" in note for note in laid.notes
        )

    assert told([5, -2, 9], [0, 0, 4], [10, 5, 14]) == (["± 5", "0 to 5", "± 5"], True)
    assert told([5, 2, 9], [0, 0, 4], [10, 7, 14]) == (["± 5", "± 5", "± 5"], False)
