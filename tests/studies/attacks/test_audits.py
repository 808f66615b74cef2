"""Audits: correct mechanisms are not refuted, broken ones are; and the limits are those of Clopper and Pearson."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms import Mechanism
from discreet.methods.employer.mechanisms.discrete import Geometric, Truncated
from discreet.methods.employer.mechanisms.laplace_pareto import LaplacePareto
from discreet.methods.employer.mechanisms.log_laplace import LogLaplace
from discreet.methods.employer.mechanisms.smooth_gamma import SmoothGamma
from discreet.methods.employer.mechanisms.smooth_laplace import SmoothLaplace
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.laplace_pareto import LaplacePareto as Noise
from discreet.noise.stream import Stream
from discreet_studies.attacks.audits import audit_draws
from discreet_studies.attacks.proportions import SuccessRate, lower, upper
from discreet_studies.attacks.runs import grown, required
from support.mechanism_audits import AuditedCells, AuditedClaim, Draw, audit, joint, reachable, single

F = Fraction
ALPHA, EPSILON = F(1, 10), F(2)
KEY = ReleaseKey.simulation("audits")
MANY = 200_000
PARETO = LaplacePareto(ALPHA, EPSILON)


def one_cell(draw: Draw, x: int, y: int, samples: int = MANY, **given: Fraction) -> AuditedClaim:
    return audit(draw, AuditedCells((x,), (x,)), AuditedCells((y,), (y,)), KEY, samples, **given)


@pytest.mark.parametrize(
    ("hits", "trials"), [(0, 10), (10, 10), (3, 10), (50, 100_000), (99_990, 100_000), (1, 1), (20_000, 100_000)]
)
@pytest.mark.parametrize("tail", [F(1, 40), F(1, 10**6)])
def test_limits_are_clopper_and_pearsons_rounded_outwards(hits: int, trials: int, tail: Fraction) -> None:
    low, high = lower(hits, trials, tail), upper(hits, trials, tail)
    expected = stats.binomtest(hits, trials).proportion_ci(1 - 2 * float(tail), "exact")
    assert low == pytest.approx(expected.low, rel=1e-6, abs=1e-12)
    assert high == pytest.approx(expected.high, rel=1e-6, abs=1e-12)
    assert low <= expected.low + 1e-11
    assert high >= expected.high - 1e-11


@pytest.mark.parametrize(
    ("mechanism", "near"),
    [
        (PARETO, 1.65),
        (SmoothGamma(ALPHA, EPSILON), 1.6),
        (LogLaplace(ALPHA, EPSILON), 1.75),
        (SmoothLaplace(ALPHA, EPSILON, F(1, 1000)), 1.5),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_correct_mechanisms_are_not_refuted_and_the_bound_is_close(mechanism: Mechanism, near: float) -> None:
    actual = [
        audit(mechanism.draw, one, other, KEY, 60_000, delta=mechanism.delta, claimed=mechanism.epsilon)
        for _, one, other in single(ALPHA)
    ]
    assert not any(made.refuted for made in actual)
    assert max(made.epsilon_at_least for made in actual) > near


def test_one_job_and_whole_establishments() -> None:
    edge, node = Geometric(EPSILON), Truncated(EPSILON, 100)
    near = [one_cell(edge.draw, x, x + 1, claimed=EPSILON) for x in (0, 1, 50)]
    assert not any(made.refuted for made in near)
    assert min(made.epsilon_at_least for made in near) > 1.9
    assert one_cell(edge.draw, 100, 110, claimed=EPSILON).refuted  # an establishment's size is no secret
    whole = one_cell(node.draw, 0, 99, claimed=EPSILON)
    assert not whole.refuted
    assert whole.epsilon_at_least > 1.9


@pytest.mark.parametrize("growing", ["one", "all"])
@pytest.mark.parametrize(
    "mechanism",
    [
        LaplacePareto(ALPHA, EPSILON, cells=8),
        SmoothGamma(ALPHA, F(4), cells=8),
        SmoothLaplace(ALPHA, F(6), F(1, 100), cells=8),
    ],
    ids=lambda m: m.name,
)
def test_all_cells_of_an_establishment_together(mechanism: Mechanism, growing: str) -> None:
    one, other = joint(ALPHA, 8, 1000, growing)  # type: ignore[arg-type]
    made = audit(mechanism.draw, one, other, KEY, 60_000, delta=mechanism.delta, claimed=mechanism.epsilon)
    assert not made.refuted
    assert made.epsilon_at_least > 0.1


def floored(counts: np.ndarray, largest: np.ndarray, stream: Stream, first: int) -> np.ndarray:
    return counts + PARETO.noise.draw(stream, first, counts.size, np.maximum(largest // 10, 1) * 10)


def halved(counts: np.ndarray, largest: np.ndarray, stream: Stream, first: int) -> np.ndarray:
    noise = Noise(PARETO.noise.scale / 2, F(1), PARETO.noise.bound, PARETO.shape)
    return counts + noise.draw(stream, first, counts.size, PARETO.multiples(largest))


def skipped(counts: np.ndarray, largest: np.ndarray, stream: Stream, first: int) -> np.ndarray:
    return np.where(counts == 0, 0, PARETO.draw(counts, largest, stream, first))


def unbounded(counts: np.ndarray, largest: np.ndarray, stream: Stream, first: int) -> np.ndarray:
    return np.where(largest == 0, counts, PARETO.draw(counts, largest, stream, first))


@pytest.mark.parametrize(
    ("draw", "one", "other"),
    [
        (floored, AuditedCells((19,), (19,)), AuditedCells((20,), (20,))),
        (halved, AuditedCells((100,), (100,)), AuditedCells((110,), (110,))),
        (skipped, AuditedCells((0,), (5,)), AuditedCells((1,), (5,))),
        (unbounded, AuditedCells((5,), (0,)), AuditedCells((6,), (0,))),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_broken_noise_of_one_cell_is_detected(draw: Draw, one: AuditedCells, other: AuditedCells) -> None:
    assert audit(draw, one, other, KEY, MANY, claimed=EPSILON).refuted
    assert not audit(PARETO.draw, one, other, KEY, MANY, claimed=EPSILON).refuted


def test_shared_noise_in_all_cells_is_detected() -> None:
    mechanism, d = LaplacePareto(ALPHA, EPSILON, cells=8), 8

    def same(counts: np.ndarray, largest: np.ndarray, stream: Stream, first: int) -> np.ndarray:
        rows = len(counts) // d
        drawn = mechanism.draw(np.zeros(rows, np.int64), largest[::d].copy(), stream, first)
        return (counts.reshape(rows, d) + drawn[:, None]).ravel()

    made = audit(same, *joint(ALPHA, d, 1000, "one"), KEY, 50_000, claimed=EPSILON)
    assert made.refuted
    assert "−" in made.event  # by the difference of two cells


def test_omitted_dilation_in_many_cells_is_detected() -> None:
    alpha = F(1, 5)
    one, other = joint(alpha, 16, 1000, "one")
    assert audit(LaplacePareto(alpha, EPSILON).draw, one, other, KEY, MANY, claimed=EPSILON).refuted
    right = LaplacePareto(alpha, F(4), cells=16)
    assert not audit(right.draw, one, other, KEY, 60_000, claimed=F(4)).refuted


def test_cell_sensitivity_under_strong_privacy_is_detected() -> None:
    """Haney et al. 2017, Theorem 7.5, the strong half: 100 → 110 workers, all ten in a cell of few."""
    mechanism = LaplacePareto(ALPHA, EPSILON, cells=8)
    one, other = joint(ALPHA, 8, 100, "one")
    of_the_cell = (AuditedCells(cells.counts, cells.counts) for cells in (one, other))
    assert audit(mechanism.draw, *of_the_cell, KEY, MANY, claimed=EPSILON).epsilon_at_least > 4


def test_a_delta_claimed_as_pure_is_detected() -> None:
    mechanism = SmoothLaplace(F(1, 2), EPSILON, F(1, 20))
    assert one_cell(mechanism.draw, 100, 150, claimed=EPSILON).refuted
    assert not one_cell(mechanism.draw, 100, 150, claimed=EPSILON, delta=mechanism.delta).refuted


def test_weak_privacy_does_not_protect_the_shape() -> None:
    """Haney et al. 2017, Theorem 7.2 fails: size 100, one attribute 90 → 99, the rest 10 → 1; exactly 9.86 for the rest
    alone."""
    one, other = AuditedCells((90, 10), (90, 10)), AuditedCells((99, 1), (99, 1))
    assert audit(PARETO.draw, one, other, KEY, MANY).epsilon_at_least > 7.5
    rest = one_cell(PARETO.draw, 10, 1).epsilon_at_least
    assert 6.5 < rest < 9.86


def test_a_bound_cannot_exceed_what_the_samples_reach() -> None:
    one, other = np.zeros((4000, 2), np.int64), np.ones((4000, 2), np.int64)
    assert audit_draws(one, other).epsilon_at_least == pytest.approx(reachable(4000))
    assert audit_draws(one, one).epsilon_at_least == 0
    assert audit_draws(one, other, delta=F(999_999, 10**6)).epsilon_at_least == 0


def test_bounds_have_the_stated_confidence() -> None:
    """At a level of 9 in 10, at most one audit in ten of tight noise exceeds ε."""
    edge, wrong = Geometric(F(1)), 0
    for i in range(40):
        key = ReleaseKey.simulation(f"audit {i}")
        made = audit(
            edge.draw, AuditedCells((3,), (3,)), AuditedCells((4,), (4,)), key, 4000, level=F(9, 10), claimed=F(1)
        )
        wrong += made.refuted
    assert stats.binomtest(wrong, 40, 0.1, alternative="greater").pvalue > 1e-6


def test_neighbours_are_neighbours() -> None:
    assert [grown(x, ALPHA) for x in (0, 9, 10, 19, 20, 100)] == [1, 10, 11, 20, 22, 110]
    for _, one, other in single(ALPHA):
        assert one.counts[0] < other.counts[0]
        assert one.largest[0] <= other.largest[0] <= max(grown(one.largest[0], ALPHA), one.largest[0])
    for growing in ("one", "all"):
        one, other = joint(ALPHA, 8, 100, growing)
        assert (sum(one.counts), sum(other.counts)) == (100, 110)
        assert (one.largest, other.largest) == ((100,) * 8, (110,) * 8)
    for pair in required(ALPHA):
        before, after = (rows.sum() for rows in pair.tables())
        if pair.requirement == "size":
            assert before < after <= grown(before, ALPHA)
        if pair.requirement == "shape":
            (first, last), (then, _) = pair.one[0][:2], pair.other[0][:2]
            assert before == after == first + last
            assert first < then <= (1 + ALPHA) * first


def test_refusals() -> None:
    one = AuditedCells((1,), (1,))
    with pytest.raises(ParameterError):
        audit(PARETO.draw, one, one, KEY, 10)
    with pytest.raises(ParameterError):
        audit(PARETO.draw, one, AuditedCells((1, 2), (1, 2)), KEY)
    with pytest.raises(ParameterError):
        SuccessRate(2, 1)
