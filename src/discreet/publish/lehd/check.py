"""Checks that a file follows the LEHD layout of PSEO earnings or flows, reporting violations by line and column."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np

from discreet.formatting import plural
from discreet.publish.lehd.codes import repair as restore_zeros
from discreet.publish.lehd.reading import read
from discreet.publish.lehd.rules import LayoutProblem, Rules, shortened
from discreet.publish.lehd.schema import IDENTIFIERS, LAYOUTS, Layout

EXAMPLES = 20


@dataclass(frozen=True)
class Violation:
    """A violation of the layout. `line` 1 is the header; None: the whole file."""

    line: int | None
    column: str
    problem: str

    def __str__(self) -> str:
        places = ([] if self.line is None else [f"line {self.line}"]) + ([self.column] if self.column else [])
        return f"{', '.join(places)}: {self.problem}" if places else self.problem


@dataclass(frozen=True)
class LayoutCheck:
    """The layout that a file resembles most, its number of rows, and its violations."""

    layout: Layout
    rows: int
    violations: tuple[Violation, ...]
    total: int = 0  # all violations; only some of each kind are listed
    zeros: bool = False  # whether most are codes without their zeros


@dataclass
class _ViolationLog:
    """Counts all violations, and keeps the first of every kind as examples."""

    examples: list[Violation] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, line: int | None, problem: LayoutProblem) -> None:
        key = (problem.column, problem.kind)
        self.counts[key] += 1
        if self.counts[key] <= EXAMPLES:
            self.examples.append(Violation(line, problem.column, str(problem)))

    def all(self) -> tuple[Violation, ...]:
        """In the order of lines; at the end the number of those not listed, by kind."""
        left = {key: n - EXAMPLES for key, n in self.counts.items() if n > EXAMPLES}
        rest = [Violation(None, c, f"in {plural(n, 'more line')}: {kind}") for (c, kind), n in left.items()]
        return tuple(sorted(self.examples, key=lambda v: v.line or 0) + rest)


def check_layout(path: Path, repair: bool = False) -> LayoutCheck:
    """Read a file once and compare it with the layout that its header resembles.

    With `repair`, zeros that a spreadsheet removed from codes are first restored in memory. A wrong header ends the
    check, since the meaning of the fields is then unknown. At most twenty problems of each kind are listed, the others
    counted. A row takes about 50 bytes of memory.
    """
    lines_read = read(path)
    _, header = next(lines_read)
    layout = max(LAYOUTS, key=lambda known: _likeness(known.columns, header))
    log = _ViolationLog()
    for problem in _header(layout, header):
        log.add(1, problem)
    if log.examples:
        return LayoutCheck(layout, 0, log.all(), sum(log.counts.values()))
    rules, identifiers, rows = Rules(layout), _IdentifierIndex(), 0
    for line, fields in lines_read:
        rows += 1
        if len(fields) != len(header):
            fewer = "fewer" if len(fields) < len(header) else "more"
            log.add(line, LayoutProblem("", f"{fewer} fields than the header has"))
            continue
        row = restore_zeros(fields) if repair else fields
        for problem in rules.problems(row):
            log.add(line, problem)
        identifiers.add(line, row[: len(IDENTIFIERS)])
    if not rows:
        log.add(None, LayoutProblem("", "there are no rows"))
    for line in identifiers.repeated():
        log.add(line, LayoutProblem("identifiers", "are those of an earlier line"))
    total = sum(log.counts.values())
    lost = sum(n for (_, kind), n in log.counts.items() if "zero" in kind)
    return LayoutCheck(layout, rows, log.all(), total, 2 * lost > total)


def _likeness(columns: Sequence[str], header: Sequence[str]) -> tuple[bool, int]:
    return list(columns) == list(header), len(set(columns) & set(header)) - len(set(columns) - set(header))


def _header(layout: Layout, header: list[str]) -> Iterator[LayoutProblem]:
    """Columns that are missing, unknown, repeated or out of order."""
    expected, count = layout.columns, Counter(header)
    if not set(layout.indicators) & set(header):
        single = len(header) == 1 and max(";", "\t", "|", key=header[0].count)
        why = f"; its fields are separated by {single!r} instead of commas" if single and single in header[0] else ""
        yield LayoutProblem("", f"the header is neither that of pseoe nor that of pseof{why}")
        return
    for column in expected:
        if column not in count:
            yield LayoutProblem(column, f"is missing; {layout} has it")
    for column in count:
        if column not in expected:
            yield LayoutProblem(shortened(column), f"is not a column of {layout}")
        elif count[column] > 1:
            yield LayoutProblem(column, f"occurs {count[column]} times in the header")
    known = [column for column in dict.fromkeys(header) if column in expected]
    right = [column for column in expected if column in count]
    for what, start, end, _, _ in SequenceMatcher(None, right, known, autojunk=False).get_opcodes():
        if what in {"delete", "replace"}:
            for place in range(start, end):
                belongs = f"after {right[place - 1]}" if place else "first"
                yield LayoutProblem(right[place], f"is out of order; it belongs {belongs}")


class _IdentifierIndex:
    """The identifiers of all rows, as 64 bits of a digest and the line."""

    def __init__(self) -> None:
        self._digests, self._lines = bytearray(), array("q")

    def add(self, line: int, identifiers: list[str]) -> None:
        self._digests += hashlib.blake2b("\x1f".join(identifiers).encode(), digest_size=8).digest()
        self._lines.append(line)

    def repeated(self) -> list[int]:
        """The lines whose identifiers occur on an earlier line."""
        digests = np.frombuffer(bytes(self._digests), dtype="<u8")
        order = np.argsort(digests, kind="stable")  # equal ones stay in the order of lines
        repeated = order[1:][digests[order[1:]] == digests[order[:-1]]]
        return sorted(self._lines[int(place)] for place in repeated)
