"""A property of intake, as a test: *removing a record changes the reading of no other record*.

A reading is a multiset: everything that is derived from each record, with its tag, pass by pass. The property is a sum,

    reading(D) = reading(D − r) + reading(r),

for every record r of D, with the same refusals on all three sides. It implies that which records share an id does not
change. `every_record` is just that, with 2n + 1 readings. `split` is quicker: D, and the halves of D by the bits of a
record's place, must each be the sum of what its records are when read alone.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pydantic import TypeAdapter

from discreet.domain import Attribute
from discreet.domain.bins import Bins
from discreet.engine import Engine
from discreet.engine.intake.derived import (
    Bin,
    Category,
    CodeText,
    DerivedColumn,
    Indicator,
    KeyPart,
    Number,
    NumberStatus,
    SampleCondition,
    ValueStatus,
    identifier,
)
from discreet.engine.intake.parallel import ingest_pieces
from discreet.engine.intake.stream import Intake, N
from discreet.engine.lookups import ingest_tables
from discreet.engine.readers import Scan, open_source
from discreet.errors import DiscreetError
from discreet.spec import Source

Row = tuple[Any, ...]
REFUSED = "refused"  # in the place of a value that is not derived of columns of this type
CRASH = "could not be computed"  # as an engine says it


@dataclass(frozen=True)
class HostileRecord:
    """A clean tag, what is under test, and a further value."""

    tag: str
    x: Any
    y: Any = "a"


def records(values: Sequence[Any]) -> tuple[HostileRecord, ...]:
    """One record for each value; every other one has another y."""
    return tuple(HostileRecord(f"t{i:03}", value, "ab"[i % 2]) for i, value in enumerate(values))


@dataclass(frozen=True)
class RecordCase:
    """Records, how they are written as a source in an empty folder, and under which settings that is read. `alone`: a
    record by itself must read as it does among others; else its own entry there stands for it (a writer may choose
    the type of a column by what is in it)."""

    reader: str
    name: str
    records: tuple[HostileRecord, ...]
    write: Callable[[Sequence[HostileRecord], Path], Any] = field(repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict)
    alone: bool = True
    looks: tuple[str, ...] = ("repeated", "plain", "id", "counted")
    distinct: bool = False  # two different values are two ids, or none
    traits: tuple[str, ...] = ()  # the family of its type, and how it is written

    def __str__(self) -> str:
        return f"{self.reader}-{self.name}"


# --- what is derived ------------------------------------------------------------------------------------------------

WORDS = ("0", "7", "007", "0.5", "7.5", "true", "false", "a", "b", "é", "nan", "NULL", "2026-01-31", "9007199254740993",
         "18446744073709551615", "1e5", "a,b", 'a"b', "\ufeff7", "", " ", "-1")  # fmt: skip
_PAIRS = {(x, y): i % 5 for i, (x, y) in enumerate((x, y) for x in WORDS[:14] for y in "ab")}


def _attribute(name: str, **more: Any) -> Attribute:
    listed = {(word,): i for i, word in enumerate(WORDS)}
    return Attribute(**{"columns": (name,), "source": ("x",), "categories": tuple(listed), "lookup": listed,
                        "name": name, **more})  # fmt: skip


ATTRIBUTES = (
    _attribute("plain"),
    _attribute("other", other="else"),
    _attribute("padded", width=3),
    _attribute("absent", other="else", absent=2),
    _attribute("pair", columns=("p", "q"), source=("x", "y"), other="else",
               categories=tuple((f"p{i}", f"q{i}") for i in range(5)), lookup=_PAIRS),
)  # fmt: skip
TAG = CodeText("tag", None)
CODES: tuple[DerivedColumn, ...] = (
    *map(Category, ATTRIBUTES),
    *map(ValueStatus, ATTRIBUTES),
    KeyPart("x", None, WORDS),
    SampleCondition("x", equals=("7", "a", "true", "0.5")),
)
BINS: tuple[DerivedColumn, ...] = (
    Bin("x", Bins((-10, 0, 1, 7, 8, 100, 2**40))),
    SampleCondition("x", 0, 7),
    SampleCondition("x", at_most=-1),
)
VALUES: tuple[DerivedColumn, ...] = (
    Number("x"),
    NumberStatus("x", True),
    NumberStatus("x", False),
    Indicator("x", ("7", "a", "true")),
    CodeText("x", None),
    CodeText("x", 5),
)


# --- a reading ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordReading:
    """Rows by look, and why the whole source, or a look at it, was refused."""

    rows: Mapping[str, Counter[Row]]
    refused: frozenset[str] = frozenset()

    def among(self, other: RecordReading) -> RecordReading:
        """Without what the other could not be asked, and without ids: a writer chose other types for it."""
        lost = {i: {j for row in other.rows.get(i, ()) for j, v in enumerate(row) if v == REFUSED} for i in self.rows}
        kept = {look: Counter[Row]() for look in self.rows if look not in ("id", "counted")}
        for look, rows in kept.items():
            for row, n in self.rows[look].items():
                rows[tuple(REFUSED if j in lost[look] else v for j, v in enumerate(row))] += n
        return RecordReading(kept)

    def without(self, tag: str) -> RecordReading:
        """All but a record's own entries."""
        return RecordReading(
            {k: Counter({row: n for row, n in v.items() if row[:1] != (tag,)}) for k, v in self.rows.items()}
        )

    def differences(self, other: RecordReading) -> list[str]:
        """What one has and the other has not."""
        out = [f"refused: {text}" for text in sorted(self.refused ^ other.refused)]
        none: Counter[Row] = Counter()
        for look in sorted(self.rows.keys() | other.rows.keys()):
            mine, theirs = self.rows.get(look, none), other.rows.get(look, none)
            out += [f"{look}: only together {_brief(row)}" for row in list((mine - theirs).elements())[:3]]
            out += [f"{look}: only apart {_brief(row)}" for row in list((theirs - mine).elements())[:3]]
        return out


class IntakeOnly:
    """No engine: the intake alone, which is what every engine runs. It is fast."""

    def open(self, source: Any, base: Path, wanted: Collection[str] = ()) -> Scan:
        return open_source(source, base)

    def ingest(self, scan: Scan, intake: Intake) -> Any:
        return list(ingest_pieces(intake, scan.pieces))

    def batches(self, table: Any) -> Iterator[pa.RecordBatch]:
        return iter(table)


class RawScan(IntakeOnly):
    """Not even the intake: columns of a source as they come, for readers whose borders are many and small."""


AnyEngine = Engine | IntakeOnly


def read(engine: AnyEngine, source: Any, base: Path, looks: Sequence[str]) -> RecordReading:
    """Everything that can be derived of a source, in some looks at it."""
    if isinstance(source, str | dict):
        source = TypeAdapter(Source).validate_python(source)
    try:
        return _looked_at(engine, engine.open(source, base, ("tag", "x", "y")), looks)
    except DiscreetError as error:
        return RecordReading({}, frozenset([str(error)]))
    except Exception as error:  # nothing else should come; a message may quote a record, and differ
        return RecordReading({}, frozenset([f"{CRASH} ({type(error).__name__})"]))


def _raw(scan: Scan) -> RecordReading:
    rows: Counter[Row] = Counter()
    for piece in scan.pieces:
        for batch in piece.read(("tag", "x", "y")):
            rows.update(zip(*(column.cast(pa.large_binary()).to_pylist() for column in batch.columns), strict=True))
    return RecordReading({"raw": rows, "unreadable": Counter({("lines",): sum(scan.unreadable.values())})})


def _looked_at(engine: AnyEngine, scan: Scan, looks: Sequence[str]) -> RecordReading:
    if isinstance(engine, RawScan):
        return _raw(scan)
    refused: set[str] = set()
    refused.update(filter(None, (_refusal(scan, made) for made in (*CODES, *BINS, *VALUES))))
    rows: dict[str, Counter[Row]] = {}
    if "repeated" in looks:
        rows["repeated"] = _rows(engine, scan, [TAG, *CODES])  # nothing else is read of dictionaries
    if "plain" in looks:
        rows["plain"] = _rows(engine, scan, [TAG, *CODES[3:6], *BINS, *VALUES])
    if "counted" in looks:
        rows["counted"] = _rows(engine, scan, [*CODES, *BINS], counted=True)
    if "id" in looks:
        try:
            rows["id"] = _rows(engine, scan, [TAG], "x")
        except DiscreetError as error:
            if "used as an identifier" not in str(error) and "cannot be matched" not in str(error):
                raise
            refused.add(str(error))
    rows["unreadable"] = Counter({("lines",): sum(scan.unreadable.values())})
    return RecordReading(rows, frozenset(refused))


def _refusal(scan: Scan, made: DerivedColumn) -> str | None:
    try:
        for column in made.reads:
            for kind in sorted(scan.kinds[column], key=str):
                made.check(column, kind, scan.where)
    except DiscreetError as error:
        return str(error)
    return None


def _rows(
    engine: AnyEngine, scan: Scan, asked: Sequence[DerivedColumn], entity: str | None = None, counted: bool = False
) -> Counter[Row]:
    made = [column for column in asked if not _refusal(scan, column)]
    table = ingest_tables(engine, {"t": scan}, {}, made, entity, counted).table  # type: ignore[arg-type]
    if entity and not isinstance(engine, IntakeOnly):
        table = engine.store(table)  # it is read twice
    names = [column.name if column in made else None for column in asked] + ([identifier(entity)] if entity else [])
    rows: Counter[Row] = Counter()
    for batch in engine.batches(table):
        number = batch.column(N).to_pylist() if N in batch.schema.names else [1] * batch.num_rows
        columns = [
            [REFUSED] * len(number)
            if name is None
            else [_shown(v, bool(entity)) for v in batch.column(name).to_pylist()]
            for name in names
        ]
        for row, n in zip(zip(*columns, strict=True), number, strict=True):
            rows[row] += n
    if entity and not isinstance(engine, IntakeOnly):
        _check_groups(engine, table, identifier(entity), rows)
    return rows


def _check_groups(engine: Engine, table: Any, name: str, rows: Counter[Row]) -> None:
    """An engine tells the same ids apart as we do."""
    grouped = table.group_by(name).aggregate(discreet_n=table.count())
    theirs: Counter[Any] = Counter()
    for batch in engine.batches(grouped):
        ids, numbers = batch.column(name).to_pylist(), batch.column("discreet_n").to_pylist()
        theirs.update({_shown(i, True): n for i, n in zip(ids, numbers, strict=True)})
    ours: Counter[Any] = Counter()
    for row, n in rows.items():
        ours[row[-1]] += n
    if ours != theirs:
        raise AssertionError("the engine merges ids, or parts one")


def _shown(value: Any, as_id: bool) -> Any:
    """To the bit: 0.0 and −0.0 are two values. An id is the same as a number and as text."""
    if as_id:
        return None if value is None else str(value)
    return value.hex() if isinstance(value, float) else value


# --- the property ---------------------------------------------------------------------------------------------------


@dataclass
class ComparisonReport:
    """How many readings were compared, and what was found."""

    pairs: int = 0
    actual: list[str] = field(default_factory=list)

    def add(self, other: ComparisonReport) -> None:
        self.pairs += other.pairs
        self.actual += other.actual

    def compare(self, what: str, together: RecordReading, apart: RecordReading) -> None:
        self.pairs += 1
        self.actual += [f"{what}: {text}" for text in together.differences(apart)]
        self.actual += [f"{what}: {text}" for text in together.refused if CRASH in text]


def _identity(case: RecordCase, whole: RecordReading, report: ComparisonReport) -> None:
    """No two ids are merged."""
    known = {record.tag: record.x for record in case.records}
    seen: dict[str, Any] = {}
    for tag, shown in whole.rows.get("id", {}) if case.distinct else ():
        if shown is not None and repr(seen.setdefault(shown, known[tag])) != repr(known[tag]):
            report.actual.append(f"{case}: {tag} {_brief(known[tag])} has the id of {_brief(seen[shown])}")


class CaseReader:
    """Writes and reads sources of a case, each in a folder of its own."""

    def __init__(self, case: RecordCase, engine: AnyEngine) -> None:
        self.case, self.engine = case, engine

    def __call__(self, kept: Sequence[HostileRecord]) -> RecordReading:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            source = self.case.write(kept, Path(folder))
            for name, value in self.case.settings.items():
                stack.enter_context(patch(name, value))
            return read(self.engine, source, Path(folder), self.case.looks)


def every_record(case: RecordCase, engine: AnyEngine | None = None) -> ComparisonReport:
    """Check independence for every record in turn."""
    reader, report = CaseReader(case, engine or IntakeOnly()), ComparisonReport()
    whole = reader(case.records)
    _identity(case, whole, report)
    for i, record in enumerate(case.records):
        rest = reader([*case.records[:i], *case.records[i + 1 :]])
        what = f"{case} without {record.tag} {_brief(record.x)}"
        if case.alone:
            report.compare(what, whole, _sum([rest, reader([record])]))
        else:
            report.compare(what, whole.without(record.tag).among(rest), rest.among(whole))
    return report


def split(case: RecordCase, engine: AnyEngine, alone: RecordCase | None = None, most: int = 2) -> ComparisonReport:
    """The property for all records, and for halves by the first bits of a record's place and by the last. Single
    records are read without an engine, perhaps from another source."""
    reader, report = CaseReader(case, engine), ComparisonReport()
    whole = reader(case.records)
    _identity(case, whole, report)
    single = CaseReader(alone or case, engine if isinstance(engine, IntakeOnly) else IntakeOnly())
    alones = {record.tag: single([record]) for record in case.records} if case.alone else {}
    bits = max(len(case.records) - 1, 1).bit_length()
    halves = [
        [r for i, r in enumerate(case.records) if (i >> bit) % 2 == side]
        for bit in ([*range(min(most - 1, bits)), bits - 1] if most else [])
        for side in (0, 1)
    ]
    for half in [list(case.records), *halves]:
        read_half = whole if len(half) == len(case.records) else reader(half)
        what = f"{case} of {len(half)} records"
        if case.alone:
            report.compare(what, read_half, _sum([alones[record.tag] for record in half]))
            report.pairs += len(half) - 1
            continue
        there = whole
        for record in set(case.records) - set(half):
            there = there.without(record.tag)
        report.compare(what, there.among(read_half), read_half.among(whole))
    return report


def _sum(readings: Sequence[RecordReading]) -> RecordReading:
    rows: dict[str, Counter[Row]] = {}
    for reading in readings:
        for look, actual in reading.rows.items():
            rows.setdefault(look, Counter()).update(actual)
    return RecordReading(rows, frozenset(text for reading in readings for text in reading.refused))


def agree(case: RecordCase, one: AnyEngine, other: AnyEngine) -> ComparisonReport:
    """Check that two engines read the same."""
    report = ComparisonReport()
    report.compare(f"{case} on two engines", CaseReader(case, one)(case.records), CaseReader(case, other)(case.records))
    return report


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 150 else text[:150] + "…"
