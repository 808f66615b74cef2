"""The smooth line: β-smooth and above every change by refits; its noise; its answers."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError, ReleaseKeyError
from discreet.methods.employer.mechanisms.laplace_pareto import LaplacePareto
from discreet.noise.key import ReleaseKey
from discreet_studies.sensitivity.comparators.moments import ALLOWED, UNIT, Moments, multiples
from discreet_studies.sensitivity.comparators.smooth_line import SLACK, SmoothLine, mean_range, profile
from support.hypothesis_profile import examples

F = Fraction
KEY = ReleaseKey.simulation("formal smooth line")
X0 = F(1, 4)
Cell = list[tuple[float, float]]
unit = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
record = st.tuples(unit, unit)


def moments(*cells: Cell) -> Moments:
    rows = [r for cell in cells for r in cell]
    starts = np.concatenate([[0], np.cumsum([len(c) for c in cells])]).astype(np.int64)
    return Moments.of(np.array([r[0] for r in rows], float), np.array([r[1] for r in rows], float), starts)


def refit(cell: Cell, x0: float) -> float:
    """The clamped prediction by a solver; ½ without a line."""
    x, y = np.array([r[0] for r in cell], float), np.array([r[1] for r in cell], float)
    if len(set(x.tolist())) < 2:
        return 0.5
    design = np.stack([np.ones(x.size), x - x.mean()], axis=1)
    level, slope = np.linalg.lstsq(design, y, rcond=None)[0]
    return float(np.clip(level + slope * (x0 - x.mean()), 0, 1))


def bounds(cell: Cell, x0: float) -> np.ndarray:
    m = moments(cell)
    n = int(m.n[0])
    actual = profile(n, m.total_x[0], m.total_y[0], m.sxx[0], m.sxy[0], x0, n)
    return np.concatenate([actual, np.ones(3)])


def random_cell(rng: np.random.Generator, n: int) -> Cell:
    """Spread, clustered, two-point or heavy-ended x; y free, a step, or far from the line."""
    shapes = (
        lambda: rng.random(n),
        lambda: rng.integers(0, 2, n).astype(float),
        lambda: np.clip(rng.random() + 0.1 * rng.normal(size=n), 0, 1),
        lambda: rng.beta(0.3, 0.3, n),
    )
    x = shapes[rng.integers(len(shapes))]()
    responses = (
        lambda: rng.random(n),
        lambda: (x > rng.random()).astype(float),
        lambda: (rng.random(n) < x).astype(float),
    )
    y = responses[rng.integers(len(responses))]()
    return list(zip(x.tolist(), y.tolist(), strict=True))


@examples(300)
@given(st.lists(record, max_size=25), record, st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]))
def test_neighbours_of_any_kind(cell: Cell, new: tuple[float, float], x0: float) -> None:
    check_pair(cell, [*cell, new], x0)


def check_pair(small: Cell, large: Cell, x0: float) -> float:
    a, b = bounds(small, x0), bounds(large, x0)
    change = abs(refit(small, x0) - refit(large, x0))
    assert change <= min(a[0], b[0]) + 1e-9
    size = max(len(a), len(b)) + 1
    a, b = (np.concatenate([v, np.ones(size - len(v))]) for v in (a, b))
    assert (np.diff(a) >= 0).all()
    assert (a[:-1] <= b[1:] * (1 + 1e-12)).all()
    assert (b[:-1] <= a[1:] * (1 + 1e-12)).all()
    return float(change / min(a[0], b[0]))


def test_neighbours_large_and_adversarial() -> None:
    """Cells big enough for bounds below 1, new records at corners and beside: never exceeded, and nearly reached."""
    rng = np.random.default_rng(7)
    reached = []
    for _ in range(1500):
        cell = random_cell(rng, int(rng.choice([10, 30, 100, 300])))
        new = (float(rng.choice([0, 1, rng.random()])), float(rng.choice([0, 1, rng.random()])))
        x0 = float(rng.choice([0, 0.25, 0.5, 1, rng.random()]))
        if bounds(cell, x0)[0] < 1:
            reached.append(check_pair(cell, [*cell, new], x0))
    assert len(reached) > 500
    assert max(reached) > 0.8


def test_smooth_sensitivities_of_neighbours_share_a_factor() -> None:
    """S as it is used, floor and rounding included: multiples within 1 + α of each other."""
    rng = np.random.default_rng(8)
    for alpha in (F(1, 16), F(1, 2), F(2)):
        method = SmoothLine(X0, F(16), alpha)
        cells = [random_cell(rng, int(rng.choice([0, 1, 3, 20, 80, 200]))) for _ in range(150)]
        corners = [(0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (0.0, 0.0), (0.5, 1.0)]
        larger = [[*cell, corners[i % 5]] for i, cell in enumerate(cells)]
        one, two = (multiples(method.sensitivity(moments(*these))) for these in (cells, larger))
        ratio = np.maximum(one / two, two / one).max()
        assert ratio <= float(1 + alpha)
        change = np.array([abs(refit(a, 0.25) - refit(b, 0.25)) for a, b in zip(cells, larger, strict=True)])
        assert (np.minimum(one, two) * float(UNIT) >= change - 1e-9).all()


def test_the_check_detects_a_bound_that_is_not_smooth() -> None:
    """A_0 alone jumps by more between some neighbours than 1 + α = 17/16 allows."""
    rng = np.random.default_rng(9)
    jumps = []
    for _ in range(200):
        cell = random_cell(rng, 30)
        jumps.append(bounds([*cell, (0.0, 1.0)], 0.25)[0] / bounds(cell, 0.25)[0])
    assert max(*jumps, 1 / min(jumps)) > 17 / 16


def test_distant_cells_are_bounded_too() -> None:
    """A_k against refits: k records taken out greedily, then the worst corner added."""
    rng = np.random.default_rng(10)
    for _ in range(40):
        cell = random_cell(rng, 60)
        actual = bounds(cell, 0.25)
        rest = sorted(cell, key=lambda r: abs(r[0] - 0.5))
        for k in range(1, min(len(actual) - 3, 20)):
            rest = rest[:-1]
            changes = [abs(refit([*rest, c], 0.25) - refit(rest, 0.25)) for c in ((0.0, 0.0), (0.0, 1.0), (1.0, 1.0))]
            assert max(changes) <= actual[k] + 1e-9


@given(st.lists(unit, max_size=8), st.integers(1, 4), st.data())
def test_the_range_of_the_mean(values: list[float], j: int, data: st.DataObject) -> None:
    low, high = mean_range(float(sum(values)), len(values), j)
    removed = data.draw(st.integers(0, min(j, len(values))))
    kept = data.draw(st.permutations(values))[removed:]
    kept += data.draw(st.lists(unit, max_size=j - removed))
    if kept:
        assert low - 1e-12 <= np.mean(kept) <= high + 1e-12


def test_sxx_changes_by_less_than_one_and_the_constant_is_attained() -> None:
    zeros = [(0.0, 0.0)] * 999
    assert float(np.diff(moments(zeros, [*zeros, (1.0, 0.0)]).sxx)[0]) == pytest.approx(0.999)


def test_the_constants_are_those_of_the_mechanism_and_cover_shift_and_dilation() -> None:
    """Shift 1/c at no dilation, and (g−1)·ln(1+α) + 1/((1+α)c) at the largest: at most ε (laplace_pareto.md)."""
    for epsilon, alpha in ((F(1), F(1, 4)), (F(4), F(1)), (F(16), F(2))):
        method = SmoothLine(X0, epsilon, alpha)
        known = LaplacePareto(alpha, epsilon)
        c, g = method.noise.scale / UNIT, method.noise.g
        assert (c, g) == (known.constant, known.shape)
        assert 1 / c <= epsilon
        assert float(g - 1) * log(1 + alpha) + 1 / float((1 + alpha) * c) <= float(epsilon) + 1e-12
        assert exp(method.beta + SLACK) == pytest.approx(1 + float(alpha), rel=1e-12)
        assert method.guarantee.epsilon == epsilon
        assert method.guarantee.delta == 0


def test_noise_has_the_expected_magnitude() -> None:
    n, copies = 400, 4000
    x = (np.arange(n) + 0.5) / n
    cell = np.tile(x, copies), np.tile(0.4 + 0.2 * x, copies), np.arange(copies + 1, dtype=np.int64) * n
    method = SmoothLine(X0, F(8), F(1, 4))
    error = np.abs(method.estimate(*cell, KEY).values - 0.45)
    s = method.sensitivity(Moments.of(*cell))[0] + float(ALLOWED)
    assert 0.95 < error.mean() / (method.mechanism.per_unit * s) < 1.05


def log_density(z: np.ndarray, g: float) -> np.ndarray:
    """ln of Laplace–Pareto, but for its constant."""
    far = np.maximum(np.abs(z), g)
    return np.asarray(np.where(np.abs(z) <= g, -np.abs(z), -g - g * np.log(far / g)))


def largest_loss(method: SmoothLine, small: Cell, large: Cell, scales: tuple[float, float]) -> float:
    """The worst |ln ratio| of the densities of what two neighbours release, over a wide fine range of it."""
    c, g = float(method.mechanism.constant), float(method.mechanism.shape)
    reach = np.geomspace(1e-6, 1e3, 4000) * c * max(scales)
    out = np.concatenate([refit(cell, 0.25) + side * reach for cell in (small, large) for side in (-1, 1)])
    distributions = [
        log_density((out - refit(cell, 0.25)) / (c * s), g) - log(c * s)
        for cell, s in zip((small, large), scales, strict=True)
    ]
    return float(np.abs(distributions[0] - distributions[1]).max())


def test_the_loss_between_neighbours_is_within_epsilon_and_would_not_be_with_local_sensitivities() -> None:
    rng = np.random.default_rng(13)
    method = SmoothLine(X0, F(1), F(1, 4))
    ours, broken = [], []
    for _ in range(300):
        small = random_cell(rng, int(rng.choice([12, 25, 60])))
        large = [*small, (float(rng.integers(2)), float(rng.integers(2)))]
        s = method.sensitivity(moments(small, large))
        ours.append(largest_loss(method, small, large, (s[0], s[1])))
        local = bounds(small, 0.25)[0], bounds(large, 0.25)[0]
        broken.append(largest_loss(method, small, large, local))
    assert 0.5 < max(ours) <= 1
    assert max(broken) > 1


def test_the_bound_is_near_the_local_sensitivity_of_a_regular_cell() -> None:
    rng = np.random.default_rng(11)
    x = rng.random(300)
    cell = list(zip(x.tolist(), np.clip(0.4 + 0.2 * x + rng.normal(0, 0.2, 300), 0, 1).tolist(), strict=True))
    corners = [(a, b) for a in (0.0, 1.0) for b in (0.0, 1.0)]
    observed = max(abs(refit([*cell, c], 0.25) - refit(cell, 0.25)) for c in corners)
    method = SmoothLine(X0, F(2), F(1, 4))
    assert observed <= method.sensitivity(moments(cell))[0] < 1.3 * observed


def test_cells_without_a_line_get_the_full_range_as_sensitivity() -> None:
    method = SmoothLine(X0, F(2), F(1, 4))
    cells = moments([], [(0.5, 0.5)], [(0.5, 0.1)] * 50, [(0.0, 0.0), (1.0, 1.0)])
    assert (method.sensitivity(cells) == 1).all()


def test_plans_are_public_and_refuse_inadmissible_parameters() -> None:
    small, large = (SmoothLine.planned(X0, F(2), n) for n in (100, 1000))
    assert small.alpha > large.alpha
    assert small == SmoothLine.planned(X0, F(2), 100)
    with pytest.raises(ParameterError):
        SmoothLine.planned(X0, F(1, 1000), 100)


def test_estimates_repeat_under_a_key_stay_in_range_and_refuse_real_keys() -> None:
    rng = np.random.default_rng(12)
    cells = rng.random(3000), rng.random(3000), np.arange(0, 3001, 30, dtype=np.int64)
    method = SmoothLine(X0, F(1), F(1, 4))
    once = method.estimate(*cells, KEY)
    assert np.array_equal(once.values, method.estimate(*cells, KEY).values)
    assert not np.array_equal(once.values, method.estimate(*cells, ReleaseKey.simulation("other")).values)
    assert ((once.values >= 0) & (once.values <= 1)).all()
    with pytest.raises(ReleaseKeyError):
        method.estimate(*cells, ReleaseKey.generate())


@pytest.mark.parametrize(
    "wrong", [{"alpha": F(0)}, {"alpha": F(9)}, {"alpha": F(1, 2**20)}, {"epsilon": 1.0}, {"x0": F(3)}]
)
def test_parameters_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        SmoothLine(**({"x0": X0, "epsilon": F(1), "alpha": F(1, 4)} | wrong))  # type: ignore[arg-type]
