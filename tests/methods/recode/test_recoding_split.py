"""Splitting signed counts: exact totals and means, the stated distribution, and rejection of wrong ones."""

from __future__ import annotations

import doctest
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from math import ceil, floor, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from discreet.errors import ParameterError
from discreet.methods.recode import split as module
from discreet.methods.recode.split import LARGEST_COUNT, UNIT_BY_UNIT, Rule, SplitShares, split, words_needed
from support.hypothesis_profile import examples

F = Fraction
properties = examples(100)
SPAN = 2**64
RULES: tuple[Rule, ...] = ("multinomial", "balanced")
ACCEPT, REJECT = 1e-6, 1e-20
Int64s = NDArray[np.int64]
Words = NDArray[np.uint64]

shares_of = st.lists(st.integers(1, 10**12), min_size=1, max_size=6).map(
    lambda weights: SplitShares(tuple(F(w, sum(weights)) for w in weights))
)
counts_of = st.lists(
    st.integers(-40, 40) | st.sampled_from([2**20 + 1, -(2**20) - 5, 2**40 + 3, LARGEST_COUNT, -LARGEST_COUNT]),
    max_size=8,
)
seeds = st.integers(0, 2**32)


def group_words(n: int, seed: int) -> Words:
    """Uniform words, the two ends among them."""
    words = np.random.Generator(np.random.Philox(seed)).integers(0, SPAN - 1, n, np.uint64, endpoint=True)
    words[::7], words[3::7] = 0, SPAN - 1
    return words


def random_words(n: int, seed: int) -> Words:
    return np.random.Generator(np.random.Philox(seed)).integers(0, SPAN - 1, n, np.uint64, endpoint=True)


def reference(size: int, parts: tuple[Fraction, ...], words: list[int], rule: str, by_unit: int) -> list[int]:
    """The docstring of `split`, in plain fractions."""
    out, last = [0] * len(parts), len(parts) - 1
    sums = [sum(parts[: j + 1], F(0)) for j in range(len(parts))]
    if len(parts) == 1:
        return [size]
    if rule == "balanced":
        if size:
            tops = [ceil(F(floor(size * total * SPAN), SPAN) - F(words[0], SPAN)) for total in sums[:-1]]
            out = [b - a for a, b in pairwise([0, *tops, size])]
        return out
    if size > by_unit:
        out = [floor(size * part) for part in parts]
        left = size - sum(out)
        lacking = [size * part - whole for part, whole in zip(parts, out, strict=True)]
        sums = [sum(lacking[: j + 1], F(0)) / max(left, 1) for j in range(len(parts))]
        last = max((j for j, lack in enumerate(lacking) if lack), default=0)
    for word in words:
        out[next((j for j in range(last) if word < floor(sums[j] * SPAN)), last)] += 1
    return out


@properties
@given(counts_of, shares_of, st.sampled_from(RULES), seeds)
def test_every_unit_and_every_sign_is_kept(counts: list[int], shares: SplitShares, rule: Rule, seed: int) -> None:
    table = np.array(counts, np.int64)
    used = words_needed(table, shares, rule)
    parts = split(table, shares, group_words(int(used.sum()), seed), rule)
    assert parts.shape == (len(counts), len(shares.parts))
    assert parts.sum(axis=1).tolist() == counts
    assert (parts * np.sign(table)[:, None] >= 0).all()


@properties
@given(st.lists(st.integers(-30, 30), max_size=6), shares_of, st.sampled_from(RULES), seeds, st.integers(0, 40))
def test_it_is_the_rule_in_plain_fractions(
    counts: list[int], shares: SplitShares, rule: Rule, seed: int, by_unit: int
) -> None:
    table = np.array(counts, np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "UNIT_BY_UNIT", by_unit)  # so that small counts are split like large ones
        used = words_needed(table, shares, rule)
        words = group_words(int(used.sum()), seed)
        parts = split(table, shares, words, rule)
    start = 0
    for count, take, actual in zip(counts, used.tolist(), parts.tolist(), strict=True):
        own = words[start : start + take].tolist()
        wanted = reference(abs(count), shares.parts, own, rule, by_unit)
        assert actual == [part if count > 0 else -part for part in wanted]
        start += take


@properties
@given(counts_of, shares_of, st.sampled_from(RULES), seeds, st.integers(0, 8))
def test_batches_change_nothing(counts: list[int], shares: SplitShares, rule: Rule, seed: int, cut: int) -> None:
    table = np.array(counts, np.int64)
    used = words_needed(table, shares, rule)
    words = group_words(int(used.sum()), seed)
    at = int(used[:cut].sum())
    apart = [split(table[:cut], shares, words[:at], rule), split(table[cut:], shares, words[at:], rule)]
    np.testing.assert_array_equal(np.concatenate(apart), split(table, shares, words, rule))


@properties
@given(counts_of, shares_of, seeds)
def test_a_negative_count_is_a_positive_one_mirrored(counts: list[int], shares: SplitShares, seed: int) -> None:
    table = np.array(counts, np.int64)
    for rule in RULES:
        words = group_words(int(words_needed(table, shares, rule).sum()), seed)
        np.testing.assert_array_equal(split(-table, shares, words, rule), -split(table, shares, words, rule))


def test_number_of_words_used() -> None:
    counts = np.array([3, -4, 0, UNIT_BY_UNIT, -UNIT_BY_UNIT - 1])
    thirds = SplitShares((F(1, 3),) * 3)
    assert words_needed(counts, thirds).tolist() == [3, 4, 0, UNIT_BY_UNIT, (UNIT_BY_UNIT + 1) % 3]
    assert words_needed(counts, thirds, "balanced").tolist() == [1, 1, 0, 1, 1]
    for rule in RULES:
        assert words_needed(counts, SplitShares((F(1),)), rule).tolist() == [0] * 5
        assert split(counts, SplitShares((F(1),)), np.zeros(0, np.uint64), rule).tolist() == [
            [n] for n in counts.tolist()
        ]


# ------------------------------------------------------------------------------------------------- exact expectations


def cumulated(parts: tuple[Fraction, ...]) -> list[Fraction]:
    """C_1 … C_(m−1)."""
    return [sum(parts[:j], F(0)) for j in range(1, len(parts))]


def means(size: int, shares: SplitShares, rule: Rule, corners: list[int]) -> list[Fraction]:
    """The exact mean of each part: over every sequence of words, all between two corners being alike."""
    edges = sorted({0, SPAN, *corners})
    table = np.array([size], np.int64)
    used = int(words_needed(table, shares, rule)[0])
    total = [F(0)] * len(shares.parts)
    for cells in product(list(pairwise(edges)), repeat=used):
        first = split(table, shares, np.array([low for low, _ in cells], np.uint64), rule)
        final = split(table, shares, np.array([high - 1 for _, high in cells], np.uint64), rule)
        assert first.tolist() == final.tolist()  # so nothing else lies between
        chance = prod((F(high - low, SPAN) for low, high in cells), start=F(1))
        total = [t + chance * int(part) for t, part in zip(total, first[0], strict=True)]
    return total


CASES = [
    (F(1, 2), F(1, 2)),
    (F(1, 4), F(5, 8), F(1, 8)),
    (F(1, 2), F(1, 4), F(1, 4)),
    (F(1, 3), F(1, 3), F(1, 3)),
    (F(1, 7), F(2, 7), F(4, 7)),
    (F(1, 10**6), F(999999, 10**6)),
    (F(3, 10), F(1, 10), F(2, 10), F(4, 10)),
]


@pytest.mark.parametrize("parts", CASES)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4])
def test_the_mean_of_a_part_is_its_share_multinomial(parts: tuple[Fraction, ...], size: int) -> None:
    shares = SplitShares(parts)
    corners = [floor(total * SPAN) for total in cumulated(parts)]
    close(means(size, shares, "multinomial", corners), size, shares)


@pytest.mark.parametrize("parts", CASES)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 11, 1000, UNIT_BY_UNIT + 1, 2**40 + 7])
def test_the_mean_of_a_part_is_its_share_balanced(parts: tuple[Fraction, ...], size: int) -> None:
    shares = SplitShares(parts)
    sums = [size * total for total in cumulated(parts)]
    close(means(size, shares, "balanced", [floor((x - floor(x)) * SPAN) for x in sums]), size, shares)


@pytest.mark.parametrize("parts", CASES)
@pytest.mark.parametrize("size", [UNIT_BY_UNIT + 1, UNIT_BY_UNIT + 2, 2**21 + 3, 2**40 + 7])
def test_the_mean_of_a_part_is_its_share_of_a_large_count(parts: tuple[Fraction, ...], size: int) -> None:
    shares = SplitShares(parts)
    lacking = [size * part - floor(size * part) for part in parts]
    left = sum(lacking)
    sums = [sum(lacking[: j + 1], F(0)) / left for j in range(len(parts))] if left else []
    close(means(size, shares, "multinomial", [floor(x * SPAN) for x in sums]), size, shares)


def close(actual: list[Fraction], size: int, shares: SplitShares) -> None:
    """Equal where the borders are multiples of 2⁻⁶⁴, and within a few 2⁻⁶⁴ elsewhere."""
    exact = all(SPAN % part.denominator == 0 for part in shares.parts)
    for mean, part in zip(actual, shares.parts, strict=True):
        assert abs(mean - size * part) <= (0 if exact else F(max(min(size, 4), 1), SPAN))


@properties
@given(st.integers(-(10**6), 10**6), shares_of, seeds)
def test_balanced_parts_are_rounded_shares(count: int, shares: SplitShares, seed: int) -> None:
    table = np.array([count], np.int64)
    words = group_words(int(words_needed(table, shares, "balanced").sum()), seed)
    for part, share in zip(split(table, shares, words, "balanced")[0].tolist(), shares.parts, strict=True):
        assert abs(part) in (floor(abs(count) * share), ceil(abs(count) * share))


# -------------------------------------------------------------------------------------------------- the distribution

SIZE, CELLS = 12, 60_000
PARTS = (F(1, 2), F(3, 10), F(1, 5))


def p_value(parts: Int64s, chances: tuple[float, ...] = tuple(map(float, PARTS))) -> float:
    """χ² of the joint distribution of the parts against the multinomial."""
    seen = Counter(map(tuple, parts.tolist()))
    cells = [(i, j, SIZE - i - j) for i in range(SIZE + 1) for j in range(SIZE + 1 - i)]
    expected = stats.multinomial.pmf(cells, SIZE, chances) * len(parts)
    observed = np.array([seen[cell] for cell in cells], np.float64)
    common = expected >= 10
    pooled = (np.append(of[common], of[~common].sum()) for of in (observed, expected))
    return float(stats.chisquare(*pooled).pvalue)


def drawn(
    rule: Rule = "multinomial", change: Callable[[Words], Words] = lambda words: words, cells: int = CELLS
) -> Int64s:
    shares, counts = SplitShares(PARTS), np.full(cells, SIZE)
    words = random_words(int(words_needed(counts, shares, rule).sum()), 12)
    return split(counts, shares, change(words), rule)


def test_the_parts_are_multinomial() -> None:
    parts = drawn()
    assert p_value(parts) > ACCEPT
    assert p_value(parts, (0.51, 0.29, 0.2)) < REJECT


@pytest.mark.parametrize(
    "change",
    [
        lambda words: np.repeat(words[::2], 2),  # two units on one word
        lambda words: words // np.uint64(100) * np.uint64(98),  # not uniform
        lambda words: words | np.uint64(1 << 60),  # a stuck bit
    ],
)
def test_wrong_words_are_detected(change: Callable[[Words], Words]) -> None:
    assert p_value(drawn(change=change)) < REJECT


def test_other_rules_are_not_multinomial() -> None:
    assert p_value(drawn("balanced")) < REJECT
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "UNIT_BY_UNIT", 5)
        assert p_value(drawn(cells=5000)) < REJECT
    assert p_value(drawn()[:, ::-1]) < REJECT


def test_balanced_varies_least() -> None:
    size = 7
    shares, counts = SplitShares(PARTS), np.full(CELLS, size)
    parts = split(counts, shares, random_words(CELLS, 5), "balanced")
    for j, part in enumerate(PARTS):
        x = float(size * part)
        least = (x - floor(x)) * (1 - (x - floor(x)))
        assert abs(parts[:, j].var() - least) < 0.01
        assert abs(parts[:, j].mean() - x) < 0.015


# ----------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("parts", [(), (F(1, 2),), (F(3, 2), F(-1, 2)), (F(0), F(1)), (0.5, 0.5), (1,)])
def test_shares_are_positive_fractions_that_add_up(parts: Any) -> None:
    with pytest.raises(ParameterError, match="add up to 1"):
        SplitShares(parts)


def test_what_cannot_be_split_is_refused() -> None:
    half, three = SplitShares((F(1, 2), F(1, 2))), np.array([3])
    good = np.zeros(3, np.uint64)
    for words in (good[:2], np.zeros(4, np.uint64), good.astype(np.int64), good[None]):
        with pytest.raises(ParameterError, match="as many uint64"):
            split(three, half, words)
    for counts in (three.astype(np.int32), three[None], three.astype(float)):
        with pytest.raises(ParameterError, match="no int64 row"):
            split(counts, half, good)  # type: ignore[arg-type]
    for count in (LARGEST_COUNT + 1, -LARGEST_COUNT - 1, -(2**63)):
        with pytest.raises(ParameterError, match="beyond"):
            words_needed(np.array([count]), half)
    with pytest.raises(ParameterError, match="no rule 'fair'"):
        split(three, half, good, "fair")  # type: ignore[arg-type]


def test_what_the_proof_computes_is_so() -> None:
    result = doctest.testfile(str(Path(module.__file__).with_suffix(".md")), module_relative=False, encoding="utf-8")
    assert result.attempted > 5
    assert result.failed == 0
