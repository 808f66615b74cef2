"""The clocks of the published correction: distribution of the literal procedure, words used, invariants."""

from __future__ import annotations

import doctest
import heapq
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import stats

from discreet.errors import ParameterError
from discreet.methods.flows import correction
from discreet.methods.flows.correction import RULES, Controls, GroupControls, published, words_needed
from discreet.methods.flows.exponential_race import MANY, exponential
from support.hypothesis_profile import examples

Int64s = NDArray[np.int64]
Outcome = tuple[int, ...]
Sampler = Callable[[Outcome, list[float], int], Int64s]

DRAWS = 100_000
ACCEPT, REJECT = 1e-6, 1e-20
FAST, SLOW = 1.0, 1e15
# flows of two industries in two states and the marginal cell, and the slowness of the four
CASES = {
    "even": ((3, 2, 1, -2, 2), (1.0, 1.0, 1.0, 1.0)),
    "spread": ((3, -1, 4, 2, -2), (1.0, 5.0, 2.5, 0.5)),
    "fifteen decades": ((2, 1, 4, 3, -6), (FAST, 2 * FAST, SLOW, 3 * SLOW)),
    "one is left": ((2, 3, -4, 1, -1), (0.1, 4.0, 1.0, 2.0)),
    "marginal": ((1, 2, -3, 1, 6), (1e-3, 7.0, 1.0, 2.0)),
}


def words_of(seed: int, count: int) -> NDArray[np.uint64]:
    return np.random.Generator(np.random.Philox(seed)).integers(0, 2**64, count, dtype=np.uint64)


def small(slowness: tuple[float, ...], groups: int, weight: Fraction = Fraction(2)) -> GroupControls:
    """Two industries in two states, with these numbers as employment and 1 for the rest."""
    controls = Controls.of(np.ones((1, 2)), np.array(slowness).reshape(2, 2), np.ones((1, 2)), weight)
    same = np.zeros(groups, np.int64)
    return GroupControls(controls, same, same, Fraction(3, 2))


def starts_of(counts: Int64s) -> Int64s:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def clocks(noisy: Outcome, slowness: list[float], draws: int) -> Int64s:
    """The rule under test, on many copies of one group."""
    flows = np.tile(np.array(noisy, np.int64), (draws, 1))
    starts = starts_of(words_needed(flows))
    return published(flows, small(tuple(slowness[:4]), draws), words_of(7, int(starts[-1])), starts)


def exact(noisy: Outcome, slowness: list[float]) -> dict[Outcome, Fraction]:
    """Every outcome of A.3.2 as it is printed, and its probability, by rational arithmetic."""
    weights = [1 / Fraction(s) for s in slowness]
    chances = {tuple(max(x, 0) for x in noisy): Fraction(1)}
    for _ in range(-sum(min(x, 0) for x in noisy)):
        then: dict[Outcome, Fraction] = {}
        for flows, chance in chances.items():
            whole = sum((w for w, x in zip(weights, flows, strict=True) if x > 0), Fraction(0))
            for i, x in enumerate(flows):
                if x > 0:
                    lower = (*flows[:i], x - 1, *flows[i + 1 :])
                    then[lower] = then.get(lower, Fraction(0)) + chance * weights[i] / whole
        chances = then
    return chances


def fit(sample: Int64s, distribution: dict[Outcome, Fraction]) -> float:
    """p-value of χ²; 0 where an outcome is impossible. Outcomes expected fewer than ten times are one class."""
    rows, counts = np.unique(sample, axis=0, return_counts=True)
    seen = {tuple(row): int(n) for row, n in zip(rows.tolist(), counts, strict=True)}
    if not seen.keys() <= distribution.keys():
        return 0.0
    pairs = [(seen.get(outcome, 0), float(chance * len(sample))) for outcome, chance in distribution.items()]
    often = [pair for pair in pairs if pair[1] >= 10]
    rare = [sum(side) for side in zip(*(pair for pair in pairs if pair[1] < 10), strict=True)]
    if rare and rare[1] >= 10:
        often.append((int(rare[0]), rare[1]))
    elif rare and rare[0] > 100:
        return 0.0
    statistic = sum((observed - expected) ** 2 / expected for observed, expected in often)
    return float(stats.chi2.sf(statistic, len(often) - 1))


@cache
def slowness_of(case: str) -> tuple[float, ...]:
    return tuple(small(CASES[case][1], 1).controls.slowness(0, 0).tolist())


@pytest.mark.parametrize("case", CASES)
def test_the_distribution_is_that_of_the_literal_procedure(case: str) -> None:
    noisy, slowness = CASES[case][0], list(slowness_of(case))
    assert slowness[4] == max(slowness[:4]) / 2
    assert fit(clocks(noisy, slowness, DRAWS), exact(noisy, slowness)) > ACCEPT


def inverted(noisy: Outcome, slowness: list[float], draws: int) -> Int64s:
    """The likely flows are drawn instead of the unlikely ones."""
    return clocks(noisy, [1 / s for s in slowness], draws)


def ringing(noisy: Outcome, slowness: list[float], draws: int) -> Int64s:
    """Clocks that go on ringing when their cell is empty; rings of empty cells are then taken from the largest cell."""
    flows, excess = np.maximum(np.array(noisy), 0), -sum(min(x, 0) for x in noisy)
    gaps = np.random.default_rng(5).exponential(size=(draws, 5, excess)) * np.array(slowness)[None, :, None]
    gaps[:, flows == 0] = np.inf
    times = gaps.cumsum(axis=2).reshape(draws, -1)
    owner = np.argsort(times, axis=1)[:, :excess] // excess
    rung = (owner[:, :, None] == np.arange(5)).sum(axis=1)
    left = np.maximum(flows - rung, 0)
    left[np.arange(draws), left.argmax(axis=1)] -= left.sum(axis=1) - sum(noisy)
    return left


def units(noisy: Outcome, slowness: list[float], draws: int) -> Int64s:
    """A cell of n units is drawn n times as often: its units ring, each once."""
    flows = np.maximum(np.array(noisy), 0)
    owner = np.repeat(np.arange(5), flows)
    times = np.random.default_rng(6).exponential(size=(draws, owner.size)) * np.array(slowness)[owner]
    first = owner[np.argsort(times, axis=1)[:, : -sum(min(x, 0) for x in noisy)]]
    return flows - (first[:, :, None] == np.arange(5)).sum(axis=1)


@pytest.mark.parametrize("wrong", [inverted, ringing, units])
def test_wrong_distributions_are_rejected(wrong: Sampler) -> None:
    noisy, slowness = CASES["spread"][0], list(slowness_of("spread"))
    assert fit(wrong(noisy, slowness, DRAWS), exact(noisy, slowness)) < REJECT


def test_a_larger_group_has_the_distribution_of_the_literal_loop() -> None:
    """Each cell's distribution, and that of a sum of cells, in 20,000 runs of both."""
    literal = pytest.importorskip("benchmarks._literal", reason="the benchmarks are not beside the tests").literal
    rng, runs = np.random.default_rng(2), 20_000
    controls = Controls.of(
        rng.integers(1, 10**4, (1, 4)), rng.integers(0, 10**4, (3, 4)), rng.integers(-3, 10**4, (1, 3)), Fraction(1)
    )
    flow = np.array([2, -1, 0, 1, 5, -3, 1, 1, -2, 0, 3, -1, 4], np.int64)
    same, flows = np.zeros(runs, np.int64), np.tile(flow, (runs, 1))
    starts = starts_of(words_needed(flows))
    ours = published(flows, GroupControls(controls, same, same, Fraction(1)), words_of(3, int(starts[-1])), starts)
    weights = np.tile(1 / controls.slowness(0, 0), (runs, 1))
    theirs = literal(flows, weights, rng.random(int(starts[-1])), starts)
    for cells in [*([i] for i in np.flatnonzero(flow > 0)), [0, 3, 4], [6, 7, 10]]:
        pair = [side[:, cells].sum(axis=1) for side in (ours, theirs)]
        table = np.stack([np.bincount(side, minlength=12) for side in pair])
        table = table[:, table.sum(axis=0) > 0]
        assert table.shape[1] == 1 or stats.chi2_contingency(table).pvalue > ACCEPT
    wrong = literal(flows, 1 / weights, rng.random(int(starts[-1])), starts)
    table = np.stack([np.bincount(side[:, 4], minlength=12) for side in (ours, wrong)])
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue < REJECT


def by_heap(flow: Int64s, slowness: NDArray[np.float64], words: NDArray[np.uint64]) -> Int64s:
    """What correction.md says, word by word, with a heap."""
    out, cells = np.maximum(flow, 0), np.flatnonzero(flow > 0)
    if flow.sum() <= 0 or (flow >= 0).all():
        return out * (flow.sum() > 0)
    waiting = [(slowness[i] * exponential(word), i) for i, word in zip(cells, words, strict=False)]
    heapq.heapify(waiting)
    unread = iter(words[cells.size :])
    for _ in range(out.sum() - flow.sum()):
        time, i = heapq.heappop(waiting)
        out[i] -= 1
        if out[i] > 0:
            heapq.heappush(waiting, (time + slowness[i] * exponential(next(unread)), i))
    return out


@pytest.mark.parametrize(("decades", "largest"), [(0, 3), (3, 3), (12, 3), (12, 60), (60, 4)])
def test_words_are_read_in_the_order_of_the_rings(decades: int, largest: int) -> None:
    """Bit for bit a heap's result, also where clocks are so slow that they share the calendar's last day."""
    rng = np.random.default_rng(decades)
    employment = 10.0 ** rng.uniform(-decades / 2, decades / 2, (5, 8))
    controls = Controls.of(np.ones((1, 8)), employment, np.ones((1, 5)), Fraction(1, 3))
    flows = rng.integers(-2, largest, (300, 41))
    flows[::7] = np.minimum(flows[::7], 1)
    same, starts = np.zeros(300, np.int64), starts_of(words_needed(flows))
    words = words_of(1, int(starts[-1]))
    ours = published(flows, GroupControls(controls, same, same, Fraction(1)), words, starts)
    for g, flow in enumerate(flows):
        assert np.array_equal(ours[g], by_heap(flow, controls.slowness(0, 0), words[starts[g] : starts[g + 1]]))


@pytest.mark.parametrize("decades", [0, 12])
def test_many_clocks_with_several_rings_are_read_alike(decades: int) -> None:
    """Where days would be crowded a heap takes over: the same words, the same result."""
    rng = np.random.default_rng(decades)
    employment = 10.0 ** rng.uniform(-decades / 2, decades / 2, (40, 25))
    controls = Controls.of(np.ones((1, 25)), employment, np.ones((1, 40)), Fraction(1))
    flows = rng.integers(-6, 8, (20, 1001))
    flows[:, 3] += 1000
    assert ((flows > 1).sum(axis=1) > MANY).all()
    same, starts = np.zeros(20, np.int64), starts_of(words_needed(flows))
    words = words_of(2, int(starts[-1]))
    ours = published(flows, GroupControls(controls, same, same, Fraction(1)), words, starts)
    for g, flow in enumerate(flows):
        assert np.array_equal(ours[g], by_heap(flow, controls.slowness(0, 0), words[starts[g] : starts[g + 1]]))


def test_small_words_keep_their_order_among_slow_clocks() -> None:
    """Three slow clocks at 10⁻²⁰ of their mean ring before fast ones, in the order of times that 1 − U cannot hold."""
    flow = np.array([[1, 1, 1, 1, -1]], np.int64)
    words = np.array([1, 0, 2**63, 2**63, 5], np.uint64)
    for second, first in ((2.9, 1), (3.1, 0)):
        actual = published(flow, small((1e15, second * 1e15, 1.0, 1.0), 1), words, np.array([0, 5]))
        assert np.flatnonzero(actual[0] == 0).tolist() == sorted({first, 4})


def test_equal_times_ring_in_the_order_of_cells() -> None:
    actual = published(np.array([[2, 2, 2, 2, -3]]), small((1.0,) * 4, 1), np.full(7, 9, np.uint64), np.array([0, 7]))
    assert actual.tolist() == [[1, 1, 1, 2, 0]]


def test_exponentials_are_within_four_units_in_the_last_place() -> None:
    rng = np.random.default_rng(1)
    drawn = [int(w) for w in words_of(4, 4000)]
    shifted = [w >> int(s) for w, s in zip(drawn, rng.integers(0, 64, 4000), strict=True)]
    borders = [2**62 - 1, 2**62, 2**62 + 1, 2**63, 2**64 - 1, 0, 1, int(2**64 * (1 - math.sqrt(0.5)))]
    with ctx.workprec(200):
        for word in [*borders, *drawn, *shifted, *(2**64 - 1 - w for w in shifted)]:
            actual = exponential(np.uint64(word))
            true = -(1 - arb(2 * word + 1) / arb(2) ** 65).log()
            assert abs(arb(actual) - true) < 4 * arb(math.ulp(actual))


def test_what_the_proof_computes_is_so() -> None:
    proof = Path(correction.__file__).with_suffix(".md")
    result = doctest.testfile(str(proof), module_relative=False, encoding="utf-8")
    assert result.attempted > 0
    assert result.failed == 0


# What every rule keeps.
properties = examples(150)
tables = st.integers(1, 6).flatmap(lambda n: arrays(np.int64, (n, 13), elements=st.integers(-9, 12)))
rules = pytest.mark.parametrize("rule", RULES)


def medium(groups: int, seed: int, rate: Fraction = Fraction(3, 2)) -> GroupControls:
    rng = np.random.default_rng(seed)
    controls = Controls.of(
        rng.integers(-2, 10**6, (3, 4)), rng.integers(-2, 10**6, (3, 4)), rng.integers(-50, 900, (2, 3)), Fraction(1)
    )
    return GroupControls(controls, rng.integers(0, 3, groups), rng.integers(0, 2, groups), rate)


@rules
@properties
@given(tables, st.integers(0, 99), st.sampled_from(["1/1000000000", "1/50", "1/2", "3/2", "7", "1000"]))
def test_totals_are_kept_and_nothing_is_negative(rule: str, flows: Int64s, seed: int, rate: str) -> None:
    groups, starts = medium(len(flows), seed, Fraction(rate)), starts_of(RULES[rule].words_needed(flows))
    actual = RULES[rule].correct(flows, groups, words_of(seed, int(starts[-1])), starts)
    totals = flows.sum(axis=1)
    assert actual.dtype == np.int64
    assert (actual >= 0).all()
    assert np.array_equal(actual.sum(axis=1), np.maximum(totals, 0))
    assert not actual[totals <= 0].any()
    if rule != "quantiles":
        assert (actual <= np.maximum(flows, 0)).all()
        whole = (totals > 0) & (flows >= 0).all(axis=1)
        assert np.array_equal(actual[whole], flows[whole])


@rules
@properties
@given(tables, st.integers(0, 99))
def test_groups_do_not_know_their_batch(rule: str, flows: Int64s, seed: int) -> None:
    """Alone, in reverse, or with words of others between: the same."""
    groups, starts = medium(len(flows), seed), starts_of(RULES[rule].words_needed(flows))
    words = words_of(seed, int(starts[-1]))
    whole = RULES[rule].correct(flows, groups, words, starts)
    for g in range(len(flows)):
        own = GroupControls(groups.controls, groups.home[g : g + 1], groups.family[g : g + 1], groups.rate)
        mine = np.concatenate([words[starts[g] : starts[g + 1]], words_of(5, 3)])
        alone = RULES[rule].correct(flows[g : g + 1], own, mine, np.array([0, mine.size]))
        assert np.array_equal(alone[0], whole[g])
    back = GroupControls(groups.controls, groups.home[::-1].copy(), groups.family[::-1].copy(), groups.rate)
    parts = [words[starts[g] : starts[g + 1]] for g in range(len(flows))][::-1]
    turned = RULES[rule].correct(flows[::-1], back, np.concatenate(parts), starts_of(np.diff(starts)[::-1]))
    assert np.array_equal(turned[::-1], whole)


@rules
def test_a_group_without_a_total_leaves_no_trace(rule: str) -> None:
    """It lies between groups of two families, and shares home and family with the later one."""
    rng, flows = np.random.default_rng(1), np.zeros((60, 13), np.int64)
    flows[:] = rng.integers(-3, 5, flows.shape)
    flows[1::3] = -1
    base = medium(1, 3).controls
    number = np.tile(np.array([0, 1, 1]), 20)
    groups, starts = GroupControls(base, number, number, Fraction(3, 2)), starts_of(RULES[rule].words_needed(flows))
    words = words_of(2, int(starts[-1]))
    whole = RULES[rule].correct(flows, groups, words, starts)
    for g in range(2, 60, 3):
        own = GroupControls(base, number[g : g + 1], number[g : g + 1], groups.rate)
        mine = words[starts[g] : starts[g + 1]]
        assert np.array_equal(RULES[rule].correct(flows[g : g + 1], own, mine, np.array([0, mine.size]))[0], whole[g])


def test_no_more_words_are_read_than_needed() -> None:
    """The literal bound: positive cells + F. Words beyond it, or of groups that use none, are never looked at."""
    flows = np.array([[5, -3, 1, 0, 2], [5, 0, 1, 0, 2], [1, -3, 1, 0, 0], [1, -1, 9, 9, -9]], np.int64)
    assert words_needed(flows).tolist() == [3 + 3, 0, 0, 3 + 10]


def test_components_that_are_not_positive_become_one_and_are_counted() -> None:
    controls = Controls.of(np.array([[0, 5]]), np.array([[2, -1], [4, 8]]), np.array([[-7, 3], [0, 0]]), Fraction(4))
    assert controls.replaced == (1, 1, 3)
    assert controls.slowness(0, 0).tolist() == [2.0, 5.0, 12.0, 120.0, 30.0]
    assert controls.slowness(0, 1).tolist() == [2.0, 5.0, 4.0, 40.0, 10.0]
    assert controls.cells == 5


def refused(**changed: object) -> None:
    given_: dict[str, object] = {
        "noisy": np.array([[3, -1, 0, 0, 1]]),
        "words": np.zeros(3, np.uint64),
        "starts": np.array([0, 3]),
    }
    given_ |= changed
    published(given_["noisy"], small((1.0,) * 4, 1), given_["words"], given_["starts"])  # type: ignore[arg-type]


def test_what_does_not_fit_is_refused() -> None:
    refused()
    for changed in (
        {"noisy": np.array([[3, -1, 0, 0]])},
        {"noisy": np.array([3, -1, 0, 0, 1])},
        {"noisy": np.array([[3.0, -1, 0, 0, 1]])},
        {"noisy": np.array([[2**62, -1, 0, 0, 1]])},
        {"words": np.zeros(2, np.uint64)},
        {"words": np.zeros(3)},
        {"starts": np.array([0, 2])},
        {"starts": np.array([-1, 3])},
        {"starts": np.array([3])},
    ):
        with pytest.raises(ParameterError):
            refused(**changed)
    ones = np.ones((1, 2))
    for bad in (
        lambda: Controls.of(ones, np.ones((2, 3)), ones, Fraction(1)),
        lambda: Controls.of(ones, np.ones((2, 2)) * np.nan, ones, Fraction(1)),
        lambda: Controls.of(ones, np.ones((2, 2)) * 1e99, ones, Fraction(1)),
        lambda: Controls.of(ones, np.ones((2, 2)), ones, Fraction(0)),
        lambda: GroupControls(small((1.0,) * 4, 1).controls, np.array([1]), np.array([0]), Fraction(1)),
        lambda: GroupControls(small((1.0,) * 4, 1).controls, np.array([0]), np.array([0, 0]), Fraction(1)),
        lambda: GroupControls(small((1.0,) * 4, 1).controls, np.array([0]), np.array([0]), Fraction(0)),
    ):
        with pytest.raises(ParameterError):
            bad()
