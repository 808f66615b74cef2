"""Percentile ranks in [0, 1]: a transformation that bounds a variable (Chetty & Friedman 2019, footnote on bounded
variables)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import Floats


def by_thresholds(values: Floats, thresholds: Sequence[float]) -> Floats:
    """Ranks among public thresholds, such as a published national distribution: ascending, ties allowed; NaN of NaN.

    Of m thresholds, L below a value and E equal to it: (L + E/2)/m. A function of the record alone: no record
    changes the rank of another, so sensitivities of statistics of ranks are valid.
    """
    points = np.asarray(thresholds, np.float64)
    if not points.size or not np.isfinite(points).all() or (np.diff(points) < 0).any():
        raise ParameterError(
            "thresholds are not finite and ascending", where="ranks", do="give public thresholds in order"
        )
    return _mid(points, np.asarray(values, np.float64))


def percentile_ranks(values: Floats) -> Floats:
    """Mid-ranks among the values themselves: (L + E/2)/n; ties share their mean rank.

    The rank of a record then depends on all others: adding one changes them all, in every cell. Local sensitivities
    hold the other records fixed and do not cover this. Rank by public thresholds where that matters.
    """
    column = np.asarray(values, np.float64)
    if np.isnan(column).any():
        raise ParameterError("a missing value has no rank", where="ranks", do="drop missing values first")
    return _mid(np.sort(column), column) if column.size else column.copy()


def _mid(points: Floats, values: Floats) -> Floats:
    below, to = np.searchsorted(points, values, "left"), np.searchsorted(points, values, "right")
    ranks: Floats = (below + to) / (2.0 * points.size)
    ranks[np.isnan(values)] = np.nan
    return ranks
