"""A location that cannot be published to, or that another release needs, is refused before anything is spent, however
its path is written."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import discreet
from discreet.errors import DiscreetError, LedgerUnavailable, PublishError, ReleaseKeyError
from discreet.noise.keystore import FileKeyStore, default_keys
from discreet.pipeline.abandon import abandon
from discreet.pipeline.verify import verify_folder
from support.agency import Agency


class Crash(BaseException):
    """Not an error: the end of the process."""


def crash_at(step: str) -> Callable[[str, int, int], None]:
    def observe(name: str, done: int, total: int) -> None:
        if name == step and done == total:
            raise Crash

    return observe


def unspent(agency: Agency) -> bool:
    return not agency.release().ledger.verify().names() and not default_keys().names()


def one(agency: Agency) -> Path:
    """A published release."""
    agency.release(release="one").run(agency.folder / "out")
    return agency.folder / "out"


@pytest.mark.parametrize(
    "name",
    ["out\0", "out\n", "a" * 300, "/".join(["deep" * 20] * 50), "bad\udcff", "file://localhost/out", "local:///out"],
    ids=["nul", "line", "long name", "long path", "no text", "file on a host", "other scheme"],
)
def test_a_name_that_cannot_be_written_costs_nothing(agency: Agency, name: str) -> None:
    out = name if "://" in name else f"{agency.folder}/{name}"
    with pytest.raises(PublishError):
        agency.release().run(out)
    assert unspent(agency)


@pytest.mark.parametrize(
    "way", ["new/../out", "new/../out/", "./out", "link/out", "link/../agency/out", "new/x/../../out"]
)
def test_another_spelling_is_the_same_folder(agency: Agency, way: str) -> None:
    out = one(agency)
    (agency.folder / "link").symlink_to(agency.folder)
    with pytest.raises(PublishError, match="already exists"):
        agency.release().run(f"{agency.folder}/{way}")
    assert "r1" not in agency.release().ledger.verify().names()
    verify_folder(agency.release().ledger, out)


def test_a_link_into_a_release_leads_nowhere(agency: Agency) -> None:
    (one(agency) / "notes").mkdir()
    (agency.folder / "link").symlink_to(agency.folder / "out" / "notes")
    with pytest.raises(PublishError, match="is inside another release"):
        agency.release().run(agency.folder / "link" / "two")


def test_a_folder_beside_one_called_manifest_is_free(agency: Agency) -> None:
    agency.release(release="one").run(agency.folder / "manifest.json")
    agency.release().run(agency.folder / "out")


@pytest.mark.parametrize("place", ["out", "out/sub", ".", "x/../out"])
@pytest.mark.parametrize("step", ["reserve", "commit"])
def test_the_place_of_an_open_release_is_taken(agency: Agency, step: str, place: str) -> None:
    with pytest.raises(Crash):
        agency.release(release="one").run(agency.folder / "out", observe=crash_at(step))
    with pytest.raises(PublishError, match=r"where release 'one' is still to be published|already exists"):
        agency.release().run(f"{agency.folder}/{place}")
    assert agency.release().ledger.verify().names() == {"one"}
    agency.release(release="one").resume()
    agency.release().run(agency.folder / "elsewhere")


def test_a_place_that_somebody_took_meanwhile_is_not_drawn_for(agency: Agency, tmp_path: Path) -> None:
    """Of another ledger, which nobody here knows: the release is refused before its noise, and can be abandoned."""
    with pytest.raises(Crash):
        agency.release().run(agency.folder / "out", observe=crash_at("reserve"))
    other = Agency(tmp_path / "other")
    other.release(release="theirs").run(agency.folder / "out")
    with pytest.raises(PublishError, match=r"already exists.* after the reservation \(ledger entry 3\): epsilon 2 is"):
        agency.release().resume()
    assert agency.release().ledger.verify().releases()["r1"].status == "reserved"
    abandon(agency.release().ledger, default_keys(), "r1", "a test")
    assert not default_keys().names()
    verify_folder(other.release().ledger, agency.folder / "out")


@pytest.mark.parametrize("where", ["tmp/run-x", "keys/out", "keys"])
def test_nothing_is_published_where_keys_lie_or_things_are_swept(agency: Agency, isolated: Path, where: str) -> None:
    with pytest.raises(PublishError, match=r"lies in the private temporary folder or the key store|already exists"):
        agency.release().run(isolated / where)
    assert unspent(agency)


def test_a_link_among_published_files_is_not_what_was_committed(agency: Agency, tmp_path: Path) -> None:
    out, ledger = one(agency), agency.release().ledger
    verify_folder(ledger, out)
    (out / "more").symlink_to(tmp_path)
    with pytest.raises(PublishError, match="files that are not those that were committed"):
        verify_folder(ledger, out)
    (out / "more").unlink()
    (out / "both.csv").rename(tmp_path / "both.csv")
    (out / "both.csv").symlink_to(tmp_path / "both.csv")
    with pytest.raises(PublishError, match="files that are not those that were committed"):
        verify_folder(ledger, out)


# --- what else can fail ---------------------------------------------------------------------------------------------


def test_a_ledger_that_is_out_of_reach_right_after_the_entry_keeps_no_key(
    agency: Agency, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Crash):
        agency.release().run(agency.folder / "out", observe=crash_at("write"))
    ledger = agency.release().ledger
    written = ledger.abandon

    def last(release: str, reason: str) -> object:
        entry = written(release, reason)
        monkeypatch.setattr(type(ledger), "chain", gone)
        return entry

    def gone(self: object) -> object:
        raise LedgerUnavailable("out of reach")

    monkeypatch.setattr(type(ledger), "abandon", lambda self, release, reason: last(release, reason))
    abandon(ledger, default_keys(), "r1", "a test")
    assert not default_keys().names()
    assert not list(agency.folder.glob(".discreet-*"))


def test_a_key_that_cannot_be_destroyed_is_named_and_the_rest_goes(
    agency: Agency, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Crash):
        agency.release().run(agency.folder / "out", observe=crash_at("write"))

    def fails(self: FileKeyStore, name: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(FileKeyStore, "destroy", fails)
        with pytest.raises(PublishError, match=r"is abandoned and its key is not.*Operation not permitted"):
            abandon(agency.release().ledger, default_keys(), "r1", "a test")
    assert not list(agency.folder.glob(".discreet-*"))
    with pytest.raises(DiscreetError, match="was abandoned"):
        abandon(agency.release().ledger, default_keys(), "r1", "a test")  # typed again, it goes
    assert not default_keys().names()


def test_a_key_that_cannot_be_written_leaves_nothing(agency: Agency, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("discreet.noise.keystore.os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            FileKeyStore(agency.folder / "keys").create("r", discreet.noise.key.ReleaseKey.generate())
    assert not FileKeyStore(agency.folder / "keys").names()
    with pytest.raises(ReleaseKeyError):
        FileKeyStore(agency.folder / "keys").load("r")


def test_a_full_disk_under_the_ledger_says_what_is_spent(agency: Agency, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    class Full(sqlite3.Connection):
        def execute(self, sql: str, *more: object) -> sqlite3.Cursor:
            if sql.startswith("INSERT"):
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(sql, *more)  # type: ignore[arg-type]

    def fill(name: str, done: int, total: int) -> None:
        if name == "write":
            monkeypatch.setattr("sqlite3.connect", lambda *a, **k: connect(*a, **k, factory=Full))

    with pytest.raises(PublishError, match=r"its disk is full.*after the reservation \(ledger entry 3\): epsilon 2 is"):
        agency.release().run(agency.folder / "out", observe=fill)
    monkeypatch.setattr("sqlite3.connect", connect)
    agency.release().resume()


@pytest.mark.parametrize("again", [False, True], ids=["run", "resume"])
def test_a_folder_that_appears_after_the_reservation_is_found_before_noise_is_drawn(
    agency: Agency, again: bool
) -> None:
    """Nothing is drawn for what cannot be published; where there is room again, the release is completed."""
    out, steps = agency.folder / "out", list[str]()

    def observe(name: str, done: int, total: int) -> None:
        steps.append(name)
        if name == ("tabulate" if again else "reserve") and done == total:
            out.mkdir()

    if again:
        with pytest.raises(Crash):
            agency.release().run(out, observe=crash_at("reserve"))
    release = agency.release()
    with pytest.raises(PublishError, match=r"already exists.* after the reservation"):
        release.resume(observe=observe) if again else release.run(out, observe=observe)
    assert not any(step.startswith("protect") for step in steps)
    out.rmdir()
    assert agency.release().resume().release == "r1"
