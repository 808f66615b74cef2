"""Earnings published in an object store: the measurements that workers leave there are read, and gone in the end."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSelector, FileSystem, FileType

from discreet.errors import PublishError
from earners import BORDERS, Registrar, graduates, spec, table

server = pytest.importorskip("moto.server", reason="no object store to test with")

BUCKET = "earnings"
LEVELS = [{"name": "families", "by": ["family", "grad_cohort", "years_after"]}]
DECLARED = spec(table(levels=LEVELS, layout="lehd"))


class Crash(BaseException):
    """Not an error: the end of the process."""


class Store:
    """A server that speaks S3, with one bucket."""

    def __init__(self, port: int, prefix: str) -> None:
        self._where = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
        self.prefix, self.uri = prefix, f"s3://{BUCKET}/{prefix}?{self._where}"
        self.system, _ = FileSystem.from_uri(f"s3://{BUCKET}?{self._where}&allow_bucket_creation=true")
        self.system.create_dir(BUCKET)

    def objects(self) -> dict[str, bytes]:
        """Everything below the prefix, also objects that stand for folders."""
        found = self.system.get_file_info(FileSelector(f"{BUCKET}/{self.prefix}", allow_not_found=True, recursive=True))
        return {
            item.path.removeprefix(f"{BUCKET}/{self.prefix}/"): self.system.open_input_stream(item.path).read()
            if item.type == FileType.File
            else b""
            for item in found
        }

    def put(self, name: str, content: bytes) -> None:
        with self.system.open_output_stream(f"{BUCKET}/{self.prefix}/{name}") as file:
            file.write(content)


@pytest.fixture(scope="module")
def running() -> Iterator[int]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    found = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    found.start()
    yield found.get_host_and_port()[1]
    found.stop()


@pytest.fixture
def store(running: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return Store(running, f"releases/{tmp_path.name}")


@pytest.fixture(params=["one file", pytest.param("many parts")])
def office(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registrar:
    if request.param == "many parts":
        monkeypatch.setattr("discreet.methods.histogram.PART", 8 * (len(BORDERS) - 1))
    return Registrar(tmp_path / "office", graduates(40))


def without_ledger(files: dict[str, bytes]) -> dict[str, Any]:
    manifest = json.loads(files["manifest.json"])
    manifest.pop("ledger", None)
    return {**files, "manifest.json": manifest}


def test_the_same_files_as_in_a_folder_and_no_measurement_is_left(office: Registrar, store: Store) -> None:
    expected = office.published(DECLARED)
    office.open(DECLARED).run(store.uri, simulation="suite")
    found = store.objects()
    assert not [name for name in found if "measured" in name]
    assert without_ledger(found) == without_ledger(expected)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_crashed_and_resumed(office: Registrar, store: Store, step: int) -> None:
    expected, opened = office.published(DECLARED), office.open(DECLARED)

    def crash(name: str, done: int, total: int) -> None:
        if name == "protect earnings" and done == step:
            raise Crash

    with pytest.raises(Crash):
        opened.run(store.uri, simulation="suite", observe=crash)
    assert "manifest.json" not in store.objects()
    assert [name for name in store.objects() if "measured" in name]
    opened.resume()
    found = store.objects()
    assert not [name for name in found if "measured" in name]
    assert without_ledger(found) == without_ledger(expected)


def test_measurements_that_others_changed_are_refused(office: Registrar, store: Store) -> None:
    opened, touched = office.open(DECLARED), list[str]()

    def tamper(name: str, done: int, total: int) -> None:
        measured = sorted(n for n, content in store.objects().items() if "measured" in n and content)
        if name == "protect earnings" and measured and not touched:
            kept = pq.read_table(pa.BufferReader(store.objects()[measured[0]]))
            other = io.BytesIO()
            pq.write_table(pa.table({"count": np.zeros(kept.num_rows, np.int64)}), other)
            store.put(measured[0], other.getvalue())
            touched.append(measured[0])

    with pytest.raises(PublishError, match="is not what was written"):
        opened.run(store.uri, simulation="suite", observe=tamper)
    assert touched
    assert "manifest.json" not in store.objects()
    opened.resume()
    assert without_ledger(store.objects()) == without_ledger(office.published(DECLARED))
