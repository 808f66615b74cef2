"""Table 1 of 003 from executed audits and attacks: which method meets which requirement, and what shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from discreet.noise.key import ReleaseKey
from discreet_studies.attacks import attacks
from discreet_studies.attacks.attacks import Attack
from discreet_studies.attacks.audits import LEVEL, SAMPLES, Audited, audit_draws
from discreet_studies.attacks.neighbours import Pair, Requirement, required
from discreet_studies.attacks.releases import Int64s, Publication

REQUIREMENTS: tuple[Requirement, ...] = ("individuals", "size", "shape")
Refutation = Literal["not refuted", "fails for informed attackers", "fails"]


@dataclass(frozen=True)
class Evidence:
    """One pair of neighbours: what may be lost between them, and what was seen to be."""

    pair: Pair
    asked: Fraction
    audited: Audited

    @property
    def refutes(self) -> bool:
        """Whether more is lost than the requirement allows."""
        return self.audited.epsilon_at_least > self.asked


@dataclass(frozen=True)
class RequirementEvidence:
    """One entry of Table 1. An audit can refute a requirement; that none does is no proof."""

    method: str
    requirement: Requirement
    audits: tuple[Evidence, ...]
    attack: Attack

    @property
    def verdict(self) -> Refutation:
        """`fails for informed attackers` where only pairs that such attackers tell apart refute it (Table 1's star)."""
        refuting = [evidence for evidence in self.audits if evidence.refutes]
        if not refuting:
            return "not refuted"
        return "fails for informed attackers" if all(e.pair.informed for e in refuting) else "fails"

    @property
    def worst(self) -> Evidence:
        """Where the most is lost beyond what was asked."""
        return max(self.audits, key=lambda e: e.audited.epsilon_at_least - float(e.asked))

    def __str__(self) -> str:
        worst, attack = self.worst, self.attack
        return (
            f"{self.verdict}: loss ≥ {worst.audited.epsilon_at_least:.2f}, asked {float(worst.asked):g} "
            f"({worst.pair.name}); attack {attack.rate.share:.3f}, guess {attack.baseline.share:.3f}"
        )


@dataclass(frozen=True)
class Targets:
    """Lone establishments: those to find the shape and size of, and those with one worker in some groups."""

    clear: Int64s
    with_one: Int64s
    columns: tuple[int, ...]


def targets(workers: Int64s, cell: Int64s, columns: tuple[int, ...], limit: Fraction) -> Targets:
    """All of a table's establishments that the attacks of 003, §5.2 are about."""
    lone = workers[attacks.alone(cell)]
    return Targets(lone[attacks.clear(lone, limit)], lone[lone[:, list(columns)].sum(axis=1) == 1], columns)


def audited(
    method: Publication, pair: Pair, key: ReleaseKey, samples: int = SAMPLES, level: Fraction = LEVEL
) -> Audited:
    """A lower bound of what a method loses between two neighbours, beyond its δ."""
    one, other = (
        method.repeat(rows, samples, key, f"{pair.name}, {side}")
        for rows, side in zip(pair.tables(), ("before", "after"), strict=True)
    )
    return audit_draws(one, other, level, method.delta)


def table1(
    methods: Sequence[Publication],
    aimed: Targets,
    alpha: Fraction,
    epsilon: Fraction,
    key: ReleaseKey,
    samples: int = SAMPLES,
) -> list[RequirementEvidence]:
    """Every method beside every requirement at level (ε, α), ε for all worker cells together.

    A pair two steps apart may lose 2ε: a worker's attribute, and the shape, for which 003 asks ε but proves 2ε.
    """
    pairs = required(alpha, aimed.clear.shape[1])
    findings = []
    for method in methods:
        evidence = [Evidence(pair, pair.times * epsilon, audited(method, pair, key, samples)) for pair in pairs]
        tried = {
            "individuals": attacks.reidentification(method, aimed.with_one, aimed.columns, key),
            "size": attacks.size(method, aimed.clear, key),
            "shape": attacks.shape(method, aimed.clear, key),
        }
        for requirement in REQUIREMENTS:
            mine = tuple(e for e in evidence if e.pair.requirement == requirement)
            findings.append(RequirementEvidence(method.name, requirement, mine, tried[requirement]))
    return findings
