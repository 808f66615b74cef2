"""The mechanisms compared, the paper's as printed and ours, and the grid of parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms import Mechanism
from discreet.methods.employer.mechanisms.laplace_pareto import LaplacePareto
from discreet.methods.employer.mechanisms.log_laplace import LogLaplace
from discreet.methods.employer.mechanisms.smooth_gamma import SmoothGamma
from discreet.methods.employer.mechanisms.smooth_laplace import SmoothLaplace

ALPHA, EPSILON, DELTA = Fraction(1, 10), Fraction(2), Fraction(1, 20)  # the baseline; δ as in the paper's figures
GEOMETRIC, TRUNCATED = "geometric", "truncated"  # they have no α
STRONG = "laplace-pareto-strong"  # worker cells against a strong adversary: scale from whole establishments


@dataclass(frozen=True)
class CandidateMechanism:
    """A mechanism to compare: its constructor for the (α, ε, δ) of one cell, and the smallest admissible ε of one
    cell."""

    name: str
    label: str
    make: Callable[..., Mechanism]
    least: Callable[..., Fraction]
    printed: str = ""  # the option that selects the paper's constants; empty for ours

    def of(self, alpha: Fraction, epsilon: Fraction, cells: int = 1) -> Mechanism | None:
        """The mechanism for one of `cells` cells that share ε and δ evenly; None where the pair is inadmissible."""
        return _made(self, alpha, epsilon, cells)

    def smallest(self, alpha: Fraction, cells: int = 1) -> Fraction:
        """The smallest ε of all cells together."""
        return cells * self.least(alpha, **self._options(cells))

    def _options(self, cells: int) -> dict[str, object]:
        delta: dict[str, object] = {"delta": DELTA / cells} if self.make is SmoothLaplace else {}
        return delta | ({self.printed: "printed"} if self.printed else {})


@cache  # computing the constants is slow, and every workload needs them
def _made(candidate: CandidateMechanism, alpha: Fraction, epsilon: Fraction, cells: int) -> Mechanism | None:
    biased = {"unbiased": False} if candidate.printed == "scale" else {}
    try:
        return candidate.make(alpha, epsilon / cells, **candidate._options(cells), **biased)
    except ParameterError:
        return None


CANDIDATES = (
    CandidateMechanism("log-laplace-printed", "Log-Laplace, printed", LogLaplace, LogLaplace.least_epsilon, "scale"),
    CandidateMechanism(
        "smooth-gamma-printed", "Smooth gamma, printed", SmoothGamma, SmoothGamma.least_epsilon, "constants"
    ),
    CandidateMechanism(
        "smooth-laplace-printed", "Smooth Laplace, printed", SmoothLaplace, SmoothLaplace.least_epsilon, "constants"
    ),
    CandidateMechanism("log-laplace", "Log-Laplace, tight", LogLaplace, LogLaplace.least_epsilon),
    CandidateMechanism("smooth-gamma", "Smooth gamma, joint", SmoothGamma, SmoothGamma.least_epsilon),
    CandidateMechanism("smooth-laplace", "Smooth Laplace, exact", SmoothLaplace, SmoothLaplace.least_epsilon),
    CandidateMechanism("laplace-pareto", "Laplace–Pareto", LaplacePareto, LaplacePareto.least_epsilon),
)
PRINTED = tuple(candidate.name for candidate in CANDIDATES if candidate.printed)
LABELS = {candidate.name: candidate.label for candidate in CANDIDATES} | {
    STRONG: "Laplace–Pareto, strong",
    GEOMETRIC: "Geometric, one job",
    TRUNCATED: "Truncated, printed",
}


@dataclass(frozen=True)
class Inadmissible:
    """An inadmissible pair of a mechanism in a workload, and the smallest admissible ε."""

    mechanism: str
    workload: int
    alpha: Fraction
    epsilon: Fraction
    smallest: Fraction


@dataclass(frozen=True)
class MechanismGrid:
    """The grid of parameters (Haney et al. 2017, §10)."""

    alphas: tuple[Fraction, ...] = tuple(Fraction(percent, 100) for percent in (1, 5, 10, 15, 20))
    epsilons: tuple[Fraction, ...] = tuple(Fraction(text) for text in ("0.25", "0.5", "0.67", "1", "2", "4"))
    thetas: tuple[int, ...] = (2, 20, 50, 100, 200, 500)

    @property
    def pairs(self) -> list[tuple[Fraction, Fraction]]:
        """Every α with every ε."""
        return [(alpha, epsilon) for alpha in self.alphas for epsilon in self.epsilons]

    def admissible(self, cells: int) -> Iterator[tuple[CandidateMechanism, Fraction, Fraction, Mechanism]]:
        """Every mechanism at every admissible pair."""
        for candidate in CANDIDATES:
            for alpha, epsilon in self.pairs:
                mechanism = candidate.of(alpha, epsilon, cells)
                if mechanism is not None:
                    yield candidate, alpha, epsilon, mechanism

    def strong(self, cells: int) -> Iterator[tuple[Fraction, Fraction, LaplacePareto]]:
        """Laplace–Pareto noise for all worker cells of an establishment at once, at every admissible pair."""
        for alpha, epsilon in self.pairs:
            if epsilon >= LaplacePareto.least_epsilon(alpha, cells=cells):
                yield alpha, epsilon, LaplacePareto(alpha, epsilon, cells=cells)

    def inadmissible(self, workload: int, cells: int) -> Iterator[Inadmissible]:
        """The inadmissible pairs."""
        for candidate in CANDIDATES:
            for alpha, epsilon in self.pairs:
                if candidate.of(alpha, epsilon, cells) is None:
                    yield Inadmissible(candidate.name, workload, alpha, epsilon, candidate.smallest(alpha, cells))
