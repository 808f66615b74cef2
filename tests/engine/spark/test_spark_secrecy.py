"""Observers of a release on Spark cannot see its key or a record: not in logs, event logs, UI pages, plans, closures,
files, or what lies on a worker's disk while it works. The same search finds both where nothing is encrypted."""

from __future__ import annotations

import base64
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import cloudpickle

from discreet.engine.spans import FingerprintKernel, Spans
from discreet.engine.spark.worker import KernelTask, PriorityTask
from discreet.errors import ReleaseKeyError
from discreet.noise.key import ReleaseKey, Secret
from support.agency import SECRET_CODE, SECRET_PERSON
from support.repository import SUPPORT

DRIVER = SUPPORT / "secrecy_driver.py"
RECORDS = {"person": SECRET_PERSON.encode(), "code": SECRET_CODE.encode()}
# Where we look, and what proves that we looked at the real thing.
PLACES = {
    "log": b"SparkContext",
    "events": b"SparkListenerSQLExecutionStart",
    "ui": b"MapInArrow",
    "plans": b"MapInArrow",
    "closures": b"KernelTask",
    "local": None,
    "out": b"protected",
    "ledger": b"reserve",
    "printed": None,
}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release under observation, once."""
    folder = tmp_path_factory.mktemp("secrecy")
    ran = subprocess.run(
        [sys.executable, str(DRIVER), str(folder)],
        env={**os.environ, "DISCREET_TMP": str(folder / "tmp"), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()[-3000:]
    (folder / "evidence" / "printed").write_bytes(ran.stdout + ran.stderr)
    return folder


def forms(secret: bytes) -> dict[str, bytes]:
    """A secret as somebody might have written it."""
    return {
        "raw": secret,
        "hex": secret.hex().encode(),
        "HEX": secret.hex().upper().encode(),
        "base64": base64.b64encode(secret).rstrip(b"="),
        "urlsafe": base64.urlsafe_b64encode(secret).rstrip(b"="),
        "repr": repr(secret)[2:-1].encode(),
        "numbers": str(list(secret))[1:-1].encode(),
        "signed": str([b - 256 if b > 127 else b for b in secret])[1:-1].encode(),
    }


def contents(place: Path) -> Iterator[tuple[str, bytes]]:
    for path in [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file()):
        yield path.name, path.read_bytes()


def actual(folder: Path, place: Path) -> set[str]:
    """Which secrets and which records can be read in a file or in the files of a folder."""
    needles = {
        f"{name}, {form}": needle
        for name, secret in json.loads((folder / "needles.json").read_text()).items()
        for form, needle in forms(bytes.fromhex(secret)).items()
    }
    return {n for _, content in contents(place) for n, needle in {**needles, **RECORDS}.items() if needle in content}


@pytest.mark.parametrize("place", PLACES)
def test_nothing_to_see(watched: Path, place: str) -> None:
    looked_at, sign = list(contents(watched / "evidence" / place)), PLACES[place]
    assert looked_at
    assert sign is None or any(sign in content for _, content in looked_at)
    assert actual(watched, watched / "evidence" / place) == set()


def test_disks_were_used(watched: Path) -> None:
    """Shuffled rows and the secrets' broadcasts did lie on the disk."""
    names = [name for name, _ in contents(watched / "evidence" / "local")]
    assert sum("shuffle_" in name for name in names) > 3
    assert sum("broadcast" in name for name in names) + sum("tmp" in name for name in names) > 2


def test_every_secret_is_looked_for(watched: Path) -> None:
    assert set(json.loads((watched / "needles.json").read_text())) == {"key", "ranking", "stream both", "stream states"}


def test_the_search_would_find(watched: Path) -> None:
    """Where disks are not encrypted, both the broadcast key and the shuffled records are there to be read."""
    assert {"key, raw", "person", "code"} <= actual(watched, watched / "control" / "copies")
    # A secret that is handed over as plain bytes would show in a closure, and a record in any text.
    key = bytes.fromhex(json.loads((watched / "needles.json").read_text())["key"])
    (watched / "closure").write_bytes(
        cloudpickle.dumps(KernelTask(FingerprintKernel(), Spans(1, 1), ("cell",), key, ("", "")))
    )
    assert actual(watched, watched / "closure") == {"key, raw"}
    (watched / "text").write_text(f"failed on {SECRET_PERSON} with {key!r} and {key.hex()}")
    assert actual(watched, watched / "text") == {"person", "key, repr", "key, hex"}


def test_a_session_without_encryption_is_refused(watched: Path) -> None:
    told = json.loads((watched / "refusal.json").read_text())
    assert "not encrypted" in told["refusal"]
    assert "Set spark.authenticate true, spark.io.encryption.enabled true, spark.network.crypto" in told["refusal"]
    assert "\n" not in told["refusal"]
    assert told["spent"] == 0
    assert sorted(told["left"]) == ["discreet-ledger.sqlite", "graduates.parquet", "release.yaml"]


@pytest.mark.parametrize("secret", [Secret(bytes(32)), ReleaseKey.simulation("x")])
def test_no_closure_can_hold_a_secret(secret: object) -> None:
    """A secret that is not broadcast is refused."""
    for closure in (
        KernelTask(FingerprintKernel(), Spans(1, 1), ("cell",), secret, ("", "")),
        PriorityTask((0,), "place", secret, ("", "")),
        lambda batches: secret,
    ):
        for dumps in (cloudpickle.dumps, pickle.dumps):
            with pytest.raises((ReleaseKeyError, pickle.PicklingError, AttributeError)):
                dumps(closure)
