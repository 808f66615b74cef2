"""What an interrupted release has left is known by name, whatever its method writes: it is resumed, or it is abandoned
and nothing stays, neither key nor file, in a folder and in an object store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.api import OpenRelease
from discreet.noise.keystore import FileKeyStore
from discreet.pipeline.run import abandon
from discreet.pipeline.verify import verify_folder
from support.object_store import Store
from support.recoding import EARNINGS, FLOWS, Office
from support.sensitivity import Atlas
from support.survey import CONTROLS, DEVIATIONS, WEIGHTS, Survey


class Crash(BaseException):
    """Not an error: the end of the process."""


def cube(folder: Path, _: Callable[[str], str]) -> OpenRelease:
    return Survey(folder).open(weights=WEIGHTS, controls=CONTROLS, replicates=DEVIATIONS)


def estimates(folder: Path, _: Callable[[str], str]) -> OpenRelease:
    return Atlas(folder).open(formats=["parquet", "csv", "dta"])


def measured(folder: Path, at: Callable[[str], str]) -> OpenRelease:
    office = Office.founded(folder)
    return office.open(office.measuring(EARNINGS, {**FLOWS, "levels": []}, keep=at("kept")))


METHODS = {"hypercube": cube, "sensitivity": estimates, "earnings and flows, kept": measured}


def crash_at(step: str) -> Callable[[str, int, int], None]:
    def observe(name: str, done: int, total: int) -> None:
        if name.startswith(step) and done:
            raise Crash

    return observe


@pytest.mark.parametrize("then", ["resume", "abandon"])
@pytest.mark.parametrize("step", ["protect", "write"])
@pytest.mark.parametrize("where", ["folder", "store"])
@pytest.mark.parametrize("method", METHODS)
def test_crashed(method: str, where: str, step: str, then: str, tmp_path: Path, isolated: Path, store: Store) -> None:
    def at(name: str) -> str:
        return str(tmp_path / "outside" / name) if where == "folder" else store.uri(f"{tmp_path.name}/{name}")

    opened = METHODS[method](tmp_path / "inside", at)
    with pytest.raises(Crash):
        opened.run(at("out"), simulation="suite", observe=crash_at(step))
    keys = FileKeyStore(isolated / "keys")
    assert keys.names()
    left = list((tmp_path / "outside").rglob("*")) if where == "folder" else list(store.objects(tmp_path.name))
    assert left
    if then == "resume":
        opened.resume()
        made = verify_folder(opened.ledger, at("out"))
        assert any(name.endswith((".model.json", ".dta", "codebook.json")) for name in made.files)
        assert set(store.files(f"{tmp_path.name}/out")) == (
            {*made.files, "manifest.json"} if where == "store" else set()
        )
    else:
        abandon(opened.ledger, keys, opened.spec.release, "a test")
        assert store.objects(tmp_path.name) == {}
        assert not (tmp_path / "outside").exists() or not list((tmp_path / "outside").rglob("*"))
    assert not keys.names()
