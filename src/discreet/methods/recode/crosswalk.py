"""Crosswalks from the finest codes of an old classification to those of a new one, read from public files.

Every field is text. Codes may be wrapped as spreadsheets do, ="01.00", to keep leading and trailing zeros.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from discreet.domain import Key
from discreet.domain.codelists import read_columns
from discreet.errors import DomainError

CodeShares = tuple[tuple[str, Fraction], ...]  # new codes in order, and the share of each: positive, in all 1
Code = TypeVar("Code", str, Key)
_NUMBER = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40}|/[0-9]{1,40})?", re.ASCII)


@dataclass(frozen=True)
class CrosswalkSummary:
    """Numbers of finest codes by what the crosswalk does with them."""

    unchanged: int
    moved: int  # to one other code
    split: int  # among several
    deleted: int
    new: int


@dataclass(frozen=True)
class Crosswalk:
    """Old code → new codes with shares; old codes without destination; new codes without origin."""

    shares: Mapping[str, CodeShares] = field(repr=False)
    deleted: frozenset[str] = field(default=frozenset(), repr=False)
    new: frozenset[str] = field(default=frozenset(), repr=False)
    provenance: str = ""  # the file's name, for messages

    def __post_init__(self) -> None:
        for old, shares in self.shares.items():
            if not shares or min(share for _, share in shares) <= 0 or sum(share for _, share in shares) != 1:
                raise DomainError(
                    f"the shares of {old!r} are not positive or do not add up to 1",
                    where=self.provenance,
                    do="give positive shares that add up to 1 exactly",
                )

    def summary(self) -> CrosswalkSummary:
        single = [old == shares[0][0] for old, shares in self.shares.items() if len(shares) == 1]
        unchanged = sum(single)
        split = len(self.shares) - len(single)
        return CrosswalkSummary(unchanged, len(single) - unchanged, split, len(self.deleted), len(self.new))

    def has_new_code(self, new: str) -> bool:
        """Whether the new classification has this code."""
        return new in self._new_codes

    def with_overrides(self, shares: Mapping[str, CodeShares]) -> Crosswalk:
        """The crosswalk with other destinations for some finest codes, which may be deleted or unknown ones."""
        merged = {**self.shares, **shares}
        reached = {new for targets in shares.values() for new, _ in targets}
        return replace(self, shares=merged, deleted=self.deleted - shares.keys(), new=self.new - reached)

    @cached_property
    def _new_codes(self) -> frozenset[str]:
        return self.new | {new for shares in self.shares.values() for new, _ in shares}


def read_crosswalk(
    path: Path,
    old: str,
    new: str,
    *,
    weight: str | None = None,
    action: str | None = None,
    deleted: Collection[str] = (),
    length: int | None = None,
) -> Crosswalk:
    """A crosswalk from a CSV file, one line per pair of codes; only codes of `length` characters, if given.

    A line without an old code declares a new one; a line without a new code, or whose action is one of `deleted`, an
    old code without destination (NCES repeats the old code as its new one there). The shares of an old code are
    proportional to its weights, or equal if there is no column of weights.
    """
    place = f"crosswalk, file {path.name}"
    names = [old, new, *([weight] if weight else []), *([action] if action else [])]
    weights: dict[str, dict[str, Fraction]] = {}
    gone: dict[str, None] = {}
    fresh: dict[str, None] = {}
    actions: dict[str, None] = {}
    for row in read_columns(path, names, "crosswalk"):
        source, target = unwrap(row[0]), unwrap(row[1])
        actions[row[-1].strip()] = None
        if not _counts(source, target, length, place):
            continue
        if not source:
            fresh[target] = None
        elif not target or (action is not None and row[-1].strip() in deleted):
            gone[source] = None
        elif weight is None:
            weights.setdefault(source, {})[target] = Fraction(1)  # a repeated line changes nothing
        else:
            pairs = weights.setdefault(source, {})
            pairs[target] = pairs.get(target, Fraction(0)) + number(row[2], f"{place}, {source!r}")
    if conflicting := sorted(gone.keys() & weights.keys()):
        raise DomainError(f"{named(conflicting)} both deleted and moved", where=place, do="keep one of the two")
    if not weights:
        raise DomainError("no old code has a new one", where=place, do="check the columns and the length of the codes")
    if unknown := next((word for word in deleted if action is None or word not in actions), None):
        hint = f"it has: {', '.join(list(actions)[:8])}" if action else "name its column with `action`"
        raise DomainError(f"no line has the action {unknown!r}", where=place, do=hint)
    shares = {source: proportional(pairs) for source, pairs in sorted(weights.items())}
    reached = {target for pairs in weights.values() for target in pairs}
    return Crosswalk(shares, frozenset(gone), frozenset(fresh.keys() - reached), path.name)


def read_overrides(path: Path, share: str | None = None) -> dict[Key, tuple[tuple[Key, Fraction], ...]]:
    """Overrides from a CSV file: one line per pair of codes, `from` and `to`, and perhaps the share.

    The shares of a code add up to 1 exactly; they are equal if there is no column of shares.
    """
    place = f"overrides, file {path.name}"
    weights: dict[Key, dict[Key, Fraction]] = {}
    for row in read_columns(path, ["from", "to", *([share] if share else [])], "overrides"):
        codes = unwrap(row[0]), unwrap(row[1])
        if not all(codes):
            raise DomainError(
                f"a line with an empty code ({shown(codes)})", where=place, do="name both codes on every line"
            )
        source, target = codes[:1], codes[1:]
        if target in weights.setdefault(source, {}):
            raise DomainError(f"duplicate line {shown(source)} → {shown(target)}", where=place, do="list it once")
        weights[source][target] = number(row[-1], f"{place}, {shown(source)}") if share else Fraction(1)
    for old, pairs in weights.items():
        if share and (total := sum(pairs.values())) != 1:
            raise DomainError(
                f"the shares of {shown(old)} add up to {total}",
                where=place,
                do="make them add up to 1 exactly; ratios such as 1/3 are exact",
            )
    return {old: proportional(pairs) for old, pairs in weights.items()}


def finest_overrides(overrides: Mapping[Key, tuple[tuple[Key, Fraction], ...]]) -> dict[str, CodeShares]:
    """Overrides of finest codes, each in one column, in the form of `Crosswalk.shares`."""
    return {old[0]: tuple((new[0], share) for new, share in shares) for old, shares in overrides.items()}


def proportional(weights: Mapping[Code, Fraction]) -> tuple[tuple[Code, Fraction], ...]:
    """Weights as shares, in the order of the codes."""
    total = sum(weights.values(), Fraction(0))
    return tuple((code, weight / total) for code, weight in sorted(weights.items()))


def unwrap(text: str) -> str:
    """A code without surrounding blanks and without a spreadsheet's wrapping.

    >>> unwrap('="01.00"'), unwrap(" 311 "), unwrap('=""')
    ('01.00', '311', '')
    """
    text = text.strip()
    return text[2:-1].strip() if len(text) > 2 and text.startswith('="') and text.endswith('"') else text


def number(text: str, where: str) -> Fraction:
    """A positive decimal or ratio, exactly."""
    try:
        value = Fraction(text) if _NUMBER.fullmatch(text := text.strip()) else Fraction(0)
    except ZeroDivisionError:
        value = Fraction(0)
    if value > 0:
        return value
    raise DomainError(
        f"{text[:40]!r} is not a positive number", where=where, do="write a decimal or a ratio, or leave the line out"
    )


def named(codes: Iterable[str], most: int = 5) -> str:
    """Some codes with their verb: 'a' is, 'a' and 'b' are."""
    listed = list(codes)
    texts = [repr(code) for code in listed[:most]]
    if len(listed) > most:
        texts.append(f"{len(listed) - most:,} more")
    return f"{', '.join(texts[:-1])} and {texts[-1]} are" if len(texts) > 1 else f"{texts[0]} is"


def shown(code: Key) -> str:
    """A published code as messages write it."""
    return repr("/".join(code))


def _counts(source: str, target: str, length: int | None, place: str) -> bool:
    """Whether a line has finest codes."""
    lengths = {len(code) for code in (source, target) if code}
    if not lengths:
        return False
    if length is None:
        return True
    if length in lengths and len(lengths) > 1:
        raise DomainError(f"{source!r} → {target!r} connects two levels", where=place, do="give codes of one length")
    return length in lengths
