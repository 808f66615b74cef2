"""Files of an interrupted release are known by name, for every method: it is resumed, or it is abandoned and neither
key nor file remains, in a folder and in an object store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.api import OpenRelease
from discreet.methods import METHODS
from discreet.noise.keystore import FileKeyStore
from discreet.pipeline.abandon import abandon
from discreet.pipeline.verify import verify_folder
from support.agency import Agency
from support.object_store import S3Server
from support.recoding import EARNINGS, FLOWS, RecodingOffice
from support.sensitivity import AtlasAgency
from support.survey import CONTROLS, DEVIATIONS, WEIGHTS, SurveyAgency
from support.workplaces import Register


class Crash(BaseException):
    """Not an error: the end of the process."""


def counted(folder: Path, _: Callable[[str], str]) -> OpenRelease:
    return Agency(folder, kind="simulation").release()


def jobs(folder: Path, _: Callable[[str], str]) -> OpenRelease:
    register = Register(folder)
    return register.open(register.spec())


def cube(folder: Path, _: Callable[[str], str]) -> OpenRelease:
    return SurveyAgency(folder).open(weights=WEIGHTS, controls=CONTROLS, replicates=DEVIATIONS)


def estimates(folder: Path, _: Callable[[str], str]) -> OpenRelease:
    return AtlasAgency(folder).open(formats=["parquet", "csv", "dta"])


def measured(folder: Path, at: Callable[[str], str]) -> OpenRelease:
    office = RecodingOffice.founded(folder)
    return office.open(office.measuring(EARNINGS, {**FLOWS, "levels": []}, keep_measurements=at("kept")))


RELEASES = {
    ("counts",): counted,
    ("employer",): jobs,
    ("hypercube",): cube,
    ("sensitivity",): estimates,
    ("earnings", "flows"): measured,
}


def crash_at(step: str) -> Callable[[str, int, int], None]:
    def observe(name: str, done: int, total: int) -> None:
        if name.startswith(step) and done:
            raise Crash

    return observe


def test_every_method_is_tried() -> None:
    assert {method for methods in RELEASES for method in methods} == set(METHODS)


@pytest.mark.parametrize("then", ["resume", "abandon"])
@pytest.mark.parametrize("step", ["protect", "write"])
@pytest.mark.parametrize("where", ["folder", "store"])
@pytest.mark.parametrize("methods", RELEASES, ids=" and ".join)
def test_crashed(
    methods: tuple[str, ...], where: str, step: str, then: str, tmp_path: Path, isolated: Path, store: S3Server
) -> None:
    def at(name: str) -> str:
        return str(tmp_path / "outside" / name) if where == "folder" else store.uri(f"{tmp_path.name}/{name}")

    opened = RELEASES[methods](tmp_path / "inside", at)
    with pytest.raises(Crash):
        opened.run(at("out"), simulation="suite", observe=crash_at(step))
    keys = FileKeyStore(isolated / "keys")
    assert keys.names()
    left = list((tmp_path / "outside").rglob("*")) if where == "folder" else list(store.objects(tmp_path.name))
    assert left
    if then == "resume":
        opened.resume()
        made = verify_folder(opened.ledger, at("out"))
        assert {table.method for table in made.tables} == set(methods)
        assert set(store.files(f"{tmp_path.name}/out")) == (
            {*made.files, "manifest.json"} if where == "store" else set()
        )
    else:
        abandon(opened.ledger, keys, opened.spec.release, "a test")
        assert store.objects(tmp_path.name) == {}
        assert not (tmp_path / "outside").exists() or not list((tmp_path / "outside").rglob("*"))
    assert not keys.names()
