"""Kinds of establishments, sector by ownership: their share of jobs, how large they are, and who works there.

Rough shapes of the country's economy; every number is rounded, and only a weight.
"""

from __future__ import annotations

from typing import NamedTuple

from discreet.synth.sectors import SECTORS


class Code(NamedTuple):
    """A code and its label."""

    code: str
    label: str


OWNERSHIP = (
    Code("private", "Private"),
    Code("state_local", "State or local government"),
    Code("federal", "Federal government"),
)


class Sizes(NamedTuple):
    """A sector's establishments: mean jobs before any cut, tail (1.2 heavy, 2 light), per cent of public jobs."""

    mean: float
    tail: float
    state_local: float = 0.0
    federal: float = 0.0


SIZES = {
    "11": Sizes(9, 1.4, 0.5, 1),
    "21": Sizes(20, 1.35),
    "22": Sizes(32, 1.3, 22, 2),
    "23": Sizes(9, 1.4, 1.5, 0.3),
    "31-33": Sizes(38, 1.25, 0.1, 0.5),
    "42": Sizes(13, 1.4, 0.2, 0.1),
    "44-45": Sizes(14, 1.5, 0.3, 0.3),
    "48-49": Sizes(19, 1.25, 5, 12),
    "51": Sizes(22, 1.25, 6, 0.5),
    "52": Sizes(13, 1.25, 0.5, 0.6),
    "53": Sizes(6, 1.5, 2, 0.3),
    "54": Sizes(9.5, 1.3, 1, 2),
    "55": Sizes(48, 1.25),
    "56": Sizes(24, 1.25, 2, 0.5),
    "61": Sizes(24, 1.25, 74, 1),
    "62": Sizes(20, 1.25, 9, 2),
    "71": Sizes(14, 1.3, 12, 1),
    "72": Sizes(17, 1.8, 0.7, 0.3),
    "81": Sizes(6.5, 1.6, 0.5, 0.2),
    "92": Sizes(30, 1.3, 76, 24),
}
PUBLIC_MEAN = 1.5  # a public establishment has so many times the jobs of a private one in its sector
PUBLIC_TAIL = 1.25  # there are big public employers in every state


class Kind(NamedTuple):
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


def _kinds() -> tuple[Kind, ...]:
    found = []
    for number, sector in enumerate(SECTORS):
        sizes = SIZES[sector.code]
        found.append(
            Kind(number, 0, sector.jobs * (100 - sizes.state_local - sizes.federal) / 100, sizes.mean, sizes.tail)
        )
        for ownership, share in ((1, sizes.state_local), (2, sizes.federal)):
            found.append(Kind(number, ownership, sector.jobs * share / 100, PUBLIC_MEAN * sizes.mean, PUBLIC_TAIL))
    return tuple(kind for kind in found if kind.jobs)


INDUSTRIES = _kinds()
