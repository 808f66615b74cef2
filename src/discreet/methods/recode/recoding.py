"""Protected counts in a new classification: post-processing of stored noisy measurements, no additional ε.

No record is opened. Every measured group has an old code; its new codes follow from public files: a crosswalk of finest
codes, past completions, and overrides. A group with one destination moves unchanged; otherwise each count, with its
sign, is divided at random among the destinations in integers. So totals by what does not change (institution × degree ×
cohort × year) are preserved exactly (PSEO Technical Appendices, B).
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

MOST_IN_MEMORY = 1 << 28  # numbers of a table: 2 GiB
WORDS = 1 << 21  # in memory at a time
GroupCounts = NDArray[np.int64]  # (groups, width)
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Recoding:
    """The recoding of one measured table to the groups that are declared now."""

    name: str
    old: MeasuredTable
    new: Domain
    files: Classifications

    def __post_init__(self) -> None:
        if (size := self.new.cells * self.old.width) > MOST_IN_MEMORY:
            raise DomainError(
                f"has {size:,} numbers, more than the {MOST_IN_MEMORY:,} that fit in memory",
                where=f"table {self.name}",
                do="recode a coarser table",
            )
        _ = self.provenance

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The table's columns with codes of the classification."""
        return tuple(c for a in self.old.attributes for c in a.columns if c in self.files.spec.columns)

    @cached_property
    def place(self) -> int | None:
        """The position of the attribute with these columns."""
        places = [i for i, a in enumerate(self.old.attributes) if set(a.columns) & set(self.columns)]
        if len(places) > 1:
            raise SpecError(
                f"{' and '.join(self.columns)} are columns of several attributes",
                where=f"table {self.name}",
                do="declare them in one list of groups",
            )
        return places[0] if places else None

    @cached_property
    def transitions(self) -> Transitions:
        """The transition of every code that occurs in a group."""
        if self.place is None:
            return Transitions({})
        published = self.files.published(self.columns)
        overrides = self.files.overrides(self.columns)
        history = self.files.history(published, overrides)
        attributes = list(self.old.attributes)
        groups = self._groups([attributes.pop(self.place), *attributes])
        try:
            return transitions(groups, published, overrides, history, self.files.spec.smallest_weight)
        except DomainError as error:
            raise DomainError(error.what, where=f"table {self.name}, {error.where}", do=error.do) from None

    @cached_property
    def provenance(self) -> NoiseProvenance:
        """The new groups of every measured group, and the number of draws in their noise."""
        starts, targets, _ = self._map
        draws = None if self.old.draws is None else np.array(self.old.draws, np.int64)
        return NoiseProvenance(starts, targets, draws)

    def plan_lines(self) -> tuple[str, ...]:
        """How the codes of the groups are recoded, one line per rule, for `plan`."""
        if self.place is None:
            return ("has none of the recoded columns: its measurements are unchanged",)
        levels = [" × ".join(columns) or "all records" for columns in self.files.spec.shares]
        lines = []
        for (rule, level), number in sorted(self.transitions.rules().items(), key=lambda item: item[0][1] or 0):
            how = rule if level is None else f"{rule}, by the shares of {levels[level]}"
            lines.append(f"{plural(number, 'code of a group', 'codes of groups')}: {how}")
        _, divided = self.provenance.draws(np.arange(self.new.cells), self.new.cells)
        if divided.any():
            number = int(divided.sum())
            lines.append(f"{number:,} of {self.new.cells:,} cells are divided at random and have no margin of error")
        if unused_overrides := self.transitions.unused_overrides:
            shown = ", ".join("/".join(key) for key in unused_overrides[:5])
            lines.append(f"overrides without effect, because the crosswalk has one destination: {shown}")
        return tuple(lines)

    def table(self) -> str:
        """Every transition as CSV: old code, key values of its shares, new code, share, rule. All public."""
        text, spec = io.StringIO(), self.files.spec
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["old", *map(guarded, self._keys), "new", "share", "rule"])
        written: dict[tuple[str, ...], None] = {}
        for (old, key), transition in self.transitions.of.items():
            used = () if transition.level is None else spec.shares[transition.level]
            shown = [value if column in used else "" for column, value in zip(self._keys, key, strict=True)]
            for new, share in transition.destinations:
                row = ("/".join(old), *shown, "/".join(new), f"{float(share):.6g}", transition.rule)
                if row not in written:
                    written[row] = None
                    writer.writerow(map(guarded, row))
        return text.getvalue()

    def recode(self, pieces: Iterator[tuple[int, GroupCounts]], release: str) -> GroupCounts:
        """The counts of every new group; `pieces` are blocks of old groups, each with the number of its first group."""
        starts, targets, rules = self._map
        stream = public_stream("recode", release, self.name)
        out = np.zeros((self.new.cells, self.old.width), np.int64)
        for first, counts in pieces:
            groups = np.arange(first, first + len(counts))
            several = starts[groups + 1] - starts[groups] > 1
            np.add.at(out, targets[starts[groups[~several]]], counts[~several])
            for g in groups[several].tolist():
                out[targets[starts[g] : starts[g + 1]]] += self._divide(stream, g, counts[g - first], rules[g]).T
        return out

    def _divide(self, stream: Stream, group: int, counts: Numbers, shares: SplitShares) -> GroupCounts:
        """The counts of a group by destination, in batches of words."""
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
        """The start of each old group's destinations, the destinations, and the shares of groups with several."""
        self._check()
        sizes = [len(a.categories) for a in self.old.attributes]
        total = prod(sizes)
        if self.place is None:
            return np.arange(total + 1), np.arange(total), {}
        transitions = self.transitions.of
        mine, attribute = self.old.attributes[self.place], self.new.attributes[self.place]
        known = {key: i for i, key in enumerate(attribute.published)}
        stride, new_stride = prod(sizes[self.place + 1 :]), self.new.strides[self.place]
        starts, targets, rules = [0], list[int](), dict[int, SplitShares]()
        cache: dict[tuple[Key, Transition], list[int]] = {}
        shares: dict[Destinations, SplitShares] = {}
        lost: dict[Key, None] = {}
        for group, code in enumerate(self._groups(self.old.attributes)):
            key, transition = mine.categories[group // stride % sizes[self.place]], transitions[code]
            places = cache.get((key, transition))
            if places is None:
                new = [self._replaced(mine, key, target) for target, _ in transition.destinations]
                lost.update(dict.fromkeys(k for k in new if k not in known))
                places = cache[key, transition] = [known.get(k, 0) for k in new]
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
        """Refuse if anything but the codes differs from the measurements."""
        if len(self.new.attributes) != len(self.old.attributes):
            raise SpecError(
                "is by other attributes than the measurements",
                where=f"table {self.name}",
                do=f"they are by {', '.join(a.name for a in self.old.attributes)}",
            )
        for i, (old, new) in enumerate(zip(self.old.attributes, self.new.attributes, strict=True)):
            if old.columns != new.columns:
                raise SpecError(
                    f"has the columns {', '.join(new.columns)} where the measurements have {', '.join(old.columns)}",
                    where=f"table {self.name}",
                    do="declare them in the order of the measurements",
                )
            if i != self.place and old.categories != new.published:
                raise DomainError(
                    f"{new.name!r} has other categories than the measurements",
                    where=f"table {self.name}",
                    do="declare the original categories: only the recoded columns may change",
                )

    def _refuse_lost(self, lost: list[Key], attribute: Attribute) -> None:
        if not lost:
            return
        shown = ", ".join("/".join(key) for key in lost[:3]) + (", …" if len(lost) > 3 else "")
        raise DomainError(
            f"lacks {plural(len(lost), 'group')} to which old ones map: {shown}",
            where=f"table {self.name}, domain {attribute.name}",
            do="add them to its list (`discreet recode-groups` writes the whole list)",
        )

    def _replaced(self, attribute: MeasuredAttribute, key: Key, code: Key) -> Key:
        """A category with a new code."""
        new = dict(zip(self.columns, code, strict=True))
        return tuple(new.get(column, value) for column, value in zip(attribute.columns, key, strict=True))

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        """The columns by which shares are estimated."""
        spec = self.files.spec
        return () if spec.history is None else tuple(dict.fromkeys(c for columns in spec.shares for c in columns))

    def _groups(self, attributes: Sequence[MeasuredAttribute]) -> Iterator[Group]:
        """The old code of every group and the values of the key columns; the first attribute varies slowest."""
        columns = [column for attribute in attributes for column in attribute.columns]
        if missing := next((column for column in self._keys if column not in columns), None):
            raise SpecError(
                f"has no column {missing!r}, by which shares are estimated",
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
    words: Words = stream.sparse_words(counters).reshape(-1)[start - 2 * first : end - 2 * first]
    return words
