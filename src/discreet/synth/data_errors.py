"""The dirt of real files: codes nobody declared, nulls, shared ids, duplicates, negative earnings.

A release must survive all of it without a word, so the synthetic agency has all of it, in small shares.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from discreet.synth.draws import Array, StreamPurpose, generator
from discreet.synth.education.records import GraduateRows

SHARE = 0.001  # of rows, for each kind of dirt
DUPLICATED = 0.00003  # of rows: how many people have a record that is repeated many times
FEWEST_COPIES, MOST_COPIES = 20, 200
NULL, PLACEHOLDER = -1, -2  # person numbers: missing, and the id a clerk types when there is none

SPOILT = ("institution", "level", "field", "cohort", "years", "state")  # codes that junk turns up in place of
UNDECLARED_SECTORS = ("00", "31", "99")  # a total, a part of 31-33, and NAICS's own "unclassified"
UNDECLARED_FIELDS = ("60.0301", "99.9999", "11.9999")  # well formed, and in no public list
JUNK = ("n/a", "unk", "xx")  # appended to every list of codes when dirt is wanted


def inject(clean: GraduateRows, number: int, seed: int, known: dict[str, int]) -> None:
    """Dirty a block in place. `known` is how many clean codes precede the dirty ones, per column.

    Its own random stream: the rows it leaves alone are those of the clean file.
    """
    rng = generator(seed, StreamPurpose.DATA_ERRORS, number)
    _duplicate(clean, rng)
    for name in SPOILT:
        rows = _some_rows(clean, rng, SHARE / len(SPOILT))
        getattr(clean, name)[rows] = known[name] + rng.integers(0, len(JUNK), len(rows))
    undeclared = _some_rows(clean, rng)
    clean.field[undeclared] = known["field"] + len(JUNK) + rng.integers(0, len(UNDECLARED_FIELDS), len(undeclared))
    clean.institution[_some_rows(clean, rng)] = NULL
    clean.person[_some_rows(clean, rng)] = NULL
    clean.person[_some_rows(clean, rng)] = PLACEHOLDER
    in_debt = _some_rows(clean, rng)
    clean.earnings[in_debt] = -np.abs(clean.earnings[in_debt])
    clean.employed[in_debt] = True  # or the loss would be written as a null
    _inject_work(clean, generator(seed, StreamPurpose.WORK_ERRORS, number), known["industry"])


def _inject_work(clean: GraduateRows, rng: np.random.Generator, known: int) -> None:
    """Workers with junk, an undeclared sector or nothing for an industry; a stream of its own, as it came later."""
    workers = np.flatnonzero(clean.employed)
    if len(workers):
        unknown, unstated = (rng.choice(workers, ceil(len(clean.person) * SHARE)) for _ in range(2))
        clean.industry[unknown] = known + rng.integers(0, len(JUNK + UNDECLARED_SECTORS), len(unknown))
        clean.industry[unstated] = NULL


def _some_rows(clean: GraduateRows, rng: np.random.Generator, share: float = SHARE) -> Array:
    """Rows to spoil: always at least one, so that small files have every kind of dirt too."""
    rows = len(clean.person)
    return rng.integers(0, rows, ceil(rows * share))


def _duplicate(clean: GraduateRows, rng: np.random.Generator) -> None:
    """Overwrite stretches of rows with copies of their first: people with far too many records."""
    rows = len(clean.person)
    for _ in range(ceil(rows * DUPLICATED)):
        start = rng.integers(0, max(1, rows - MOST_COPIES))
        copies = slice(start, start + rng.integers(FEWEST_COPIES, MOST_COPIES))
        for column in clean.columns():
            column[copies] = column[start]
