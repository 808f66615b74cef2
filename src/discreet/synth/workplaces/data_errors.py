"""Data errors of real files of employers and jobs: undeclared codes, nulls, dangling ids, duplicate records."""

from __future__ import annotations

from math import ceil

import numpy as np

from discreet.synth.data_errors import INVALID, NULL, SHARE, UNDECLARED_SECTORS
from discreet.synth.draws import Array
from discreet.synth.workplaces.employers import Employers, Purpose, stream
from discreet.synth.workplaces.jobs import ATTRIBUTES, JobRows

WORKPLACES = ("place", "sector")  # columns of workplaces with errors
UNDECLARED = {  # well formed, and in no public list; 9999999 is LODES's code for "in no place"
    "place": ("9999999",),
    "sector": UNDECLARED_SECTORS,
    "sex": ("CS03",),
    "education": ("CD05",),
}
UNLISTED = 100  # number of workplaces that occur in jobs only


def invalid_codes(column: str) -> tuple[str, ...]:
    """The invalid codes of a column."""
    return INVALID + UNDECLARED.get(column, ())


def inject_into_frame(columns: dict[str, Array], known: dict[str, int], seed: int) -> None:
    """Inject errors into the list of workplaces in place; `known` is the number of valid codes, by column."""
    rng = stream(seed, Purpose.FRAME_ERRORS)
    for name in WORKPLACES:
        _corrupt(columns[name], np.arange(len(columns[name])), name, known[name], rng)


def inject(jobs: JobRows, number: int, frame: Employers, known: dict[str, int]) -> Array:
    """Inject errors into a block in place; returns the positions of workers who are listed twice.

    Uses a random stream of its own: all other rows are those of the file without errors.
    """
    rng = stream(frame.seed, Purpose.DATA_ERRORS, number)
    for name in ATTRIBUTES:
        _corrupt(getattr(jobs, name), jobs.holder, name, known[name], rng)
    lost = _some(np.arange(len(jobs)), rng)
    jobs.workplace[lost] = -1 - rng.integers(0, UNLISTED, len(lost))
    jobs.listed[_some(jobs.holder, rng)] = False
    twice = np.unique(_some(jobs.holder, rng))
    jobs.listed[twice] = True  # otherwise a small file might have no duplicates
    return twice


def _corrupt(values: Array, rows: Array, name: str, known: int, rng: np.random.Generator) -> None:
    wrong, missing = _some(rows, rng), _some(rows, rng)
    values[wrong] = known + rng.integers(0, len(invalid_codes(name)), len(wrong))
    values[missing] = NULL


def _some(rows: Array, rng: np.random.Generator) -> Array:
    """Rows to corrupt: always at least one, so that small files have every kind of error too."""
    some: Array = rows[rng.integers(0, len(rows), ceil(len(rows) * SHARE))]
    return some
