"""Shrunk histograms: gains, errors of atypical cells, and properties of the estimator."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from discreet.domain.bins import PSEO, Bins
from discreet.errors import ParameterError
from discreet.methods.earnings.shrinkage import estimate, smooth
from discreet.post.percentiles import percentiles
from support.hypothesis_profile import examples

QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
properties = examples(100)
tables = st.integers(1, 12).flatmap(lambda n: arrays(np.int64, (n, 5), elements=st.integers(-30, 90)))
FIVE = Bins((0, 10, 20, 40, 80, 200))


@dataclass(frozen=True)
class World:
    """Cells whose earnings we know, and their families."""

    counts: NDArray[np.int64]
    size: NDArray[np.int64]
    truth: NDArray[np.float64]  # Hazen's percentile of the earnings
    stranger: NDArray[np.bool_]
    families: tuple[NDArray[np.int64], NDArray[np.int64]]

    def protected(self, epsilon: float, seed: int) -> NDArray[np.int64]:
        draw = np.random.default_rng(seed).geometric(1 - np.exp(-epsilon), (2, *self.counts.shape))
        return self.counts + draw[0] - draw[1]

    def ratios(self, epsilon: float, chosen: NDArray[np.bool_], families=None, repeats: int = 3) -> NDArray[np.float64]:
        """Mean absolute error of the three percentiles over PSEO's, in published cells below 200."""
        errors = np.zeros((2, 3))
        for seed in range(repeats):
            noisy = self.protected(epsilon, seed)
            kept = chosen & (noisy.sum(axis=1) >= 30) & (self.size < 200)
            ours = estimate(noisy, self.families if families is None else families, epsilon, PSEO, QUARTILES)
            for i, actual in enumerate((ours, percentiles(noisy, PSEO, QUARTILES))):
                errors[i] += np.abs(actual - self.truth)[kept].mean(axis=0)
        return errors[0] / errors[1]


@cache
def world(strangers: float = 0.0) -> World:
    """3,000 cells in 60 families within 6: lognormal, one value in seven heaped; strangers earn a third."""
    rng = np.random.default_rng(11)
    cells = 3000
    narrow = rng.integers(0, 60, cells)
    level = 10.9 + 0.3 * np.sin(narrow) + rng.normal(0, 0.1, cells)
    size = np.maximum(5, np.exp(rng.normal(4, 0.8, cells)).astype(np.int64))
    stranger = rng.random(cells) < strangers
    counts, truth = np.zeros((cells, PSEO.count), np.int64), np.zeros((cells, 3))
    for i, n in enumerate(size.tolist()):
        earned = np.exp(rng.normal(level[i] - 1.1 * stranger[i], 0.35 if stranger[i] else 0.75, n))
        heaped = np.where(rng.random(n) < 0.15, np.rint(earned / 1000) * 1000, np.rint(earned))
        values = np.maximum(heaped, 10_000)
        counts[i] = np.bincount(PSEO.number(values), minlength=PSEO.count)
        truth[i] = np.quantile(values, [0.25, 0.5, 0.75], method="hazen")
    return World(counts, size, truth, stranger, (narrow // 10, narrow))


@pytest.mark.parametrize(("epsilon", "most"), [(0.5, 0.78), (1.0, 0.91), (1.5, 0.96), (3.0, 0.995)])
def test_errors_are_smaller_than_those_of_the_raw_histogram(epsilon: float, most: float) -> None:
    """Measured: 0.65–0.71, 0.82–0.86, 0.88–0.92, 0.96–0.98. With shrinkage off they would all be 1."""
    assert (world().ratios(epsilon, world().size >= 30) < most).all()


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_small_cells_gain_most(epsilon: float) -> None:
    size = world().size
    small = world().ratios(epsilon, (size >= 30) & (size < 60)).mean()
    large = world().ratios(epsilon, size >= 120).mean()
    assert small < large - 0.01


def test_families_matter() -> None:
    """The same families handed to the wrong cells give away most of the gain; none at all is in between."""
    own = world()
    mixed = np.random.default_rng(3).permutation(own.families[1])
    everyone = own.size >= 30
    right, wrong, none = (own.ratios(0.5, everyone, f).mean() for f in (own.families, (mixed // 10, mixed), ()))
    assert right < none - 0.05
    assert right < wrong - 0.05


@pytest.mark.parametrize(("epsilon", "most"), [(0.5, 1.3), (1.0, 1.08), (3.0, 1.02)])
def test_strangers_to_their_family_are_left_alone(epsilon: float, most: float) -> None:
    odd = world(0.08)
    assert (odd.ratios(epsilon, odd.stranger & (odd.size >= 30)) < most).all()


def test_without_noise_nothing_moves() -> None:
    counts = world().counts[:500]
    ours = estimate(counts, [f[:500] for f in world().families], 25.0, PSEO, QUARTILES)
    np.testing.assert_allclose(ours, percentiles(counts, PSEO, QUARTILES), rtol=1e-6)


def test_a_bin_below_nothing_becomes_small_and_a_lump_stays() -> None:
    """Posterior of a count: not negative unless the cell is a stranger, and a clear lump is no noise."""
    counts = np.tile(np.array([20, 20, 15, 10, 1], np.int64), (200, 1))
    counts[0, 4] = -2
    counts[1] = [5, 5, 60, 5, 5]
    actual = smooth(counts, [], 1.0)
    assert 0 < actual[0, 4] < 1
    assert actual[1, 2] > 50
    assert np.abs(actual[2:] - counts[2:]).max() < 0.5


def test_sums_of_several_draws_are_trusted_less() -> None:
    noisy = world().protected(1.0, 5)
    family = world().families
    shift = [np.abs(smooth(noisy, family, 1.0, s) - noisy).mean() for s in (1, 4, 16)]
    assert shift[0] < shift[1] < shift[2]


@properties
@given(tables, st.sampled_from([0.01, 0.3, 1.0, 3.0, 40.0, 800.0]))
def test_ordered_finite_within_the_borders(counts: NDArray[np.int64], rate: float) -> None:
    family = np.arange(len(counts)) % 3
    actual = estimate(counts, [family % 1, family], rate, FIVE, QUARTILES)
    some = counts.sum(axis=1) > 0
    assert np.isnan(actual[~some]).all()
    assert np.isfinite(actual[some]).all()
    assert (np.diff(actual[some], axis=1) >= 0).all()
    assert ((actual[some] >= 0) & (actual[some] <= 200)).all()


@properties
@given(tables, st.integers(0, 99))
def test_order_of_cells_and_names_of_families_do_not_matter(counts: NDArray[np.int64], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(counts))
    family = np.arange(len(counts)) % 2
    plain = smooth(counts, [family], 1.0)
    np.testing.assert_allclose(smooth(counts[order], [7 - 5 * family[order]], 1.0), plain[order], atol=1e-6)
    assert np.array_equal(smooth(counts, [family], 1.0), plain)


def test_large_counts_do_not_overflow() -> None:
    counts = np.array([[2**50, 2**50, 0, 5, -7], [3, 9, 2, 5, 2**40]], np.int64)
    assert np.isfinite(smooth(counts, [np.array([0, 1])], 0.5)).all()


def test_no_cells_give_no_percentiles() -> None:
    nothing = np.zeros((0, 5), np.int64)
    assert estimate(nothing, [np.zeros(0, np.int64)], 1.0, FIVE, QUARTILES).shape == (0, 3)


@pytest.mark.parametrize(
    ("families", "rate", "points"),
    [
        ([np.array([0, 0]), np.array([1, 1]), np.array([0])], 1.0, QUARTILES),
        ([np.array([0, 1]), np.array([5, 5])], 1.0, QUARTILES),
        ([], 0.0, QUARTILES),
        ([], float("nan"), QUARTILES),
        ([], 1.0, (Fraction(1),)),
    ],
)
def test_refusals(families: list[NDArray[np.int64]], rate: float, points: tuple[Fraction, ...]) -> None:
    with pytest.raises(ParameterError):
        estimate(np.ones((2, 5), np.int64), families, rate, FIVE, points)
