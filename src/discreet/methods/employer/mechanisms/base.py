"""What most mechanisms have in common: whom they hide, what they cannot say, and how they are sent to workers."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.methods.employer.mechanisms import Hides, Int64s

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from flint import arb


class BaseMechanism:
    """Defaults of a `Mechanism` that is a frozen dataclass."""

    hides: ClassVar[Hides] = "size"

    def margin(self, level: Fraction, largest: Int64s) -> Int64s | None:  # noqa: ARG002
        """None: the error depends on more than a bound of the largest establishment."""
        return None

    def limits(self, published: Int64s, level: Fraction) -> tuple[Int64s, Int64s] | None:  # noqa: ARG002
        """None: the scale of the noise is confidential."""
        return None

    def __getstate__(self: DataclassInstance) -> dict[str, Any]:
        """The declared fields alone, for pickles: what was computed is computed again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class SymmetricMechanism(BaseMechanism):
    """Noise that is symmetric around the count, and so cut at both ends."""

    def upper(self, count: int, largest: int, k: int) -> arb:
        """P(published ≥ k)."""
        raise NotImplementedError

    def lower(self, count: int, largest: int, k: int) -> arb:
        """P(published ≤ k), without subtracting from 1."""
        return self.upper(-count, largest, -k)
