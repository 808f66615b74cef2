"""Text about a table of jobs: caveats, bounds on odds ratios, the noise (Haney et al. 2017, §4 and §7; where the paper
claims more than holds, see docs/methods/employer.md)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.methods.employer.mechanisms import Mechanism
from discreet.methods.employer.mechanisms.log_laplace import LogLaplace
from discreet.methods.employer.mechanisms.smooth import SmoothMechanism
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Establishment

SIZES = (10, 100, 1_000)  # of largest establishments, for which a plan states the error

FIRM_CAVEAT = "A firm with several establishments is protected one establishment at a time, not as one unit."
SHAPE_CAVEAT = "Weak adversary: the composition of an establishment's workforce is not protected."


def public(by: Sequence[str]) -> str:
    """What counts as public."""
    *most, last = "existence", *by
    if not most:
        return "An establishment's existence counts as public and is not protected."
    return f"An establishment's {', '.join(most)} and {last} count as public and are not protected."


def as_recorded(by: Sequence[str]) -> str:
    """Where no table of workplaces says which cell an establishment is in."""
    return (
        f"An establishment is identified by its identifier and its {', '.join(by)} (with several tables: all their "
        "workplace attributes), as recorded: records of one identifier in two cells count as two establishments. A "
        "worker attribute among these would split every establishment, and only its parts would be protected."
    )


def left_out(most: int) -> str:
    return (
        f"Establishments with more than {most:,} jobs are excluded from the counts: these are too low by an amount "
        "that nothing published reveals."
    )


def odds_bounds(unit: Establishment, epsilon: Fraction, delta: Fraction, weak: bool, cells: int) -> tuple[str, ...]:
    """Bounds on the odds ratio, by secret. A job is in one worker cell; under weak privacy each cell has its own ε."""
    own = epsilon / cells if weak else epsilon
    slack = f", with δ = {format_exact(delta)} (two steps: 1+e^ε times that)" if delta else ""
    kinds = ", for an adversary who cannot distinguish workers" if weak else ""
    change = 2 * own
    jobs = "m" if change == 1 else f"({format_exact(change)}·m)"
    alpha, k_steps = format_exact(unit.alpha), "k" if epsilon == 1 else f"({format_exact(epsilon)}·k)"
    shape = (
        "Composition of its workforce: not protected."
        if weak
        else f"Composition of its workforce, for a share of up to {alpha} of it: e^{format_exact(2 * epsilon)}."
    )
    return (
        f"Bound on the odds ratio, by secret{slack}: One job exists: e^{format_exact(own)}. A worker changes employer "
        f"or attributes: e^{format_exact(change)}; for a worker with m jobs e^{jobs}.",
        f"An establishment has x workers, or up to (1+{alpha})·x, or x+1: e^{format_exact(epsilon)}{kinds}; sizes that "
        f"are k such steps apart: e^{k_steps}. {shape}",
    )


def whole_odds_bounds(epsilon: Fraction) -> tuple[str, ...]:
    """The same for establishments that are protected entirely; replacing one is removing it and adding another."""
    return (
        "Bound on the odds ratio, by secret: An establishment, or one of its jobs, exists: "
        f"e^{format_exact(epsilon)}. An establishment has one workforce or any other: e^{format_exact(2 * epsilon)}.",
    )


def noise(mechanism: Mechanism, alpha: Fraction | None, counted: str) -> str:
    """The noise and the error that it gives a count; `counted` says whose jobs x counts."""
    text = mechanism.describe()
    if isinstance(mechanism, SmoothMechanism) and alpha is not None:
        errors = [mechanism.per_unit * max(float(alpha) * x, 1.0) for x in SIZES]
        examples = ", ".join(f"{error:.3g} for x = {x:,}" for error, x in zip(errors, SIZES, strict=True))
        text += (
            f"; α = {format_exact(alpha)}, x the number of jobs of {counted}; mean |error| before rounding {examples}"
        )
    elif isinstance(mechanism, LogLaplace) and alpha is not None:
        text += (
            f"; α = {format_exact(alpha)}; mean |error| {mechanism.per_unit:.3g}·(count + {format_exact(1 / alpha)})"
        )
    return text
