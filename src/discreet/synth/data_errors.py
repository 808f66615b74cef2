"""Data errors of real files: undeclared codes, nulls, shared ids, duplicates, negative earnings.

A release must handle all of them by its declared rules, so the synthetic agency has all of them, in small shares.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from discreet.synth.draws import Array, StreamPurpose, generator
from discreet.synth.education.records import GraduateRows

SHARE = 0.001  # of rows, for each kind of data error
DUPLICATED = 0.00003  # of rows: people with a record that is repeated many times
FEWEST_COPIES, MOST_COPIES = 20, 200
NULL, PLACEHOLDER = -1, -2  # person numbers: missing, and the placeholder id entered when there is none

CORRUPTED = ("institution", "level", "field", "cohort", "years", "state")  # columns that receive invalid codes
UNDECLARED_SECTORS = ("00", "31", "99")  # a total, a part of 31-33, and NAICS's own "unclassified"
UNDECLARED_FIELDS = ("60.0301", "99.9999", "11.9999")  # well formed, and in no public list
INVALID = ("n/a", "unk", "xx")  # codes appended to every list if there are data errors


def inject(rows: GraduateRows, number: int, seed: int, known: dict[str, int]) -> None:
    """Inject errors into a block in place. `known` is the number of valid codes, by column.

    Uses a random stream of its own: all other rows are those of the file without errors.
    """
    rng = generator(seed, StreamPurpose.DATA_ERRORS, number)
    _duplicate(rows, rng)
    for name in CORRUPTED:
        chosen = _some_rows(rows, rng, SHARE / len(CORRUPTED))
        getattr(rows, name)[chosen] = known[name] + rng.integers(0, len(INVALID), len(chosen))
    undeclared = _some_rows(rows, rng)
    rows.field[undeclared] = known["field"] + len(INVALID) + rng.integers(0, len(UNDECLARED_FIELDS), len(undeclared))
    rows.institution[_some_rows(rows, rng)] = NULL
    rows.person[_some_rows(rows, rng)] = NULL
    rows.person[_some_rows(rows, rng)] = PLACEHOLDER
    in_debt = _some_rows(rows, rng)
    rows.earnings[in_debt] = -np.abs(rows.earnings[in_debt])
    rows.employed[in_debt] = True  # otherwise the loss would be written as a null
    _inject_industries(rows, generator(seed, StreamPurpose.WORK_ERRORS, number), known["industry"])


def _inject_industries(rows: GraduateRows, rng: np.random.Generator, known: int) -> None:
    """Invalid, undeclared or missing industries of workers; a separate stream, since industries were added later."""
    workers = np.flatnonzero(rows.employed)
    if len(workers):
        unknown, unstated = (rng.choice(workers, ceil(len(rows.person) * SHARE)) for _ in range(2))
        rows.industry[unknown] = known + rng.integers(0, len(INVALID + UNDECLARED_SECTORS), len(unknown))
        rows.industry[unstated] = NULL


def _some_rows(rows: GraduateRows, rng: np.random.Generator, share: float = SHARE) -> Array:
    """Rows to corrupt: always at least one, so that small files have every kind of error too."""
    count = len(rows.person)
    return rng.integers(0, count, ceil(count * share))


def _duplicate(rows: GraduateRows, rng: np.random.Generator) -> None:
    """Overwrite runs of rows with copies of their first: people with far too many records."""
    count = len(rows.person)
    for _ in range(ceil(count * DUPLICATED)):
        start = rng.integers(0, max(1, count - MOST_COPIES))
        copies = slice(start, start + rng.integers(FEWEST_COPIES, MOST_COPIES))
        for column in rows.columns():
            column[copies] = column[start]
