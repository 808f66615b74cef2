"""Arguments that make no agency are refused by name."""

from __future__ import annotations

from discreet.errors import ParameterError

MOST_SEED = 2**63 - 1


def refuse_unless_within(where: str, name: str, value: object, least: int, most: int) -> None:
    """Whole numbers only, and not a bool, which is one by accident."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ParameterError(f"{name} is {value!r}", where=where, do=f"give a whole number from {least} to {most}")
