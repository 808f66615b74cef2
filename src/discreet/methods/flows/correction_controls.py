"""Controls of the correction: hires between states, employment, the family's flows by industry (A.3.2).

A group's cell k·S + s is industry k in state s; the last one, number N·S, is "not or marginally employed".
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.arrays import Floats, Int64s
from discreet.errors import ParameterError

LARGEST, SMALLEST = 1e40, 1e-40  # of a component: products of three and clock times stay normal floats
HEAVIEST = 10**12


def positive(component: Int64s | Floats) -> tuple[Floats, int]:
    """The component with 1 for every value that is not positive, and the number of those (A.3.2).

    >>> positive(np.array([3, 0, -2]))
    (array([3., 1., 1.]), 2)
    """
    values = np.asarray(component, np.float64)
    if not np.isfinite(values).all():
        raise ParameterError("a value is missing or infinite", where="controls", do="give 0 where nothing is known")
    used = np.where(values > 0, values, 1.0)
    if used.size and not SMALLEST <= used.min() <= used.max() <= LARGEST:
        raise ParameterError("a value is out of range", where="controls", do="count in whole units")
    return used, int((values <= 0).sum())


@dataclass(frozen=True)
class Controls:
    """Slowness of cell (k, s) of a group = jobs[home, s]·employment[k, s]·industry_flow[family, k] = 1/weight.

    The marginal cell is as slow as the slowest other cell of its group, divided by `marginal_weight`. `replaced` counts
    the components that were not positive and became 1, in the order jobs, employment, industry flow.
    """

    jobs: Floats  # (homes, S)
    employment: Floats  # (N, S)
    industry_flow: Floats  # (families, N)
    marginal_weight: float
    replaced: tuple[int, int, int]
    ease: Floats  # (homes, N·S): jobs·employment
    easiest: Floats  # (homes, N): the largest over the states

    @classmethod
    def of(
        cls,
        jobs: Int64s | Floats,
        employment: Int64s | Floats,
        industry_flow: Int64s | Floats,
        marginal_weight: Fraction,
    ) -> Controls:
        """From jobs (homes, S), employment (N, S) and industry flow (families, N), as they are published."""
        (j, no_jobs), (e, no_employment), (f, no_flow) = map(positive, (jobs, employment, industry_flow))
        if j.ndim != 2 or f.ndim != 2 or e.shape != (f.shape[1], j.shape[1]) or e.size == 0:
            raise ParameterError(
                "the components do not fit together",
                where="controls",
                do="give jobs (homes, states), employment (industries, states), industry flow (families, industries)",
            )
        if not Fraction(1, HEAVIEST) <= marginal_weight <= HEAVIEST:
            raise ParameterError("not a usable weight", where="marginal_weight", do="give one from 1e-12 to 1e12")
        ease = j[:, None, :] * e
        replaced = no_jobs, no_employment, no_flow
        return cls(j, e, f, float(marginal_weight), replaced, ease.reshape(len(j), e.size), ease.max(axis=2))

    @property
    def cells(self) -> int:
        """N·S + 1."""
        return self.employment.size + 1

    def slowness(self, home: int, family: int) -> Floats:
        """1/weight of every cell of one group, as the rules compute it."""
        others = self.ease[home] * np.repeat(self.industry_flow[family], self.employment.shape[1])
        return np.append(others, others.max() / self.marginal_weight)


@dataclass(frozen=True)
class GroupControls:
    """The controls, each group's home and family, and the rate of the noise: P(k) ∝ e^(−rate·|k|)."""

    controls: Controls
    home: Int64s
    family: Int64s
    rate: Fraction

    def __post_init__(self) -> None:
        rows = len(self.controls.jobs), len(self.controls.industry_flow)
        for name, numbers, below in zip(("home", "family"), (self.home, self.family), rows, strict=True):
            known = numbers.dtype == np.int64 and numbers.ndim == 1 and numbers.shape == self.home.shape
            if not known or (numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < below):
                raise ParameterError("not one row of the controls per group", where=name, do="number them from 0")
        if self.rate <= 0:
            raise ParameterError(
                "the rate of the noise is not positive", where="rate", do="give the rate of the noisy measurement"
            )
