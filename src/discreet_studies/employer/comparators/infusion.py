"""Input noise infusion (Haney et al. 2017, §5.1), the protection in use before: a comparator, and the target of
attacks.

Every establishment has a permanent secret factor f_w, bounded away from 1; h*(w, c) = f_w·h(w, c) is summed. Small true
counts are replaced by a random draw, zeros stay. The factors' distribution follows Abowd, Stephens & Vilhuber (2006).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms import Floats, Int64s
from discreet.noise.interval_arithmetic import positive_fraction
from discreet.noise.key import ReleaseKey
from discreet.noise.stream import Stream
from discreet_studies.streams import simulation_stream

Shape = Literal["ramp", "uniform"]

LIMIT = Fraction(5, 2)  # §5.1
UNIT = 2.0**-53  # a word's upper 53 bits, as a fraction of 1
NO_GUARANTEE: Final = (
    "Noise infusion limits no inference. It has no epsilon and no formal guarantee: ratios of published counts are "
    "ratios of true ones, zeros are true zeros, and one known count reveals an establishment's factor."
)


@dataclass(frozen=True)
class InfusedCounts:
    """Infused counts (cells, worker cells), not rounded, as in the paper. `small` marks the replaced ones."""

    values: Floats
    truth: Int64s
    small: NDArray[np.bool_]

    def rounded(self) -> Int64s:
        """Rounded to integers, as in a table."""
        return np.floor(self.values + 0.5).astype(np.int64)


@dataclass(frozen=True)
class Infusion:
    """Factors in [1−t, 1−s] ∪ [1+s, 1+t]; true counts in (0, limit) become draws on 1 … ⌊limit⌋.

    An agency keeps its s and t secret, so there is no default. With z = |f − 1| the density of z is 2(t−z)/(t−s)²
    for the ramp, 1/(t−s) for the uniform; up and down are equally likely.
    """

    s: Fraction
    t: Fraction
    limit: Fraction = LIMIT
    shape: Shape = "ramp"

    def __post_init__(self) -> None:
        for name in ("s", "t", "limit"):
            positive_fraction(name, getattr(self, name))
        if not self.s < self.t < 1:
            raise ParameterError("s and t out of order, or a factor of 0", where="s, t", do="give 0 < s < t < 1")
        if self.limit < 1:
            raise ParameterError("the limit is below 1", where="limit", do="the paper has 2.5")
        if self.shape not in get_args(Shape):
            raise ParameterError("not a shape of factors", where="shape", do="give ramp or uniform")

    def factors(self, key: ReleaseKey, first: int, n: int) -> Floats:
        """f_w of establishments first … first+n−1; depends on their numbers and the key alone, in every table and
        year."""
        u, up = _uniforms(simulation_stream(key, "every table", b"infusion", "factors"), first, n)
        s, t = float(self.s), float(self.t)
        # P(z > v) = ((t−v)/(t−s))² for the ramp.
        z = np.clip(t - (t - s) * (np.sqrt(u) if self.shape == "ramp" else u), s, t)
        return np.asarray(np.where(up, 1 + z, 1 - z))

    def publish(
        self, workers: Int64s, cell: Int64s, cells: int, key: ReleaseKey, table: str, beside: tuple[int, ...] = ()
    ) -> InfusedCounts:
        """The table of establishments 0, 1, … with `workers` (n, worker cells) in `cell`. `beside` are the numbers of
        small counts 1, 2, … in the rest of the table, if this is a part of one."""
        _check(workers, cell, cells)
        factors = self.factors(key, 0, len(workers))
        truth = sums(workers, cell, cells)
        values: Floats = np.stack([np.bincount(cell, factors * column, cells) for column in workers.T], axis=1)
        small = (truth > 0) & (truth * self.limit.denominator < self.limit.numerator)
        values[truth == 0] = 0
        stream = simulation_stream(key, table, b"infusion", "small counts")
        values[small] = self._predictive(truth, small, beside, stream)
        return InfusedCounts(values, truth, small)

    def _predictive(self, truth: Int64s, small: NDArray[np.bool_], beside: tuple[int, ...], stream: Stream) -> Floats:
        """Draws with P(k) = (n_k + 1)/(n + L), k = 1 … L: the posterior predictive distribution of small counts under a
        uniform prior, where n_k is the table's number of true counts k. This distribution depends on the data."""
        highest = int(self.limit)
        seen = np.bincount(truth[small], minlength=highest + 1)[1 : highest + 1] + 1
        seen[: len(beside)] += np.array(beside[:highest], np.int64)
        u, _ = _uniforms(stream, 0, truth.size)
        cuts = np.cumsum(seen) / seen.sum()
        drawn = np.searchsorted(cuts[:-1], u.reshape(truth.shape)[small], side="right") + 1
        return drawn.astype(np.float64)


def mean_abs(method: Infusion, workers: Int64s, cell: Int64s, cells: int, keys: list[ReleaseKey], table: str) -> Floats:
    """E|published − true| of every cell, by simulation: the mean over the keys."""
    if not keys:
        raise ParameterError("no keys", where="keys", do="give simulation keys")
    total = np.zeros((cells, workers.shape[1]))
    for key in keys:
        infused = method.publish(workers, cell, cells, key, table)
        total += np.abs(infused.values - infused.truth)
    return total / len(keys)


def sums(workers: Int64s, cell: Int64s, cells: int) -> Int64s:
    """True counts (cells, worker cells), exact below 2⁵³."""
    return np.stack([np.bincount(cell, column, cells) for column in workers.T], axis=1).astype(np.int64)


def _uniforms(stream: Stream, first: int, n: int) -> tuple[Floats, NDArray[np.bool_]]:
    """A uniform number in (0, 1) and a fair coin for each of n cells."""
    u, coin, start = np.empty(n), np.empty(n, np.bool_), 0
    for words in stream.words(first, n):
        part = slice(start, start + len(words))
        u[part] = ((words[:, 0] >> np.uint64(11)).astype(np.float64) + 0.5) * UNIT
        coin[part] = words[:, 1] >> np.uint64(63) == 1
        start += len(words)
    return u, coin


def _check(workers: Int64s, cell: Int64s, cells: int) -> None:
    if workers.dtype != np.int64 or workers.ndim != 2 or cell.dtype != np.int64 or cell.shape != workers.shape[:1]:
        raise ParameterError(
            "workers and cell are not int64 arrays of matching length",
            where="workers",
            do="give (n, worker cells) and (n,)",
        )
    if workers.size and (int(workers.min()) < 0 or int(cell.min()) < 0 or int(cell.max()) >= cells):
        raise ParameterError("a negative count, or a cell outside the table", where="workers", do="number cells from 0")
