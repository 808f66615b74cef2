"""Claims of a paper, our results, and verdicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, cast

from discreet_studies.texts import definitions, say

Verdict = Literal["confirmed", "corrected", "not confirmed", "not tested"]
Evidence = tuple[bool | None, dict[str, object]]
Numbers = TypeVar("Numbers")


@dataclass(frozen=True)
class Claim:
    """A claim, what the paper reports, and our result. `holds` is None where nothing could be tested; `otherwise` is
    the verdict where the claim fails."""

    claim: str
    paper: str
    ours: str
    holds: bool | None
    otherwise: Verdict = "not confirmed"

    @property
    def verdict(self) -> Verdict:
        return "not tested" if self.holds is None else "confirmed" if self.holds else self.otherwise


class Claims(Generic[Numbers]):
    """The claims of a paper, each with a test, registered by the name under which `claims.yaml` has its texts.

    A test returns whether the claim holds, and the values for the text `ours`; without values the text is `untested`.
    """

    def __init__(self, study: str) -> None:
        self._study = study
        self._tests: dict[str, Callable[[Numbers], Evidence]] = {}

    def __call__(self, test: Callable[[Numbers], Evidence]) -> Callable[[Numbers], Evidence]:
        """Register a test; the report lists the claims in order of registration."""
        self._tests[test.__name__] = test
        return test

    def of(self, numbers: Numbers) -> tuple[Claim, ...]:
        """Every claim, tested."""
        texts = definitions(self._study, "claims")
        claims = []
        for name, test in self._tests.items():
            holds, values = test(numbers)
            mine = texts[name]
            ours = say(mine["ours"], values) if values else mine["untested"]
            otherwise = cast("Verdict", mine.get("otherwise", "not confirmed"))
            claims.append(Claim(mine["claim"], mine["paper"], ours, None if holds is None else bool(holds), otherwise))
        return tuple(claims)
