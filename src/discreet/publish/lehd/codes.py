"""Checks that a code has the form required at its level, and restores zeros that a spreadsheet removed."""

from __future__ import annotations

import re
from functools import lru_cache

from discreet.publish.lehd.schema import COHORT, FORMS, IDENTIFIERS, LABELS

_AT = {column: place for place, column in enumerate(IDENTIFIERS)}
_NUMBER = re.compile(r"\d+", re.ASCII)
_CIP = re.compile(r"\d{1,2}(\.\w*)?", re.ASCII)
_OPEID6 = 5  # digits: six-digit OPEIDs begin with 0, and no eight-digit one begins with more than two zeros


def fits(column: str, level: str, code: str) -> bool:
    """Whether a code is one of its column's, at this level."""
    if column in LABELS:
        return code in LABELS[column]
    if column == "grad_cohort":
        return COHORT.fullmatch(code) is not None
    form = FORMS[column][1].get(level)
    return form is not None and form.fullmatch(code) is not None


@lru_cache(maxsize=1 << 14)
def with_zeros(column: str, level: str, code: str) -> str:
    """The original form of a code that a spreadsheet read as a number: 1.1 is CIP 01.10, 134500 is OPEID 00134500.

    Files of 2019 had six-digit OPEIDs, without the branch: 1345 stands for 001345, now 00134500.
    """
    if column == "cipcode" and level in {"4", "6"} and _CIP.fullmatch(code):
        family, _, rest = code.partition(".")
        return f"{family.zfill(2)}.{rest.ljust(int(level) - 2, '0')}"
    if not _NUMBER.fullmatch(code):
        return code
    if column == "institution" and level == "I":
        return f"{code.zfill(6)}00" if len(code) <= _OPEID6 else code.zfill(8)
    widths = {"grad_cohort": 4, "degree_level": 2, "cipcode": 2, "institution": 2 if level == "S" else 1}
    return code.zfill(widths.get(column, 2 if level in {"N", "A"} else 1))


REPAIRED = {"degree_level": "", "grad_cohort": "", **{column: level for column, (level, _) in FORMS.items()}}


def repair(row: list[str]) -> list[str]:
    """The row with all zeros restored."""
    row = list(row)
    for column, level in REPAIRED.items():
        place = _AT[column]
        row[place] = with_zeros(column, row[_AT[level]] if level else "", row[place])
    return row


@lru_cache(maxsize=1 << 14)
def fault(column: str, level: str, code: str) -> str | None:
    """The problem with a code, or None."""
    if fits(column, level, code):
        return None
    meant = with_zeros(column, level, code)
    if meant != code and fits(column, level, meant):
        closing = "." in meant and meant.startswith(code)
        return f"has lost its {'closing' if closing else 'leading'} zeros"
    if column in LABELS:
        return f"is not one of {', '.join(LABELS[column])}"
    if column == "grad_cohort":
        return "is neither a year nor 0000"
    return f"is not a code of {column} at {FORMS[column][0]} {level}"
