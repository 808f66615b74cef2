"""Admissible parameters: exact values, the regions, the smallest ε, pickles and equality."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from fractions import Fraction
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms import Mechanism
from discreet.methods.employer.mechanisms.discrete import Geometric, Truncated
from discreet.methods.employer.mechanisms.laplace_pareto import LaplacePareto, best_g
from discreet.methods.employer.mechanisms.log_laplace import LogLaplace
from discreet.methods.employer.mechanisms.smooth_gamma import SmoothGamma
from discreet.methods.employer.mechanisms.smooth_laplace import SmoothLaplace
from discreet.privacy.exact import format_exact
from support.hypothesis_profile import examples

F = Fraction
TENTH, TWO = F(1, 10), F(2)


def everything() -> list[Mechanism]:
    return [
        LaplacePareto(TENTH, TWO),
        SmoothGamma(TENTH, TWO),
        SmoothGamma(TENTH, TWO, "printed"),
        SmoothLaplace(TENTH, TWO, F(1, 10**6)),
        LogLaplace(TENTH, TWO),
        Geometric(TWO),
        Truncated(TWO, 1000),
    ]


def test_each_describes_itself() -> None:
    actual = [(m.name, m.protects, m.epsilon, m.delta) for m in everything()]
    assert actual == [
        ("laplace-pareto", "size", TWO, 0),
        ("smooth-gamma", "size", TWO, 0),
        ("smooth-gamma", "size", TWO, 0),
        ("smooth-laplace", "size", TWO, F(1, 10**6)),
        ("log-laplace", "size", TWO, 0),
        ("geometric", "job", TWO, 0),
        ("truncated", "establishment", TWO, 0),
    ]
    assert [m.describe()[:9] for m in everything()] == [*["count + 0", "count + 1", "count + 3", "count + 0"],
                                                        "(count + ", "count + d", "count + d"]  # fmt: skip
    assert LogLaplace(TENTH, TWO, unbiased=False).describe().endswith("biased upwards; rounded to integers")


def test_a_used_one_pickles_and_is_equal_to_a_fresh_one() -> None:
    for used, fresh in zip(everything(), everything(), strict=True):
        counts = np.array([3, 4])
        used.mean_abs(counts.astype(float), counts.astype(float))
        used.margin(F(9, 10), counts)
        _ = getattr(used, "per_unit", 0)
        assert used == fresh
        assert hash(used) == hash(fresh)
        assert pickle.dumps(used) == pickle.dumps(fresh)
        again = pickle.loads(pickle.dumps(used))
        assert again == used
        assert float(again.upper(5, 5, 7)) == float(used.upper(5, 5, 7))


REFUSED: list[Callable[[], Any]] = [
    lambda: LaplacePareto(0.1, TWO),  # type: ignore[arg-type]
    lambda: LaplacePareto(TENTH, 2.0),  # type: ignore[arg-type]
    lambda: LaplacePareto(F(0), TWO),
    lambda: LaplacePareto(F(1, 2**41), TWO),
    lambda: LaplacePareto(TENTH, TWO, g=F(2)),
    lambda: LaplacePareto(TENTH, TWO, g=F(65)),
    lambda: LaplacePareto(TENTH, TWO, g=F(40)),  # the dilation would take all of ε
    lambda: LaplacePareto(TENTH, TWO, cells=0),
    lambda: LaplacePareto(TENTH, TWO, cells=20),
    lambda: SmoothGamma(TENTH, TWO, "best"),  # type: ignore[arg-type]
    lambda: SmoothGamma(TENTH, TWO, gamma=F(2)),
    lambda: SmoothGamma(TENTH, TWO, gamma=F(17)),
    lambda: SmoothGamma(TENTH, TWO, "printed", gamma=F(5)),
    lambda: SmoothGamma(TENTH, TWO, "printed", cells=2),
    lambda: SmoothGamma(TENTH, TWO, "separate", cells=7),
    lambda: SmoothGamma(TENTH, F(2, 5), "printed"),
    lambda: SmoothLaplace(TENTH, TWO, F(0)),
    lambda: SmoothLaplace(TENTH, TWO, F(1)),
    lambda: SmoothLaplace(TENTH, TWO, 1e-6),  # type: ignore[arg-type]
    lambda: SmoothLaplace(TENTH, TWO, F(1, 10**6), "loose"),  # type: ignore[arg-type]
    lambda: SmoothLaplace(TENTH, TWO, F(1, 10**6), "printed"),
    lambda: SmoothLaplace(TENTH, TWO, F(1, 10**6), cells=4),
    lambda: LogLaplace(TENTH, F(9, 100)),
    lambda: LogLaplace(TENTH, F(19, 100), "printed"),
    lambda: LogLaplace(TENTH, TWO, "loose"),  # type: ignore[arg-type]
    lambda: Geometric(F(0)),
    lambda: Geometric(F(2**41)),
    lambda: Geometric(2.0),  # type: ignore[arg-type]
    lambda: Truncated(TWO, 1),
    lambda: Truncated(TWO, 10, "loose"),  # type: ignore[arg-type]
    lambda: LaplacePareto(TENTH, TWO).margin(F(1), np.array([1])),
    lambda: Geometric(TWO).margin(0.9, np.array([1])),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("wrong", REFUSED)
def test_what_is_inexact_or_out_of_range_is_refused(wrong: Callable[[], Any]) -> None:
    with pytest.raises(ParameterError):
        wrong()


LEAST: list[tuple[Callable[[Fraction], Mechanism], Fraction, float]] = [
    (lambda e: LaplacePareto(TENTH, e), LaplacePareto.least_epsilon(TENTH), 17 / 16 * log(1.1)),
    (lambda e: LaplacePareto(TENTH, e, cells=3), LaplacePareto.least_epsilon(TENTH, cells=3), 51 / 16 * log(1.1)),
    (lambda e: LaplacePareto(TENTH, e, g=F(5)), LaplacePareto.least_epsilon(TENTH, g=F(5)), 4 * log(1.1)),
    (lambda e: LaplacePareto(TENTH, e, g=F(2001, 1000)), LaplacePareto.least_epsilon(TENTH, g=F(2001, 1000)),
     1.001 * log(1.1)),
    (lambda e: SmoothGamma(TENTH, e), SmoothGamma.least_epsilon(TENTH), 3 * log(1.1)),
    (lambda e: SmoothGamma(TENTH, e, "separate", cells=2),
     SmoothGamma.least_epsilon(TENTH, constants="separate", cells=2), 6 * log(1.1)),
    (lambda e: SmoothGamma(TENTH, e, gamma=None), SmoothGamma.least_epsilon(TENTH, gamma=None), 1.25 * log(1.1)),
    (lambda e: SmoothGamma(TENTH, e, "printed"), SmoothGamma.least_epsilon(TENTH, constants="printed"), 5 * log(1.1)),
    (lambda e: SmoothLaplace(TENTH, e, F(1, 10)), SmoothLaplace.least_epsilon(TENTH, F(1, 10)), log(1.1)),
    (lambda e: SmoothLaplace(TENTH, e, F(1, 10**6)), SmoothLaplace.least_epsilon(TENTH, F(1, 10**6)),
     0.1 * log(0.1 / 1e-6 / 1.1**11)),
    (lambda e: SmoothLaplace(TENTH, e, F(1, 10**6), cells=2), SmoothLaplace.least_epsilon(TENTH, F(1, 10**6), cells=2),
     0.2 * log(0.1 / 5e-7 / 1.1**11)),
    (lambda e: SmoothLaplace(TENTH, e, F(1, 10**6), "printed"),
     SmoothLaplace.least_epsilon(TENTH, F(1, 10**6), constants="printed"), 2 * log(1e6) * log(1.1)),
    (lambda e: LogLaplace(TENTH, e), LogLaplace.least_epsilon(TENTH), log(1.1)),
    (lambda e: LogLaplace(TENTH, e, "printed"), LogLaplace.least_epsilon(TENTH, scale="printed"), 2 * log(1.1)),
    (Geometric, F(9095, 10**16), 2.0**-40),
    (lambda e: Truncated(e, 1000), F(9086, 10**13), 999 * 2.0**-40),
    (lambda e: Truncated(e, 1000, "printed"), F(9095, 10**13), 1000 * 2.0**-40),
]  # fmt: skip


@pytest.mark.parametrize(("make", "smallest", "bound"), LEAST)
def test_the_smallest_epsilon_is_admissible_and_not_much_larger_than_the_bound(
    make: Callable[[Fraction], Mechanism], smallest: Fraction, bound: float
) -> None:
    assert bound < smallest <= bound * 1.002
    digits = f"{float(smallest):.12e}".split("e")[0].replace(".", "").rstrip("0")
    assert len(digits) <= 4
    mechanism = make(smallest)
    counts = np.array([10])
    mechanism.margin(F(9, 10), counts)  # its noise exists
    with pytest.raises(ParameterError) as error:
        make(smallest * F(99, 100))
    assert f"The smallest admissible epsilon is {format_exact(smallest)}" in str(error.value)


@examples(40)
@given(st.fractions(F(1, 100), F(2), max_denominator=100), st.integers(1, 20))
def test_the_smallest_epsilon_is_admissible_everywhere(alpha: Fraction, cells: int) -> None:
    LaplacePareto(alpha, LaplacePareto.least_epsilon(alpha, cells=cells), cells=cells)
    SmoothGamma(alpha, SmoothGamma.least_epsilon(alpha, cells=cells), cells=cells)
    LogLaplace(alpha, LogLaplace.least_epsilon(alpha))
    for delta in (F(1, 20), F(1, 10**20)):
        for constants in ("exact", "printed"):
            smallest = SmoothLaplace.least_epsilon(alpha, delta, constants=constants, cells=cells)  # type: ignore[arg-type]
            SmoothLaplace(alpha, smallest, delta, constants, cells)  # type: ignore[arg-type]


def test_the_printed_constants_are_refused_where_they_do_not_keep_their_delta() -> None:
    """Haney et al. 2017, Lemma 9.1 fails for α = .2, δ = 1e-20: at the smallest ε it allows, the exact δ is 2.0e-20."""
    alpha, delta = F(1, 5), F(1, 10**20)
    claimed = 2 * log(1e20) * log(1.2)
    smallest = SmoothLaplace.least_epsilon(alpha, delta, constants="printed")
    assert claimed * 1.005 < smallest < claimed * 1.1
    with pytest.raises(ParameterError, match="too small for this delta"):
        SmoothLaplace(alpha, F(claimed * 1.001), delta, "printed")


def test_the_chosen_g_is_the_best_on_its_grid() -> None:
    for alpha, epsilon, cells in ((TENTH, TWO, 1), (F(1, 100), F(1), 1), (F(1, 5), F(4), 8), (F(1), F(1), 1)):
        chosen = LaplacePareto(alpha, epsilon, cells=cells)
        assert chosen.shape == best_g(alpha, epsilon, cells)
        errors = {}
        for step in range(33, 65 * 16):
            g = F(step, 16)
            if float(epsilon) <= cells * float(g - 1) * log(1 + alpha) or g > 64:
                break
            errors[g] = LaplacePareto(alpha, epsilon, g=g, cells=cells).per_unit
        assert chosen.shape == min(errors, key=errors.__getitem__)
