"""Audits of mechanisms for counts of jobs: draws on neighbouring cells, and whether they refute the claimed
guarantee."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Literal

import numpy as np

from discreet.methods.employer.mechanisms import Int64s
from discreet.noise.key import ReleaseKey
from discreet.noise.stream import Stream
from discreet_studies.attacks.audits import LEVEL, AuditBound, audit_draws
from discreet_studies.attacks.proportions import lower, upper
from discreet_studies.attacks.runs import grown

Draw = Callable[[Int64s, Int64s, Stream, int], Int64s]
SAMPLES = 200_000


@dataclass(frozen=True)
class AuditedCells:
    """Cells that are published together: their counts, and what the noise is scaled by."""

    counts: tuple[int, ...]
    largest: tuple[int, ...]


@dataclass(frozen=True)
class AuditedClaim(AuditBound):
    """What an audit found, beside what is claimed."""

    claimed: Fraction | None

    @property
    def refuted(self) -> bool:
        """Whether the claim is wrong, at the level of confidence."""
        return self.claimed is not None and self.epsilon_at_least > self.claimed


def audit(
    draw: Draw,
    one: AuditedCells,
    other: AuditedCells,
    key: ReleaseKey,
    samples: int = SAMPLES,
    level: Fraction = LEVEL,
    delta: Fraction = Fraction(0),
    claimed: Fraction | None = None,
) -> AuditedClaim:
    """A lower bound of the loss between two neighbours, by drawing both."""
    made = audit_draws(*(_sample(draw, *pair, key, samples) for pair in ((one, "one"), (other, "other"))), level, delta)
    return AuditedClaim(made.epsilon_at_least, made.event, claimed)


def _sample(draw: Draw, cells: AuditedCells, label: str, key: ReleaseKey, samples: int) -> Int64s:
    """Independent publications (samples, cells) of the same truth."""
    counts, largest = (np.tile(np.array(v, np.int64), samples) for v in (cells.counts, cells.largest))
    stream = key.stream("evaluate", label, b"audit", "cells")
    return draw(counts, largest, stream, 0).reshape(samples, len(cells.counts))


def reachable(samples: int, level: Fraction = LEVEL) -> float:
    """The largest bound that this number of samples can give: an event that always occurs on one side and never on the
    other."""
    left, doubt = samples - samples // 2, (1 - level) / 2
    return log(lower(left, left, doubt) / upper(0, left, doubt))


def single(alpha: Fraction) -> list[tuple[str, AuditedCells, AuditedCells]]:
    """One cell: a job more, growth by 1+α, another establishment overtaken, the first job of an empty cell."""
    pairs = []
    for x in (0, 1, 5, int(1 / alpha), int(1 / alpha) + 1, 95, 1000):
        pairs.append((f"{x} → {x + 1}", AuditedCells((x,), (x,)), AuditedCells((x + 1,), (x + 1,))))
    for x in (int(1 / alpha), int(2 / alpha) - 1, 95, 100, 1000, 9999):
        y = grown(x, alpha)
        pairs.append((f"{x} → {y}", AuditedCells((x,), (x,)), AuditedCells((y,), (y,))))
        below, above = x + (y - x) // 3, grown(x, alpha)
        rest = 5 * x
        pairs.append(
            (
                f"{x} → {y}, past another of {below}",
                AuditedCells((x + rest + below,), (max(x, below),)),
                AuditedCells((above + rest + below,), (max(above, below),)),
            )
        )
    return pairs


def joint(alpha: Fraction, d: int, size: int, growing: Literal["one", "all"]) -> tuple[AuditedCells, AuditedCells]:
    """d worker cells of an establishment, S from its total: the growth in a one-worker cell, or in every cell."""
    rest = [(size - 1) // (d - 1)] * (d - 1) if d > 1 else []
    before = [size - sum(rest), *rest]
    after = list(before)
    more = grown(size, alpha) - size
    for i in range(more):
        after[0 if growing == "one" else i % d] += 1
    return AuditedCells(tuple(before), (size,) * d), AuditedCells(tuple(after), (size + more,) * d)
