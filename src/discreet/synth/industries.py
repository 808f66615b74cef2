"""Kinds of establishments, sector by ownership: their share of jobs and their size distribution.

Approximations of the national economy; every number is rounded and used as a weight.
"""

from __future__ import annotations

from typing import NamedTuple

from discreet.synth.lists import by_sector, code_list
from discreet.synth.sectors import SECTORS


class Sizes(NamedTuple):
    """A sector's establishments: mean jobs before truncation, tail (1.2 heavy, 2 light), per cent of public jobs."""

    mean: float
    tail: float
    state_local: float
    federal: float


OWNERSHIP = code_list("ownership")
SIZES = by_sector("establishments", Sizes)
PUBLIC_MEAN = 1.5  # mean jobs of a public establishment relative to a private one in its sector
PUBLIC_TAIL = 1.25  # large public employers exist in every state


class EstablishmentKind(NamedTuple):
    """Establishments of one sector (position) and ownership (position): share of all jobs, mean size, tail."""

    sector: int
    ownership: int
    jobs: float
    mean: float
    tail: float

    @property
    def scale(self) -> float:
        """Scale of the Lomax distribution of jobs beyond the first: s = (mean − 1)(a − 1)."""
        return (self.mean - 1) * (self.tail - 1)


def _kinds() -> tuple[EstablishmentKind, ...]:
    kinds = []
    for number, sector in enumerate(SECTORS):
        mean, tail, local, federal = SIZES[sector.code]
        public = PUBLIC_MEAN * mean, PUBLIC_TAIL
        parts = ((100 - local - federal, mean, tail), (local, *public), (federal, *public))
        for owner, (share, *shape) in enumerate(parts):
            kinds.append(EstablishmentKind(number, owner, sector.jobs * share / 100, *shape))
    return tuple(kind for kind in kinds if kind.jobs)


INDUSTRIES = _kinds()
