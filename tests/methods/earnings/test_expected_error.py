"""Expected errors of percentiles in `plan`, compared with independent simulations; no records are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import lognorm, norm

from discreet.errors import DiscreetError
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.pipeline.plan import Plan
from support.earnings import Registrar, spec, table

POINTS = (0.25, 0.5, 0.75)
FAMILIES = {"name": "families", "by": ["family", "grad_cohort", "years_after"]}
SCHOOLS = {"name": "schools", "by": ["school", "years_after"], "epsilon": "3/2"}
STATES = {"name": "states", "by": ["state4", "years_after"]}
Planned = Callable[..., Plan]


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    """The plan of a release with this table. There is no source, and no need of one."""
    office = Registrar(tmp_path / "office")
    (office.folder / "graduates.parquet").unlink()

    def plan(*tables: dict[str, Any], **changes: Any) -> Plan:
        return office.open(spec(*tables, **changes)).plan()

    return plan


def notes(plan: Plan, name: str) -> tuple[str, ...]:
    """The lines about percentiles, without the first, which is the probability that an empty cell is published."""
    return next(t.notes for t in plan.tables if t.name == name)[1:]


def empty_cells(plan: Plan, name: str) -> str:
    return next(t.notes for t in plan.tables if t.name == name)[0]


def amounts(line: str) -> list[float]:
    """The numbers after p25, p50, p75."""
    return [float(n.replace(",", "")) for n in re.findall(r"p[\d.]+ ([+-]?[\d,]+)", line)]


# --- the lines ------------------------------------------------------------------------------------------------------


def test_own_noise_and_the_sum_are_both_shown(planned: Planned) -> None:
    plan = planned(table(levels=[FAMILIES, SCHOOLS, STATES], bins="pseo"))
    own = notes(plan, "earnings")
    distribution = "lognormal(11.003, 0.753)"
    assert (
        own[0]
        == f"percentiles by the published rule, if earnings are {distribution} with 100 graduates in a typical cell:"
    )
    assert own[1].startswith("  noise with its own epsilon 3: mean |error| of p25 ")
    assert len(own) == 3  # nothing is finer than the table, so it is no sum
    assert own[2].startswith("  interpolation bias, without noise: p25 ")
    families = notes(plan, "families")
    assert families[1].startswith("  sum of 1 cell of earnings: mean |error| of p25 ")
    assert families[2].startswith("  noise with an epsilon of its own, 3: mean |error| of p25 ")
    assert families[3].startswith("  its own noise is smaller than that of the sum from epsilon ")
    schools = notes(plan, "schools")
    assert schools[0].endswith("with 200 graduates in a typical cell:")  # a typical one has two cells of the table
    assert schools[1].startswith("  noise with its own epsilon 1.5: ")
    assert schools[2].startswith("  sum of 2 cells of earnings: ")
    assert schools[3].startswith("  its own noise is smaller than that of the sum from epsilon ")
    states = notes(plan, "states")
    assert states[0].endswith("with 200 graduates in a typical cell:")
    assert states[1].startswith("  sum of 2 cells of earnings: ")
    text = str(plan)
    assert all(f"    {line}" in text for line in (*own, *families, *schools, *states))
    line = "families: family (5) × grad_cohort (2) × years_after (3) = 30 cells, post-processing of earnings"
    assert f"{line}, no additional epsilon" in text
    assert "schools: school (4) × years_after (3) = 12 cells, epsilon 1.5" in text
    assert "Total: epsilon 4.5 (2 tables on the same records: sequential composition, epsilons add)" in text


def test_the_rules_of_values_are_in_the_plan(planned: Planned) -> None:
    plan = planned(table(sample=[{"column": "pay", "at_least": 0}]))
    assert (
        "pay: only records with pay of at least 0 are counted; values below 1 belong to the first of 4 bins"
        in plan.rules
    )
    assert not [rule for rule in plan.rules if rule.startswith("bin:")]


def test_suppression_is_reported(planned: Planned) -> None:
    few = notes(planned(table(reference={"graduates": 28}, epsilon="1")), "earnings")[1]
    assert 20 <= int(re.search(r"\((\d+)% suppressed\)", few)[1]) <= 80  # type: ignore[index]
    none = notes(planned(table(reference={"graduates": 1}, epsilon="300", suppress_below=1000)), "earnings")[1]
    assert none == "  noise with its own epsilon 300: almost all such cells are suppressed"
    assert "suppressed" not in notes(planned(table(reference={"graduates": 10_000})), "earnings")[1]


def test_the_probability_that_an_empty_cell_is_published(planned: Planned) -> None:
    """Compared with NumPy's draws: the noise of four bins of an empty cell reaches 30."""
    assert empty_cells(planned(table(epsilon="30")), "earnings").endswith("with probability less than 0.01%")
    plan = planned(table(epsilon="1/2", levels=[STATES]))
    match = re.search(
        r"probability (\d+)% <-- noise alone: `suppress_below: (\d+)` would make it less than 0.1%",
        empty_cells(plan, "states"),
    )
    assert match
    luck, p = np.random.default_rng(6), 1 - np.exp(-1 / 6)  # at most three records a person
    shape = (40_000, 2 * 4)  # all but one of the states' cells add up two cells
    noise = (luck.geometric(p, shape) - luck.geometric(p, shape)).sum(axis=1)
    assert abs(int(match[1]) / 100 - (noise >= 30).mean()) < 0.02
    assert (noise >= int(match[2])).mean() < 0.001
    raised = planned(table(epsilon="1/2", levels=[{**STATES, "suppress_below": int(match[2])}]))
    assert "<--" not in empty_cells(raised, "states")


def test_an_epsilon_without_benefit_is_flagged(planned: Planned) -> None:
    lines = notes(planned(table(levels=[{**SCHOOLS, "epsilon": "1/10"}])), "schools")
    assert any(
        line.endswith("<-- the sum has no additional epsilon and less noise: leave out `epsilon`") for line in lines
    )
    lines = notes(planned(table(levels=[{**SCHOOLS, "epsilon": "30"}])), "schools")
    assert not any("<--" in line for line in lines)


def test_the_reference_is_stated(planned: Planned) -> None:
    lines = notes(planned(table(reference={"mean": "10.5", "deviation": "2/3", "graduates": 1234})), "earnings")
    distribution = "lognormal(10.5, 2/3)"
    assert lines[0].endswith(f"if earnings are {distribution} with 1,234 graduates in a typical cell:")


def test_a_plan_is_the_same_each_time(planned: Planned) -> None:
    declared = table(levels=[FAMILIES, SCHOOLS])
    assert planned(declared).tables == planned(declared).tables


# --- the numbers ----------------------------------------------------------------------------------------------------


def reference(borders: tuple[int, ...], mean: float, deviation: float, graduates: int) -> np.ndarray[Any, Any]:
    """The histogram of this many graduates, rounded by its cumulated shares."""
    shares = norm.cdf((np.log(borders[1:-1]) - mean) / deviation)
    return np.diff(np.rint(np.array([0, *shares, 1]) * graduates)).astype(int)


def percentile(histogram: np.ndarray[Any, Any], borders: tuple[int, ...], point: float) -> float:
    """PSEO Beta Appendix, Eq. 4."""
    upto = np.cumsum(histogram)
    place = int(np.flatnonzero(point * upto[-1] <= upto)[0])
    before = upto[place] - histogram[place]
    width = borders[place + 1] - borders[place]
    return borders[place] + width * (point * upto[-1] - before) / histogram[place]  # type: ignore[no-any-return]


def simulated(
    borders: tuple[int, ...], graduates: int, rate: float, draws: int, minimum: int = 30
) -> tuple[list[float], float]:
    """Mean |error| and the share that is published, with NumPy's generator: the noise is a difference of geometrics."""
    luck = np.random.default_rng(5)
    true = reference(borders, 11.003, 0.753, graduates)
    shape, p = (4000, draws, len(true)), 1 - np.exp(-rate)
    noisy = true + (luck.geometric(p, shape) - luck.geometric(p, shape)).sum(axis=1)
    kept = noisy[noisy.sum(axis=1) >= minimum]
    exact = [percentile(true, borders, y) for y in POINTS]
    errors = [[abs(percentile(h, borders, y) - x) for y, x in zip(POINTS, exact, strict=True)] for h in kept]
    return np.mean(errors, axis=0).tolist(), len(kept) / len(noisy)


BORDERS = (10_000, 30_000, 45_000, 60_000, 80_000, 120_000, 400_000)


@pytest.mark.parametrize(("graduates", "epsilon"), [(100, "3"), (400, "1"), (40, "6")])
def test_errors_are_those_of_another_simulation(planned: Planned, graduates: int, epsilon: str) -> None:
    declared = table(
        bins={"edges": list(BORDERS)}, epsilon=epsilon, levels=[STATES], reference={"graduates": graduates}
    )
    plan = planned(declared)
    for name, line, many, draws in (("earnings", 1, 1, 1), ("states", 1, 2, 2), ("states", 2, 2, 1)):
        text = notes(plan, name)[line]
        errors, share = simulated(BORDERS, graduates * many, float(epsilon) / 3, draws)
        assert amounts(text) == pytest.approx(errors, rel=0.09)
        percent = re.search(r"\((\d+)% suppressed\)", text)
        assert (int(percent[1]) if percent else 0) == pytest.approx(100 * (1 - share), abs=4)


def test_many_summands_are_simulated_by_a_rescaled_sum(planned: Planned) -> None:
    """More than 32 draws are replaced by 32 rescaled ones: accurate enough for a plan."""
    cells = {"x": {"values": [str(i) for i in range(100)]}}
    declared = table(by=["x"], levels=[{"name": "all", "by": []}], bins={"edges": list(BORDERS)}, epsilon="3/2")
    lines = notes(planned(declared, domains=cells), "all")
    assert lines[1].startswith("  sum of 100 cells of earnings: ")
    errors, _ = simulated(BORDERS, 100 * 100, 0.5, 100)
    assert amounts(lines[1]) == pytest.approx(errors, rel=0.09)


def test_interpolation_bias_is_reported_separately_from_noise(planned: Planned) -> None:
    """How far the percentile of the histogram without noise lies from the distribution's own."""
    graduates = 100_000
    declared = table(bins={"edges": list(BORDERS)}, reference={"graduates": graduates}, epsilon="300")
    lines = notes(planned(declared), "earnings")
    histogram = reference(BORDERS, 11.003, 0.753, graduates)
    expected = [percentile(histogram, BORDERS, y) - lognorm.ppf(y, 0.753, scale=np.exp(11.003)) for y in POINTS]
    assert amounts(lines[-1]) == pytest.approx(expected, abs=1)
    assert any(abs(e) > 50 for e in expected)
    assert all(error <= 1 for error in amounts(lines[1]))  # the noise is negligible


@pytest.mark.parametrize(("epsilon", "records"), [("3", 3), ("1/2", 1), ("6", 2)])
def test_break_even_is_where_one_draw_varies_as_much_as_the_sum(planned: Planned, epsilon: str, records: int) -> None:
    """v = 2a/(1 − a)² for the rate ε/k is summands · v(source), to the three digits that are printed."""
    unit = {"person": "person_id", "max_records": records}
    text = notes(planned(table(epsilon=epsilon, levels=[STATES]), unit=unit), "states")[3]
    even = Fraction(re.search(r"from epsilon ([\d.]+)$", text)[1])  # type: ignore[index]
    expected = 2 * DiscreteLaplace(Fraction(epsilon) / records).variance()
    assert DiscreteLaplace(even / records).variance() == pytest.approx(expected, rel=0.02)
    assert even < Fraction(epsilon)


def test_own_noise_at_the_break_even_epsilon_has_the_same_error(planned: Planned) -> None:
    first = notes(planned(table(levels=[STATES], bins="pseo")), "states")
    even = re.search(r"from epsilon ([\d.]+)$", first[3])[1]  # type: ignore[index]
    again = notes(planned(table(levels=[{**STATES, "epsilon": even}], bins="pseo")), "states")
    assert amounts(again[1]) == pytest.approx(amounts(first[1]), rel=0.1)
    assert again[2] == first[1]  # the sum is what it was


# --- odd parameters -------------------------------------------------------------------------------------------------

FAR = {
    "negligible noise": {"epsilon": "300", "levels": [FAMILIES]},  # v + 1 is 1 in double precision
    "none that a double could tell": {"epsilon": "5000", "levels": [FAMILIES]},
    "a mean beyond doubles": {"reference": {"mean": "1000"}},
    "a mean far beyond doubles": {"reference": {"mean": "1e400"}},
    "a deviation that is 0 as a double": {"reference": {"deviation": "1e-400"}},
}


@pytest.mark.parametrize("case", FAR)
def test_a_plan_of_odd_parameters_is_a_plan_or_a_refusal(tmp_path: Path, case: str) -> None:
    office = Registrar(tmp_path / "office")
    with suppress(DiscreetError):
        assert str(office.open(spec(table(**FAR[case]))).plan())


def test_a_plan_with_much_noise(planned: Planned) -> None:
    lines = notes(planned(table(epsilon="1/1000000", levels=[FAMILIES], suppress_below=1)), "families")
    assert float(lines[3].rsplit(" ", 1)[1]) == pytest.approx(1e-6, rel=0.01)


def test_bins_below_zero_are_planned(planned: Planned) -> None:
    lines = notes(planned(table(bins={"edges": [-100, -50, 0, 50_000, 100_000]})), "earnings")
    assert amounts(lines[1])
