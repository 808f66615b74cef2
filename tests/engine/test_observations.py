"""From records to observations: the treatment of each value, on both engines."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.domain import Attribute, Domain
from discreet.engine import Engine
from discreet.engine.derived_values import ObservedValue
from discreet.engine.observations import Observations
from discreet.noise.key import ReleaseKey
from discreet.privacy.guarantee import Person, Record, Unit
from discreet.spec import FileSource
from support.engines import take_records

TABLE = pa.table(
    {
        "cell": ["a", "b", "a", "b", "a", "zzz", None, "a", "b", "a"],  # a record may have a column of that name
        "who": ["1", "2", "3", "4", "5", "6", "7", "1", None, "9"],
        "x": [0.5, -0.0, 2.0, math.nan, -math.inf, 0.1, 0.2, 0.25, 0.75, None],
        "text": ["0.5", "1", "x", " 0.25 ", "9", "0", "0", "1e0", "", "0.125"],
        "money": [Decimal("0.10"), Decimal("1.00"), None, *(Decimal("0.30"),) * 7],
    }
)
DOMAIN = Domain((Attribute.flat("cell", ["a", "b", "c"], None, "cell", None, ""),))


def rows(
    engine: Engine, tmp_path: Path, *observed: ObservedValue, unit: Unit | None = None, domain: Domain = DOMAIN
) -> list[tuple[float, ...]]:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    unit, source = unit or Record(), FileSource(path=str(tmp_path / "t.parquet"))
    records = take_records(engine, source, tmp_path, [domain], unit, observed=observed)
    secret = ReleaseKey.simulation("t").secret("records", "t", length=16)
    actual = Observations(records, unit, secret).of(engine, domain, observed)
    raw = pa.Table.from_batches(list(engine.batches(actual)))
    cells, *columns = (column.to_numpy() for column in raw.columns)
    columns = [made.bounded(column) for made, column in zip(observed, columns, strict=True)]
    kept = [
        row for row in zip(cells.tolist(), *(c.tolist() for c in columns), strict=True) if not any(map(math.isnan, row))
    ]
    return sorted(kept)


def test_clamped(engine: Engine, tmp_path: Path) -> None:
    actual = rows(engine, tmp_path, ObservedValue("x", "x", 0.0, 1.0))
    assert actual == [(0, 0.25), (0, 0.5), (0, 1.0), (1, 0.0), (1, 0.75)]  # what is infinite is no number
    assert all(math.copysign(1, value) == 1 for _, value in actual)  # no negative zero


def test_dropped(engine: Engine, tmp_path: Path) -> None:
    actual = rows(engine, tmp_path, ObservedValue("x", "x", 0.0, 1.0, outside="drop"))
    assert actual == [(0, 0.25), (0, 0.5), (1, 0.0), (1, 0.75)]


def test_texts_and_decimals(engine: Engine, tmp_path: Path) -> None:
    actual = rows(engine, tmp_path, ObservedValue("t", "text", 0.0, 1.0), ObservedValue("m", "money", 0.0, 1.0))
    assert actual == [(0, 0.125, 0.3), (0, 0.5, 0.1), (0, 1.0, 0.3), (0, 1.0, 0.3), (1, 0.25, 0.3), (1, 1.0, 1.0)]


def test_zeros_and_ones(engine: Engine, tmp_path: Path) -> None:
    actual = rows(engine, tmp_path, ObservedValue("w", "who", 0.0, 1.0, equals=("1", "4")))
    assert actual == [(0, 0.0)] * 3 + [(0, 1.0)] * 2 + [(1, 0.0), (1, 1.0)]


def test_one_record_of_each_person(engine: Engine, tmp_path: Path) -> None:
    actual = rows(engine, tmp_path, ObservedValue("x", "x", 0.0, 1.0), unit=Person(column="who", max_records=1))
    assert len(actual) == 3  # persons 1, 2 and 3: the record without a finite number takes nobody's place
    assert sum(value in (0.25, 0.5) for _, value in actual) == 1


def test_everything_in_one_cell(engine: Engine, tmp_path: Path) -> None:
    actual = rows(engine, tmp_path, ObservedValue("x", "x", 0.0, 1.0, ranked=True), domain=Domain(()))
    assert [value for _, value in actual] == [0.0, 0.1, 0.2, 0.25, 0.5, 0.75, 2.0]


@pytest.mark.parametrize("unit", [Record()])
def test_a_record_without_a_declared_code_is_dropped(engine: Engine, tmp_path: Path, unit: Record) -> None:
    assert {cell for cell, *_ in rows(engine, tmp_path, ObservedValue("x", "x", 0.0, 1.0), unit=unit)} == {0, 1}
