"""The six findings of Haney et al. 2017, §10: each claim is a test of the study's numbers; verdicts follow from the
tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Literal

from discreet.privacy.exact import format_exact
from discreet.synth.workplaces.places import STRATA
from discreet_studies.claims import Claim
from discreet_studies.employer.mechanism_grid import ALPHA, EPSILON, LABELS, PRINTED, STRONG, TRUNCATED
from discreet_studies.employer.monte_carlo import Trials
from discreet_studies.employer.study import EmployerStudy
from discreet_studies.employer.workloads import WORKER_CELLS

Confirmation = Literal["confirmed", "partly confirmed", "not confirmed", "not tested"]

LOG, GAMMA, SMOOTH = PRINTED
OURS = ("log-laplace", PARETO := "laplace-pareto")
CLOSE = 0.95  # a correlation "close to 1"
SAME = 1.25  # "nearly the same" error
LARGE = STRATA[2:]  # "larger population sizes"
NEAR = {LOG: 0.65, SMOOTH: 0.75, GAMMA: 0.29}  # Finding 1: shares of counts
NEAR_POINTS = 0.10
FOUR = Fraction(4)


@dataclass(frozen=True)
class Finding:
    """A finding as we phrase it, its parts, and results of the mechanisms that the paper does not have."""

    number: int
    claim: str
    parts: tuple[Claim, ...]
    beyond: str

    @property
    def verdict(self) -> Confirmation:
        """Whether all parts hold, some, or none."""
        verdicts = [part.holds for part in self.parts if part.holds is not None]
        if not verdicts:
            return "not tested"
        return "confirmed" if all(verdicts) else "partly confirmed" if any(verdicts) else "not confirmed"

    @property
    def held(self) -> str:
        """The number of parts that hold, of those that could be tested."""
        return _share([part.holds for part in self.parts if part.holds is not None])


def findings(study: EmployerStudy) -> tuple[Finding, ...]:
    """All six findings."""
    return tuple(make(study) for make in (_first, _second, _third, _fourth, _fifth, _sixth))


def ours(claim: str, evidence: str, holds: bool | None) -> Claim:
    """One claim of a finding and our result; the paper's number is part of the claim."""
    return Claim(claim, "", evidence, holds)


def every(claim: str, values: Iterable[float | None], holds: Callable[[float], bool], unit: str = "") -> Claim:
    """A claim about each of several numbers; missing ones are left out."""
    known = [value for value in values if value is not None]
    if not known:
        return ours(claim, "no admissible pair, or no such cells", None)
    return ours(claim, spread(known) + unit, all(holds(value) for value in known))


def spread(values: list[float]) -> str:
    """The range, as text."""
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"


def _first(study: EmployerStudy) -> Finding:
    base = partial(study.ratio, 1, alpha=ALPHA, epsilon=EPSILON)

    def order(name: str, least: Fraction, strata: tuple[str, ...] = ("all",)) -> list[float | None]:
        return _correlations(study, 1, name, [e for e in study.grid.epsilons if e >= least], strata)

    parts = [
        every("log-Laplace: error at most 3 times that of noise infusion", [base(LOG)], lambda r: r <= 3),
        every("smooth gamma: at most 3 times", [base(GAMMA)], lambda r: r <= 3),
        every("smooth Laplace: smaller error", [base(SMOOTH)], lambda r: r < 1),
        every("ranking 1, smooth Laplace: close to 1 from ε = 2 on", order(SMOOTH, EPSILON), _close),
        every("ranking 1, the other two: close to 1 from ε = 4 on", [*order(LOG, FOUR), *order(GAMMA, FOUR)], _close),
        every("in large places, smooth Laplace: close to 1 at every ε", order(SMOOTH, Fraction(0), LARGE), _close),
        every("in large places, log-Laplace: close to 1 from ε = 1 on", order(LOG, Fraction(1), LARGE), _close),
        *(_near(study, name, share) for name, share in NEAR.items()),
    ]
    claim = "Marginals of establishments: errors comparable to those of noise infusion, or smaller (α = .1, ε = 2)."
    return Finding(1, claim, tuple(parts), _also(study, 1, ALPHA, EPSILON))


def _second(study: EmployerStudy) -> Finding:
    base = partial(study.ratio, 2, alpha=ALPHA, epsilon=EPSILON)
    four = [study.ratio(2, SMOOTH, alpha, FOUR) for alpha in study.grid.alphas]
    others = [c for name in (LOG, GAMMA) for c in _correlations(study, 2, name, [FOUR])]
    large = [c for name in (LOG, SMOOTH) for c in _correlations(study, 2, name, study.grid.epsilons, LARGE)]
    parts = [
        every("log-Laplace: error at most 3 times that of noise infusion", [base(LOG)], lambda r: r <= 3),
        every("smooth Laplace: about the same error (at most 1.25 times)", [base(SMOOTH)], lambda r: r <= SAME),
        every("at ε = 4 smooth Laplace: smaller error at every α", four, lambda r: r < 1),
        every("ranking 2 at ε = 4, smooth Laplace: close to 1", _correlations(study, 2, SMOOTH, [FOUR]), _close),
        every("and the other two: not close to 1 at every α", [_least(others)], lambda c: not _close(c)),
        every("in large places, log-Laplace and smooth Laplace: close to 1 at every ε", large, _close),
    ]
    claim = "Single queries about workers (weak privacy): errors comparable to those of noise infusion, or smaller."
    return Finding(2, claim, tuple(parts), _also(study, 2, ALPHA, EPSILON))


def _third(study: EmployerStudy) -> Finding:
    everything = [study.ratio(3, name, *pair) for name in PRINTED for pair in study.grid.pairs]
    low = [alpha for alpha in study.grid.alphas if alpha <= Fraction(1, 20)]
    served = [study.ratio(3, SMOOTH, alpha, FOUR) for alpha in study.grid.alphas]
    refused = [format_exact(alpha) for alpha, ratio in zip(study.grid.alphas, served, strict=True) if ratio is None]
    # c = 2d/ε for every α: the errors are d times those of single queries.
    ignored = [study.ratio(2, SMOOTH, alpha, FOUR) for alpha in study.grid.alphas]
    forced = [WORKER_CELLS * ratio for ratio in ignored if ratio is not None]
    text = f"not for α = {', '.join(refused)} (ε/8 and δ/8 in each cell)"
    text += f"; without its condition, and without a guarantee, the ratio would be {spread(forced)}" if forced else ""
    parts = [
        every(
            "the paper's three mechanisms: larger error than noise infusion at every pair", everything, lambda r: r > 1
        ),
        every(
            "log-Laplace: error at most 10 times for α ≤ .05 at ε = 4",
            [study.ratio(3, LOG, alpha, FOUR) for alpha in low],
            lambda r: r <= 10,
        ),
        every("smooth Laplace: error at most 10 times at ε = 4, where it is defined", served, lambda r: r <= 10),
        ours("and it is defined for every α at ε = 4, δ = .05", text if refused else "it is", not refused),
        every(
            "smooth Laplace: error at most 3 times at α = .01, ε = 4",
            [study.ratio(3, SMOOTH, Fraction(1, 100), FOUR)],
            lambda r: r <= 3,
        ),
    ]
    claim = "Marginals of workers (weak privacy, ε/8 per cell): larger errors; acceptable for large ε and small α."
    return Finding(3, claim, tuple(parts), f"{_also(study, 3, Fraction(1, 100), FOUR)} {_stronger(study)}".strip())


def _stronger(study: EmployerStudy) -> str:
    """Both forms of Laplace–Pareto at all pairs: the strong form protects against a strong adversary with less
    noise."""
    both = [tuple(study.ratio(3, name, *pair) for name in (STRONG, PARETO)) for pair in study.grid.pairs]
    served = [(strong, weak) for strong, weak in both if strong is not None and weak is not None]
    if not served:
        return ""
    gains = [weak / strong for strong, weak in served]
    return (
        f"Summed over the marginal, the strong form errs less than the weak at {sum(gain > 1 for gain in gains)} of "
        f"{len(gains)} pairs (errors weak/strong: {min(gains):.3g} to {max(gains):.3g}); single cells may err more."
    )


def _fourth(study: EmployerStudy) -> Finding:
    parts = []
    pairs = {1: (ALPHA, EPSILON), 2: (ALPHA, EPSILON), 3: (Fraction(1, 100), FOUR)}
    for name in PRINTED:
        falling, first = [], []
        for workload, pair in pairs.items():
            steps = [study.ratio(workload, name, *pair, stratum=stratum) for stratum in STRATA]
            values = [step for step in steps if step is not None]
            falling.append(values == sorted(values, reverse=True))
            gains = [before - after for before, after in pairwise(values)]
            first.append(bool(gains) and gains[0] == max(gains))
        text = "; ".join(_by_stratum(study, workload, name, *pair) for workload, pair in pairs.items())
        parts.append(ours(f"{LABELS[name]}: the ratio falls with the population", text, all(falling)))
        parts.append(ours(f"{LABELS[name]}: the first step is the largest", "as above", all(first)))
        rising, shown = [], []
        for ranking in (1, 2):
            steps = [study.correlation(ranking, name, ALPHA, EPSILON, stratum=stratum) for stratum in STRATA]
            values = [step for step in steps if step is not None]
            rising.append(values == sorted(values))
            shown.append(f"ranking {ranking}: {', '.join(f'{value:.3f}' for value in values)}")
        parts.append(ours(f"{LABELS[name]}: the correlation rises", "; ".join(shown), all(rising)))
    beyond = " ".join(f"{LABELS[name]}, {_by_stratum(study, 1, name, ALPHA, EPSILON)}." for name in OURS)
    return Finding(
        4, "The ratios of the paper's three mechanisms improve with the population of a place.", tuple(parts), beyond
    )


def _fifth(study: EmployerStudy) -> Finding:
    def pairs(*names: str, low: Fraction = Fraction(0), high: Fraction = FOUR) -> list[list[float]]:
        """Ratios of these mechanisms where all are admissible."""
        rows = [
            [study.ratio(workload, name, alpha, epsilon) for name in names]
            for workload in (1, 2, 3)
            for alpha, epsilon in study.grid.pairs
            if low <= epsilon <= high
        ]
        return [[r for r in row if r is not None] for row in rows if None not in row]

    best = [row[0] < min(row[1:]) for other in (LOG, GAMMA) for row in pairs(SMOOTH, other)]
    small, large = (
        [row[0] < row[1] for row in pairs(LOG, GAMMA, **limits)] for limits in ({"high": Fraction(1)}, {"low": EPSILON})
    )
    both = [row[0] / row[1] for row in pairs(LOG, GAMMA, low=EPSILON)]
    parts = (
        ours("smooth Laplace has the smallest error wherever it is defined", _share(best), all(best) if best else None),
        ours("log-Laplace has a smaller error than smooth gamma at most pairs with ε ≤ 1", _share(small), _most(small)),
        ours(
            "and a larger one at most pairs with ε ≥ 2",
            _share([not less for less in large]),
            _most([not x for x in large]),
        ),
        every("the two are within a factor of 3 of each other from ε = 2 on", both, lambda r: 1 / 3 <= r <= 3),
    )
    ahead = [row[0] < row[1] for row in pairs("laplace-pareto", SMOOTH)]
    beyond = f"Laplace–Pareto, with δ = 0, has a smaller error than printed smooth Laplace at {_share(ahead)} pairs."
    return Finding(5, "Smooth Laplace is the best of the three; the other two are similar.", parts, beyond)


def _sixth(study: EmployerStudy) -> Finding:
    def ratio(workload: int, theta: int, epsilon: Fraction | None) -> float | None:
        return study.ratio(workload, TRUNCATED, None, epsilon, theta)

    four = [ratio(1, theta, FOUR) for theta in study.grid.thetas]
    floors = [ratio(1, theta, None) for theta in study.grid.thetas]
    left = [b / a for a, b in zip(four, floors, strict=True) if a and b is not None]
    ranked = [
        study.correlation(1, TRUNCATED, None, epsilon, theta)
        for theta in study.grid.thetas
        for epsilon in study.grid.epsilons
    ]
    worse = [
        b / a
        for w in (1, 2)
        for theta in study.grid.thetas
        if (a := study.ratio(w, LOG, ALPHA, EPSILON)) and (b := ratio(w, theta, EPSILON))
    ]
    parts = (
        every(
            "at ε = 4 truncation: error at least 10 times that of noise infusion, at every θ", four, lambda r: r >= 10
        ),
        every("without any noise at least half of that error would remain", left, lambda share: share >= 0.5, " of it"),
        every("ranking 1: a correlation of at most .7 at every θ and ε", ranked, lambda c: c <= 0.7),
        every(
            "its error is larger than that of printed log-Laplace at the baseline",
            worse,
            lambda r: r > 1,
            " times as much",
        ),
    )
    claim = (
        "Truncation, which protects whole establishments, is far less accurate; a larger ε gives little improvement."
    )
    return Finding(6, claim, parts, "")


def _close(correlation: float) -> bool:
    return correlation >= CLOSE


def _correlations(
    study: EmployerStudy, ranking: int, name: str, epsilons: Iterable[Fraction], strata: tuple[str, ...] = ("all",)
) -> list[float | None]:
    """Correlations at every α."""
    return [
        study.correlation(ranking, name, alpha, epsilon, stratum=stratum)
        for alpha in study.grid.alphas
        for epsilon in epsilons
        for stratum in strata
    ]


def _near(study: EmployerStudy, name: str, share: float) -> Claim:
    row = baseline_of(study, name)
    claim = f"{LABELS[name]}: relative error within 10 points of infusion's for {share:.0%} of the counts (± 10 points)"
    if row is None:
        return ours(claim, "inadmissible", None)
    return ours(claim, f"{row.near:.0%}", abs(row.near - share) <= NEAR_POINTS)


def baseline_of(study: EmployerStudy, name: str, theta: int | None = None) -> Trials | None:
    """The baseline trials of a mechanism."""
    return next((row for row in study.baseline_trials if row.mechanism == name and row.theta == theta), None)


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _share(verdicts: list[bool]) -> str:
    return f"{sum(verdicts)} of {len(verdicts)}"


def _most(verdicts: list[bool]) -> bool | None:
    return 2 * sum(verdicts) > len(verdicts) if verdicts else None


def _by_stratum(study: EmployerStudy, workload: int, name: str, alpha: Fraction, epsilon: Fraction) -> str:
    ratios = [study.ratio(workload, name, alpha, epsilon, stratum=stratum) for stratum in STRATA]
    values = ", ".join("–" if value is None else f"{value:.3g}" for value in ratios)
    return f"workload {workload}: {values}"


def _also(study: EmployerStudy, workload: int, alpha: Fraction, epsilon: Fraction) -> str:
    ratios = [(LABELS[name], study.ratio(workload, name, alpha, epsilon)) for name in OURS]
    text = ", ".join(f"{label} {ratio:.3g}" for label, ratio in ratios if ratio is not None)
    return f"Ours at α = {format_exact(alpha)}, ε = {format_exact(epsilon)}: {text}." if text else ""
