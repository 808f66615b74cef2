"""Non-negative flows with unchanged noisy totals (PSEO Technical Appendices, A.3.2). Proof: correction.md.

A rule turns noisy flows (groups, cells) into corrected ones: no cell is negative, a positive total is kept exactly, a
group whose total is not positive becomes zero. Its random words are an argument, words[starts[g] : starts[g + 1]] for
group g: the result for a group depends on its own flows, controls and words alone, however groups are batched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Floats, Int64s, Words
from discreet.errors import ParameterError
from discreet.methods.flows.correction_controls import Controls, GroupControls
from discreet.methods.flows.correction_quantiles import fill
from discreet.methods.flows.exponential_race import ring, scratch
from discreet.noise.jit import compiled
from discreet.noise.kernels import largest

LARGEST_SUM = 2**62
Tables = tuple[Floats, Floats, Floats, float, Int64s, Int64s]  # of the controls, then each group's home and family
Clocks = tuple[Int64s, Int64s, Floats]  # cells, rings, slowness

__all__ = [
    "RULES",
    "Controls",
    "CorrectionRule",
    "GroupControls",
    "projection",
    "published",
    "quantiles",
    "words_needed",
]


@dataclass(frozen=True)
class CorrectionRule:
    """A correction rule: how many random words each group needs at most, and the corrected flows."""

    words_needed: Callable[[Int64s], Int64s]
    correct: Callable[[Int64s, GroupControls, Words, Int64s], Int64s]


def words_needed(noisy: Int64s) -> Int64s:
    """Words per group: positive cells + F, F = Σ max(x, 0) − Σ x; 0 where nothing is subtracted, or everything.

    >>> words_needed(np.array([[3, -1, 2, -1], [3, 0, 2, 0], [1, -1, 0, 0]])).tolist()
    [4, 0, 0]
    """
    flows = _flows(noisy)
    total, positive = flows.sum(axis=1), np.maximum(flows, 0).sum(axis=1)
    return np.where((total > 0) & (positive > total), (flows > 0).sum(axis=1) + positive - total, 0)


def no_words(noisy: Int64s) -> Int64s:
    """None: the rule is deterministic."""
    return np.zeros(len(noisy), np.int64)


def published(noisy: Int64s, groups: GroupControls, words: Words, starts: Int64s) -> Int64s:
    """A.3.2: F times, a non-zero cell is drawn with probability weight/Σ weight and one is subtracted from it."""
    return _run(noisy, groups, words, starts)


def projection(noisy: Int64s, groups: GroupControls, words: Words, starts: Int64s) -> Int64s:
    """Least-squares projection onto non-negative integers with that total; clocks break ties between cells."""
    return _run(noisy, groups, words, starts, nearest=True)


def quantiles(noisy: Int64s, groups: GroupControls, words: Words, starts: Int64s) -> Int64s:
    """For every cell the posterior quantile, given measurement and controls, at one level for the whole group."""
    return fill(_ready(noisy, groups, words, starts), groups)


RULES = {
    "published": CorrectionRule(words_needed, published),
    "projection": CorrectionRule(words_needed, projection),
    "quantiles": CorrectionRule(no_words, quantiles),
}


def _flows(noisy: Int64s) -> Int64s:
    """The flows, contiguous; refused unless sums of absolute values within a group stay below 2⁶²."""
    if noisy.dtype != np.int64 or noisy.ndim != 2:
        raise ParameterError("flows are int64, groups × cells", where="noisy", do="convert them first")
    flows = np.ascontiguousarray(noisy)
    if flows.size and (largest(flows.ravel()) + 1) * flows.shape[1] >= LARGEST_SUM:
        raise ParameterError("a flow is too large to sum", where="noisy", do="clamp contributions first")
    return flows


def _ready(noisy: Int64s, groups: GroupControls, words: Words, starts: Int64s) -> Int64s:
    """The flows, after checks of all arguments."""
    flows = _flows(noisy)
    if flows.shape != (groups.home.size, groups.controls.cells):
        raise ParameterError("flows and controls differ in shape", where="noisy", do="give N·S + 1 cells per group")
    if words.dtype != np.uint64 or words.ndim != 1 or starts.dtype != np.int64 or starts.shape != (len(flows) + 1,):
        raise ParameterError("words are uint64, starts int64, one more than groups", where="words", do="convert them")
    if int(starts[0]) < 0 or int(starts[-1]) > words.size or (np.diff(starts) < 0).any():
        raise _too_few()
    return flows


def _run(noisy: Int64s, groups: GroupControls, words: Words, starts: Int64s, *, nearest: bool = False) -> Int64s:
    """The flows corrected by exponential clocks."""
    flows = _ready(noisy, groups, words, starts)
    c, out = groups.controls, np.empty_like(flows)
    tables = (c.ease, c.easiest, c.industry_flow, c.marginal_weight, groups.home, groups.family)
    if not _correct_groups(flows, tables, words, starts, nearest, out):
        raise _too_few()
    return out


def _too_few() -> ParameterError:
    return ParameterError(
        "too few words for a group", where="words", do="draw as many as the rule's `words_needed` says"
    )


@compiled
def _clocks(
    flow: Int64s, ease: Floats, easiest: Floats, industry_flow: Floats, marginal_weight: float, clocks: Clocks
) -> int:
    """Cell, number of rings and slowness (1/weight) of each positive cell of one group; returns their number."""
    cells, left, slowness = clocks
    industries, last = industry_flow.size, flow.size - 1
    states, count, slowest = last // industries, np.int64(0), 0.0
    for k in range(industries):
        begin, factor = count, industry_flow[k]
        slowest = max(slowest, easiest[k] * factor)
        for i in range(k * states, (k + 1) * states):
            cells[count] = i
            count += np.int64(flow[i] > 0)
        for j in range(begin, count):
            left[j], slowness[j] = flow[cells[j]], ease[cells[j]] * factor
    if flow[last] > 0:
        cells[count], left[count], slowness[count] = last, flow[last], slowest / marginal_weight
        count += np.int64(1)
    return int(count)


@compiled
def _clip(flow: Int64s, out: Int64s) -> tuple[int, int]:
    """The positive part of the flows; returns their total and the sum of what was negative."""
    total, excess = np.int64(0), np.int64(0)
    for i in range(flow.size):
        out[i] = max(flow[i], np.int64(0))
        total += flow[i]
        excess -= min(flow[i], np.int64(0))
    return int(total), int(excess)


@compiled
def _correct_groups(noisy: Int64s, tables: Tables, words: Words, starts: Int64s, nearest: bool, out: Int64s) -> bool:
    """Corrects every group; returns whether each had enough words."""
    size = noisy.shape[1]
    ease, easiest, industry_flow, marginal_weight, home, family = tables
    cells, left, slowness = clocks = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    work, enough = scratch(size), True
    for g in range(noisy.shape[0]):
        total, rings = _clip(noisy[g], out[g])
        if total <= 0:
            out[g] = 0
        if total <= 0 or rings == 0:
            continue
        h, f = home[g], family[g]
        count = _clocks(noisy[g], ease[h], easiest[h], industry_flow[f], marginal_weight, clocks)
        if starts[g + 1] - starts[g] < count + rings:
            enough = False
            continue
        if nearest:
            count, rings = _subtract_levels(cells, left, slowness, count, rings, out[g])
        if rings > 0:
            ring(cells, left, slowness, count, rings, words[starts[g] : starts[g + 1]], work, out[g])
    return enough


@compiled
def _subtract_levels(
    cells: Int64s, left: Int64s, slowness: Floats, count: int, excess: int, out: Int64s
) -> tuple[int, int]:
    """Subtract up to `level` from every cell: lowering x to x − 1 costs 2(n − x) + 1, so cells fall in step. Returns
    the number of cells that may each fall by one more, and the number of units still to subtract."""
    level, above = np.int64(0), np.int64(1)
    while np.minimum(left[:count], above).sum() <= excess:
        level, above = above, 2 * above
    while above - level > 1:
        middle = (level + above) // 2
        if np.minimum(left[:count], middle).sum() <= excess:
            level = middle
        else:
            above = middle
    remaining = 0
    for j in range(count):
        taken = min(left[j], level)
        excess -= taken
        out[cells[j]] -= taken
        if left[j] > level:
            cells[remaining], left[remaining], slowness[remaining] = cells[j], 1, slowness[j]
            remaining += 1
    return remaining, excess
