"""Two runs in one location, or in locations with colliding names: neither publishes or deletes files of the other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.api import OpenRelease, set_budget
from discreet.errors import PublishError
from discreet.pipeline.verify import verify_folder
from discreet.publish.manifest import read
from support.agency import Agency

PERSON = {"kind": "person", "column": "person_id"}


class Crash(BaseException):
    """Not an error: the end of the process."""


@pytest.fixture
def agency(tmp_path: Path) -> Agency:
    return Agency(tmp_path / "agency")


def at(step: str, act: Callable[[], object]) -> Callable[[str, int, int], None]:
    def observe(name: str, done: int, total: int) -> None:
        if name == step and done == total:
            act()

    return observe


def crash() -> None:
    raise Crash


def release(agency: Agency, name: str, epsilon: str = "1.5", ledger: Path | None = None) -> OpenRelease:
    """A release of one table, by its name and cost, of any ledger."""

    def change(data: dict[str, Any]) -> None:
        data["release"], data["tables"] = name, [{**data["tables"][0], "epsilon": epsilon}]

    place = ledger or agency.ledger_path
    actual = discreet.ledger(place)
    set_budget(actual, "graduates", epsilon="100", unit=PERSON)
    path = agency.spec(change)
    own = Path(shutil.copy(path, path.with_name(f"{name}-{place.stem}.yaml")))
    return discreet.release(own, ledger=actual)


@pytest.mark.parametrize(
    ("one", "two"),
    [(("a", "b.c", "x"), ("a.b", "c", "x")), (("a", "r", "x"), ("a", "r", "y"))],
    ids=["names that run together", "one name in two ledgers"],
)
def test_what_was_committed_is_not_deleted_by_another(
    agency: Agency, one: tuple[str, str, str], two: tuple[str, str, str]
) -> None:
    """A committed release, interrupted, needs its staged files: resumed, it reads no records."""
    places = [agency.folder / f"{place[2]}.sqlite" for place in (one, two)]
    first = release(agency, one[1], ledger=places[0])
    with pytest.raises(Crash):
        first.run(agency.folder / one[0], observe=at("commit", crash))
    release(agency, two[1], ledger=places[1])
    with pytest.raises(Crash):
        release(agency, two[1], ledger=places[1]).run(agency.folder / two[0], observe=at("reserve", crash))
    with pytest.raises(Crash):
        release(agency, two[1], ledger=places[1]).resume(observe=at("write", crash))
    (agency.folder / "graduates.parquet").unlink()  # nothing but the staged files can be published now
    first.resume()
    assert verify_folder(first.ledger, agency.folder / one[0]).release == one[1]


def test_a_manifest_with_a_smaller_epsilon_is_not_published_around_a_costlier_table(agency: Agency) -> None:
    """Staged bytes exchanged after the commit, as names that ran together once did: 1/100 around epsilon 40."""
    dear = release(agency, "c", "40")
    with pytest.raises(Crash):
        dear.run(agency.folder / "a.b", observe=at("write", crash))
    (staged,) = agency.folder.glob(".*.staging")
    cheap = release(agency, "b.c", "0.01")

    def exchange() -> None:
        (own,) = (path for path in agency.folder.glob(".*.staging") if path != staged)
        shutil.rmtree(own)
        shutil.copytree(staged, own)

    with pytest.raises(PublishError, match="the staged files are not the committed ones"):
        cheap.run(agency.folder / "a", observe=at("commit", exchange))
    assert not (agency.folder / "a").exists()
    cheap.resume()
    assert verify_folder(cheap.ledger, agency.folder / "a").guarantee.epsilon == Fraction(1, 100)


def test_staged_files_that_vanish_leave_no_manifest(agency: Agency) -> None:
    def vanish() -> None:
        (staged,) = agency.folder.glob(".*.staging")
        for path in staged.iterdir():
            path.unlink()

    opened = release(agency, "r")
    with pytest.raises(PublishError, match="the staged files are not the committed ones"):
        opened.run(agency.folder / "out", observe=at("commit", vanish))
    assert not (agency.folder / "out").exists()
    opened.resume()
    assert verify_folder(opened.ledger, agency.folder / "out").release == "r"


@pytest.mark.slow
@pytest.mark.parametrize("step", ["tabulate", "reserve", "protect both", "write", "commit"])
def test_while_one_works_another_is_refused_before_it_spends(agency: Agency, step: str, tmp_path: Path) -> None:
    """Another ledger, another release, another temporary folder, another spelling: the place is the same."""
    other = release(agency, "other", ledger=agency.folder / "y.sqlite")
    (tmp_path / "link").symlink_to(agency.folder)
    code = "import sys, discreet\ndiscreet.release(sys.argv[1], ledger=discreet.ledger(sys.argv[2])).run(sys.argv[3])\n"
    arguments = [agency.folder / "other-y.yaml", agency.folder / "y.sqlite", tmp_path / "link" / "out"]
    refused: list[str] = []

    def race() -> None:
        tried = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={**os.environ, "DISCREET_TMP": str(tmp_path / "tmp"), "TMPDIR": str(tmp_path)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        refused.append(tried.stderr)

    one = release(agency, "one")
    one.run(agency.folder / "out", observe=at(step, race))
    assert len(refused) == 1
    assert "another process is writing it" in refused[0]
    assert verify_folder(one.ledger, agency.folder / "out").release == "one"
    assert not other.ledger.chain().releases()
    assert not list(agency.folder.glob(".*"))


def test_the_second_run_is_refused_before_it_spends(agency: Agency, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one ends between the second one's look and its lock."""
    from discreet.publish import folder as folders

    one, two = release(agency, "one"), release(agency, "two", ledger=agency.folder / "y.sqlite")
    then = folders.exclusive_lock

    def late(folder: Path) -> Any:
        monkeypatch.setattr(folders, "exclusive_lock", then)
        one.run(folder)
        return then(folder)

    monkeypatch.setattr(folders, "exclusive_lock", late)
    with pytest.raises(PublishError, match="already exists"):
        two.run(agency.folder / "out")
    assert not two.ledger.chain().releases()
    assert read(agency.folder / "out").release == "one"


def test_equal_files_with_another_manifest_are_not_taken_over(agency: Agency) -> None:
    """Two simulations of one seed have equal files; which of them was published stays."""
    both = []
    for name in ("x", "y"):
        ledger = discreet.ledger(agency.folder / f"{name}.sqlite")
        set_budget(ledger, "graduates", epsilon="100", unit=PERSON, kind="simulation")
        both.append(discreet.release(agency.spec(), ledger=ledger))
    with pytest.raises(Crash):
        both[0].run(agency.folder / "out", simulation="s", observe=at("commit", crash))
    keys = agency.folder / "keys"
    discreet.release(agency.spec(), ledger=both[1].ledger, keys=_keys(keys)).run(agency.folder / "out", simulation="s")
    before = (agency.folder / "out" / "manifest.json").read_bytes()
    with pytest.raises(PublishError, match="already has another manifest"):
        both[0].resume()
    assert (agency.folder / "out" / "manifest.json").read_bytes() == before


def _keys(folder: Path) -> Any:
    from discreet.noise.keystore import FileKeyStore

    return FileKeyStore(folder)
