"""The dirt of real files of employers and jobs: codes nobody declared, nulls, ids without a record, records twice."""

from __future__ import annotations

from math import ceil

import numpy as np

from discreet.synth.data_errors import JUNK, NULL, SHARE, UNDECLARED_SECTORS
from discreet.synth.draws import Array
from discreet.synth.workplaces.employers import Employers, Purpose, stream
from discreet.synth.workplaces.jobs import ATTRIBUTES, JobRows

WORKPLACES = ("place", "sector")  # columns of workplaces that are spoilt
UNDECLARED = {  # well formed, and in no public list; 9999999 is LODES's own "in no place"
    "place": ("9999999",),
    "sector": UNDECLARED_SECTORS,
    "sex": ("CS03",),
    "education": ("CD05",),
}
STRANGERS = 100  # so many workplaces are known to the jobs alone


def junk(column: str) -> tuple[str, ...]:
    """What turns up in place of a column's codes."""
    return JUNK + UNDECLARED.get(column, ())


def inject_into_frame(columns: dict[str, Array], known: dict[str, int], seed: int) -> None:
    """Dirty columns of the list of workplaces in place; `known` is how many clean codes precede the dirty ones."""
    rng = stream(seed, Purpose.FRAME_ERRORS)
    for name in WORKPLACES:
        _spoil(columns[name], np.arange(len(columns[name])), name, known[name], rng)


def inject(jobs: JobRows, number: int, frame: Employers, known: dict[str, int]) -> Array:
    """Dirty a block in place; returns the positions of workers who are listed twice.

    Its own random stream: the rows it leaves alone are those of the clean file.
    """
    rng = stream(frame.seed, Purpose.DATA_ERRORS, number)
    for name in ATTRIBUTES:
        _spoil(getattr(jobs, name), jobs.holder, name, known[name], rng)
    lost = _some(np.arange(len(jobs)), rng)
    jobs.workplace[lost] = -1 - rng.integers(0, STRANGERS, len(lost))
    jobs.listed[_some(jobs.holder, rng)] = False
    twice = np.unique(_some(jobs.holder, rng))
    jobs.listed[twice] = True  # or a small file might have nobody twice
    return twice


def _spoil(values: Array, rows: Array, name: str, known: int, rng: np.random.Generator) -> None:
    wrong, missing = _some(rows, rng), _some(rows, rng)
    values[wrong] = known + rng.integers(0, len(junk(name)), len(wrong))
    values[missing] = NULL


def _some(rows: Array, rng: np.random.Generator) -> Array:
    """Rows to spoil: always at least one, so that small files have every kind of dirt too."""
    some: Array = rows[rng.integers(0, len(rows), ceil(len(rows) * SHARE))]
    return some
