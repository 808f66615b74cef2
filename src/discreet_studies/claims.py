"""What a paper says, what we find, and whether it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from discreet_studies.texts import definitions, say

Verdict = Literal["holds", "does not hold", "not tested"]
Evidence = tuple[bool | None, dict[str, object]]
Numbers = TypeVar("Numbers")


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


class Claims(Generic[Numbers]):
    """The claims of a paper: a test for each, by the name under which `claims.yaml` has its texts.

    A test gives whether the claim holds, and the numbers of the text `ours`; without any the text is `untested`.
    """

    def __init__(self, study: str) -> None:
        self._study = study
        self._tests: dict[str, Callable[[Numbers], Evidence]] = {}

    def __call__(self, test: Callable[[Numbers], Evidence]) -> Callable[[Numbers], Evidence]:
        """Register a test; their order is that of the report."""
        self._tests[test.__name__] = test
        return test

    def of(self, numbers: Numbers) -> tuple[Claim, ...]:
        """All, tested."""
        texts = definitions(self._study, "claims")
        claims = []
        for name, test in self._tests.items():
            holds, values = test(numbers)
            mine = texts[name]
            ours = say(mine["ours"], values) if values else mine["untested"]
            claims.append(Claim(mine["claim"], mine["paper"], ours, None if holds is None else bool(holds)))
        return tuple(claims)
