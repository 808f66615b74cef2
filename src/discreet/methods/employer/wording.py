"""What a table of jobs promises, in words that hold (003, §4 and §7; where the paper claims more, see employer.md)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.methods.employer.mechanisms import Mechanism
from discreet.methods.employer.mechanisms.log_laplace import LogLaplace
from discreet.methods.employer.mechanisms.smooth import Smooth
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Establishment

SIZES = (10, 100, 1_000)  # of largest establishments, for which a plan tells the error

FIRMS = "A firm with several establishments is hidden one establishment at a time, not as one."
SHAPE = "Weak adversary: what an establishment's workforce is made of is not promised to be hidden."


def public(by: Sequence[str]) -> str:
    """What is taken as known."""
    known = f"and its {', '.join(by)}, " if by else ""
    return f"That an establishment exists {known}counts as public and is not hidden."


def as_recorded(by: Sequence[str]) -> str:
    """Where no table of workplaces says which cell an establishment is in."""
    return (
        f"An establishment is what shares an identifier and its {', '.join(by)} (of several tables: all their "
        "workplace attributes), as its records have them: records of one identifier in two cells are two "
        "establishments. An attribute of workers among these would divide every establishment, and hide only its parts."
    )


def left_out(most: int) -> str:
    return (
        f"Establishments with more than {most:,} jobs are left out of the counts: these are too low by an amount that "
        "nothing published tells."
    )


def promises(unit: Establishment, epsilon: Fraction, delta: Fraction, weak: bool, cells: int) -> tuple[str, ...]:
    """What a reader of the table can learn. A job is in one of the worker cells, which under weak privacy pay for
    themselves."""
    own = epsilon / cells if weak else epsilon
    slack = f", but for a probability of {format_exact(delta)} (for two steps, 1+e^ε times that)" if delta else ""
    kinds = ", to somebody for whom all workers are alike" if weak else ""
    alpha = format_exact(unit.alpha)
    shape = (
        "What a workforce is made of: not promised."
        if weak
        else f"What a workforce is made of, up to a share {alpha} of it: e^{format_exact(2 * epsilon)}."
    )
    return (
        f"What anybody can conclude changes by at most so much{slack}. Whether one job exists: e^{format_exact(own)}. A "
        f"worker's change of employer or attributes: e^{format_exact(2 * own)}, with m jobs m times as much.",
        f"Whether an establishment has x workers or up to (1+{alpha})·x, or x+1: e^{format_exact(epsilon)}{kinds}; x or "
        f"(1+{alpha})^k·x: e^{'k' if epsilon == 1 else f'({format_exact(epsilon)}·k)'}. {shape}",
    )


def whole_promises(epsilon: Fraction) -> tuple[str, ...]:
    """The same for establishments that are hidden entirely."""
    return (
        f"What anybody can conclude about an establishment, even whether it exists, or about any of its jobs, changes "
        f"by at most e^{format_exact(epsilon)}.",
    )


def noise(mechanism: Mechanism, alpha: Fraction | None, counted: str) -> str:
    """The noise and what it does to a count; `counted` says which jobs x counts."""
    text = mechanism.in_words()
    if isinstance(mechanism, Smooth) and alpha is not None:
        errors = [mechanism.per_unit * max(float(alpha) * x, 1.0) for x in SIZES]
        examples = ", ".join(f"{error:.3g} for x = {x:,}" for error, x in zip(errors, SIZES, strict=True))
        text += f"; α = {format_exact(alpha)}, x {counted}; mean |error| before rounding {examples}"
    elif isinstance(mechanism, LogLaplace) and alpha is not None:
        text += (
            f"; α = {format_exact(alpha)}; mean |error| {mechanism.per_unit:.3g}·(count + {format_exact(1 / alpha)})"
        )
    return text
