"""What a paper says, what we find, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from discreet.report.blocks import Table

Verdict = Literal["holds", "does not hold", "not tested"]


@dataclass(frozen=True)
class Claim:
    """A claim, what the paper reports, what we find; `holds` is None where nothing could be tested."""

    claim: str
    paper: str
    ours: str
    holds: bool | None

    @property
    def verdict(self) -> Verdict:
        return "not tested" if self.holds is None else "holds" if self.holds else "does not hold"


def verdicts(found: Iterable[Claim]) -> Table:
    """A line a claim."""
    rows = [(c.claim, c.paper, c.ours, c.verdict) for c in found]
    return Table("verdicts", ("claim", "the paper", "here", "verdict"), rows)
