"""Assessment of a cube over its tables: their selection and pooling, and the comparison with interactive noise."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.methods.hypercube.assessment.comparison import (
    BOTTOM_UP,
    EACH,
    SPLIT,
    Comparison,
    ErrorLine,
    compare,
    split_noise,
)
from discreet.methods.hypercube.assessment.cubes import (
    Assessment,
    CubeEstimates,
    DimensionSummary,
    TableAssessment,
    assess,
    replicate_errors,
    square_errors,
    summed,
    tables,
)
from discreet.methods.hypercube.assessment.measures import PublicationRule, differences, hellinger, near_zero_changes
from discreet.methods.hypercube.assessment.plots import (
    NAMED,
    TO_NONZERO,
    TO_ZERO,
    association_plot,
    error_plot,
    near_zero_plot,
    overlap_plot,
)
from discreet.methods.hypercube.assessment.report import (
    CONFIDENTIAL,
    assessment_blocks,
    association,
    comparison_blocks,
    comparison_title,
    largest_changes,
    numbers,
)
from discreet.noise.key import public_stream
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.cubes.margins import Axis, Margin
from discreet.report.blocks import Table, as_csv, as_markdown

SHAPE = (4, 3, 2, 2)
NAMES = ("group", "strength", "outdoors", "driving")
CELLS = 48
RNG = np.random.default_rng(11)
COUNTS = RNG.poisson(RNG.gamma(0.5, 6.0, CELLS))
WEIGHT = 20.0
TRUE: NDArray[np.float64] = COUNTS.astype(np.float64)
REPLICATES = COUNTS * WEIGHT * RNG.normal(1, 0.2, (8, CELLS))
LAW = DiscreteLaplace(Fraction(2), 5)
Floats = NDArray[np.float64]


def noisy(distribution: DiscreteLaplace = LAW) -> Floats:
    return (COUNTS + distribution.draw(public_stream("a cube"), 0, CELLS)).astype(np.float64)


@cache
def assessed() -> Assessment:
    true, shown = TRUE * WEIGHT, noisy() * WEIGHT
    sampling = replicate_errors(SHAPE, true, REPLICATES)

    def errors(margin: Margin) -> Floats:
        return np.sqrt(sampling(margin) ** 2 + LAW.variance() * WEIGHT**2 * CELLS / margin.cells)

    return assess(
        CubeEstimates(SHAPE, true, TRUE, sampling),
        CubeEstimates(SHAPE, shown, noisy(), errors),
        10.0,
        PublicationRule(5, 0.4),
    )


@cache
def compared() -> Comparison:
    return compare(COUNTS.reshape(SHAPE), LAW, runs=200)


# --- which tables


@pytest.mark.parametrize(("axes", "dimension"), [(1, 1), (4, 2), (7, 3), (7, 7), (10, 5)])
def test_all_tables_are_all_choices_of_axes_in_order(axes: int, dimension: int) -> None:
    actual = tables((2,) * axes, dimension)
    expected = list(combinations(range(axes), dimension))
    assert [tuple(axis.place for axis in margin.axes) for margin in actual] == expected


def test_some_tables_are_spread_evenly_and_always_the_same() -> None:
    every: list[tuple[int, ...]] = list(combinations(range(9), 4))  # 126
    actual = [tuple(axis.place for axis in margin.axes) for margin in tables((2,) * 9, 4, most=10)]
    assert len(set(actual)) == 10
    steps = np.diff([every.index(places) for places in actual])
    assert set(steps.tolist()) <= {12, 13}
    assert actual[0] == every[0]
    assert actual == [tuple(axis.place for axis in margin.axes) for margin in tables((2,) * 9, 4, most=10)]


def test_one_table_of_very_many_is_found_without_listing_them() -> None:
    (first, last) = tables((2,) * 60, 30, most=2)
    assert [axis.place for axis in first.axes] == list(range(30))
    assert [axis.place for axis in last.axes] == list(range(1, 31))  # half of the choices have the first axis


@pytest.mark.parametrize(("dimension", "most"), [(0, 5), (5, 5), (2, 0)])
def test_tables_that_do_not_exist_are_refused(dimension: int, most: int) -> None:
    with pytest.raises(ParameterError, match="no such tables"):
        tables(SHAPE, dimension, most)


@pytest.mark.parametrize("places", [p for d in range(1, 5) for p in combinations(range(4), d)])
def test_sums_are_those_of_margins_dense_or_sparse(places: tuple[int, ...]) -> None:
    margin = Margin.over(SHAPE, places)
    expected = margin.add_up(TRUE)
    assert np.array_equal(summed(SHAPE, COUNTS, margin), expected)
    cells = np.flatnonzero(COUNTS)
    assert np.array_equal(summed(SHAPE, COUNTS[cells], margin, cells), expected)


def test_sums_by_groups_and_in_another_order_go_by_cell_numbers() -> None:
    cube = COUNTS.reshape(SHAPE)
    groups = Margin("halves", SHAPE, (Axis(0, np.array([0, 0, 1, 1]), 2),))
    assert summed(SHAPE, COUNTS, groups).tolist() == [cube[:2].sum(), cube[2:].sum()]
    turned = Margin.over(SHAPE, (1, 0))
    assert np.array_equal(summed(SHAPE, COUNTS, turned).reshape(3, 4), cube.sum(axis=(2, 3)).T)


# --- the assessment


def test_every_table_of_every_dimension_is_measured() -> None:
    actual = assessed()
    assert [len(table.axes) for table in actual.tables] == [1] * 4 + [2] * 6 + [3] * 4 + [4]
    assert [(one.dimension, one.tables, one.exist) for one in actual.dimensions] == [
        (1, 4, 4),
        (2, 6, 6),
        (3, 4, 4),
        (4, 1, 1),
    ]


def test_a_table_is_measured_as_by_hand() -> None:
    table = next(one for one in assessed().tables if one.axes == (0, 2))
    true, shown = ((cube.reshape(SHAPE) * WEIGHT).sum(axis=(1, 3)).reshape(-1) for cube in (COUNTS, noisy()))
    assert table.estimates == differences(true, shown, 10.0)
    assert table.zero_changes == near_zero_changes(true, shown, 10.0)
    assert table.hellinger == hellinger(true, shown)
    replicated = np.array([one.reshape(SHAPE).sum(axis=(1, 3)).reshape(-1) for one in REPLICATES])
    sampling = np.sqrt(4 / 8 * ((replicated - true) ** 2).sum(axis=0))
    total = np.sqrt(sampling**2 + LAW.variance() * WEIGHT**2 * 6)
    assert table.errors is not None
    assert vars(table.errors) == pytest.approx(vars(differences(sampling, total, 0.0)))
    assert table.overlaps is not None
    assert table.overlaps.cells == 8
    assert table.published is not None
    counts = COUNTS.reshape(SHAPE).sum(axis=(1, 3)).reshape(-1)
    assert table.published.before == ((counts >= 5) & (sampling <= 0.4 * true)).sum()


def test_a_dimension_is_its_tables_together() -> None:
    actual = assessed()
    mine = [table for table in actual.tables if table.dimension == 2]
    two = actual.dimensions[1]
    assert two.zero_changes.cells == sum(table.zero_changes.cells for table in mine) == 12 + 8 + 8 + 6 + 6 + 4
    cells = [table.estimates.cells for table in mine]
    assert two.estimates.mean_abs == pytest.approx(np.average([t.estimates.mean_abs for t in mine], weights=cells))
    assert two.hellinger == pytest.approx(np.mean([table.hellinger for table in mine]))
    assert two.published is not None
    assert two.published.gained == sum(table.published.gained for table in mine if table.published)


def test_a_cube_is_itself() -> None:
    side = CubeEstimates(
        SHAPE,
        TRUE,
        TRUE,
        replicate_errors(SHAPE, TRUE * WEIGHT, REPLICATES),
    )
    for table in assess(side, side, 0.5, PublicationRule(3, 0.5)).tables:
        assert table.zero_changes.to_zero == table.zero_changes.to_nonzero == 0
        assert table.estimates.largest == table.hellinger == 0
        assert table.errors is not None
        assert table.errors.largest == 0
        assert table.overlaps is not None
        assert table.overlaps.mean == pytest.approx(1)
        assert table.published is not None
        assert table.published.gained == table.published.lost == 0
        assert table.cramers_v is None or table.cramers_v[0] == table.cramers_v[1]
        assert (table.cramers_v is None) == (table.dimension != 2)


def test_a_sparse_side_is_the_dense_one() -> None:
    cells = np.flatnonzero(COUNTS)
    values = TRUE
    dense = assess(CubeEstimates(SHAPE, values), CubeEstimates(SHAPE, noisy()), 0.5)
    sparse = assess(CubeEstimates(SHAPE, values[cells], cells=cells), CubeEstimates(SHAPE, noisy()), 0.5)
    assert dense == sparse


def test_a_side_may_be_given_by_tables() -> None:
    dense = assess(CubeEstimates(SHAPE, TRUE), CubeEstimates(SHAPE, noisy()), 0.5)
    assert assess(CubeEstimates(SHAPE, TRUE), CubeEstimates(SHAPE, lambda margin: margin.add_up(noisy())), 0.5) == dense


def test_true_errors_from_replicates_have_their_factor_and_from_squares_their_effect() -> None:
    margin = Margin.over(SHAPE, [0])
    four, one = (replicate_errors(SHAPE, TRUE, REPLICATES, factor)(margin) for factor in (4.0, 1.0))
    assert four == pytest.approx(2 * one)
    squares = TRUE * WEIGHT**2
    assert square_errors(SHAPE, squares, 1.5)(margin) == pytest.approx(np.sqrt(1.5 * margin.add_up(squares)))


def test_what_is_not_known_is_not_measured() -> None:
    actual = assess(CubeEstimates(SHAPE, noisy()), CubeEstimates(SHAPE, noisy()), 0.5, PublicationRule(5, 0.3))
    parts: list[TableAssessment | DimensionSummary] = [*actual.tables, *actual.dimensions]
    for one in parts:
        assert one.errors is None
        assert one.overlaps is None
        assert one.published is None


def test_cubes_of_other_axes_are_refused() -> None:
    with pytest.raises(ParameterError, match="differ in shape"):
        assess(CubeEstimates(SHAPE, noisy()), CubeEstimates((CELLS,), noisy()), 0.5)


def test_most_bounds_the_tables_of_a_dimension() -> None:
    actual = assess(CubeEstimates(SHAPE, noisy()), CubeEstimates(SHAPE, noisy()), 0.5, most=2)
    assert [(one.tables, one.exist) for one in actual.dimensions] == [(2, 4), (2, 6), (2, 4), (1, 1)]


# --- perturbed once, or table by table


def lines_of(comparison: Comparison, way: str) -> list[ErrorLine]:
    return [line for line in comparison.lines if line.strategy == way]


def test_simulated_errors_are_the_formulas() -> None:
    """Var K; where the cube is perturbed, as often as it has cells in a table's cell (the first: 4 + 3 + 2 + 2 cells in
    four tables, each with all 48)."""
    for way in compared().strategies:
        for line in lines_of(compared(), way.name):
            cells = line.tables * 48 / line.cells if way.name == BOTTOM_UP else 1
            assert line.mean_square == pytest.approx(way.distribution.variance() * cells, rel=0.15)
    assert [line.cells for line in lines_of(compared(), BOTTOM_UP)][::3] == [11, 48]


def test_only_interactive_answers_do_not_add_up() -> None:
    one, *more = lines_of(compared(), BOTTOM_UP)
    assert isnan(one.nonadditive)
    assert [line.nonadditive for line in more] == [0, 0, 0]
    for way in (SPLIT, EACH):
        assert all(line.nonadditive > 0.3 for line in lines_of(compared(), way)[1:])


def test_nonadditive_sums_are_as_likely_as_the_noise_says() -> None:
    """Two tables of one axis each and their cross: a sum of b cells agrees if b + 1 draws cancel."""
    counts = np.full((3, 2), 4)
    actual = lines_of(compare(counts, DiscreteLaplace(Fraction(7), 1), runs=400), EACH)[1]
    none = float(1 - DiscreteLaplace(Fraction(7), 1).tail(1))
    expected = 1 - (3 * none**3 + 2 * none**4) / 5  # nearly: that noise cancels is rarer still
    assert actual.nonadditive == pytest.approx(expected, abs=0.004)
    assert actual.nonadditive > 0


def test_every_table_has_noise_of_its_own() -> None:
    """With an axis of one code two tables are of the same cells: equal noise would never break their sums."""
    actual = lines_of(compare(np.zeros((50, 1), np.int64), DiscreteLaplace(Fraction(1)), runs=10), EACH)[1]
    assert actual.nonadditive > 0.6


def test_what_each_way_pays() -> None:
    ways = {way.name: way for way in compared().strategies}
    once = float(LAW.delta())
    assert ways[BOTTOM_UP].epsilon == 2
    assert ways[BOTTOM_UP].delta == once
    assert ways[SPLIT].epsilon == 2
    assert ways[SPLIT].distribution.rate == Fraction(2, 15)
    assert ways[SPLIT].delta <= once
    assert ways[EACH].epsilon == 30
    assert ways[EACH].delta == pytest.approx(15 * once)


@pytest.mark.parametrize("number", [1, 2, 15, 1023])
def test_a_shared_cap_is_the_smallest_that_costs_no_more(number: int) -> None:
    actual = split_noise(LAW.rate, LAW.delta(), number)
    assert actual.rate == LAW.rate / number
    assert actual.cap is not None
    assert actual.delta() <= LAW.delta() / number
    assert not DiscreteLaplace(actual.rate, actual.cap - 1).delta() <= LAW.delta() / number
    assert split_noise(LAW.rate, None, number) == DiscreteLaplace(LAW.rate / number)


def test_few_tables_asked_for_are_better_answered_one_by_one() -> None:
    """Which strategy is better at equal ε depends on how many tables share it (Li & Krenzke 2020, §5)."""
    cube = np.zeros((4, 4, 4, 4), np.int64)
    few = compare(cube, DiscreteLaplace(Fraction(1)), dimensions=[1], runs=20)
    every = compare(cube, DiscreteLaplace(Fraction(1)), runs=20)
    assert lines_of(few, SPLIT)[0].mean_square < lines_of(few, BOTTOM_UP)[0].mean_square / 3
    assert lines_of(every, SPLIT)[0].mean_square > lines_of(every, BOTTOM_UP)[0].mean_square
    assert lines_of(few, BOTTOM_UP)[0].mean_square == lines_of(every, BOTTOM_UP)[0].mean_square


def test_the_same_comparison_every_time() -> None:
    once, again = (compare(COUNTS.reshape(SHAPE), LAW, runs=3, dimensions=(1, 2)) for _ in range(2))
    assert repr(once) == repr(again)


# --- plots and text


def picture(chart: Any, folder: Path) -> str:
    path = folder / "chart.svg"
    chart.save(str(path))
    return path.read_text(encoding="utf-8")


def test_captions_state_what_plots_show(tmp_path: Path) -> None:
    errors = picture(error_plot(compared(), "Errors of it"), tmp_path)
    for text in ("Errors of it", BOTTOM_UP, SPLIT, EACH, "variables of the table", "not additive"):
        assert text in errors
    moved = picture(near_zero_plot(assessed(), "Moves"), tmp_path)
    assert all(text in moved for text in ("Moves", TO_NONZERO, TO_ZERO, "below 10"))
    assert "mean overlap" in picture(overlap_plot(assessed(), "Intervals"), tmp_path)
    named = picture(association_plot(assessed(), "Association", NAMES), tmp_path)
    assert "V, protected" in named
    assert all(text in named for text in ("group × strength", "strength × outdoors"))  # without a mouse, too


def rows(chart: Any, name: str) -> list[dict[str, Any]]:
    """The longest data set of a chart that has this column."""
    return max((actual for actual in chart.to_dict()["datasets"].values() if name in actual[0]), key=len)


def test_pictures_hold_the_numbers() -> None:
    errors, sums = (rows(error_plot(compared(), "x"), name) for name in ("rms", "nonadditive"))
    assert [row["rms"] for row in errors] == [line.rms for line in compared().lines]
    assert [row["nonadditive"] for row in sums] == [line.nonadditive for line in compared().lines if line.dimension > 1]
    pairs = rows(association_plot(assessed(), "x", NAMES), "before")
    both = {NAMES[t.axes[0]] + " × " + NAMES[t.axes[1]]: t.cramers_v for t in assessed().tables if t.cramers_v}
    assert {row["table"]: (row["before"], row["after"]) for row in pairs} == both
    changes = [abs(row["after"] - row["before"]) for row in pairs]
    assert changes == sorted(changes, reverse=True)
    dots = rows(overlap_plot(assessed(), "x"), "overlap")
    assert [row["overlap"] for row in dots] == [one.overlaps.mean for one in assessed().tables if one.overlaps]
    shares = rows(near_zero_plot(assessed(), "x"), "share")
    assert [row["share"] for row in shares if row["which"] == TO_NONZERO] == [
        one.zero_changes.share_to_nonzero for one in assessed().dimensions if one.zero_changes.near_zero
    ]


def test_plots_without_data_are_drawn(tmp_path: Path) -> None:
    side = CubeEstimates((3,), np.array([0.0, 1.0, 2.0]))
    alone = assess(side, side, 0.5)
    for draw in (near_zero_plot, overlap_plot):
        assert "<svg" in picture(draw(alone, "Alone"), tmp_path)
    assert "<svg" in picture(association_plot(alone, "Alone", ["one"]), tmp_path)
    still = compare(np.zeros((2, 2), np.int64), DiscreteLaplace(Fraction(40), 1), runs=2)  # no noise at all
    assert all(line.rms == 0 for line in lines_of(still, BOTTOM_UP))
    assert "<svg" in picture(error_plot(still, "Still"), tmp_path)


def test_a_plot_of_many_tables_lists_the_largest_changes(tmp_path: Path) -> None:
    shape = (2,) * 8
    cube = np.random.default_rng(3).poisson(5, 256).astype(np.float64)
    many = assess(CubeEstimates(shape, cube), CubeEstimates(shape, cube[::-1].copy()), 0.5)
    svg = picture(association_plot(many, "x", [f"v{place}" for place in range(8)]), tmp_path)
    assert f"{NAMED} with the largest changes are listed" in svg
    named = set(re.findall(r"\d+  ?(v\d × v\d)<", svg))
    assert named == {f"v{one.axes[0]} × v{one.axes[1]}" for one, _ in largest_changes(many)[:NAMED]}


def test_files_of_tables_have_plain_numbers() -> None:
    kinds = (("a", "integer"), ("b", "real"), ("c", "share"), ("d", "real"))
    made = numbers("x", kinds, [(4049, 1234.5678, 0.9456, None), ("text", 1.5, nan, 0.25)])
    assert as_csv(made.columns, made.rows) == "a,b,c,d\n4049,1234.5678,0.9456,\ntext,1.5,,0.25\n"
    shown = ["| 4,049 | 1,235 | 94.6% | – |", "| text | 1.500 | – | 0.250 |"]
    assert made.markdown().splitlines()[2:] == shown
    assert "<td>4,049</td><td>1,235</td>" in made.html(Path())
    blocks = [*assessment_blocks(assessed(), NAMES), *comparison_blocks(compared())]
    tables = [block for block in blocks if isinstance(block, Table)]
    assert {table.name for table in tables} == {"risk", "utility", "association", "strategies", "errors", "additivity"}
    for table in tables:
        assert len(set(table.columns)) == len(table.columns)
        for cell in (cell for row in table.rows for cell in row[1:] if table.name != "strategies"):
            assert cell == "" or np.isfinite(float(cell))


def test_the_report_says_it_is_confidential_and_has_every_dimension() -> None:
    text = as_markdown(assessment_blocks(assessed(), NAMES))
    assert CONFIDENTIAL in text
    assert "5 records or more" in text
    assert "mean of |difference| / |true| over cells whose true estimate is above 10" in text
    assert "4 of 4, 6 of 6, 4 of 4, 1 of 1" in text
    two = assessed().dimensions[1]
    assert f"| 2 | {two.zero_changes.cells} | {two.zero_changes.near_zero} |" in text
    assert "Cramér's V of 6 two-way tables" in text
    side = CubeEstimates((3,), np.array([0.0, 1.0, 2.0]))
    alone = assess(side, side, 0.5)
    unknown = as_markdown(assessment_blocks(alone, ["one"]))
    assert "–" in unknown
    assert "not counted: that needs protected counts" in unknown
    assert association(alone) == "Cramér's V: no two-way tables."


def test_the_report_states_the_epsilon_of_each_strategy() -> None:
    text = as_markdown(comparison_blocks(compared()))
    assert "| interactive, same ε for each table | 30 |" in text
    assert f"| 4 | {lines_of(compared(), BOTTOM_UP)[3].rms:.3f} |" in text
    assert "15 tables, 200 simulations" in text
    assert comparison_title(compared()) in text
    assert "simulated cube (ε = 2 per record, not calibrated)" in comparison_title(compared())
