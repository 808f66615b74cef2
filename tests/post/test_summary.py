"""Summaries of histograms against hand computation; other estimates are clamped to the limits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.domain.bins import Bins
from discreet.post.laplace_sum import count_margin
from discreet.post.summary import SummaryParameters, summarise

BINS = Bins((0, 10, 20, 40, 80))
ASKED = SummaryParameters(BINS, (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)), 30, Fraction(3))
HISTOGRAMS = np.array([[40, -1, 80, 50], [10, 10, 9, 0], [-5, -5, -5, -5], [100, 0, 0, 0]])
ONES, NOBODY = np.ones(4, np.int64), np.zeros(4, np.bool_)


def test_published_by_the_protected_count_and_the_withheld() -> None:
    actual = summarise(HISTOGRAMS, ASKED, ONES, np.array([False, False, False, True]))
    assert actual.counts.tolist() == [169, 29, -20, 100]
    assert actual.published.tolist() == [True, False, False, False]
    assert actual.status.tolist() == [1, 5, 5, 5]
    assert actual.margins.tolist() == [count_margin(Fraction(3), 4)] * 4
    assert actual.percentiles[0].tolist() == [21, 31, 46]  # 20 + 3.25/80·20, 20 + 45.5/80·20, 40 + 7.75/50·40
    assert actual.widths[0].tolist() == [20, 20, 40]


def test_an_estimate_outside_the_limits_is_moved_to_the_nearer_one() -> None:
    own = summarise(HISTOGRAMS, ASKED, ONES, NOBODY)
    far = summarise(HISTOGRAMS, ASKED, ONES, NOBODY, np.tile([0.0, 31.2, 80.0], (4, 1)))
    kept = own.published
    assert np.array_equal(far.low[kept], own.low[kept])
    assert np.array_equal(far.high[kept], own.high[kept])
    assert far.percentiles[0].tolist() == [own.low[0, 0], 31, own.high[0, 2]]
    assert own.low[0, 0] > 0
    assert own.high[0, 2] < 80


def test_estimates_that_are_out_of_order_are_put_in_order() -> None:
    wide = SummaryParameters(BINS, ASKED.points, 1, Fraction(1, 50))  # very wide limits
    actual = summarise(HISTOGRAMS[:1], wide, ONES[:1], NOBODY[:1], np.array([[30.0, 12.0, 70.0]]))
    assert (np.diff(actual.percentiles, axis=1) >= 0).all()
    assert (actual.low <= actual.percentiles).all()
    assert (actual.percentiles <= actual.high).all()


def test_the_minimum_itself_is_published() -> None:
    edge = np.array([[30, 0, 0, 0], [29, 0, 0, 0], [60, -30, 0, 0]])
    assert summarise(edge, ASKED, ONES[:3], NOBODY[:3]).published.tolist() == [True, False, True]
