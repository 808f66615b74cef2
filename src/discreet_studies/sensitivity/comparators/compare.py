"""All methods on the same cells at the same ε: the cost of a formal guarantee. Confidential side, nothing is
published."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.errors import ParameterError
from discreet.noise.key import ReleaseKey
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Guarantee
from discreet_studies.sensitivity.comparators import Bools, Estimates, Floats, FormalMethod, Int64s
from discreet_studies.sensitivity.comparators.moments import Moments, add_noise, laplace
from discreet_studies.sensitivity.comparators.noisystats import NoisyStats
from discreet_studies.sensitivity.comparators.private_chi import PrivateChi
from discreet_studies.sensitivity.comparators.smooth_line import SmoothLine
from discreet_studies.sensitivity.comparators.theil_sen import TheilSen
from discreet_studies.streams import simulation_stream

NOT_FORMAL = "not formally private: chi, the largest sensitivity observed, is published exactly, and the noise's scale "
NOT_FORMAL += "depends on the confidential size of the cell"


@dataclass(frozen=True)
class Errors:
    """Distance of estimates from a reference, over the cells with a line."""

    rmse: float
    median: float  # median absolute error

    @classmethod
    def of(cls, values: Floats, reference: Floats, cells: Bools) -> Errors:
        gaps = np.abs(values - reference)[cells]
        return cls(float(np.sqrt(np.mean(gaps**2))), float(np.median(gaps)))


@dataclass(frozen=True)
class MethodErrors:
    """One method's row of the report."""

    method: str
    formal: bool  # whether it is differentially private
    guarantee: str
    against_ols: Errors
    fallbacks: float  # share of cells without an answer


def methods(x0: Fraction, epsilon: Fraction, delta: Fraction, size: int) -> tuple[FormalMethod, ...]:
    """Every comparator at ε; `size` is a public guess of the records per cell, used only for planning."""
    return (
        NoisyStats(x0, epsilon),
        NoisyStats(x0, epsilon, "substitution"),
        TheilSen(x0, epsilon),
        SmoothLine.planned(x0, epsilon, size),
        PrivateChi(x0, epsilon, delta),
    )


def observed(cells: Moments, sensitivity: Floats, x0: Fraction, epsilon: Fraction, key: ReleaseKey) -> Estimates:
    """prediction + Laplace(χ/(ε·N)), χ = max N·LS; its standard deviation is √2·χ/(ε·N). Not formally private."""
    defined = cells.defined & np.isfinite(sensitivity)
    if not defined.any():
        raise ParameterError("no cell has a finite sensitivity", where="sensitivity", do="give cells with spread in x")
    chi = float(np.max((cells.n * sensitivity)[defined]))
    stream = simulation_stream(key, "formal maximum observed sensitivity", b"", "noise")
    noisy = add_noise(cells.prediction(float(x0)), chi / np.maximum(cells.n, 1), laplace(epsilon), stream)
    return Estimates(np.where(defined, np.clip(noisy, 0.0, 1.0), 0.5), defined)


def compare(
    x: Floats,
    y: Floats,
    starts: Int64s,
    epsilon_choices: tuple[FormalMethod, ...],
    key: ReleaseKey,
    *,
    x0: Fraction,
    epsilon: Fraction,
    sensitivity: Floats,
) -> tuple[MethodErrors, ...]:
    """Least squares itself, maximum observed sensitivity at ε, and the chosen methods.

    `sensitivity` is the local sensitivity of the prediction in every cell (Chetty & Friedman 2019, Step 1). Every
    estimate is clamped to [0, 1], the known range.
    """
    cells = Moments.of(x, y, starts)
    ols = cells.prediction(float(x0))

    def row(name: str, formal: bool, guarantee: str, estimates: Estimates) -> MethodErrors:
        errors = Errors.of(estimates.values, ols, cells.defined)
        return MethodErrors(name, formal, guarantee, errors, float(1 - np.mean(estimates.answered)))

    mos = observed(cells, sensitivity, x0, epsilon, key)
    return (
        row("least squares", False, "none: the estimate is exact", Estimates(ols, cells.defined)),
        row("maximum observed sensitivity", False, NOT_FORMAL, mos),
        *(row(m.name, True, describe_guarantee(m.guarantee), m.estimate(x, y, starts, key)) for m in epsilon_choices),
    )


def describe_guarantee(guarantee: Guarantee) -> str:
    """ε, δ and adjacency as text; an add/remove guarantee implies one for substitution, at about twice the ε."""
    verb = "replaced" if guarantee.neighbours == "substitution" else "added or removed"
    delta = f", delta {format_exact(guarantee.delta)}" if guarantee.delta else ""
    parts = [f"epsilon {format_exact(guarantee.epsilon)}{delta} when one record is {verb}"]
    if guarantee.neighbours == "add-remove":
        other = guarantee.as_substitution()
        beside = f", delta {float(other.delta):.2g}" if other.delta else ""
        parts.append(f"at most epsilon {format_exact(other.epsilon)}{beside} when one is replaced")
    return "; ".join([*parts, *guarantee.caveats])
