"""The population behind samples of the synthetic survey: every job of every employer."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from discreet.arrays import Floats
from discreet.synth.occupational.occupations import (
    BLOCK,
    NEXT_JOB,
    SurveyDesign,
    _growth,
    _job_count,
    _jobs,
    _sizes,
    cells_of,
)


def population(design: SurveyDesign, names: Sequence[str]) -> Floats:
    """Workers by these names in the whole frame: what samples estimate. Goes over every job of every employer."""
    actual = np.zeros(prod(design.shape(names)))
    for stratum in design.strata:
        size = _sizes(design, stratum)
        step = max(1, BLOCK // _job_count(np.array([stratum.bounds[1]]))[0])
        for start in range(0, len(size), step):
            part = size[start : start + step]
            jobs = _job_count(part)
            first = (1 - NEXT_JOB) / (1 - NEXT_JOB**jobs)  # of an establishment's workers: (1 − a)/(1 − a^J)
            row = np.repeat(np.arange(len(part)), jobs)
            job = np.arange(len(row)) - np.repeat(np.cumsum(jobs) - jobs, jobs)
            number = stratum.first + start + np.arange(len(part))
            workers = (part * _growth(design, number))[row] * NEXT_JOB**job * first[row]
            codes = _jobs(design, stratum.sector, number[row], job)
            actual += np.bincount(cells_of(design, names, codes), workers, len(actual))
    return actual.reshape(design.shape(names))
