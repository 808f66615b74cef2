"""The alternatives to the published correction: their optimality, and their errors in simulations."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.methods.flows.correction import RULES, Controls, GroupControls, projection, quantiles, words_needed
from discreet.methods.flows.correction_quantiles import DOUBT, WIDE, posterior_cdf, posterior_median, prior_means, rake

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]


def words_of(seed: int, count: int) -> NDArray[np.uint64]:
    return np.random.Generator(np.random.Philox(seed)).integers(0, 2**64, count, dtype=np.uint64)


def corrected(rule: str, flows: Int64s, groups: GroupControls, seed: int = 1) -> Int64s:
    starts = np.concatenate([[0], np.cumsum(RULES[rule].words_needed(flows))]).astype(np.int64)
    return RULES[rule].correct(flows, groups, words_of(seed, int(starts[-1])), starts)


def one(rate: Fraction = Fraction(3, 2), groups: int = 1) -> GroupControls:
    controls = Controls.of(np.array([[9, 3]]), np.array([[5, 1], [2, 40]]), np.array([[30, 11]]), Fraction(1))
    same = np.zeros(groups, np.int64)
    return GroupControls(controls, same, same, rate)


def tables(total: int, cells: int) -> Int64s:
    """All tables of non-negative integers with this total."""
    bars = np.array(list(itertools.combinations(range(total + cells - 1), cells - 1)))
    edges = np.concatenate([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), total + cells - 1)], axis=1)
    return np.diff(edges, axis=1) - 1


@pytest.mark.parametrize("seed", range(12))
def test_projection_is_nearest_of_all_tables(seed: int) -> None:
    flow = np.random.default_rng(seed).integers(-4, 8, (1, 5))
    total = int(flow.sum())
    actual = corrected("projection", flow, one())
    if total <= 0:
        assert not actual.any()
        return
    assert ((actual - flow) ** 2).sum() == ((tables(total, 5) - flow) ** 2).sum(axis=1).min()


def test_projection_of_large_flows() -> None:
    flow = np.array([[10**15, 10**15 - 5, -(10**15), 3, 7]])
    starts = np.array([0, 4])
    assert words_needed(flow)[0] > 10**14  # as a bound; the rule itself reads one word a cell
    assert corrected("projection", np.array([[10**6, 10**6 - 5, -(10**6), 3, 7]]), one()).sum() == 10**6 + 5
    with pytest.raises(Exception, match="too few words"):
        projection(flow, one(), words_of(1, 4), starts)


def test_ties_of_the_projection_follow_the_controls() -> None:
    """Five cells of 2, two to be subtracted: the nearest tables take one each from two cells; the likely are spared."""
    flows = np.tile(np.array([2, 2, 2, 2, -2]), (20_000, 1))
    groups = one(groups=20_000)
    taken = 2 - corrected("projection", flows, groups)[:, :4].mean(axis=0)
    assert taken.sum() == pytest.approx(2)
    assert (np.diff(taken[np.argsort(groups.controls.slowness(0, 0)[:4])]) < 0).all()
    assert (corrected("projection", flows, groups)[:, :4] >= 1).all()


def posterior(y: int, mean: float, wide: float, a: float, longest: int = 4000) -> Floats:
    """P(flow = t | y), t = 0 … longest, by Bayes' rule term by term."""
    t = np.arange(longest)

    def geometric(m: float) -> Floats:
        distribution: Floats = (1 / (1 + m)) * (m / (1 + m)) ** t
        return distribution

    joint = ((1 - DOUBT) * geometric(mean) + DOUBT * geometric(wide)) * a ** np.abs(y - t).astype(float)
    actual: Floats = joint / joint.sum()
    return actual


@pytest.mark.parametrize("rate", [0.2, 0.5, 1.5, 3.0])
def test_posterior_probabilities_are_those_of_bayes(rate: float) -> None:
    a = float(np.exp(-rate))
    least, far = max(WIDE, 2 * a / (1 - a)), int(600 / rate)
    for y, mean in itertools.product((-9, -1, 0, 1, 2, 5, 17, far, far + 1, far + 30), (1e-9, 0.02, 0.7, 6.0, 90.0)):
        wide = max(least, mean)
        exact = np.cumsum(posterior(y, mean, wide, a))
        for x in (0, 1, 2, 4, max(y - 2, 0), max(y, 0), max(y, 0) + 1, max(y, 0) + 6):
            assert posterior_cdf(x, y, mean, wide, a, far) == pytest.approx(exact[x], abs=1e-9)
        x, under, upto = posterior_median(y, mean, wide, a, far)
        assert under < 0.5 <= upto
        assert upto == pytest.approx(posterior_cdf(x, y, mean, wide, a, far), abs=1e-12)
        assert under == pytest.approx(posterior_cdf(x - 1, y, mean, wide, a, far), abs=1e-12)
    assert posterior_cdf(-1, 3, 0.5, least, a, far) == 0


@pytest.mark.parametrize("seed", range(20))
def test_quantiles_have_the_least_expected_error_of_all_tables(seed: int) -> None:
    rng, rate = np.random.default_rng(seed), [0.5, 1.5][seed % 2]
    groups, a = one(Fraction(rate)), float(np.exp(-rate))
    flow = np.maximum(rng.integers(-3, 3, 5), rng.integers(-9, 9, 5))
    flow[seed % 5] += max(0, 1 - flow.sum())
    share, mean, expected = np.empty((2, 2)), np.empty((2, 2)), np.empty(5)
    rake(groups.controls.jobs[0], groups.controls.employment, groups.controls.industry_flow[0], share)
    prior_means(flow, share, 2 * a / (1 - a) ** 2, mean, expected)
    every = tables(int(flow.sum()), 5)
    cost = np.zeros(len(every))
    for i in range(5):
        distribution = posterior(int(flow[i]), expected[i], max(WIDE, 2 * a / (1 - a), expected[i]), a, 400)
        errors = np.abs(np.arange(flow.sum() + 1)[:, None] - np.arange(400)) @ distribution
        cost += errors[every[:, i]]
    actual = corrected("quantiles", flow[None], groups)[0]
    assert cost[(every == actual).all(axis=1)][0] <= cost.min() + 1e-9


def test_raked_shares_meet_states_exactly_and_industries_closely() -> None:
    rng = np.random.default_rng(4)
    jobs, employment, industry = rng.random(7) + 0.1, rng.random((4, 7)) + 0.1, rng.random(4) + 0.1
    share = np.empty((4, 7))
    rake(jobs, employment, industry, share)
    np.testing.assert_allclose(share.sum(axis=0), jobs / jobs.sum(), rtol=1e-12)
    np.testing.assert_allclose(share.sum(axis=1), industry / industry.sum(), rtol=0.01)


@dataclass(frozen=True)
class World:
    """GroupControls whose flows we know."""

    true: Int64s
    noisy: Int64s
    groups: GroupControls

    def error(self, rule: str, power: int) -> float:
        kept = self.noisy.sum(axis=1) > 0
        actual = corrected(rule, self.noisy, self.groups)
        return float((np.abs(actual - self.true)[kept] ** power).mean()) ** (1 / power)


@cache
def world(epsilon: Fraction, families: int = 20, size: int = 15) -> World:
    """Destinations as the controls say, times lognormal errors; 10 industries, 30 states, two thirds at home."""
    rng = np.random.default_rng(8)
    industries, states = 10, 30
    weight = np.exp(rng.normal(0, 1, states))
    employment = np.rint(
        1e5 * weight * np.exp(rng.normal(0, 1, (industries, 1)) + rng.normal(0, 0.5, (industries, states)))
    )
    jobs = np.rint(1e4 * weight * np.exp(rng.normal(0, 1, (states, states))))
    jobs[np.diag_indices(states)] = 1.8 * (jobs.sum(axis=1) - np.diag(jobs))
    family = np.repeat(np.arange(families), size)
    home, pull = rng.integers(0, states, families)[family], np.exp(rng.normal(0, 1, (families, industries)))
    true = np.zeros((family.size, industries * states + 1), np.int64)
    for g, f in enumerate(family):
        share = employment / employment.sum(axis=0) * jobs[home[g]] * pull[f][:, None]
        share = (share * np.exp(rng.normal(0, 1, share.shape))).ravel()
        people = int(np.clip(np.exp(rng.normal(4.8, 1)), 10, 2000))
        true[g] = rng.multinomial(people, np.append(0.85 * share / share.sum(), 0.15))
    noise = rng.geometric(1 - np.exp(-float(epsilon)), (2, *true.shape))
    noisy = true + noise[0] - noise[1]
    flow = np.zeros((families, industries), np.int64)
    np.add.at(flow, family, noisy[:, :-1].reshape(-1, industries, states).sum(axis=2))
    return World(true, noisy, GroupControls(Controls.of(jobs, employment, flow, Fraction(1)), home, family, epsilon))


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3, 2)])
@pytest.mark.parametrize(("power", "most"), [(1, 0.97), (2, 0.95)])
def test_quantiles_are_closer_to_the_truth_than_the_published_rule(epsilon: Fraction, power: int, most: float) -> None:
    """Measured over published: 0.91 and 0.94 (mean), 0.86 and 0.93 (root mean square); over projection 0.67 to 0.88."""
    ours = world(epsilon).error("quantiles", power)
    assert ours < most * world(epsilon).error("published", power)
    assert ours < most * world(epsilon).error("projection", power)


def test_without_noise_nothing_moves() -> None:
    true = world(Fraction(3, 2)).true
    groups = world(Fraction(3, 2)).groups
    quiet = GroupControls(groups.controls, groups.home, groups.family, Fraction(40))
    for rule in RULES:
        assert np.array_equal(corrected(rule, true, quiet), true)


def test_a_clear_flow_stays_where_controls_expect_none() -> None:
    """40 people at once where 10⁻⁵ are expected: no noise explains them."""
    flow = np.array([[300, 40, 0, -1, 50]])
    controls = Controls.of(np.array([[10**6, 1]]), np.array([[5, 1], [2, 1]]), np.array([[30, 11]]), Fraction(1))
    groups = GroupControls(controls, np.zeros(1, np.int64), np.zeros(1, np.int64), Fraction(3, 2))
    assert abs(int(quantiles(flow, groups, words_of(1, 0), np.zeros(2, np.int64))[0, 1]) - 40) <= 1
