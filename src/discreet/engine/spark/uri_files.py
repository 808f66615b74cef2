"""Files below a URI, listed by the rules for local paths: Spark itself ignores some, and expands patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from discreet.engine.readers import is_data
from discreet.engine.spark.jobs import redact_failures
from discreet.engine.spark.reading import FileState, only_parquet
from discreet.errors import SourceError
from discreet.spec import FileSource
from discreet.uris import is_uri

_COPIED = "._COPYING_"


def uri_of(source: FileSource) -> str | None:
    """The URI of a source, if Spark is to read it."""
    if not is_uri(source.path):
        return None
    only_parquet(source.format or "parquet", f"source {source.path}")
    return source.path


def files_below(session: SparkSession, uri: str) -> list[FileState]:
    """The files of a URI, in the order of their names: one file; all files below a folder, except names that begin
    with `.` or `_` and everything below these; or the files that match a pattern."""
    where = f"source {uri}"
    files = redact_failures(
        lambda: sorted(_files(session, uri)),
        "cannot be listed",
        where,
        "check the path as Spark sees it, and the connector and credentials of its scheme",
    )
    if not files:
        raise SourceError("does not exist", where=where, do="check the path as Spark sees it")
    for path, size, _ in files:
        name = path.rsplit("/", 1)[-1]
        if _hidden(name) or name.endswith(_COPIED):
            raise SourceError(f"Spark ignores files with names like {name!r}", where=where, do="rename it")
        if not size:
            raise SourceError("is not readable as Parquet: a file is empty", where=where, do="check the file")
    return files


def escape_pattern(path: str) -> str:
    """A path with escaped characters, which Spark does not expand as a pattern."""
    return re.sub(r"([{}\[\]*?\\])", r"\\\1", path)


def _files(session: SparkSession, uri: str) -> Iterator[FileState]:
    jvm: Any = session.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(uri)
    system = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    if not system.exists(path):
        named = [part for part in str(path.toUri().getPath()).split("/") if _hidden(part)]
        for file in system.globStatus(path) or ():
            if file.isFile() and is_data(_parts(file), named):
                yield _state(file)
        return
    status = system.getFileStatus(path)
    if status.isFile():
        yield _state(status)
        return
    depth, below = len(_parts(status)), system.listFiles(path, True)
    while below.hasNext():
        file = below.next()
        if is_data(_parts(file)[depth:]):
            yield _state(file)


def _state(status: Any) -> FileState:
    return str(status.getPath().toString()), int(status.getLen()), int(status.getModificationTime())


def _parts(status: Any) -> list[str]:
    return [part for part in str(status.getPath().toUri().getPath()).split("/") if part]


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))
