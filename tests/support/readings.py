"""Values derived from a source's records, and a check that each record is read independently of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from discreet.domain.bins import Bins
from discreet.engine.intake.derived import Bin, Category, CodeText, DerivedColumn, Identifier, Number
from discreet.engine.intake.stream import Intake
from discreet.engine.readers import open_source
from discreet.spec import Source, ValuesDomain
from support.engines import Bureau

Row = tuple[Any, ...]


def category(column: str, *words: str) -> Category:
    return Category(ValuesDomain(values=list(words)).attributes(column, Path())[0])


def uses(code: str = "s", value: str | None = None, id: str | None = None) -> tuple[DerivedColumn, ...]:
    """A text column as a category and as its code, perhaps a number, perhaps an identifier."""
    actual: list[DerivedColumn] = [category(code, "ok", "7"), CodeText(code, None)]
    if value is not None:
        actual += [Number(value), Bin(value, Bins((0, 2, 5, 9)))]
    if id is not None:
        actual += [Identifier(id, whole=False)]
    return tuple(actual)


def readings(source: Any, made: Sequence[DerivedColumn], base: Path = Path()) -> list[Row]:
    """A source, opened, checked and read as releases do."""
    if isinstance(source, str | dict):
        source = TypeAdapter(Source).validate_python(source)
    scan = open_source(source, base)
    for derived in made:
        for column in derived.reads:
            for kind in scan.kinds[column]:
                derived.check(column, kind, scan.where)
    batches = Intake(tuple(made)).over(scan.pieces)
    return [row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)]


def each_alone(records: Sequence[Any], read: Callable[[Sequence[Any]], list[Row]]) -> list[Row]:
    """Values of all records, after checking that leaving out any one record leaves the others unchanged."""
    every = read(records)
    assert len(every) == len(records)
    for i in range(len(records)):
        assert read([*records[:i], *records[i + 1 :]]) == [*every[:i], *every[i + 1 :]], f"record {i}"
    return every


def released_csv(folder: Path, source: Any = None, frame: Any = None) -> bytes:
    """The CSV bytes of a complete simulated release of a source with a column `s`."""
    spec = {
        "source": {"records": source} if frame is None else {"frame": ""},
        "unit": "record",
        "domains": {"s": {"values": ["ok", "7"]}},
        "tables": [{"name": "t", "method": "counts", "by": ["s"], "epsilon": "1"}],
    }
    files = Bureau(folder).published(spec, frame=frame)
    return b"".join(content for name, content in sorted(files.items()) if name.endswith(".csv"))
