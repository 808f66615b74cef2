"""Published percentiles compared with the truth: PSEO's rule, ours, and the smooth-sensitivity percentile.

For simulations on synthetic records: it holds the exact percentiles of the records, so it is as confidential as they
are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.domain.bins import PSEO, Bins
from discreet.methods.earnings.shrinkage import estimate
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.percentiles import Floats, Int64s, percentiles
from discreet.post.summary import Summary, SummaryParameters, summarise
from discreet.publish.parquet import table_of
from discreet.synth import graduates
from discreet_studies.pseo.smooth import SmoothPercentiles

SMOOTH_SHARE = Fraction(
    13, 20
)  # share of ε for the sensitivity: about the best value for these synthetic data, which favours the method


@dataclass(frozen=True)
class GraduateCells:
    """Exact values of many cells, concatenated, sorted within each cell."""

    values: Int64s
    start: Int64s  # of each cell in `values`, and the end
    histograms: Int64s
    bins: Bins

    @property
    def sizes(self) -> Int64s:
        return np.diff(self.start)

    def raw(self, points: Sequence[Fraction]) -> Floats:
        """The percentiles of the values themselves: the ⌈yn⌉-th smallest; NaN in an empty cell."""
        out = np.full((len(self.sizes), len(points)), np.nan)
        some = self.sizes > 0
        for p, y in enumerate(points):
            rank = -(-self.sizes[some] * y.numerator // y.denominator)
            out[some, p] = self.values[self.start[:-1][some] + rank - 1]
        return out

    def noise_free(self, points: tuple[Fraction, ...]) -> Floats:
        """The percentiles of the exact histograms, by Eq. 4: the estimand of the confidence limits."""
        return percentiles(self.histograms, self.bins, points)


def cells_of(values: Int64s, cells: Int64s, count: int, bins: Bins) -> GraduateCells:
    """Sort values into cells numbered 0 … count − 1."""
    order = np.lexsort((values, cells))
    start = np.searchsorted(cells[order], np.arange(count + 1))
    numbers = np.bincount(cells * bins.count + bins.number(values), minlength=count * bins.count)
    return GraduateCells(values[order], start.astype(np.int64), numbers.reshape(count, bins.count), bins)


@dataclass(frozen=True)
class Trial:
    """One draw of the noise: publications by PSEO's rule and by ours, from the same histograms."""

    pseo: Summary
    shrunk: Summary


def trial(
    cells: GraduateCells,
    families: Sequence[Int64s],
    points: tuple[Fraction, ...],
    minimum: int,
    rate: Fraction,
    key: ReleaseKey,
) -> Trial:
    """Add noise to every cell's histogram and publish it by both rules."""
    stream = key.stream("evaluate", "earnings", b"", f"histogram/{rate}")
    noise = DiscreteLaplace(rate).draw(stream, 0, cells.histograms.size)
    noisy = cells.histograms + noise.reshape(cells.histograms.shape)
    question = SummaryParameters(cells.bins, points, minimum, rate)
    ones, nothing = np.ones(len(noisy), np.int64), np.zeros(len(noisy), np.bool_)
    guess = estimate(noisy, families, float(rate), cells.bins, points)
    return Trial(summarise(noisy, question, ones, nothing), summarise(noisy, question, ones, nothing, guess))


def smooth(cells: GraduateCells, points: tuple[Fraction, ...], epsilon: Fraction, key: ReleaseKey) -> Floats:
    """Smooth-sensitivity percentiles of the same cells at the same ε."""
    lower, upper = cells.bins.edges[0], cells.bins.edges[-1]
    mechanism = SmoothPercentiles(points, lower, upper, epsilon, SMOOTH_SHARE)
    clamped = np.clip(cells.values, lower, upper)
    return mechanism.protect(clamped, cells.start, key).astype(np.float64)


CELL = ("institution", "degree_level", "cip4", "grad_cohort", "years_after")
FAMILIES = (("degree_level", "years_after"), ("degree_level", "years_after", "cip4"))
LEAST = 10_000  # yearly earnings of the sample


def synthetic_cells(folder: Path, rows: int, seed: int) -> tuple[GraduateCells, list[Int64s]]:
    """Generate a synthetic agency in `folder`; its cells in PSEO's bins, and their families, the widest first."""
    graduates(folder, rows, seed)
    table = table_of(folder / "graduates.parquet")
    table = table.filter(pc.greater_equal(table["earnings"], LEAST))  # also drops nulls
    table = table.append_column("cip4", pc.utf8_slice_codeunits(table["cipcode"], 0, 5))
    table = table.select([*CELL, "earnings"]).drop_null()
    coded = {name: table[name].combine_chunks().dictionary_encode() for name in CELL}
    cell = _numbers(coded, CELL)
    count = int(cell.max()) + 1
    families = []
    for names in FAMILIES:
        family = np.zeros(count, np.int64)
        family[cell] = _numbers(coded, names)
        families.append(family)
    return cells_of(table["earnings"].to_numpy().astype(np.int64), cell, count, PSEO), families


def _numbers(coded: dict[str, pa.DictionaryArray], names: tuple[str, ...]) -> Int64s:
    """One number per combination that occurs; acceptable here because the records are synthetic and nothing is
    published."""
    out = np.zeros(len(coded[names[0]]), np.int64)
    for name in names:
        out = out * len(coded[name].dictionary) + coded[name].indices.to_numpy().astype(np.int64)
    return np.unique(out, return_inverse=True)[1].astype(np.int64)
