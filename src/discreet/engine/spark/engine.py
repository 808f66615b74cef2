"""The cluster engine: Ibis expressions as Spark SQL, kernels in `mapInArrow`, no full table on the driver."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

import ibis
import pyarrow as pa
from ibis.backends.pyspark.datatypes import PySparkType
from ibis.expr.operations import DatabaseTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, StructType
from pyspark.storagelevel import StorageLevel

from discreet.engine.intake.stream import Intake
from discreet.engine.readers import Scan, second_read_error
from discreet.engine.spans import CELL, Kernel, Progress, Spans, no_progress
from discreet.engine.spark.jobs import JAVA_GONE, Jobs, redact_failures
from discreet.engine.spark.reading import (
    NO_STATISTICS,
    FileState,
    FrameScan,
    file_states,
    local_files,
    quoted,
    scan_of_files,
    scan_of_frame,
    select_exact,
    select_plain,
    without_statistics,
)
from discreet.engine.spark.uri_files import escape_pattern, files_below, uri_of
from discreet.engine.spark.worker import SPAN, FrameIntakeTask, KernelTask, PieceIntakeTask, PriorityTask, versions
from discreet.errors import SourceError
from discreet.noise.key import Secret
from discreet.spec import FileSource

_SETTINGS = {
    "spark.sql.ansi.enabled": "true",  # arithmetic is checked
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 18),
    "spark.sql.execution.arrow.useLargeVarTypes": "true",  # texts of any length
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",  # small tables in few pieces
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.enableVectorizedReader": "false",  # the non-vectorised reader knows every encoding
    "spark.sql.parquet.binaryAsString": "false",  # types are what the files say
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.groupByOrdinal": "true",  # as Ibis writes SQL
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    **NO_STATISTICS,
}


class SparkEngine:
    """A new session beside the user's, with its own settings and names; stored tables are dropped when it is closed."""

    unreadable = unclosed = 0  # Parquet has no such lines

    def __init__(self, session: SparkSession) -> None:
        self._session = session.newSession()
        self._context = session.sparkContext
        for key, value in _SETTINGS.items():
            self._session.conf.set(key, value)
        self._backend: Any = ibis.pyspark.connect(self._session)
        self._jobs = Jobs(self._session)
        self._names = count()
        self._persisted: list[DataFrame] = []
        self._snapshots: list[Any] = []
        self._sent: list[Any] = []
        self._uris: list[tuple[str, list[FileState]]] = []
        self._files: list[tuple[list[Path], list[FileState]]] = []
        self._streams: dict[str, str] = {}  # views that read a source, and the source
        self._read: dict[str, str] = {}

    # --- reading ----------------------------------------------------------------------------------------------------

    def open(self, source: Any, base: Path, wanted: Collection[str] = ()) -> Scan:
        if isinstance(source, DataFrame):
            # A frame may give other results each time it is computed: take one snapshot, without lineage.
            used = select_exact(source, wanted, "source frame")
            with without_statistics(source):
                snapshot = self._jobs.run(lambda: used.localCheckpoint(True, StorageLevel.MEMORY_AND_DISK))
            self._snapshots.append(redact_failures(lambda: snapshot._jdf.queryExecution().logical().rdd()))
            return scan_of_frame(self._adopted(snapshot), "source frame")
        if not isinstance(source, FileSource):
            raise SourceError(
                "cannot be read by Spark",
                where="source",
                do="name a Parquet path, or pass a DataFrame of the session; other sources run on DuckDB",
            )
        if (uri := uri_of(source)) is not None:
            files = files_below(self._session, uri)
            self._uris.append((uri, files))
            return scan_of_files(self._scan(uri, files), f"source {uri}")
        scan, paths = local_files(source, base)
        self._files.append((paths, file_states(paths)))
        return scan

    def ingest(self, scan: Scan, intake: Intake) -> ibis.Table:
        schema = from_arrow_schema(intake.schema)
        if isinstance(scan, FrameScan) and scan.frame is not None:
            taken = select_plain(scan.frame, intake.reads).mapInArrow(FrameIntakeTask(intake, versions()), schema)
        else:
            tasks = min(len(scan.pieces), max(4 * self._context.defaultParallelism, 1))
            numbers = self._session.range(0, len(scan.pieces), 1, max(tasks, 1))
            taken = numbers.mapInArrow(PieceIntakeTask(intake, tuple(scan.pieces), versions()), schema)
        return self._view(taken, scan.where)

    def _scan(self, uri: str, files: Sequence[FileState]) -> DataFrame:
        """A scan of these files and no others; folder names do not become columns."""
        # The types of all files are compared, so that a differing one is refused at the start.
        reader = self._session.read.option("recursiveFileLookup", "true").option("mergeSchema", "true")
        return redact_failures(
            lambda: reader.parquet(*(escape_pattern(path) for path, _, _ in files)),
            "is not readable as Parquet by Spark, or its files disagree about a column's type",
            f"source {uri}",
            "check the path as Spark sees it, that every worker can read it, and that all files have the same schema",
        )

    def _adopted(self, frame: DataFrame) -> DataFrame:
        """A frame of the user's session in ours, through the global temporary database that both can see."""
        name = f"discreet_{id(self)}_{next(self._names)}"

        def hand_over() -> DataFrame:
            frame.createGlobalTempView(name)
            try:
                return self._session.table(f"global_temp.{name}")
            finally:
                self._session.catalog.dropGlobalTempView(name)

        return redact_failures(hand_over)

    def check_unchanged(self) -> None:
        """A lost worker's rows are recomputed from the source: refuse if its files have changed."""
        same = all(file_states(paths) == before for paths, before in self._files)
        if not same or any(files_below(self._session, uri) != before for uri, before in self._uris):
            raise SourceError(
                "changed while it was read", where="source", do="make sure that nothing writes to it, and run again"
            )

    def load_table(self, table: pa.Table) -> ibis.Table:
        return self._view(self._session.createDataFrame(table).hint("broadcast"))

    # --- computing --------------------------------------------------------------------------------------------------

    def store(self, table: ibis.Table) -> ibis.Table:
        return self._persist(self._frame(table))

    def batches(self, table: ibis.Table) -> Iterator[pa.RecordBatch]:
        frame = self._frame(table)
        yield from self._jobs.run(frame.toArrow).to_batches()

    def with_priorities(self, table: ibis.Table, columns: Sequence[str], name: str, secret: Secret) -> ibis.Table:
        frame = self._frame(table)
        plain = frame.toDF(*_plain(frame.columns))  # mapInArrow would parse a dot or a backtick in a name
        places = tuple(frame.columns.index(column) for column in columns)
        schema = StructType([*plain.schema.fields]).add(name, LongType())
        ranked = plain.mapInArrow(PriorityTask(places, name, self._send(secret), versions()), schema)
        lazily = ", ".join(self._read[name] for name in self._sources(table))
        return self._view(ranked.toDF(*frame.columns, name), lazily)

    def map(
        self,
        table: ibis.Table,
        spans: Spans,
        kernel: Kernel,
        secret: Secret | None = None,
        progress: Progress = no_progress,  # noqa: ARG002 - computed when first used
    ) -> ibis.Table:
        return self._persist(self._spread(table, spans, kernel, secret))

    def gather(
        self,
        table: ibis.Table,
        spans: Spans,
        kernel: Kernel,
        secret: Secret | None = None,
        progress: Progress = no_progress,
    ) -> Iterator[pa.RecordBatch]:
        frame, reached = self._spread(table, spans, kernel, secret), 0

        def watch(share: float) -> None:  # Spark adds stages while it runs
            nonlocal reached
            reached = max(reached, min(int(share * len(spans)), len(spans) - 1))
            progress(reached, len(spans))

        yield from self._jobs.run(frame.toArrow, watch).to_batches()
        progress(len(spans), len(spans))

    def _spread(self, table: ibis.Table, spans: Spans, kernel: Kernel, secret: Secret | None) -> DataFrame:
        """Distribute rows, and one marker per span, to the kernel tasks: whole spans, each in cell order."""
        others = [column for column in table.columns if column != CELL]
        frame = self._frame(table).select(F.expr(f"{CELL} div {spans.size}").alias(SPAN), CELL, *map(quoted, others))
        markers = self._session.range(len(spans)).withColumnRenamed("id", SPAN)
        later = [F.col(quoted(column)).asc_nulls_last() for column in others]  # as in DuckDB
        tasks = min(len(spans), max(3 * self._context.defaultParallelism, 1))
        spread = (
            frame.unionByName(markers, allowMissingColumns=True)
            .repartition(tasks, SPAN)
            .sortWithinPartitions(SPAN, F.col(CELL).asc_nulls_first(), *later)
        )
        sent = None if secret is None else self._send(secret)
        run = KernelTask(kernel, spans, (CELL, *others), sent, versions())
        return spread.toDF(*_plain(spread.columns)).mapInArrow(run, from_arrow_schema(kernel.schema))

    # --- storing ----------------------------------------------------------------------------------------------------

    def _frame(self, table: ibis.Table) -> DataFrame:
        """An expression as a frame, with numbers of the width declared by Ibis: Spark gives a small literal 32 bits."""
        for name in self._sources(table):
            if name in self._read:
                raise second_read_error(self._read[name])
            self._read[name] = self._streams[name]
        widths = {name: PySparkType.from_ibis(kind) for name, kind in table.schema().items() if kind.is_numeric()}

        def compiled() -> DataFrame:
            frame = self._session.sql(self._backend.compile(table))
            return frame.select(
                *(
                    F.col(quoted(f.name)).cast(widths.get(f.name, f.dataType)).alias(f.name)
                    if widths.get(f.name, f.dataType) != f.dataType
                    else quoted(f.name)
                    for f in frame.schema.fields
                )
            )

        return redact_failures(compiled)

    def _sources(self, table: ibis.Table) -> list[str]:
        """The views through which a table would read sources."""
        return sorted({view.name for view in table.op().find(DatabaseTable) if view.name in self._streams})

    def _view(self, frame: DataFrame, source: str = "") -> ibis.Table:
        """Register a frame under a new name; if it reads a `source`, it may be used once."""
        name = f"discreet_{next(self._names)}"
        redact_failures(lambda: frame.createTempView(name))
        if source:
            self._streams[name] = source
        view: ibis.Table = self._backend.table(name)
        return view

    def _persist(self, frame: DataFrame) -> ibis.Table:
        """Persist a frame: computed at first use, then kept in the executors' memory, and encrypted on their disks."""
        self._persisted.append(frame.persist(StorageLevel.MEMORY_AND_DISK))
        return self._view(frame)

    def _send(self, secret: Secret) -> Any:
        """Broadcast a secret to the workers: encrypted on the network and on disk, and in no closure."""
        sent = redact_failures(lambda: self._context.broadcast(secret.expose()))
        self._sent.append(sent)
        return sent

    def __enter__(self) -> SparkEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for frame in self._persisted:
            with contextlib.suppress(*JAVA_GONE):
                frame.unpersist()
        for snapshot in self._snapshots:
            with contextlib.suppress(*JAVA_GONE):
                snapshot.unpersist(True)
        for sent in self._sent:
            with contextlib.suppress(*JAVA_GONE):
                sent.destroy(blocking=True)
        for view in range(next(self._names)):
            with contextlib.suppress(*JAVA_GONE):
                self._session.catalog.dropTempView(f"discreet_{view}")


def _plain(columns: Sequence[str]) -> list[str]:
    return [f"column_{i}" for i in range(len(columns))]
