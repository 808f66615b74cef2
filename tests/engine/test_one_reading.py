"""A release reads every source once: even if the source changes meanwhile, all tables are of the same records."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_engine_suite import bureau

from discreet.engine import Engine
from discreet.engine.readers import Piece, Scan, parquet
from discreet.errors import EngineError
from discreet.noise.key import Secret
from discreet.spec import FileSource
from support.engines import Bureau, Spark, stream
from support.method_cases import CASES, CUBES, ESTIMATES, JOBS, PAID, records, spec
from support.workplaces import STRONG, WEAK, WHOLE, Register

__all__ = ["bureau"]

HIDDEN = {"strong": STRONG, "weak": WEAK, "whole": WHOLE}


@dataclass(frozen=True)
class Live:
    """A piece of a source that changes right after it was read, and a log of its readings."""

    piece: Piece
    name: str
    diary: Path

    def read(self, columns: Sequence[str], repeated: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        known = self.diary.read_text().splitlines() if self.diary.exists() else []
        with self.diary.open("a") as file:
            file.write(f"{self.name}\n")
        for batch in self.piece.read(columns, repeated):
            yield batch.slice(0, batch.num_rows // 2) if self.name in known else batch


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The log of what is read, by this process and by workers."""
    path, scan = tmp_path / "diary", parquet.scan

    def live(paths: Sequence[Path], where: str) -> Scan:
        actual = scan(paths, where)
        names = [f"{where} {i}" for i in range(len(actual.pieces))]
        return replace(actual, pieces=[Live(p, n, path) for p, n in zip(actual.pieces, names, strict=True)])

    monkeypatch.setattr(parquet, "scan", live)
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield path
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def once(diary: Path) -> bool:
    read_so_often = Counter(diary.read_text().splitlines())
    diary.unlink()
    return set(read_so_often.values()) == {1}


def tables(method: str) -> tuple[Any, list[dict[str, Any]]]:
    """A unit, and every table of a method in the suite."""
    if method == "sensitivity":
        given = [{"name": name, "method": method, **PAID, **deepcopy(case)} for name, case in ESTIMATES.items()]
        return "record", [{key: value for key, value in table.items() if value is not None} for table in given]
    if method == "hypercube":
        return "record", [{"name": name, "method": method, **deepcopy(case)} for name, case in CUBES.items()]
    given = [{"name": name, **deepcopy(case)} for name, case in CASES.items() if case["method"] == method]
    return {"person": "person_id", "max_records": 2}, given


def declared(bureau: Bureau, method: str, unit: Any = None) -> dict[str, Any]:
    (bureau.folder / "thresholds.csv").write_text("threshold\n-1\n5000\n9999\n17403\n200000\n")
    (bureau.folder / "sizes.csv").write_text("state,people\n01,90\n02,80\n03,7\n05,0\n")
    (bureau.folder / "spread.py").write_text("def spread(columns):\n    return columns[0].max() - columns[0].min()\n")
    pq.write_table(records(), bureau.folder / "records.parquet", row_group_size=50)
    own, given = tables(method)
    return {**spec("record", bureau.folder / "records.parquet"), "unit": unit or own, "tables": given}


METHODS = ["counts", "earnings", "flows", "sensitivity", "hypercube"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unit", [pytest.param("record", marks=pytest.mark.full), None], ids=["record", "person"])
def test_all_tables_of_a_method_are_of_one_reading(bureau: Bureau, diary: Path, method: str, unit: Any) -> None:
    every = declared(bureau, method, unit)
    for given in (every["tables"], every["tables"][:1], every["tables"][-1:]):
        bureau.published({**every, "tables": given})
        assert once(diary)


def test_tables_of_several_methods_are_of_one_reading(bureau: Bureau, diary: Path) -> None:
    several = [declared(bureau, method, "record")["tables"][-1] for method in METHODS]
    for given in (several, several[:1] + several[3:4], several[3:]):
        for strict in (False, True):
            every = {**declared(bureau, "counts", "record"), "tables": given}
            bureau.open({**every, "strict": strict}).check()
            assert once(diary)
            if not strict:
                bureau.published(every)
                assert once(diary)


def employer(register: Register, unit: str, one_file: bool, names: Sequence[str]) -> dict[str, Any]:
    actual = register.spec(HIDDEN[unit], one_file=one_file)
    actual["tables"] = [{"name": n, "method": "employer", "epsilon": "3", **JOBS[unit][n]} for n in names]
    return actual


@pytest.mark.parametrize("one_file", [True, False], ids=["one file", "joined"])
def test_all_tables_of_jobs_are_of_one_reading(tmp_path: Path, diary: Path, one_file: bool) -> None:
    """Several were made of several readings: of two tables one could be of the jobs before a change, one of those
    after it, and a lookup added another for every table."""
    register = Register(tmp_path / "register")
    for unit, cases in JOBS.items():
        for names in ([*cases], [*cases][:1], [*cases][-1:]):
            register.published(employer(register, unit, one_file, names))
            assert once(diary)


@pytest.mark.parametrize("unit", ["record", "person"])
def test_what_is_looked_up_is_read_once(tmp_path: Path, diary: Path, unit: str) -> None:
    register = Register(tmp_path / "register")
    actual = register.spec()
    actual["unit"] = "record" if unit == "record" else {"person": "worker", "max_records": 1}
    counted = [
        {"name": n, "method": "counts", "by": by, "epsilon": "1"} for n, by in (("a", ["sex"]), ("b", ["place"]))
    ]
    for given in (counted, counted[:1]):
        register.published({**actual, "tables": given})
        assert once(diary)


@pytest.mark.parametrize("method", ["counts", "earnings", "flows", "sensitivity", "hypercube", "employer"])
def test_workers_read_every_piece_once(bureau: Bureau, spark: Spark, diary: Path, tmp_path: Path, method: str) -> None:
    if method == "employer":
        actual = employer(Register(tmp_path / "register"), "strong", False, [*JOBS["strong"]][:2])
    else:
        actual = declared(bureau, method)
        actual["tables"] = actual["tables"][:2]
    bureau.published(actual, spark.session)
    assert once(diary)


def test_an_engine_refuses_to_read_a_source_again(engine: Engine, tmp_path: Path) -> None:
    """Whether it is asked for it twice, in a keyed order, or after it was stored; what is stored may be looked at."""
    pq.write_table(pa.table({"a": ["x", "y"]}), tmp_path / "a.parquet")

    def opened() -> Any:
        return stream(engine, FileSource(path="a.parquet"), tmp_path, ["a"])

    for first in (engine.store, lambda table: list(engine.batches(table))):
        table = opened()
        first(table)
        with pytest.raises(EngineError, match=r"source a\.parquet: would be read a second time"):
            list(engine.batches(table.group_by("a").aggregate(n=table.count())))
    ranked = engine.with_priorities(opened(), ("a",), "place", Secret(bytes(16)))
    assert sum(batch.num_rows for batch in engine.batches(ranked)) == 2
    with pytest.raises(EngineError, match="would be read a second time"):
        list(engine.batches(ranked))
    stored = engine.store(opened())
    for _ in range(2):
        assert sum(batch.num_rows for batch in engine.batches(stored)) == 2
