"""The transition of each published code: direct, by override, or probabilistic (PSEO Technical Appendices, B.2).

In this order: a single destination, whatever the overrides; then the overrides; then the shares of the finest level at
which the code has completions.
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

Destinations = tuple[tuple[Key, Fraction], ...]  # in the order of the codes; positive shares that add up to 1
Overrides = Mapping[Key, Destinations]
Group = tuple[Key, Key]  # an old code, and the values of other columns
Rule = Literal["direct", "override", "probabilistic"]


@dataclass(frozen=True)
class Transition:
    """The new codes of an old one, the rule, and the level of the history."""

    old: Key
    destinations: Destinations
    rule: Rule
    level: int | None = None


@dataclass(frozen=True)
class Transitions:
    """The transition of each distinct old code and key, and the overrides without effect because of the first rule."""

    of: Mapping[Group, Transition] = field(repr=False)
    unused_overrides: tuple[Key, ...] = ()

    def rules(self) -> Counter[tuple[Rule, int | None]]:
        """The number of codes with their keys, by rule and level."""
        return Counter((transition.rule, transition.level) for transition in self.of.values())


def transitions(
    groups: Iterable[Group],
    published: PublishedCrosswalk,
    overrides: Overrides,
    history: History | None,
    smallest_weight: Fraction,
) -> Transitions:
    """The transition of every group: an old code, and the values of the history's key columns.

    A destination that the crosswalk allows but that has no completions at the level has weight `smallest_weight`.
    """
    if type(smallest_weight) is not Fraction or smallest_weight <= 0:
        raise ParameterError("not a positive fraction", where="smallest_weight", do="give a small one, such as 1/1000")
    distinct = dict.fromkeys(groups)
    _refuse_unknown(distinct, published, overrides)
    transition_of: dict[Group, Transition] = {}
    lacking: dict[Key, None] = {}
    cache: dict[tuple[Key, int | None, Key], Transition] = {}  # groups with the same evidence share one
    for old, key in distinct:
        if targets := certain_destinations(old, published, overrides):
            rule: Rule = "direct" if len(published.possible.get(old, ())) == 1 else "override"
            transition_of[old, key] = cache.setdefault((old, None, ()), Transition(old, targets, rule))
        elif transition := _by_completions(old, key, published.possible[old], history, smallest_weight, cache):
            transition_of[old, key] = transition
        else:
            lacking[old] = None
    if lacking:
        raise DomainError(
            f"{named('/'.join(old) for old in lacking)} without completions at any level, with several possible codes",
            where="transitions",
            do="list each in the overrides, or give more history",
        )
    return Transitions(transition_of, tuple(old for old in overrides if len(published.possible.get(old, ())) == 1))


def certain_destinations(old: Key, published: PublishedCrosswalk, overrides: Overrides) -> Destinations:
    """The destinations of a code by the first two rules; empty if the third applies."""
    possible = published.possible.get(old, ())
    return ((possible[0], Fraction(1)),) if len(possible) == 1 else overrides.get(old, ())


def new_groups(groups: Iterable[Group], published: PublishedCrosswalk, overrides: Overrides) -> list[Group]:
    """Every group to which a list of old ones can map: the old code replaced by each of its destinations."""
    distinct = dict.fromkeys(groups)
    _refuse_unknown(distinct, published, overrides)
    mapped: dict[Group, None] = {}
    for old, key in distinct:
        targets = [new for new, _ in certain_destinations(old, published, overrides)] or published.possible[old]
        mapped.update(dict.fromkeys((new, key) for new in targets))
    return list(mapped)


def _refuse_unknown(groups: Iterable[Group], published: PublishedCrosswalk, overrides: Overrides) -> None:
    """Refuse codes without destination in the crosswalk or the overrides."""
    lost = dict.fromkeys(old for old, _ in groups if old not in published.possible and old not in overrides)
    if not lost:
        return
    gone = [old for old in lost if old in published.deleted]
    fault = "deleted in the crosswalk" if gone else "unknown to the crosswalk"
    raise DomainError(
        f"{named('/'.join(old) for old in gone or lost)} {fault}, and no override gives a destination",
        where="transitions",
        do="list each in the overrides",
    )


def _by_completions(
    old: Key,
    key: Key,
    possible: tuple[Key, ...],
    history: History | None,
    smallest_weight: Fraction,
    cache: dict[tuple[Key, int | None, Key], Transition],
) -> Transition | None:
    """A transition by the shares of the finest level at which the code has completions."""
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
        if alike in cache:
            return cache[alike]
        if counts := history.counts(level, old, key):
            weights = {new: counts.get(new, smallest_weight) for new in possible}
            return cache.setdefault(alike, Transition(old, proportional(weights), "probabilistic", level))
    return None
