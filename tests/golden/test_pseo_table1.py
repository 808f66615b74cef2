"""Published numbers of the PSEO Beta Appendix: Table 1, the nominal end, and Eq. 4 corrected."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.domain.bins import PSEO, Bins, lognormal
from discreet.post.percentiles import locate, percentiles

F = Fraction

# PSEO Beta Appendix, Table 1: bin, lower bound, upper bound.
TABLE_1 = """
1 10000 17403
2 17403 22876
3 22876 27512
4 27512 31857
5 31857 36128
6 36128 40449
7 40449 44914
8 44914 49605
9 49605 54609
10 54609 60027
11 60027 65982
12 65982 72639
13 72639 80226
14 80226 89080
15 89080 99735
16 99735 113106
17 113106 130970
18 130970 157509
19 157509 207050
20 207050 262475
21 262475 614597
"""
ROWS = [tuple(map(int, line.split())) for line in TABLE_1.strip().splitlines()]


def test_000_table_1_is_the_declared_bins() -> None:
    assert PSEO.count == 21
    assert [(j + 1, PSEO.edges[j], PSEO.edges[j + 1]) for j in range(PSEO.count)] == ROWS


def test_000_table_1_is_not_the_percentiles_of_its_printed_parameters() -> None:
    printed = lognormal(F("11.003"), F("0.753"), 10_000)
    assert printed.edges != PSEO.edges
    assert printed.edges[-2] - PSEO.edges[-2] == 247
    assert lognormal(F("11.00255"), F("0.75275"), 10_000).edges == PSEO.edges


def test_000_eq_2_counts_the_last_border_in_the_last_bin() -> None:
    values = np.array([9_999, 10_000, 17_402, 17_403, 262_474, 262_475, 10**7])
    assert PSEO.number(values).tolist() == [0, 0, 0, 1, 19, 20, 20]


def as_printed(counts: list[int], bins: Bins, y: F) -> tuple[int, F]:
    """PSEO Beta Appendix, §2, literally: (Y/100 × Σ^J q̃) − Σ^{J−1} q̃, over q̃_J."""
    total = sum(counts)
    j = next(j for j in range(len(counts)) if y * total <= sum(counts[: j + 1]))
    return j, (y * sum(counts[: j + 1]) - sum(counts[:j])) / F(counts[j])


@pytest.mark.parametrize(
    ("counts", "printed", "corrected"),
    [
        ([10, 10, 10, 30], F(-1, 2), 1.0),  # the printed median lies half a bin below its bin
        ([30, 40, 40, 1], F(1, 8), 0.6375),  # inside, but wrong
        ([0, 0, 0, 50], F(1, 2), 0.5),  # in the last occupied bin both agree
    ],
)
def test_000_eq_4_as_printed_leaves_its_bin(counts: list[int], printed: F, corrected: float) -> None:
    bins = Bins((0, 100, 200, 300, 400))
    j, fraction = as_printed(counts, bins, F(1, 2))
    actual, fractions = locate(np.array([counts]), bins, (F(1, 2),))
    assert (j, fraction) == (actual[0, 0], printed)
    assert fractions[0, 0] == corrected
    assert bins.edges[j] < percentiles(np.array([counts]), bins, (F(1, 2),))[0, 0] <= bins.edges[j + 1]


def test_000_note_6_the_share_of_the_way_through_the_bin() -> None:
    """A hundred records in bin 10: the quartiles lie a quarter, half, three quarters of the way through it."""
    counts = np.zeros((1, 21), np.int64)
    counts[0, 9] = 100
    assert percentiles(counts, PSEO, (F(1, 4), F(1, 2), F(3, 4))).tolist() == [[55963.5, 57318.0, 58672.5]]


def test_000_note_7_of_several_bins_the_smallest() -> None:
    """Sums 10, 30, 22, 22, 52: half of 52 is passed in bin 2 and, after the negative bin, again in bin 5."""
    counts = np.zeros((1, 21), np.int64)
    counts[0, :5] = 10, 20, -8, 0, 30
    actual, fractions = locate(counts, PSEO, (F(1, 2),))
    assert (actual[0, 0], fractions[0, 0]) == (1, 0.8)
    assert percentiles(counts, PSEO, (F(1, 2),))[0, 0] == pytest.approx(17403 + 0.8 * 5473)


def test_000_in_the_largest_bin_the_end_is_614597() -> None:
    counts = np.zeros((1, 21), np.int64)
    counts[0, 19:] = 50, 50
    value = percentiles(counts, PSEO, (F(1, 2), F(3, 4), F(999, 1000)))[0]
    assert value[:2].tolist() == [262475.0, 262475 + 352122 / 2]
    assert value[2] == pytest.approx(262475 + 352122 * 0.998)
