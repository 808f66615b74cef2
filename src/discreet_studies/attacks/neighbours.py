"""Pairs of data that a requirement says must look alike (003, Def. 4.1–4.3, 7.1, 7.3), for audits."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Row = tuple[int, ...]
Requirement = Literal["individuals", "size", "shape"]


@dataclass(frozen=True)
class Pair:
    """The establishments of one cell of a table, by worker cells, before and after.

    `times` is how many neighbours lie on the way from one to the other: the loss may be that many ε. `informed` pairs
    are asked for only against attackers who know about worker attributes (003, Def. 4.2, strong).
    """

    name: str
    requirement: Requirement
    one: tuple[Row, ...]
    other: tuple[Row, ...]
    times: int = 1
    informed: bool = False

    def tables(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Both, as (establishments, worker cells)."""
        return np.array(self.one, np.int64), np.array(self.other, np.int64)


def grown(size: int, alpha: Fraction) -> int:
    """The largest neighbour of a size: max(⌊(1+α)x⌋, x + 1)."""
    return max(int((1 + alpha) * size), size + 1)


def required(alpha: Fraction, d: int = 8) -> list[Pair]:
    """What the three requirements ask of a release by d ≥ 4 worker cells (003, §4.2).

    Shape: one group's share grows by 1+α while the size stays, so that another shrinks from αn + 1 to 1.
    """

    def row(*counts: int) -> tuple[Row, ...]:
        return ((*counts, *([0] * (d - len(counts)))),)

    many = tuple(100 + 10 * i for i in range(d))
    more = tuple(int((1 + alpha) * n) for n in many)
    total, moved = sum(many) + 1, grown(sum(many) + 1, alpha) - sum(many) - 1
    shapes = [(n, int(alpha * n)) for n in (1000, 10_000)]
    return [
        Pair("the first job in a group", "individuals", row(3, 2, 2, 0), row(3, 2, 2, 1)),
        Pair("a second job in a group", "individuals", row(0, 5, 0, 1), row(0, 5, 0, 2)),
        Pair("a group of 99 and one job more", "individuals", row(99, 5, 0, 1), row(100, 5, 0, 1)),
        Pair("a worker's attribute", "individuals", row(3, 2, 1, 0), row(3, 2, 0, 1), times=2),
        Pair("every group grows by 1+α", "size", (many,), (more,)),
        Pair(
            f"{total} to {total + moved}, all in one group",
            "size",
            ((1, *many[1:-1], many[-1] + many[0]),),
            ((1 + moved, *many[1:-1], many[-1] + many[0]),),
            informed=True,
        ),
        *(Pair(f"{n} and {k + 1} to {n + k} and 1", "shape", row(n, k + 1), row(n + k, 1), times=2) for n, k in shapes),
    ]
