"""Table 1 of Haney et al. 2017 from executed audits and attacks: which method fails which requirement, with evidence.

Audits use pairs of data sets that a requirement declares indistinguishable (Def. 4.1–4.3, 7.1, 7.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.noise.key import ReleaseKey
from discreet_studies.attacks import attacks
from discreet_studies.attacks.attacks import Attack
from discreet_studies.attacks.audits import LEVEL, SAMPLES, AuditBound, audit_draws
from discreet_studies.attacks.releases import Int64s, Publication

Row = tuple[int, ...]
Requirement = Literal["individuals", "size", "shape"]


@dataclass(frozen=True)
class Pair:
    """The establishments of one cell of a table, by worker cells, before and after.

    `times` is the number of neighbour steps from one to the other: the loss may be that many ε. `informed` pairs are
    required only against adversaries who know worker attributes (Def. 4.2, strong).
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
    """Pairs that the three requirements (§4.2) declare indistinguishable, for a release by d ≥ 4 worker cells.

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


REQUIREMENTS: tuple[Requirement, ...] = ("individuals", "size", "shape")
Refutation = Literal["not refuted", "fails for informed adversaries", "fails"]


@dataclass(frozen=True)
class AuditEvidence:
    """One pair of neighbours: the allowed privacy loss, and the audited lower bound."""

    pair: Pair
    allowed: Fraction
    bound: AuditBound

    @property
    def refutes(self) -> bool:
        """Whether the loss exceeds what the requirement allows."""
        return self.bound.epsilon_at_least > self.allowed


@dataclass(frozen=True)
class RequirementEvidence:
    """One entry of Table 1. An audit can refute a requirement; failing to refute it is no proof."""

    method: str
    requirement: Requirement
    audits: tuple[AuditEvidence, ...]
    attack: Attack

    @property
    def verdict(self) -> Refutation:
        """`fails for informed adversaries` where only pairs that such adversaries distinguish refute it (the star in
        Table 1)."""
        refuting = [evidence for evidence in self.audits if evidence.refutes]
        if not refuting:
            return "not refuted"
        return "fails for informed adversaries" if all(e.pair.informed for e in refuting) else "fails"

    @property
    def worst(self) -> AuditEvidence:
        """The pair with the largest excess over the allowed loss."""
        return max(self.audits, key=lambda e: e.bound.epsilon_at_least - float(e.allowed))

    def __str__(self) -> str:
        worst, attack = self.worst, self.attack
        return (
            f"{self.verdict}: loss ≥ {worst.bound.epsilon_at_least:.2f}, allowed {float(worst.allowed):g} "
            f"({worst.pair.name}); attack {attack.rate.share:.3f}, guess {attack.baseline.share:.3f}"
        )


@dataclass(frozen=True)
class Targets:
    """Establishments alone in their cell: targets for shape and size, and those with one worker in some groups."""

    unreplaced: Int64s
    with_one: Int64s
    columns: tuple[int, ...]


def targets(workers: Int64s, cell: Int64s, columns: tuple[int, ...], limit: Fraction) -> Targets:
    """All establishments of a table that qualify for the attacks of §5.2."""
    sole = workers[attacks.alone_in_cell(cell)]
    return Targets(sole[attacks.unreplaced(sole, limit)], sole[sole[:, list(columns)].sum(axis=1) == 1], columns)


def audit_pair(
    method: Publication, pair: Pair, key: ReleaseKey, samples: int = SAMPLES, level: Fraction = LEVEL
) -> AuditBound:
    """A lower bound of a method's privacy loss between two neighbours, beyond its δ."""
    one, other = (
        method.repeat(rows, samples, key, f"{pair.name}, {side}")
        for rows, side in zip(pair.tables(), ("before", "after"), strict=True)
    )
    return audit_draws(one, other, level, method.delta)


def table1(
    methods: Sequence[Publication],
    target_set: Targets,
    alpha: Fraction,
    epsilon: Fraction,
    key: ReleaseKey,
    samples: int = SAMPLES,
) -> list[RequirementEvidence]:
    """Every method against every requirement at level (ε, α), ε for all worker cells together.

    A pair two steps apart may lose 2ε: a worker's attribute, and the shape, for which the paper states ε but proves 2ε.
    """
    pairs = required(alpha, target_set.unreplaced.shape[1])
    findings = []
    for method in methods:
        evidence = [AuditEvidence(pair, pair.times * epsilon, audit_pair(method, pair, key, samples)) for pair in pairs]
        tried = {
            "individuals": attacks.reidentification(method, target_set.with_one, target_set.columns, key),
            "size": attacks.size(method, target_set.unreplaced, key),
            "shape": attacks.shape(method, target_set.unreplaced, key),
        }
        for requirement in REQUIREMENTS:
            mine = tuple(e for e in evidence if e.pair.requirement == requirement)
            findings.append(RequirementEvidence(method.name, requirement, mine, tried[requirement]))
    return findings
