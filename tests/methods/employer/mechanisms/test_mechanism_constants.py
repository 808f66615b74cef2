"""The constants: suprema found by other means never exceed ε and reach it; smaller constants fail."""

from __future__ import annotations

from fractions import Fraction
from math import cosh, exp, log

import numpy as np
import pytest
from flint import arb, ctx
from scipy import integrate, optimize

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms.joint import JointLossBound, joint_constant, supremum
from discreet.methods.employer.mechanisms.laplace_pareto import LaplacePareto
from discreet.methods.employer.mechanisms.smooth_gamma import SmoothGamma
from discreet.methods.employer.mechanisms.smooth_laplace import SmoothLaplace, exact_delta

F = Fraction
TENTH, FIFTH, TWO = F(1, 10), F(1, 5), F(2)
PARAMETERS = [(TENTH, TWO), (F(1, 100), F(1)), (FIFTH, TWO), (F(1), F(4)), (TENTH, F(2, 5))]
W = np.concatenate([np.linspace(0, 12, 200_001), np.geomspace(12, 1e7, 200_001)])


def grid_sup(psi, r: float, shift: float) -> float:  # type: ignore[no-untyped-def]
    """Both directions, at one dilation and one shift, on a fine grid of w."""
    wide = psi(r * W + shift) - psi(W) - log(r)
    narrow = psi((W + shift) / r) - psi(W) + log(r)
    return float(max(wide.max(), narrow.max()))


@pytest.mark.parametrize(("alpha", "epsilon"), PARAMETERS)
def test_laplace_pareto_reaches_epsilon_and_no_more(alpha: Fraction, epsilon: Fraction) -> None:
    distribution = LaplacePareto(alpha, epsilon)
    g, c = float(distribution.shape), float(distribution.constant)

    def phi(z):  # type: ignore[no-untyped-def]
        return np.where(z <= g, z, g + g * np.log(np.maximum(z, g) / g))

    actual = [
        grid_sup(phi, r, share / c) for r in np.linspace(1, 1 + float(alpha), 6) for share in (0.0, 0.3, 0.7, 1.0)
    ]
    assert max(actual) <= float(epsilon) + 1e-9
    if 1 / c <= g:  # else the shift alone reaches into the tail, where it costs a little less
        assert max(actual) >= float(epsilon) * (1 - 1e-6)


@pytest.mark.parametrize("gamma", [F(4), F(5, 2), F(9)])
@pytest.mark.parametrize(("alpha", "epsilon"), PARAMETERS)
def test_smooth_gamma_joint_reaches_epsilon_and_no_more(alpha: Fraction, epsilon: Fraction, gamma: Fraction) -> None:
    if SmoothGamma.least_epsilon(alpha, gamma=gamma) > epsilon:
        return
    distribution = SmoothGamma(alpha, epsilon, gamma=gamma)
    c, power = float(distribution.constant), float(gamma)

    def psi(z):  # type: ignore[no-untyped-def]
        return np.log1p(z**power)

    actual = [
        grid_sup(psi, r, share / c) for r in np.linspace(1, 1 + float(alpha), 6) for share in (0.0, 0.3, 0.7, 1.0)
    ]
    assert max(actual) <= float(epsilon) + 1e-9
    assert max(actual) >= float(epsilon) * (1 - 1e-5)
    assert distribution.constant <= SmoothGamma(alpha, epsilon, "separate", gamma=gamma).constant


def test_a_smaller_joint_constant_is_not_certain() -> None:
    """Also where wide boxes have no finite bound at first: they must count as unknown, not as small."""
    for alpha, epsilon, gamma in ((TENTH, TWO, F(4)), (FIFTH, TWO, F(13, 4)), (TENTH, F(20), F(4)), (F(1), F(3), F(3))):
        c = SmoothGamma(alpha, epsilon, gamma=gamma).constant
        joint = JointLossBound(gamma, alpha, epsilon)
        assert joint.certain(c)
        assert joint.certain(2 * c)
        assert not joint.certain(c * (1 - F(1, 10**8)))
        assert not joint.certain(c / 10)
    assert joint_constant(F(4), TENTH, TWO, F(1142, 1000)) == F(1142, 1000)  # no better one: the given one stays


def test_the_supremum_of_one_loss() -> None:
    """Against scipy; and what lies beyond W is below ε."""
    joint = JointLossBound(F(4), TENTH, TWO)
    shift = F(7, 8)
    with ctx.workprec(128):
        for loss in joint.losses(shift):
            bound, where = supremum(loss, joint.top(shift), lambda bound, low: bound - low < 1e-10)
            stretch, moved, constant = float(loss.stretch), float(loss.shift), float(loss.constant)

            def negated(w: float, s: float = stretch, m: float = moved, k: float = constant) -> float:
                return -(np.log1p((s * w + m) ** 4) - np.log1p(w**4) + k)

            starts = np.linspace(0, float(joint.top(shift)), 50)
            best = max(-optimize.minimize_scalar(negated, bounds=(a, a + 1), method="bounded").fun for a in starts)
            assert bound == pytest.approx(best, abs=1e-7)
            assert float(loss.at(arb(where.numerator) / where.denominator)) == pytest.approx(bound, abs=1e-9)
            far = float(joint.top(shift))
            assert max(-negated(w) for w in np.geomspace(far, 1e6, 1000)) < 2


def test_means_are_as_documented() -> None:
    for distribution in (LaplacePareto(TENTH, TWO), LaplacePareto(TENTH, TWO, g=F(5, 2))):
        g = float(distribution.shape)
        norm = 1 + exp(-g) / (g - 1)
        body = integrate.quad(lambda z: z * exp(-z), 0, g)[0]
        tail = integrate.quad(lambda z, g=g: z * exp(-g) * (g / z) ** g, g, np.inf)[0]
        assert distribution.per_unit == pytest.approx(float(distribution.constant) * (body + tail) / norm, rel=1e-6)
    for gamma in (F(4), F(5, 2), F(16)):
        distribution = SmoothGamma(TENTH, TWO, "joint" if gamma < 16 else "separate", gamma=gamma)
        power = float(gamma)
        above = integrate.quad(lambda z, p=power: z / (1 + z**p), 0, np.inf, limit=500)[0]
        norm = integrate.quad(lambda z, p=power: 1 / (1 + z**p), 0, np.inf, limit=500)[0]
        assert distribution.per_unit == pytest.approx(float(distribution.constant) * above / norm, rel=1e-5)


def real_delta(r: float, shift: float, epsilon: float) -> float:
    """∫ max(p − e^ε·q, 0), the larger direction, for Laplace distributions of scales 1 and r, `shift` apart."""
    # Between the kinks and crossings (found on a fine grid) the integrand is smooth.
    z = np.linspace(-60 * r, 60 * r, 1_200_001)
    narrow, wide = np.exp(-np.abs(z)) / 2, np.exp(-np.abs(z - shift) / r) / (2 * r)
    step = z[1] - z[0]
    return float(
        max(
            np.maximum(wide - np.exp(epsilon) * narrow, 0).sum() * step,
            np.maximum(narrow - np.exp(epsilon) * wide, 0).sum() * step,
        )
    )


@pytest.mark.parametrize(
    ("alpha", "epsilon", "delta"),
    [(TENTH, TWO, F(1, 10**6)), (FIFTH, F(1), F(1, 200)), (F(1), F(4), F(1, 100)), (F(1, 2), F(3), F(1, 1000))],
)
def test_the_exact_delta_is_the_worst_over_shifts_and_dilations(
    alpha: Fraction, epsilon: Fraction, delta: Fraction
) -> None:
    distribution = SmoothLaplace(alpha, epsilon, delta)
    c, a, e = float(distribution.constant), float(alpha), float(epsilon)
    actual = {
        (i, share): real_delta(1 + a * i / 4, share / c, e) for i in range(1, 5) for share in (-1.0, 0.0, 0.5, 1.0)
    }
    formula = a * (1 + a) ** (-1 - 1 / a) * exp(-e / a) * cosh(1 / (a * c))
    assert float(exact_delta(alpha, epsilon, distribution.constant)) == pytest.approx(formula, rel=1e-9)
    assert max(actual.values()) == pytest.approx(formula, rel=1e-3)
    assert max(actual, key=actual.__getitem__) in ((4, 1.0), (4, -1.0))
    assert formula <= float(delta) * (1 + 1e-9)
    assert real_delta(1.0, 1 / c, e) < 1e-12  # without a dilation the loss is pure


def test_the_formula_of_delta_is_refused_where_it_does_not_hold() -> None:
    with pytest.raises(ParameterError, match="too small for the formula"):
        exact_delta(TENTH, TWO, F(1, 3))
    with pytest.raises(ParameterError, match="too small for the formula"):
        exact_delta(F(9), F(5, 2), F(1, 2))


def test_dilations_of_several_cells_add_up() -> None:
    for d in (2, 8):
        distribution = LaplacePareto(TENTH, TWO, cells=d)
        g, c = float(distribution.shape), float(distribution.constant)
        assert max(1 / c, d * (g - 1) * log(1.1) + 1 / (1.1 * c)) == pytest.approx(2, abs=1e-12)
        gamma = SmoothGamma(TENTH, F(3), cells=d)
        slide = 3**0.75
        assert max(slide, slide / 1.1 + d * 3 * log(1.1) * float(gamma.constant)) / float(
            gamma.constant
        ) == pytest.approx(3, abs=1e-9)
    halves = SmoothLaplace(TENTH, F(4), F(1, 10**6), cells=2)
    assert halves.constant == SmoothLaplace(TENTH, TWO, F(1, 2 * 10**6)).constant
