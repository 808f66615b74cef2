"""What a table of jobs promises, in words that hold (003, §4 and §7; where the paper claims more, see employer.md)."""

from __future__ import annotations

from fractions import Fraction

from discreet.privacy.exact import written
from discreet.privacy.unit import Establishment

FIRMS = "A firm with several establishments is hidden one establishment at a time, not as one."
PUBLIC = "That an establishment exists, where it is, and what else `by` says of it, counts as public and is not hidden."
SHAPE = (
    "Weak adversary: what an establishment's workforce is made of is not promised to be hidden (003, Theorem 7.2, "
    "claims that it is; it fails)."
)
SAME = (
    "An establishment is what shares an identifier and the attributes in `by`, as its records have them: records of "
    "one identifier in two cells are two establishments."
)
LEFT_OUT = (
    "Establishments with more than {most:,} jobs are left out of the counts: these are too low by an amount that "
    "nothing published tells."
)


def promises(unit: Establishment, epsilon: Fraction, delta: Fraction, workers: bool) -> tuple[str, ...]:
    """Line by line what a reader of the table can learn, and what is not promised."""
    e, alpha = written(epsilon), written(unit.alpha)
    weak = unit.adversary == "weak" and workers
    to_whom = ", to somebody for whom all workers are alike" if weak else ""
    slack = f" (but for a probability of {written(delta)})" if delta else ""
    lines = [
        f"Promised{slack}: what anybody thinks about one job, whether it exists or not, changes by at most e^{e}.",
        f"A worker's change of employer or of attributes: e^{written(2 * epsilon)}; with m jobs, m times as much.",
        f"An establishment's size, whether x or up to (1+{alpha})·x (or x+1): e^{e}{to_whom}; sizes x and "
        f"(1+{alpha})^k·x: e^(k·{e}). Whether it is small or large is not hidden.",
    ]
    lines.append(
        "Not promised: what an establishment's workforce is made of."
        if weak
        else f"What an establishment's workforce is made of, up to a share {alpha} of it: e^{written(2 * epsilon)}."
    )
    return (*lines, f"Not promised: {_lower(FIRMS)} {PUBLIC}")


def whole_promises(epsilon: Fraction, most: int) -> tuple[str, ...]:
    """The same for establishments that are hidden entirely."""
    return (
        f"Promised: what anybody thinks about an establishment, even whether it exists, changes by at most "
        f"e^{written(epsilon)}; so does what they think about any of its jobs.",
        LEFT_OUT.format(most=most),
        f"Not promised: {_lower(FIRMS)}",
    )


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
