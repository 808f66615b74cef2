"""What becomes of each published code (001 B.2): directly, by a list made by hand, or with probabilities.

In this order: a single destination is taken whatever else is said; then the overrides; then the shares of the finest
level at which the code has completions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from discreet.domain import Key
from discreet.errors import DomainError, ParameterError
from discreet.methods.recode.crosswalk import named, proportional
from discreet.methods.recode.history import History
from discreet.methods.recode.rollup import PublishedCrosswalk

Destinations = tuple[tuple[Key, Fraction], ...]  # in the order of the codes; positive shares, in all 1
Overrides = Mapping[Key, Destinations]
Group = tuple[Key, Key]  # an old code, and the values of other columns
Rule = Literal["direct", "override", "probabilistic"]


@dataclass(frozen=True)
class Transition:
    """The new codes of an old one, why, and from which level of the history."""

    old: Key
    destinations: Destinations
    rule: Rule
    level: int | None = None


@dataclass(frozen=True)
class Transitions:
    """The transition of each distinct old code and key, and the overrides that the first rule leaves without effect."""

    of: Mapping[Group, Transition] = field(repr=False)
    unused_overrides: tuple[Key, ...] = ()

    def rules(self) -> Counter[tuple[Rule, int | None]]:
        """How many codes with their keys follow each rule, at each level."""
        return Counter((found.rule, found.level) for found in self.of.values())


def transitions(
    groups: Iterable[Group],
    published: PublishedCrosswalk,
    overrides: Overrides,
    history: History | None,
    smallest_share: Fraction,
) -> Transitions:
    """The transition of every group: an old code, and the values of the history's key columns.

    A transition that the crosswalk allows and the level has not seen weighs `smallest_share` completions instead of none.
    """
    if type(smallest_share) is not Fraction or smallest_share <= 0:
        raise ParameterError("not a positive fraction", where="smallest_share", do="give a small one, such as 1/1000")
    wanted = dict.fromkeys(groups)
    _refuse_unknown(wanted, published, overrides)
    found: dict[Group, Transition] = {}
    lacking: dict[Key, None] = {}
    same: dict[tuple[Key, int | None, Key], Transition] = {}  # groups with the same evidence share one
    for old, key in wanted:
        if targets := fixed(old, published, overrides):
            rule: Rule = "direct" if len(published.possible.get(old, ())) == 1 else "override"
            found[old, key] = same.setdefault((old, None, ()), Transition(old, targets, rule))
        elif seen := _seen(old, key, published.possible[old], history, smallest_share, same):
            found[old, key] = seen
        else:
            lacking[old] = None
    if lacking:
        raise DomainError(
            f"{named('/'.join(old) for old in lacking)} without completions at any level, and may go to several codes",
            where="transitions",
            do="list each in the overrides, or give more history",
        )
    return Transitions(found, tuple(old for old in overrides if len(published.possible.get(old, ())) == 1))


def fixed(old: Key, published: PublishedCrosswalk, overrides: Overrides) -> Destinations:
    """What the first two rules say of a code; nothing if the third decides."""
    possible = published.possible.get(old, ())
    return ((possible[0], Fraction(1)),) if len(possible) == 1 else overrides.get(old, ())


def new_groups(groups: Iterable[Group], published: PublishedCrosswalk, overrides: Overrides) -> list[Group]:
    """Every group that a list of old ones can become: the old code replaced by each of its destinations."""
    wanted = dict.fromkeys(groups)
    _refuse_unknown(wanted, published, overrides)
    found: dict[Group, None] = {}
    for old, key in wanted:
        targets = [new for new, _ in fixed(old, published, overrides)] or published.possible[old]
        found.update(dict.fromkeys((new, key) for new in targets))
    return list(found)


def _refuse_unknown(groups: Iterable[Group], published: PublishedCrosswalk, overrides: Overrides) -> None:
    """Codes of which neither the crosswalk nor an override says anything."""
    lost = dict.fromkeys(old for old, _ in groups if old not in published.possible and old not in overrides)
    if not lost:
        return
    gone = [old for old in lost if old in published.deleted]
    fault = "deleted in the crosswalk" if gone else "unknown to the crosswalk"
    raise DomainError(
        f"{named('/'.join(old) for old in gone or lost)} {fault}, and no override says where to go",
        where="transitions",
        do="list each in the overrides",
    )


def _seen(
    old: Key,
    key: Key,
    possible: tuple[Key, ...],
    history: History | None,
    smallest_share: Fraction,
    same: dict[tuple[Key, int | None, Key], Transition],
) -> Transition | None:
    """By the shares of the finest level at which the code has completions."""
    if history is None:
        return None
    if len(key) != len(history.columns):
        raise DomainError(
            f"a key of {len(key)} values for {', '.join(history.columns) or 'no columns'}",
            where="transitions",
            do="give one value for each key column of the history",
        )
    for level, columns in enumerate(history.levels):
        alike = (old, level, tuple(key[history.columns.index(column)] for column in columns))
        if alike in same:
            return same[alike]
        if counts := history.counts(level, old, key):
            weights = {new: counts.get(new, smallest_share) for new in possible}
            return same.setdefault(alike, Transition(old, proportional(weights), "probabilistic", level))
    return None
