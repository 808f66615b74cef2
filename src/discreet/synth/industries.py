"""Kinds of establishments, sector by ownership: their share of jobs, how large they are, and who works there.

Rough shapes of the country's economy; every number is rounded, and only a weight.
"""

from __future__ import annotations

from typing import NamedTuple

from discreet.synth.lists import by_sector, code_list
from discreet.synth.sectors import SECTORS


class Sizes(NamedTuple):
    """A sector's establishments: mean jobs before any cut, tail (1.2 heavy, 2 light), per cent of public jobs."""

    mean: float
    tail: float
    state_local: float
    federal: float


OWNERSHIP = code_list("ownership")
SIZES = by_sector("establishments", Sizes)
PUBLIC_MEAN = 1.5  # a public establishment has so many times the jobs of a private one in its sector
PUBLIC_TAIL = 1.25  # there are big public employers in every state


class EstablishmentKind(NamedTuple):
    """Establishments of one sector (position) and ownership (position): share of all jobs, mean size, tail."""

    sector: int
    ownership: int
    jobs: float
    mean: float
    tail: float

    @property
    def scale(self) -> float:
        """Of the jobs beyond the first, Lomax: s = (mean − 1)(a − 1)."""
        return (self.mean - 1) * (self.tail - 1)


def _kinds() -> tuple[EstablishmentKind, ...]:
    found = []
    for number, sector in enumerate(SECTORS):
        mean, tail, local, federal = SIZES[sector.code]
        public = PUBLIC_MEAN * mean, PUBLIC_TAIL
        parts = ((100 - local - federal, mean, tail), (local, *public), (federal, *public))
        for owner, (share, *shape) in enumerate(parts):
            found.append(EstablishmentKind(number, owner, sector.jobs * share / 100, *shape))
    return tuple(kind for kind in found if kind.jobs)


INDUSTRIES = _kinds()
