"""Killed at every step in turn: resume ends with the same bytes, the ledger never charges twice or too little."""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import discreet
import discreet.errors
from discreet.api import set_budget
from support import crash_driver, processes
from support.agency import SECRET_CODE, SECRET_PERSON, Agency, graduates
from support.crash_driver import CLOCK
from support.repository import SUPPORT

DRIVER = SUPPORT / "crash_driver.py"
STEPS = (
    "read#1", "tabulate#1", "key#1", "reserve#1", "protect both#1", "protect states#1", "write#1",
    "commit#1", "publish#1", "destroy#1",
)  # fmt: skip
BEFORE_RESERVATION = STEPS[:3]


def drive(agency: Agency, verb: str, kill_at: str = "", part: str = "") -> subprocess.CompletedProcess[str]:
    arguments = [verb, str(agency.spec()), str(agency.ledger_path), str(agency.folder / "out"), kill_at, part]
    return processes.run(crash_driver.main, *arguments)


def simulated(folder: Path) -> Agency:
    """An agency as new. Always in the same place: the ledger, and so its head, says where a release goes."""
    shutil.rmtree(folder, ignore_errors=True)
    agency = Agency.__new__(Agency)
    folder.mkdir(parents=True)
    agency.folder, agency.ledger_path = folder, folder / "discreet-ledger.sqlite"
    agency.write(graduates())
    ledger = discreet.ledger(agency.ledger_path, clock=lambda: CLOCK)
    # Nonce, `who` and time are part of the chain, so they are the same in every copy.
    ledger.create("simulation", nonce="0" * 32)
    set_budget(ledger, "graduates", epsilon="10", unit={"kind": "person", "column": "person_id"}, kind="simulation")
    return agency


def contents(folder: Path) -> dict[str, bytes]:
    """Every file, also in folders: a large table is one of parts."""
    files = sorted(path for path in folder.rglob("*") if not path.is_dir())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("crash") / "agency"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, place: Path) -> tuple[dict[str, bytes], list[str]]:
    """What an undisturbed run publishes, and the steps it takes."""
    home = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_KEYS", str(home / "keys"))
        patch.setenv("DISCREET_TMP", str(home / "tmp"))
        agency = simulated(place)
        done = drive(agency, "run")
    assert done.returncode == 0, done.stderr
    return contents(agency.folder / "out"), done.stdout.split("\n")[:-1]


def test_the_steps_are_all_tried(undisturbed: tuple[dict[str, bytes], list[str]]) -> None:
    assert tuple(undisturbed[1]) == STEPS


@pytest.mark.parametrize("step", STEPS)
def test_killed_then_resumed(
    place: Path, isolated: Path, undisturbed: tuple[dict[str, bytes], list[str]], step: str
) -> None:
    agency = simulated(place)
    killed = drive(agency, "run", kill_at=step)
    assert killed.returncode == -signal.SIGKILL
    assert_nothing_confidential_outside([place, isolated], private=isolated / "tmp")
    chain = discreet.ledger(agency.ledger_path).verify()
    out = agency.folder / "out"
    if step in BEFORE_RESERVATION:
        # nothing spent, nothing written: it is simply run again
        assert "r1" not in chain.names()
        assert not out.exists()
        again = drive(agency, "run")
    else:
        # spent before anything could be seen
        assert chain.balance("graduates", CLOCK.date()).epsilon == 2
        again = drive(agency, "resume")
    assert again.returncode == 0, again.stderr
    assert contents(out) == undisturbed[0]
    after = discreet.ledger(agency.ledger_path).verify()
    assert after.balance("graduates", CLOCK.date()).epsilon == 2
    assert after.releases()["r1"].status == "committed"
    assert not list((isolated / "keys").glob("*.key"))
    assert not list((isolated / "tmp").iterdir())
    assert {p.name for p in agency.folder.iterdir()} == {
        "out", "graduates.parquet", "release.yaml", "discreet-ledger.sqlite",
    }  # fmt: skip


def test_killed_twice_then_resumed(place: Path, undisturbed: tuple[dict[str, bytes], list[str]]) -> None:
    agency = simulated(place)
    drive(agency, "run", kill_at="reserve#1")
    drive(agency, "resume", kill_at="protect both#1")
    drive(agency, "resume", kill_at="commit#1")
    assert drive(agency, "resume").returncode == 0
    assert contents(agency.folder / "out") == undisturbed[0]


def test_published_but_without_its_manifest_is_completed(
    place: Path, undisturbed: tuple[dict[str, bytes], list[str]]
) -> None:
    """The crash between moving the folder and writing the manifest."""
    agency = simulated(place)
    drive(agency, "run", kill_at="publish#1")
    (agency.folder / "out" / "manifest.json").unlink()
    assert drive(agency, "resume").returncode == 0
    assert contents(agency.folder / "out") == undisturbed[0]


def test_committed_but_staging_lost_is_drawn_again(
    place: Path, undisturbed: tuple[dict[str, bytes], list[str]]
) -> None:
    agency = simulated(place)
    drive(agency, "run", kill_at="commit#1")
    (staging,) = agency.folder.glob(".discreet-*.staging")
    shutil.rmtree(staging)
    assert drive(agency, "resume").returncode == 0
    assert contents(agency.folder / "out") == undisturbed[0]


def _change_one_row(agency: Agency) -> None:
    table = graduates()
    first = pa.table({"person_id": ["P000000"], "state": ["04"], "degree": ["03"]})
    agency.write(pa.concat_tables([first, table.slice(1)]))


@pytest.mark.parametrize("step", ["reserve#1", "protect both#1", "write#1"])
def test_resume_after_one_changed_row_is_refused(place: Path, step: str) -> None:
    agency = simulated(place)
    drive(agency, "run", kill_at=step)
    _change_one_row(agency)
    refused = drive(agency, "resume")
    assert refused.returncode != 0
    assert "bound to other data" in refused.stderr
    assert not (agency.folder / "out").exists()
    chain = discreet.ledger(agency.ledger_path).verify()
    assert chain.releases()["r1"].status == "reserved"  # still there: restore the data and resume
    agency.write(graduates())
    assert drive(agency, "resume").returncode == 0


def test_resume_with_changed_parameters_domain_or_code_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agency = simulated(place)
    drive(agency, "run", kill_at="reserve#1")
    ledger = discreet.ledger(agency.ledger_path)

    def other_epsilon(data: dict) -> None:  # type: ignore[type-arg]
        data["tables"][0]["epsilon"] = "1.4"

    def other_domain(data: dict) -> None:  # type: ignore[type-arg]
        data["domains"]["state"]["values"].reverse()

    for change in (other_epsilon, other_domain):
        release = discreet.release(agency.spec(change), ledger=ledger)
        with pytest.raises(discreet.errors.ReleaseKeyError, match="parameters or domains"):
            release.resume()
    release = discreet.release(agency.spec(), ledger=ledger)
    with monkeypatch.context() as patch:
        patch.setattr("discreet.pipeline.run.code_version", lambda: "0.0.0+changed")
        with pytest.raises(discreet.errors.ReleaseKeyError, match="code"):
            release.resume()
    assert release.resume().release == "r1"


def test_the_binding_itself_refuses_not_only_the_early_check(place: Path) -> None:
    """Even if the digests in the reservation were forged to match, the MAC under the key would not."""
    from discreet.noise.key import ReleaseKey
    from discreet.privacy.confidential import Reservation

    agency = simulated(place)
    drive(agency, "run", kill_at="reserve#1")
    reserve = discreet.ledger(agency.ledger_path).chain().releases()["r1"].reserve
    with pytest.raises(discreet.errors.ReleaseKeyError, match="bound to other data"):
        Reservation(reserve, ReleaseKey.simulation("crash test"), bytes(32))


def test_lost_key_cannot_be_resumed_only_abandoned(place: Path, isolated: Path) -> None:
    from discreet.noise.keystore import FileKeyStore
    from discreet.pipeline.abandon import abandon

    agency = simulated(place)
    drive(agency, "run", kill_at="protect both#1")
    (key,) = (isolated / "keys").glob("*.key")
    key.unlink()
    ledger = discreet.ledger(agency.ledger_path)
    release = discreet.release(agency.spec(), ledger=ledger)
    with pytest.raises(discreet.errors.ReleaseKeyError, match="without its key"):
        release.resume()
    assert list(agency.folder.glob(".discreet-*.staging"))
    abandon(ledger, FileKeyStore(isolated / "keys"), "r1", "key lost in a test")
    assert not list(agency.folder.glob(".discreet-*.staging"))
    chain = ledger.verify()
    assert chain.balance("graduates", CLOCK.date()).epsilon == 2  # stays spent
    with pytest.raises(discreet.errors.LedgerError, match="abandoned"):
        release.resume()


def test_a_full_disk_leaves_a_reservation_that_resume_completes(
    place: Path, undisturbed: tuple[dict[str, bytes], list[str]], isolated: Path
) -> None:
    """No file may grow: writing fails as on a full disk (EFBIG instead of ENOSPC)."""
    agency = simulated(place)
    arguments = ["run", str(agency.spec()), str(agency.ledger_path), str(agency.folder / "out"), ""]

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    code = (
        "import resource, sys, runpy\n"
        "import discreet.publish.tables as t\n"
        "write = t.write_table\n"
        "def full(*a, **k):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n"
        "    return write(*a, **k)\n"
        "import discreet.methods.writing as w\n"
        "w.write_table = full\n"
        "sys.argv = ['crash_driver'] + sys.argv[2:]\n"
        f"runpy.run_path({str(DRIVER)!r}, run_name='__main__')\n"
    )
    failed = subprocess.run(
        [sys.executable, "-c", code, "x", *arguments], capture_output=True, text=True, check=False, preexec_fn=limit
    )
    assert failed.returncode != 0
    assert "discreet resume" in failed.stderr
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    assert not (agency.folder / "out").exists()
    assert not list(agency.folder.glob(".discreet-*"))
    assert not list((isolated / "tmp").iterdir())
    assert drive(agency, "resume").returncode == 0
    assert contents(agency.folder / "out") == undisturbed[0]


def assert_nothing_confidential_outside(folders: list[Path], private: Path) -> None:
    """Only the input and the private folder, which nobody else can enter, may contain a confidential value."""
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_relative_to(private):
                assert private.stat().st_mode & 0o077 == 0
            elif path.is_file() and path.name != "graduates.parquet":
                content = path.read_bytes()
                assert SECRET_PERSON.encode() not in content, path.name
                assert SECRET_CODE.encode() not in content, path.name
