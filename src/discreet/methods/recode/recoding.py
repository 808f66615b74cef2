"""Protected counts in a new classification (001 B), made from kept measurements: no record is opened, nothing is paid.

Every measured group has an old code. What becomes of it follows from public files: a crosswalk of finest codes, past
completions, and a list made by hand. A group with one destination moves as it is; of others each count, with its sign,
is divided at random among the destinations, to the unit. So the total of whatever does not change (institution ×
degree × cohort × year) stays exactly the same.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.domain import Attribute, Domain, Key, Numbers
from discreet.errors import DomainError, SpecError
from discreet.formatting import guarded, plural
from discreet.methods.noise_provenance import NoiseProvenance
from discreet.methods.recode.classifications import Classifications
from discreet.methods.recode.split import SplitShares, split, words_needed
from discreet.methods.recode.transitions import Destinations, Group, Transition, Transitions, transitions
from discreet.noise.key import public_stream
from discreet.noise.stream import Stream
from discreet.publish.measurements import MeasuredAttribute, MeasuredTable

MOST_HELD = 1 << 28  # numbers of a table: 2 GiB
WORDS = 1 << 21  # in memory at a time
GroupCounts = NDArray[np.int64]  # (groups, width)
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Recoding:
    """One measured table, and its groups as they are declared now."""

    name: str
    old: MeasuredTable
    new: Domain
    files: Classifications

    def __post_init__(self) -> None:
        if (size := self.new.cells * self.old.width) > MOST_HELD:
            raise DomainError(
                f"has {size:,} numbers, more than the {MOST_HELD:,} that can be held in memory",
                where=f"table {self.name}",
                do="recode a coarser table",
            )
        _ = self.origin

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the classification that the table has."""
        return tuple(c for a in self.old.attributes for c in a.columns if c in self.files.spec.columns)

    @cached_property
    def place(self) -> int | None:
        """Which attribute has them."""
        found = [i for i, a in enumerate(self.old.attributes) if set(a.columns) & set(self.columns)]
        if len(found) > 1:
            raise SpecError(
                f"{' and '.join(self.columns)} are columns of several attributes",
                where=f"table {self.name}",
                do="declare them in one list of groups",
            )
        return found[0] if found else None

    @cached_property
    def transitions(self) -> Transitions:
        """What becomes of every code, as far as groups have it."""
        if self.place is None:
            return Transitions({})
        published = self.files.published(self.columns)
        overrides = self.files.overrides(self.columns)
        history = self.files.history(published, overrides)
        attributes = list(self.old.attributes)
        groups = self._groups([attributes.pop(self.place), *attributes])
        try:
            return transitions(groups, published, overrides, history, self.files.spec.smallest_share)
        except DomainError as error:
            raise DomainError(error.what, where=f"table {self.name}, {error.where}", do=error.do) from None

    @cached_property
    def origin(self) -> NoiseProvenance:
        """Where every measured group goes."""
        starts, targets, _ = self._map
        draws = None if self.old.draws is None else np.array(self.old.draws, np.int64)
        return NoiseProvenance(starts, targets, draws)

    def plan_lines(self) -> tuple[str, ...]:
        """How the codes of the groups are treated, for `plan`."""
        if self.place is None:
            return ("has none of the recoded columns: its measurements stay as they are",)
        levels = [" × ".join(columns) or "everybody" for columns in self.files.spec.shares]
        lines = []
        for (rule, level), number in sorted(self.transitions.rules().items(), key=lambda item: item[0][1] or 0):
            how = rule if level is None else f"{rule}, by the shares of {levels[level]}"
            lines.append(f"{plural(number, 'code of a group', 'codes of groups')}: {how}")
        _, blurred = self.origin.draws(np.arange(self.new.cells), self.new.cells)
        if blurred.any():
            number = int(blurred.sum())
            lines.append(f"{number:,} of {self.new.cells:,} cells are divided at random and have no margin of error")
        if unused_overrides := self.transitions.unused_overrides:
            shown = ", ".join("/".join(key) for key in unused_overrides[:5])
            lines.append(f"overrides without effect, for the crosswalk has one destination: {shown}")
        return tuple(lines)

    def table(self) -> str:
        """Every transition as CSV: old code, the values that its shares depend on, new code, share, why. All public."""
        text, spec = io.StringIO(), self.files.spec
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["old", *map(guarded, self._keys), "new", "share", "rule"])
        seen: dict[tuple[str, ...], None] = {}
        for (old, key), found in self.transitions.of.items():
            used = () if found.level is None else spec.shares[found.level]
            shown = [value if column in used else "" for column, value in zip(self._keys, key, strict=True)]
            for new, share in found.destinations:
                row = ("/".join(old), *shown, "/".join(new), f"{float(share):.6g}", found.rule)
                if row not in seen:
                    seen[row] = None
                    writer.writerow(map(guarded, row))
        return text.getvalue()

    def recoded(self, pieces: Iterator[tuple[int, GroupCounts]], release: str) -> GroupCounts:
        """The counts of every new group; `pieces` are those of the old ones, with the number of the first."""
        starts, targets, rules = self._map
        stream = public_stream("recode", release, self.name)
        out = np.zeros((self.new.cells, self.old.width), np.int64)
        for first, counts in pieces:
            groups = np.arange(first, first + len(counts))
            several = starts[groups + 1] - starts[groups] > 1
            np.add.at(out, targets[starts[groups[~several]]], counts[~several])
            for g in groups[several].tolist():
                out[targets[starts[g] : starts[g + 1]]] += self._divided(stream, g, counts[g - first], rules[g]).T
        return out

    def _divided(self, stream: Stream, group: int, counts: Numbers, shares: SplitShares) -> GroupCounts:
        """The numbers of a group by destination, some of them at a time."""
        rule = self.files.spec.rule
        ends = np.cumsum(words_needed(counts, shares, rule))
        parts, start = list[GroupCounts](), 0
        while start < len(counts):
            before = int(ends[start - 1]) if start else 0
            end = max(int(np.searchsorted(ends, before + WORDS, side="right")), start + 1)
            words = group_words(stream, group, before, int(ends[end - 1]))
            parts.append(split(counts[start:end], shares, words, rule))
            start = end
        return np.concatenate(parts)

    # --- the map ----------------------------------------------------------------------------------------------------

    @cached_property
    def _map(self) -> tuple[Numbers, Numbers, dict[int, SplitShares]]:
        """Where each old group's destinations begin, what they are, and how groups with several are divided."""
        self._check()
        sizes = [len(a.categories) for a in self.old.attributes]
        total = prod(sizes)
        if self.place is None:
            return np.arange(total + 1), np.arange(total), {}
        found = self.transitions.of
        mine, attribute = self.old.attributes[self.place], self.new.attributes[self.place]
        known = {key: i for i, key in enumerate(attribute.published)}
        stride, new_stride = prod(sizes[self.place + 1 :]), self.new.strides[self.place]
        starts, targets, rules = [0], list[int](), dict[int, SplitShares]()
        made: dict[tuple[Key, Transition], list[int]] = {}
        shares: dict[Destinations, SplitShares] = {}
        lost: dict[Key, None] = {}
        for group, wanted in enumerate(self._groups(self.old.attributes)):
            key, transition = mine.categories[group // stride % sizes[self.place]], found[wanted]
            places = made.get((key, transition))
            if places is None:
                new = [self._replaced(mine, key, target) for target, _ in transition.destinations]
                lost.update(dict.fromkeys(k for k in new if k not in known))
                places = made[key, transition] = [known.get(k, 0) for k in new]
            above, below = divmod(group, stride * sizes[self.place])
            rest = above * new_stride * attribute.size + below % stride
            targets += [rest + place * new_stride for place in places]
            if len(places) > 1:
                rules[group] = shares.setdefault(
                    transition.destinations, SplitShares(tuple(share for _, share in transition.destinations))
                )
            starts.append(len(targets))
        self._refuse_lost(list(lost), attribute)
        return np.array(starts), np.array(targets), rules

    def _check(self) -> None:
        """Everything but the codes is as it was."""
        if len(self.new.attributes) != len(self.old.attributes):
            raise SpecError(
                "is by other attributes than were measured",
                where=f"table {self.name}",
                do=f"measured were {', '.join(a.name for a in self.old.attributes)}",
            )
        for i, (old, new) in enumerate(zip(self.old.attributes, self.new.attributes, strict=True)):
            if old.columns != new.columns:
                raise SpecError(
                    f"has the columns {', '.join(new.columns)} where {', '.join(old.columns)} were measured",
                    where=f"table {self.name}",
                    do="declare them in the order of the measurements",
                )
            if i != self.place and old.categories != new.published:
                raise DomainError(
                    f"{new.name!r} has other categories than were measured",
                    where=f"table {self.name}",
                    do="declare it as it was: only the recoded columns may change",
                )

    def _refuse_lost(self, lost: list[Key], attribute: Attribute) -> None:
        if not lost:
            return
        shown = ", ".join("/".join(key) for key in lost[:3]) + (", …" if len(lost) > 3 else "")
        raise DomainError(
            f"lacks {plural(len(lost), 'group')} that old ones become: {shown}",
            where=f"table {self.name}, domain {attribute.name}",
            do="add them to its list (`discreet recode-groups` writes the whole list)",
        )

    def _replaced(self, attribute: MeasuredAttribute, key: Key, code: Key) -> Key:
        """A category with a new code."""
        new = dict(zip(self.columns, code, strict=True))
        return tuple(new.get(column, value) for column, value in zip(attribute.columns, key, strict=True))

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        """The columns that shares are estimated by."""
        spec = self.files.spec
        return () if spec.history is None else tuple(dict.fromkeys(c for columns in spec.shares for c in columns))

    def _groups(self, attributes: Sequence[MeasuredAttribute]) -> Iterator[Group]:
        """The old code of every group and the values of the key columns; the first attribute varies slowest."""
        columns = [column for attribute in attributes for column in attribute.columns]
        if strange := next((column for column in self._keys if column not in columns), None):
            raise SpecError(
                f"has no column {strange!r}, which shares are estimated by",
                where=f"table {self.name}, recode.shares",
                do=f"name some of {', '.join(columns)}",
            )
        for categories in product(*(attribute.categories for attribute in attributes)):
            codes = dict(zip(columns, chain(*categories), strict=True))
            yield tuple(codes[column] for column in self.columns), tuple(codes[column] for column in self._keys)


def group_words(stream: Stream, group: int, start: int, end: int) -> Words:
    """Words start … end − 1 of a group: words 2j and 2j + 1 are the block (group, j)."""
    first, last = start // 2, -(-end // 2)
    counters = np.empty((last - first, 2), np.uint64)
    counters[:, 0] = group
    counters[:, 1] = np.arange(first, last)
    found: Words = stream.sparse_words(counters).reshape(-1)[start - 2 * first : end - 2 * first]
    return found
