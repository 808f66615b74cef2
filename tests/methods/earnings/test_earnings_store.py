"""Earnings published in an object store: workers' measurements are read from there, and removed at the end."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import PublishError
from support.earnings import BORDERS, Registrar, graduates, spec, table
from support.object_store import S3Server

LEVELS = [{"name": "families", "by": ["family", "grad_cohort", "years_after"]}]
DECLARED = spec(table(levels=LEVELS, layout="lehd"))


class Crash(BaseException):
    """Not an error: the end of the process."""


@dataclass(frozen=True)
class Shelf:
    """A prefix of the store."""

    store: S3Server
    prefix: str

    @property
    def uri(self) -> str:
        return self.store.uri(self.prefix)

    def objects(self) -> dict[str, bytes]:
        return self.store.objects(self.prefix)

    def put(self, name: str, content: bytes) -> None:
        self.store.put(f"{self.prefix}/{name}", content)


@pytest.fixture
def shelf(store: S3Server, tmp_path: Path) -> Shelf:
    return Shelf(store, f"releases/{tmp_path.name}")


@pytest.fixture(params=["one file", pytest.param("many parts")])
def office(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registrar:
    if request.param == "many parts":
        monkeypatch.setattr("discreet.methods.histograms.PART", 8 * (len(BORDERS) - 1))
    return Registrar(tmp_path / "office", graduates(40))


def without_ledger(files: dict[str, bytes]) -> dict[str, Any]:
    manifest = json.loads(files["manifest.json"])
    manifest.pop("ledger", None)
    return {**files, "manifest.json": manifest}


def test_the_same_files_as_in_a_folder_and_no_measurement_is_left(office: Registrar, shelf: Shelf) -> None:
    expected = office.published(DECLARED)
    office.open(DECLARED).run(shelf.uri, simulation="suite")
    actual = shelf.objects()
    assert not [name for name in actual if "measured" in name]
    assert without_ledger(actual) == without_ledger(expected)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_crashed_and_resumed(office: Registrar, shelf: Shelf, step: int) -> None:
    expected, opened = office.published(DECLARED), office.open(DECLARED)

    def crash(name: str, done: int, total: int) -> None:
        if name == "protect earnings" and done == step:
            raise Crash

    with pytest.raises(Crash):
        opened.run(shelf.uri, simulation="suite", observe=crash)
    assert "manifest.json" not in shelf.objects()
    assert [name for name in shelf.objects() if "measured" in name]
    opened.resume()
    actual = shelf.objects()
    assert not [name for name in actual if "measured" in name]
    assert without_ledger(actual) == without_ledger(expected)


def test_measurements_that_others_changed_are_refused(office: Registrar, shelf: Shelf) -> None:
    opened, touched = office.open(DECLARED), list[str]()

    def tamper(name: str, done: int, total: int) -> None:
        measured = sorted(n for n, content in shelf.objects().items() if "measured" in n and content)
        if name == "protect earnings" and measured and not touched:
            kept = pq.read_table(pa.BufferReader(shelf.objects()[measured[0]]))
            other = io.BytesIO()
            pq.write_table(pa.table({"count": np.zeros(kept.num_rows, np.int64)}), other)
            shelf.put(measured[0], other.getvalue())
            touched.append(measured[0])

    with pytest.raises(PublishError, match="is not the file that was written"):
        opened.run(shelf.uri, simulation="suite", observe=tamper)
    assert touched
    assert "manifest.json" not in shelf.objects()
    opened.resume()
    assert without_ledger(shelf.objects()) == without_ledger(office.published(DECLARED))
