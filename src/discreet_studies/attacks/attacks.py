"""The attacks of Haney et al. 2017, §5.2, and two more, from publications and stated background knowledge alone.

Every success rate is reported with that of guessing from the same background knowledge without the publication. Targets
are establishments that are alone in their cell of the table, which is public knowledge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.noise.key import ReleaseKey
from discreet_studies.attacks.proportions import SuccessRate
from discreet_studies.attacks.releases import Floats, Int64s, Publication

Bools = NDArray[np.bool_]

POINTS = 0.005  # shares are recovered if each is within half a percentage point
NEAR = 0.01  # a size is recovered if within 1%


@dataclass(frozen=True)
class Attack:
    """Success rates of an attack on a method, and of guessing."""

    attack: str
    method: str
    rate: SuccessRate
    baseline: SuccessRate


@dataclass(frozen=True)
class AveragingError:
    """Error of sizes estimated from k publications."""

    method: str
    publications: int
    relative_error: float  # median over the targets


def alone_in_cell(cell: Int64s) -> Int64s:
    """Establishments that are the only one in their cell."""
    _, where, seen = np.unique(cell, return_inverse=True, return_counts=True)
    return np.flatnonzero(seen[where] == 1)


def unreplaced(workers: Int64s, limit: Fraction) -> Bools:
    """Establishments none of whose counts is replaced, as all are above the limit: here §5.2 claims exact recovery."""
    return np.asarray((workers * limit.denominator > limit.numerator).all(axis=1))


def shape(method: Publication, workers: Int64s, key: ReleaseKey) -> Attack:
    """Published counts over their sum, as shares of the workforce. The guess: the overall shares."""
    return _shape_from("shape", method, workers, _published(method, workers, key, "shape"))


def size(method: Publication, workers: Int64s, key: ReleaseKey, near: float = NEAR) -> Attack:
    """The adversary knows the largest group exactly. By ratio: f̂ = published/known, size = Σ published/f̂; by sum:
    known + the published rest. The guess: known over that group's overall share, or the most common size."""
    return _size_from("size", method, workers, _published(method, workers, key, "size"), near)


def reidentification(method: Publication, workers: Int64s, columns: Sequence[int], key: ReleaseKey) -> Attack:
    """The adversary knows that exactly one worker is in these groups (graduates), and picks the group with the largest
    published count. The guess: the most common group among such workers."""
    groups = workers[:, list(columns)]
    if not len(groups) or not (groups.sum(axis=1) == 1).all():
        raise ParameterError(
            "a target does not have exactly one such worker", where="workers", do="choose those with one"
        )
    truth = groups.argmax(axis=1)
    commonest = int(np.bincount(truth, minlength=len(columns)).argmax())
    seen = _published(method, workers, key, "reidentification")[:, list(columns)]
    tied = seen[np.arange(len(seen)), commonest] == seen.max(axis=1)
    guessed = np.where(tied, commonest, seen.argmax(axis=1))
    return Attack("re-identification", method.name, _rate(guessed == truth), _rate(truth == commonest))


def differencing(
    method: Publication, workers: Int64s, cell: Int64s, target: Bools, key: ReleaseKey
) -> tuple[Attack, Attack]:
    """Two tables, the second without one establishment in each cell: shape and size from their difference.

    An example: a table by place and one by place and ownership, where all but one share an ownership.
    """
    cells = int(cell.max()) + 1
    order = np.argsort(cell[target], kind="stable")
    if not np.array_equal(cell[target][order], np.arange(cells)):
        raise ParameterError("not one target in each cell", where="target", do="choose cells that differ by one")
    # Numbers stay: the second table has the same establishments, without the targets' workers.
    rest = np.where(target[:, None], 0, workers)
    seen = method.publish(workers, cell, cells, key, "all") - method.publish(rest, cell, cells, key, "others")
    theirs = workers[target][order]
    return (
        _shape_from("differencing, shape", method, theirs, seen),
        _size_from("differencing, size", method, theirs, seen, NEAR),
    )


def averaging(
    method: Publication, workers: Int64s, publications: Sequence[int], key: ReleaseKey
) -> list[AveragingError]:
    """Sizes by the median of k publications of each count (heavy tails rule out the mean). Infusion repeats its
    factors, as it does over years."""
    truth, cell = workers.sum(axis=1), np.arange(len(workers))
    names = (f"publication {k}" for k in range(max(publications)))
    seen = np.stack([method.publish(workers, cell, len(workers), key, name) for name in names])
    errors = []
    for k in publications:
        error = np.abs(np.median(seen[:k], axis=0).sum(axis=1) - truth) / truth
        errors.append(AveragingError(method.name, k, float(np.median(error))))
    return errors


def growth(method: Publication, before: Int64s, after: Int64s, key: ReleaseKey) -> Attack:
    """Growth as the ratio of two years' totals. The guess: overall growth."""
    cell, (first, second) = np.arange(len(before)), (before.sum(axis=1), after.sum(axis=1))
    years = enumerate((before, after))
    seen = [method.publish(year, cell, len(before), key, f"year {i}").sum(axis=1) for i, year in years]
    truth = second / first
    estimates = np.divide(seen[1], seen[0], out=np.full(len(truth), np.nan), where=seen[0] > 0)
    common = second.sum() / first.sum()
    rate, guessed = (_rate(_close(growth, truth, NEAR / 10)) for growth in (estimates, np.full(len(truth), common)))
    return Attack("growth", method.name, rate, guessed)


def _shape_from(attack: str, method: Publication, workers: Int64s, seen: Floats) -> Attack:
    _refuse_empty(workers)
    truth = workers / workers.sum(axis=1, keepdims=True)
    common = workers.sum(axis=0) / workers.sum()
    estimates = (_shares(seen), np.broadcast_to(common, truth.shape))
    rate, guessed = (_rate(_same_shares(shares, truth)) for shares in estimates)
    return Attack(attack, method.name, rate, guessed)


def _size_from(attack: str, method: Publication, workers: Int64s, seen: Floats, near: float) -> Attack:
    _refuse_empty(workers)
    rows, which, truth = np.arange(len(workers)), workers.argmax(axis=1), workers.sum(axis=1)
    known, shown, total = workers[rows, which], seen[rows, which], seen.sum(axis=1)
    if method.reading == "ratio":
        size_estimates = np.divide(total * known, shown, out=known.astype(np.float64), where=shown > 0)
    else:
        size_estimates = np.maximum(known + total - shown, known)
    parts, wholes = (np.bincount(which, numbers, workers.shape[1]) for numbers in (known, truth))
    guesses = (known * (wholes / np.maximum(parts, 1))[which], np.full(len(truth), np.bincount(truth).argmax()))
    rate, *guessed = (_rate(_close(np.rint(sizes), truth, near)) for sizes in (size_estimates, *guesses))
    return Attack(attack, method.name, rate, max(guessed, key=lambda guess: guess.hits))


def _published(method: Publication, workers: Int64s, key: ReleaseKey, table: str) -> Floats:
    return method.publish(workers, np.arange(len(workers)), len(workers), key, table)


def _shares(seen: Floats) -> Floats:
    """Negative counts become 0; if all are 0, equal shares."""
    counts = np.maximum(seen, 0)
    total = counts.sum(axis=1, keepdims=True)
    equal: Floats = np.full(counts.shape, 1 / counts.shape[1])
    np.divide(counts, total, out=equal, where=total > 0)
    return equal


def _same_shares(estimate: Floats, truth: Floats) -> Bools:
    return np.asarray((np.abs(estimate - truth) <= POINTS).all(axis=1))


def _close(estimate: Floats | Int64s, truth: Floats | Int64s, near: float) -> Bools:
    return np.asarray(np.abs(estimate - truth) <= near * truth)


def _rate(success: Bools) -> SuccessRate:
    return SuccessRate(int(success.sum()), len(success))


def _refuse_empty(workers: Int64s) -> None:
    if not len(workers) or not (workers.sum(axis=1) > 0).all():
        raise ParameterError("no targets, or an empty one", where="workers", do="choose establishments with workers")
