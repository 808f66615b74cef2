"""Roll-ups from finest to published codes, and the crosswalk between published codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from discreet.domain import Key
from discreet.domain.codelists import read_columns
from discreet.errors import DomainError
from discreet.methods.recode.crosswalk import Crosswalk, unwrap


@dataclass(frozen=True)
class Prefix:
    """Roll-up by prefix: of CIP 01.0101 five characters are 01.01, two are 01.

    >>> Prefix(5).of("01.0101"), Prefix(2).of("01.0101")
    ('01.01', '01')
    """

    length: int

    def __post_init__(self) -> None:
        if self.length < 1:
            raise DomainError(f"a prefix of {self.length} characters", where="roll-up", do="give at least one")

    def of(self, code: str) -> str:
        if len(code) < self.length:
            raise DomainError(
                f"{code!r} is shorter than the {self.length} characters that are published",
                where="roll-up",
                do="give finest codes; of a crosswalk with codes of several lengths `length` takes one",
            )
        return code[: self.length]


@dataclass(frozen=True)
class Parents:
    """Roll-up by a public file, where prefixes do not suffice: NAICS 31, 32 and 33 are one sector."""

    parents: Mapping[str, str] = field(repr=False)
    provenance: str = ""

    def of(self, code: str) -> str:
        if code not in self.parents:
            raise DomainError(f"{code!r} has no parent", where=f"roll-up, file {self.provenance}", do="add it")
        return self.parents[code]


RollUp = Prefix | Parents  # a finest code without published code is refused


def read_parents(path: Path, code: str = "code", parent: str = "parent") -> Parents:
    """A CSV file with one line per finest code and its parent."""
    parents: dict[str, str] = {}
    for row in read_columns(path, [code, parent], "roll-up"):
        child, above = unwrap(row[0]), unwrap(row[1])
        if not child or not above or parents.setdefault(child, above) != above:
            fault = f"{child!r} has two parents" if child and above else "a line with an empty code"
            raise DomainError(fault, where=f"roll-up, file {path.name}", do="give every code one parent")
    return Parents(parents, path.name)


@dataclass(frozen=True)
class PublishedCrosswalk:
    """The crosswalk between published codes: tuples of one or more roll-ups of a finest code, old and new alike.

    An old code can map wherever any of its finest codes can; deleted finest codes are ignored.
    """

    crosswalk: Crosswalk
    old: tuple[RollUp, ...]
    new: tuple[RollUp, ...]

    def __post_init__(self) -> None:
        if not self.old or len(self.old) != len(self.new):
            raise DomainError(
                "not the same number of published codes before and after",
                where="roll-up",
                do="give one new roll-up for each old one",
            )

    def old_of(self, code: str) -> Key:
        """The published old code of a finest one."""
        return tuple(part.of(code) for part in self.old)

    def new_of(self, code: str) -> Key:
        """The published new code of a finest one."""
        return tuple(part.of(code) for part in self.new)

    @cached_property
    def possible(self) -> Mapping[Key, tuple[Key, ...]]:
        """Old code → the new codes to which it can map, in their order."""
        possible: dict[Key, set[Key]] = {}
        for code, shares in self.crosswalk.shares.items():
            possible.setdefault(self.old_of(code), set()).update(self.new_of(new) for new, _ in shares)
        return {old: tuple(sorted(targets)) for old, targets in sorted(possible.items())}

    @cached_property
    def codes(self) -> frozenset[Key]:
        """Every published code of the new classification."""
        reached = {new for targets in self.possible.values() for new in targets}
        return frozenset(reached | {self.new_of(code) for code in self.crosswalk.new})

    @cached_property
    def deleted(self) -> frozenset[Key]:
        """Old codes all of whose finest codes are deleted."""
        return frozenset(self.old_of(code) for code in self.crosswalk.deleted) - self.possible.keys()

    @cached_property
    def ambiguous(self) -> Mapping[Key, tuple[Key, ...]]:
        """The old codes that can map to more than one new code."""
        return {old: targets for old, targets in self.possible.items() if len(targets) > 1}
