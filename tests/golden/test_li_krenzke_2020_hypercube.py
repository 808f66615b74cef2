"""Published numbers of Li & Krenzke (2020): Tables 1 to 4, δ, and the variance of the noise."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from math import exp, prod

import numpy as np
import pytest

from discreet.noise.key import public_stream
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.cubes.variance import reduction
from discreet_studies.hypercube import printed
from discreet_studies.hypercube.perturbation import EVALUATED, TABLE_2, chance, losses, table2
from discreet_studies.hypercube.records import query, table3
from discreet_studies.hypercube.simulation import MeanEstimate

UNCONDITIONAL = ("7.490", "3.552", "1.422", "0.544", "0.207", "0.0789", "0.0303", "0.0118", "0.0046", "0.0018")
RUNS = 200


def masses(epsilon: float, cap: int) -> dict[int, float]:
    """P(k) in floats, by the definition."""
    weights = {k: exp(-epsilon * abs(k)) for k in range(-cap, cap + 1)}
    return {k: weight / sum(weights.values()) for k, weight in weights.items()}


def test_002_tables_1_and_3_are_those_of_the_five_records() -> None:
    assert [(str(one.count), str(one.total)) for one in table3()] == [
        (one.perturbed_count, one.perturbed_total) for one in printed.RECORDS
    ]
    assert str(query()) == printed.QUERY


def test_002_table_2_every_printed_digit_is_that_of_one_sign() -> None:
    by_definition = masses(2, 7)
    for row in table2():
        assert row.right, row.k
        assert float(row.exact) == pytest.approx(by_definition[row.k], rel=1e-13)
        places = len(row.printed.partition(".")[2])
        assert Decimal(f"{by_definition[row.k]:.{places}f}") == Decimal(row.printed)
        if row.k:
            assert Decimal(f"{2 * by_definition[row.k]:.{places}f}") != Decimal(row.printed)  # not of both
    total = float(table2()[0].exact) + 2 * sum(float(row.exact) for row in table2()[1:])
    assert total == pytest.approx(1, abs=1e-15)


def test_002_section_3_2_delta_is_the_mass_at_the_cap() -> None:
    """Against a loop in floats over all outputs, which knows nothing of exponents."""
    p = masses(2, 7)
    rows = losses()
    for shift, row in enumerate(rows[:3], 1):
        loop = sum(max(p[k] - exp(2 * shift) * p.get(k - shift, 0) - 1e-16, 0) for k in p)
        assert float(row.by_enumeration) == pytest.approx(loop, rel=1e-8)
        assert row.equal
        assert row.epsilon == 2 * shift
    pairs = product(p, repeat=2)
    moved = sum(max(p[a] * p[b] - exp(4) * p.get(a - 1, 0) * p.get(b + 1, 0) - 1e-17, 0) for a, b in pairs)
    assert float(rows[3].by_enumeration) == pytest.approx(moved, rel=1e-7)
    assert rows[3].equal
    assert f"{float(rows[0].by_enumeration):.2e}" == "6.33e-07"
    assert f"{float(rows[3].by_enumeration):.2e}" == "1.27e-06"
    assert f"{float(TABLE_2.delta()):.7f}" == printed.DELTA


def test_002_section_4_the_variance_is_right_and_the_chance_is_not() -> None:
    made = chance(prod(printed.SHAPE))
    assert made.cells == 17_280
    assert f"{made.variance:.5f}" == printed.VARIANCE
    assert float(made.change) == pytest.approx(made.variance, rel=1e-14)
    assert float(made.change) < float(printed.CHANCE) / 100


def test_002_table_4_the_levels_are_the_only_ones() -> None:
    """Ten variables with two to five levels each and 17,280 cells: 2^a·3^b·4^c·5^d with 2^(a+2c) = 2^7, 3^3 and 5."""
    actual = [
        counts
        for counts in product(range(11), repeat=4)
        if sum(counts) == 10 and prod(level**n for level, n in zip((2, 3, 4, 5), counts, strict=True)) == 17_280
    ]
    assert actual == [(5, 3, 1, 1)]
    assert sorted(printed.SHAPE) == [2] * 5 + [3] * 3 + [4, 5]


def test_002_table_4_unconditional_expectations_in_closed_form() -> None:
    """By `reduction`, and from first principles: a cell of a table adds up N/n cells, all tables share one total."""
    shape, variance = printed.SHAPE, EVALUATED.variance()
    for dimension, said in enumerate(UNCONDITIONAL, 1):
        sizes = [prod(shape[i] for i in axes) for axes in combinations(range(10), dimension)]
        cells, whole = sum(sizes), prod(shape)
        plain = (len(sizes) * whole - len(sizes) ** 2 * whole / cells) * variance / (cells - 1)
        closed = reduction(shape, variance, [], dimension).spread_before
        assert closed == pytest.approx(plain, rel=1e-12)
        places = len(said.partition(".")[2])
        assert f"{closed:.{places}f}" == said


def test_002_table_4_simulated_noise_has_these_expectations() -> None:
    """Tables by NumPy's sums over axes, drawn from a public stream; and half the noise would be seen."""
    distribution, cells = DiscreteLaplace(Fraction(7), cap=1), prod(printed.SHAPE)
    source = public_stream("002, Table 4")
    noise = distribution.draw(source, 0, RUNS * cells).reshape(RUNS, *printed.SHAPE).astype(np.float64)
    for dimension in (1, 2, 3, 10):
        parts = []
        for axes in combinations(range(10), dimension):
            others = tuple(1 + place for place in range(10) if place not in axes)
            parts.append(noise.sum(axis=others).reshape(RUNS, -1))
        pooled = np.concatenate(parts, axis=1).var(axis=1, ddof=1)
        closed = reduction(printed.SHAPE, distribution.variance(), [], dimension).spread_before
        actual = MeanEstimate.of(pooled[:, None])
        assert abs(actual.z(np.array([closed]))[0]) < 4
        assert abs(actual.z(np.array([closed / 2]))[0]) > 8
