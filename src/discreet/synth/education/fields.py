"""Degree levels and about sixty CIP codes, with the levels that teach them, pay and popularity.

The codes are real (Classification of Instructional Programs); labels, pay and popularity are our own.
"""

from __future__ import annotations

from typing import NamedTuple

from discreet.synth.lists import entries


class DegreeLevel(NamedTuple):
    """A degree level: LEHD code, label, shift of log earnings, popularity."""

    code: str
    label: str
    shift: float
    weight: float


class Field(NamedTuple):
    """A 6-digit field: CIP code, label, shift of log earnings, popularity, degree levels it is taught at."""

    cip6: str
    label: str
    shift: float
    weight: float
    levels: tuple[str, ...]

    @property
    def cip4(self) -> str:
        """The 4-digit series the code belongs to, "11.07"."""
        return self.cip6[:5]

    @property
    def cip2(self) -> str:
        """The 2-digit family the code belongs to, "11"."""
        return self.cip6[:2]


LEVELS = entries("degree_levels", DegreeLevel)
FIELDS = entries("fields", Field)
FAMILIES = tuple(sorted({field.cip2 for field in FIELDS}))
