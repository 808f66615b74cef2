"""The engines that tests run on: DuckDB, and one Spark session per process, started on first use.

Spark is `local[2]`, or with `DISCREET_TEST_SPARK=cluster` a standalone cluster of two workers on loopback. A process
can have only one Spark, so the two need two runs of pytest.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest
import yaml

import discreet
from discreet.api import OpenRelease, set_budget
from discreet.domain import Domain
from discreet.engine import Engine, open_engine
from discreet.engine.audit import coded_attributes, preflight_columns
from discreet.engine.derived_values import BinnedValue, ObservedValue, with_bins
from discreet.engine.intake.derived import DerivedColumn
from discreet.engine.intake.normalise import plain_type
from discreet.engine.intake.stream import Intake
from discreet.engine.lookups import Records, ingest_tables
from discreet.engine.tabulate import derived_columns
from discreet.privacy.guarantee import Unit
from discreet.spec import SparkEngineSpec

ENVIRONMENT = "DISCREET_TEST_SPARK"
ENGINES = ["duckdb", "spark"]
BRIEF = {
    "spark.sql.shuffle.partitions": "3",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # it will not live long
}
QUIET = [
    "ignore:unclosed .socket:ResourceWarning",  # pyspark and py4j leave theirs to the collector, which comes late
    "ignore::DeprecationWarning:pyspark",
    "ignore::FutureWarning:pyspark",
    "ignore::UserWarning:pyspark",  # on pandas 3
]


@dataclass(frozen=True)
class Spark:
    """A running session, its folder of temporary files and its log."""

    session: Any
    folder: Path
    log: Path


def on_cluster() -> bool:
    return os.environ.get(ENVIRONMENT, "local") == "cluster"


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Environment variables, for as long as something starts."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setenv(name, value)
        yield


@contextmanager
def local_spark(folder: Path, **config: str) -> Iterator[Spark]:
    """A session of this process; what Java prints is in a file."""
    from discreet.engine.spark.session import start_session

    spec = SparkEngineSpec(spark="local[2]", config={**BRIEF, **config})
    with ExitStack() as stack:
        with environment(DISCREET_SPARK_LOG=str(folder / "spark.log"), SPARK_LOCAL_IP="127.0.0.1"):
            session = stack.enter_context(start_session(spec, folder))
        yield Spark(session, folder, folder / "spark.log")


@contextmanager
def cluster_spark(folder: Path) -> Iterator[Spark]:
    """A session on a cluster of two workers, each a process with executors of its own."""
    from benchmarks._cluster import cluster

    from discreet.engine.spark.session import start_session

    with ExitStack() as stack:
        actual = stack.enter_context(cluster(folder / "cluster", workers=2, cores=1, memory="1g"))
        log, local = folder / "spark.log", folder / "local"
        local.mkdir()
        with environment(DISCREET_SPARK_LOG=str(log), SPARK_CONF_DIR=str(actual.settings), SPARK_LOCAL_IP="127.0.0.1"):
            session = stack.enter_context(start_session(SparkEngineSpec(spark=actual.master), local))
        yield Spark(session, local, log)


def as_uri(spark: Spark, path: Path) -> str:
    """A path of this machine under a URI, so that Spark reads it itself."""
    settings = spark.session.sparkContext._jsc.hadoopConfiguration()
    settings.set("fs.viewfs.mounttable.machine.link./files", "file:///")
    return f"viewfs://machine/files{path}"


class _Process:
    """The Spark of this process."""

    def __init__(self) -> None:
        self._stack, self._spark = ExitStack(), None

    def spark(self, folder: Path) -> Spark:
        if self._spark is None:
            self._spark = self._stack.enter_context(cluster_spark(folder) if on_cluster() else local_spark(folder))
        return self._spark

    def stop(self) -> None:
        self._spark = None
        self._stack.close()


PROCESS = _Process()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    """The Spark session that all tests of this process share."""
    yield PROCESS.spark(tmp_path_factory.mktemp("spark"))
    PROCESS.stop()


@pytest.fixture(params=ENGINES)
def session(request: pytest.FixtureRequest) -> Any:
    """What `discreet.release(…, session=)` takes: nothing for DuckDB, or a Spark session."""
    return None if request.param == "duckdb" else request.getfixturevalue("spark").session


@pytest.fixture
def engine(session: Any) -> Iterator[Engine]:
    """An open engine of each kind."""
    with open_engine("duckdb", session) as actual:
        yield actual


# --- records --------------------------------------------------------------------------------------------------------


def take_records(
    engine: Engine,
    source: Any,
    base: Path,
    domains: Sequence[Domain],
    unit: Unit,
    binned: Sequence[BinnedValue] = (),
    observed: Sequence[ObservedValue] = (),
    *,
    inspect: bool = False,
    counted: bool = False,
) -> Records:
    """One source ingested as by a release: checked, with its bins, and stored, as tests read it more than once."""
    wanted = derived_columns(domains, binned, observed)
    if inspect:
        wanted += preflight_columns(coded_attributes(domains), binned, observed)
    records = ingest_tables(engine, {"records": engine.open(source, base)}, {}, wanted, unit.entity, counted)
    return replace(records, table=with_bins(records.table, binned)).store(engine)


@dataclass(frozen=True)
class RawColumn(DerivedColumn):
    """A column unchanged, under its own name: for tests of engines on arbitrary tables."""

    column: str
    kind: pa.DataType

    @property
    def type(self) -> pa.DataType:
        return self.kind

    @property
    def name(self) -> str:
        return self.column

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    def check(self, column: str, kind: pa.DataType, where: str) -> None:
        """Anything goes."""

    def make(self, columns: Sequence[pa.Array]) -> pa.Array:
        return columns[0].cast(self.kind)


def read(engine: Engine, source: Any, base: Path, columns: Sequence[str]) -> ibis.Table:
    """These columns of a source, raw and stored."""
    return engine.store(stream(engine, source, base, columns))


def stream(engine: Engine, source: Any, base: Path, columns: Sequence[str]) -> ibis.Table:
    """These columns of a source, raw, for one reading."""
    if "pyspark" in sys.modules:  # a worker cannot import this module: what is defined here is sent as code
        from pyspark import cloudpickle

        cloudpickle.register_pickle_by_value(sys.modules[__name__])
    scan = engine.open(source, base)
    return engine.ingest(scan, Intake(tuple(RawColumn(c, plain_type(*scan.kinds[c])) for c in columns)))


# --- whole releases -------------------------------------------------------------------------------------------------


class Bureau:
    """A folder with sources, and a simulation ledger for each release: runs of it differ in the engine alone."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self._runs = 0

    def open(self, spec: Mapping[str, Any], session: Any = None, **more: Any) -> OpenRelease:
        """A release with a ledger of its own."""
        self._runs += 1
        ledger = discreet.ledger(self.folder / f"ledger{self._runs}.sqlite", clock=_noon)
        unit = spec["unit"]
        person = {key: value for key, value in unit.items() if key != "max_records"} if unit != "record" else unit
        set_budget(ledger, "records", epsilon="1000", delta="1/10", unit=person, kind="simulation")
        path = self.folder / f"release{self._runs}.yaml"
        path.write_text(yaml.safe_dump({"release": "r", "asset": "records", **spec}, sort_keys=False))
        return discreet.release(path, ledger=ledger, session=session, **more)

    def published(self, spec: Mapping[str, Any], session: Any = None, **more: Any) -> dict[str, bytes]:
        """A simulated release, run: its files."""
        opened, out = self.open(spec, session, **more), self.folder / f"out{self._runs}"
        opened.run(out, simulation="suite")
        return self.files(out)

    @staticmethod
    def files(out: Path) -> dict[str, bytes]:
        """Every file of a release, without what the manifest says about the ledger."""
        files = {p.relative_to(out).as_posix(): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}
        manifest = json.loads(files["manifest.json"])
        del manifest["ledger"]
        return {**files, "manifest.json": json.dumps(manifest).encode()}


def _noon() -> dt.datetime:
    return dt.datetime(2026, 1, 15, 12, tzinfo=dt.UTC)
