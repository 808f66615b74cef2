"""A sample of the synthetic requirements survey, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.synth.occupational.occupations import Floats, SurveyDesign, cells_of, replicated, sample
from discreet.synth.occupational.requirements import ORS, Requirement


@dataclass(frozen=True)
class SurveySample:
    """A sample, quote by quote. `codes` has the position of the occupation, then of each requirement's category."""

    design: SurveyDesign
    establishment: NDArray[np.int64]
    codes: NDArray[np.int16]  # column × quote
    weight: Floats
    replicates: Floats  # replicate × quote

    def __len__(self) -> int:
        return len(self.weight)

    def table(self, names: Sequence[str], weight: Floats | None = None) -> Floats:
        """The sum of weights by these names; other weights are a replicate's, or ones for counts."""
        (actual,) = self._tables(names, [self.weight if weight is None else weight])
        return actual

    def variances(self, names: Sequence[str]) -> Floats:
        """Successive differences: (4/R) Σ (θ_r − θ)² (Fay & Train 1995; Li & Krenzke 2020, §3.4). Confidential, as the
        sample is."""
        estimate, *replicates = self._tables(names, [self.weight, *self.replicates])
        return np.asarray(4 * np.mean((np.array(replicates) - estimate) ** 2, axis=0))

    def _tables(self, names: Sequence[str], weights: Iterable[Floats]) -> Iterator[Floats]:
        shape, cells = self.design.shape(names), cells_of(self.design, names, self.codes)
        for weight in weights:
            yield np.bincount(cells, weight, prod(shape)).astype(np.float64, copy=False).reshape(shape)


def occupations(
    rows: int,
    seed: int = 7,
    *,
    draw: int = 0,
    requirements: tuple[Requirement, ...] = ORS,
    replicates: int = 20,
    occupations: int = 600,
) -> SurveySample:
    """Generate a synthetic survey with this number of quotes; deterministic, and each draw is another sample."""
    design = SurveyDesign(rows, seed, requirements, replicates, occupations)
    blocks = list(sample(design, draw))
    return SurveySample(
        design,
        np.concatenate([block.establishment for block in blocks]),
        np.concatenate([block.codes for block in blocks], axis=1),
        np.concatenate([block.weight for block in blocks]),
        np.concatenate([replicated(design, block) for block in blocks], axis=1),
    )
