"""A real object store: files are written to their final place, and are not a release before the manifest exists."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyarrow import ArrowException
from pyarrow.fs import FileSystem

import discreet
from discreet.api import set_budget
from discreet.errors import LedgerError, PublishError, StoreUnavailable
from discreet.methods.counts import method as counts
from discreet.noise.keystore import FileKeyStore
from discreet.pipeline.abandon import abandon
from discreet.pipeline.verify import verify_folder
from discreet.publish.folder import Owner, StoreOutput, output_at
from discreet.publish.manifest import FILE, read
from discreet.publish.storage import ObjectStore
from support import crash_driver, processes
from support.agency import Agency, graduates
from support.object_store import BUCKET, S3Server

CLOCK = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
SEED = "crash test"  # the driver's
PERSON = {"kind": "person", "column": "person_id"}
PART = 4  # rows in a file: the larger table is one of parts
STEPS = ("reserve", "protect both", "protect states", "write", "commit", "publish", "destroy")


class Crash(BaseException):
    """Not an error: simulates the end of the process."""


@pytest.fixture
def office(store: S3Server, tmp_path: Path, isolated: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    monkeypatch.setattr(counts, "PART", PART)
    return Office(store, tmp_path / "agency", isolated, f"releases/{tmp_path.name}")


class Office:
    """An agency with a simulation ledger that publishes to an object store."""

    def __init__(
        self,
        store: S3Server,
        folder: Path,
        isolated: Path,
        prefix: str,
        keys: Path | None = None,
        nonce: str = "0" * 32,
    ) -> None:
        self.store, self.folder, self.isolated, self.prefix = store, folder, isolated, prefix
        self.uri = store.uri(prefix)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.agency = Agency.__new__(Agency)
        self.agency.folder, self.agency.ledger_path = folder, folder / "discreet-ledger.sqlite"
        self.agency.write(graduates())
        self.keys = FileKeyStore(keys or isolated / "keys")
        self.ledger = discreet.ledger(self.agency.ledger_path, clock=lambda: CLOCK).remembered_by(self.keys)
        self.ledger.create("simulation", nonce=nonce)
        set_budget(self.ledger, "graduates", epsilon="10", unit=PERSON, kind="simulation")

    def release(self, **changes: Any) -> Any:
        return discreet.release(self.agency.spec(**changes), ledger=self.ledger, keys=self.keys)

    def run(self, out: str | None = None, **more: Any) -> Any:
        return self.release().run(out or self.uri, simulation=SEED, **more)

    def cli(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return processes.discreet(*arguments, cwd=self.folder, **environment)

    def files(self) -> dict[str, bytes]:
        """Everything but the mark that says whose it is."""
        actual = self.store.files(self.prefix)
        return {name: content for name, content in actual.items() if not name.startswith(".discreet-")}

    def in_a_folder(self) -> dict[str, bytes]:
        """What the same release is in a folder: all but the ledger's word about where it went is the same."""
        out, keys = self.folder.with_name("out"), self.folder.with_name("keys")
        for folder in (out, keys):
            shutil.rmtree(folder, ignore_errors=True)
        # with keys of its own, for it would destroy ours, which is the same
        other = Office(self.store, self.folder.with_name("other"), self.isolated, "", keys)
        discreet.release(other.agency.spec(), ledger=other.ledger, keys=other.keys).run(str(out), simulation=SEED)
        return {p.relative_to(out).as_posix(): p.read_bytes() for p in out.rglob("*") if p.is_file()}

    def spent(self) -> int:
        return int(discreet.ledger(self.agency.ledger_path).verify().balance("graduates", CLOCK.date()).epsilon)

    def complete(self) -> None:
        """Published once and whole, charged once, its key destroyed."""
        assert without_ledger(self.store.files(self.prefix)) == without_ledger(self.in_a_folder())
        assert self.spent() == 2
        assert self.ledger.verify().releases()["r1"].status == "committed"
        assert not list((self.isolated / "keys").glob("*.key"))
        assert not list((self.isolated / "tmp").iterdir())

    def untouched(self) -> None:
        assert self.ledger.verify().names() == set()
        assert not (self.isolated / "keys").exists() or not list((self.isolated / "keys").glob("*.key"))


def without_ledger(files: dict[str, bytes]) -> dict[str, Any]:
    manifest = json.loads(files[FILE])
    del manifest["ledger"]
    return {**files, FILE: manifest}


def crash_at(step: str) -> Any:
    def observe(name: str, done: int, total: int) -> None:
        if name == step and done:
            raise Crash

    return observe


def free_port() -> int:
    with socket.socket() as actual:
        actual.bind(("127.0.0.1", 0))
        return int(actual.getsockname()[1])


# --- a release ------------------------------------------------------------------------------------------------------


def test_from_the_command_line(office: Office) -> None:
    spec = str(office.agency.spec())
    made = office.cli("run", spec, "--out", office.uri, "--simulation", SEED)
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith(f"Published r1 in {office.uri}: 2 tables")
    assert [line for line in made.stderr.splitlines() if not line.endswith("done")] == []
    files = office.files()
    assert {FILE, "codebook.md", "both.simulation.parquet", "states.simulation.csv"} <= set(files)
    assert {name for name, content in office.store.objects(office.prefix).items() if not content} == set()
    verified = office.cli("ledger", "verify", "--manifest", office.uri)
    assert verified.returncode == 0, verified.stderr
    assert "manifest and 6 files are those that were committed" in verified.stdout
    office.store.put(f"{office.prefix}/states.simulation.csv", files["states.simulation.csv"] + b"\n")
    changed = office.cli("ledger", "verify", "--manifest", office.uri)
    assert changed.returncode == 1
    assert changed.stderr == (
        f"discreet: {office.uri}: has files that are not those that were committed. Restore them from a copy.\n"
    )


def test_a_large_table_is_a_prefix_of_parts(office: Office) -> None:
    office.run()
    assert {name for name in office.files() if "/" in name} >= {
        f"both.simulation.csv/part-0000{i}.csv" for i in range(5)
    }
    office.complete()
    assert read(office.uri).release == "r1"


def test_objects_beside_the_prefix_are_ignored(office: Office) -> None:
    office.store.put(f"{office.prefix}2/x.csv", b"x")
    office.run()
    office.complete()
    assert office.store.files(f"{office.prefix}2") == {"x.csv": b"x"}


# --- crashes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["read", "tabulate", "key"])
def test_nothing_is_written_before_the_reservation(office: Office, step: str) -> None:
    with pytest.raises(Crash):
        office.run(observe=crash_at(step))
    assert office.store.objects(office.prefix) == {}
    assert office.ledger.verify().names() == set()
    office.run()
    office.complete()


@pytest.mark.parametrize("step", STEPS)
def test_crashed_then_resumed(office: Office, step: str) -> None:
    with pytest.raises(Crash):
        office.run(observe=crash_at(step))
    finished = STEPS.index(step) >= STEPS.index("publish")
    assert (FILE in office.files()) == finished
    if not finished:
        with pytest.raises(PublishError, match="no manifest"):
            read(office.uri)
    assert office.spent() == 2
    office.release().resume()
    office.complete()


@pytest.mark.parametrize("number", range(0, 14, 3))
def test_crashed_in_an_upload(office: Office, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Files are complete or absent, and are written again."""
    create, made = ObjectStore.create, list[str]()

    def counted(self: ObjectStore, name: str) -> Any:
        made.append(name)
        if len(made) > number + 1:  # one was to see whether anything can be written there
            raise Crash
        return create(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "create", counted)
        with pytest.raises(Crash):
            office.run()
    assert FILE not in office.files()
    whole = office.in_a_folder()
    assert all(whole[name] == content for name, content in office.files().items())
    office.release().resume()
    office.complete()


def test_killed_and_resumed_by_other_processes(office: Office) -> None:
    def drive(verb: str, kill_at: str = "") -> subprocess.CompletedProcess[str]:
        arguments = [verb, str(office.agency.spec()), str(office.agency.ledger_path), office.uri, kill_at, str(PART)]
        return processes.run(crash_driver.main, *arguments)

    assert drive("run", "protect both#2").returncode == -signal.SIGKILL
    assert FILE not in office.files()
    assert drive("resume", "write#1").returncode == -signal.SIGKILL
    assert FILE not in office.files()
    again = drive("resume")
    assert again.returncode == 0, again.stderr
    office.complete()


def test_a_prefix_with_foreign_objects_is_not_published(office: Office) -> None:
    def intrude(step: str, done: int, total: int) -> None:
        if step == "protect states":
            office.store.put(f"{office.prefix}/stray.csv", b"1,2,3\n")

    with pytest.raises(PublishError, match="holds other files than were written"):
        office.run(observe=intrude)
    assert FILE not in office.files()
    with pytest.raises(PublishError, match=r"holds files that release 'r1' has not written, such as 'stray\.csv'"):
        office.release().resume()
    assert office.files() == {"stray.csv": b"1,2,3\n"}
    office.store.system.delete_file(f"{BUCKET}/{office.prefix}/stray.csv")
    office.release().resume()
    office.complete()


def test_replaced_bytes_are_not_committed(office: Office) -> None:
    """The names are right, the bytes are not: a prefix is read again before the ledger commits it."""

    def overwrite(step: str, done: int, total: int) -> None:
        if step == "protect states" and done == total:
            office.store.put(f"{office.prefix}/{sorted(office.files())[0]}", b"somebody else's")

    with pytest.raises(PublishError, match="holds other files than were written"):
        office.run(observe=overwrite)
    assert office.ledger.verify().releases()["r1"].status == "reserved"
    office.release().resume()
    office.complete()


@pytest.mark.parametrize("name", ["thesis/chapter.tex", "both.simulation.csv/notes.csv", "my.parquet", "x.model.json"])
def test_foreign_objects_are_never_removed(office: Office, name: str) -> None:
    """An object that appears after the check: neither `resume` nor `abandon` may remove it. The key is destroyed."""
    with pytest.raises(Crash):
        office.run(observe=crash_at("write"))
    office.store.put(f"{office.prefix}/{name}", b"years of work")
    refused = office.cli("ledger", "abandon", "r1", "--reason", "a test")
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert line.startswith(
        "discreet: release 'r1' is abandoned and its key destroyed, but not all staged files could be removed"
    )
    assert f"holds files that release 'r1' has not written, such as '{name}'" in line
    assert office.files() == {name: b"years of work"}
    assert not list((office.isolated / "keys").glob("*.key"))
    assert office.ledger.verify().releases()["r1"].status == "abandoned"


def test_resume_removes_no_foreign_objects(office: Office) -> None:
    with pytest.raises(Crash):
        office.run(observe=crash_at("write"))
    office.store.put(f"{office.prefix}/thesis/chapter.tex", b"years of work")
    for _ in range(2):
        with pytest.raises(PublishError, match=r"has not written, such as 'thesis/chapter\.tex'"):
            office.release().resume()
    assert office.files() == {"thesis/chapter.tex": b"years of work"}


def test_a_prefix_without_the_mark_is_not_touched(office: Office) -> None:
    """A ledger entry could name any prefix: without the mark of its release nothing there is its own."""
    with pytest.raises(Crash):
        office.run(observe=crash_at("reserve"))
    office.store.put(f"{office.prefix}/both.simulation.csv", b"somebody else's")
    with pytest.raises(PublishError, match="has not written"):
        office.release().resume()
    done = office.cli("ledger", "abandon", "r1", "--reason", "a test")
    assert done.returncode == 1
    assert "holds 'both.simulation.csv', which this release may have written, but not its mark" in done.stderr
    assert not office.keys.names()
    assert office.files() == {"both.simulation.csv": b"somebody else's"}


def test_a_colleague_without_the_key_may_clean_up(office: Office) -> None:
    with pytest.raises(Crash):
        office.run(observe=crash_at("write"))
    done = office.cli("ledger", "abandon", "r1", "--reason", "a test", DISCREET_KEYS=str(office.isolated / "mine"))
    assert done.returncode == 0, done.stderr
    assert office.store.objects(office.prefix) == {}


def test_abandoning_again_removes_what_could_not_be_removed(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Crash):
        office.run(observe=crash_at("write"))

    def gone(self: ObjectStore) -> Any:
        raise StoreUnavailable("the object store refuses", where=self.uri, do="wait")

    keys = FileKeyStore(office.isolated / "keys")
    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "names", gone)
        with pytest.raises(PublishError, match=r"its key destroyed, but not all .* the object store refuses"):
            abandon(office.ledger, keys, "r1", "a test")
    assert not keys.names()
    assert len(office.files()) == 16
    with pytest.raises(LedgerError, match="was abandoned"):
        abandon(office.ledger, keys, "r1", "a test")
    assert office.store.objects(office.prefix) == {}


def test_crashed_with_manifest_and_mark(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the last two steps: it is not opened as a release until it is resumed."""

    def crash(self: StoreOutput) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(StoreOutput, "remove_leftovers", crash)
        with pytest.raises(Crash):
            office.run()
    assert FILE in office.files()
    with pytest.raises(PublishError, match="files that are not those that were committed"):
        verify_folder(office.ledger, office.uri)
    office.release().resume()
    office.complete()
    assert verify_folder(office.ledger, office.uri).release == "r1"


def test_two_ledgers_at_one_prefix(office: Office) -> None:
    """The same release of another ledger has the same names, and here the same bytes: it touches nothing."""
    keys = office.isolated / "keys of the other"
    other = Office(office.store, office.folder.with_name("other"), office.isolated, office.prefix, keys, "1" * 32)
    with pytest.raises(Crash):
        other.run(observe=crash_at("reserve"))  # it has looked: the prefix was empty
    with pytest.raises(Crash):
        office.run(observe=crash_at("commit"))
    before = office.store.files(office.prefix)
    with pytest.raises(PublishError, match="has not written"):
        other.release().resume()
    abandon(other.ledger, other.keys, "r1", "a test")
    assert office.store.files(office.prefix) == before
    office.release().resume()
    made = read(office.uri)
    assert made.ledger.head == office.ledger.chain().releases()["r1"].committed_at.hash


def test_concurrent_releases_do_not_both_write(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another release's mark appears between the check and our own mark."""
    create = ObjectStore.create

    def late(self: ObjectStore, name: str) -> Any:
        if name.startswith(".discreet-"):
            office.store.put(f"{office.prefix}/.discreet-{'0' * 32}", b"another release")
        return create(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "create", late)
        with pytest.raises(PublishError, match="has not written"):
            office.run()
    assert office.store.files(office.prefix) == {f".discreet-{'0' * 32}": b"another release"}


def test_bytes_changed_after_the_commit_get_no_manifest(office: Office) -> None:
    """Files are compared again right before the manifest is written, although they were just sealed."""

    def overwrite(step: str, done: int, total: int) -> None:
        if step == "commit":
            office.store.put(f"{office.prefix}/states.simulation.csv", b"the truth")

    with pytest.raises(PublishError, match="the files are not the committed ones"):
        office.run(observe=overwrite)
    assert FILE not in office.files()
    office.release().resume()
    office.complete()


def test_a_committed_file_that_was_changed_is_drawn_again(office: Office) -> None:
    with pytest.raises(Crash):
        office.run(observe=crash_at("commit"))
    office.store.put(f"{office.prefix}/codebook.md", b"other words")
    office.release().resume()
    office.complete()


def test_abandoned_and_removed(office: Office) -> None:
    with pytest.raises(Crash):
        office.run(observe=crash_at("write"))
    assert len(office.files()) == 16
    done = office.cli("ledger", "abandon", "r1", "--reason", "a test")
    assert done.returncode == 0, done.stderr
    assert office.store.objects(office.prefix) == {}
    assert office.spent() == 2
    with pytest.raises(LedgerError, match="abandoned"):
        office.release().resume()


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.csv", "deep/x.csv", FILE])
def test_a_prefix_that_is_not_empty(office: Office, name: str) -> None:
    office.store.put(f"{office.prefix}/{name}", b"x")
    with pytest.raises(PublishError, match="already exists"):
        office.run()
    office.untouched()
    assert office.files() == {name: b"x"}


@pytest.mark.parametrize("below", ["x", "x/y", "both.simulation.csv/z"])
def test_a_prefix_inside_another_release(office: Office, below: str) -> None:
    """Its files would count as files of the other release."""
    office.store.put(f"{office.prefix}/{FILE}", b"x")
    with pytest.raises(PublishError, match="is inside another release"):
        office.run(office.store.uri(f"{office.prefix}/{below}"))
    office.untouched()


@pytest.mark.parametrize(
    "uri",
    [
        "s3://XKEYX:XSECRETX@bucket/out",
        "s3://XKEYX:XSEC/RETX@bucket/out",
        "s3a://XKEYX@bucket/out",
        "S3://XKEYX:XSECRETX@bucket/out",
        "s3://bucket/out?secret_key=XSECRETX",
        "abfss://container:XSECRETX@account.dfs.core.windows.net/out",
        "abfss://container@account.dfs.core.windows.net/out?client_secret=XSECRETX",
        "hdfs://user:XSECRETX@namenode/out",
    ],
)
def test_credentials_in_an_address_are_refused(office: Office, uri: str) -> None:
    with pytest.raises(PublishError, match="contains credentials") as refusal:
        office.run(uri)
    assert "XSEC" not in str(refusal.value)
    assert "XKEYX" not in str(refusal.value)
    office.untouched()
    assert b"XSEC" not in office.agency.ledger_path.read_bytes()


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket/a@b:c?region=us-east-1",
        "abfss://container@account.dfs.core.windows.net/out?credential_kind=environment",
    ],
)
def test_addresses_without_credentials(uri: str) -> None:
    ObjectStore(uri)._open()


def test_a_bucket_that_does_not_exist(office: Office) -> None:
    """Arrow lists it as empty: without a check of the bucket itself the budget would be charged first."""
    uri = office.store.uri("out", bucket="nobodys")
    refused = office.cli("run", str(office.agency.spec()), "--out", uri, "--simulation", SEED)
    assert refused.returncode == 1
    assert refused.stderr == f"discreet: {uri}: there is no such bucket. Name one that exists.\n"
    office.untouched()


def test_an_endpoint_that_does_not_answer(office: Office) -> None:
    uri = office.store.uri("out", port=free_port())
    refused = office.cli("run", str(office.agency.spec()), "--out", uri, "--simulation", SEED)
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert line.startswith(
        f"discreet: {uri}: the object store refuses access or cannot be reached (network connection)."
    )
    office.untouched()


@pytest.mark.parametrize(
    ("error", "text", "kind"),
    [
        (OSError, "When completing: AWS Error NETWORK_CONNECTION during X: curlCode: 7", "network connection"),
        (ArrowException, "Unknown error: Failed to get token, as Azure would say", "ArrowException"),
    ],
)
def test_a_store_that_goes_away_after_the_reservation(
    office: Office, monkeypatch: pytest.MonkeyPatch, error: type[Exception], text: str, kind: str
) -> None:
    """The message says what is spent, and that resuming costs nothing more."""

    def gone(*_: Any) -> Any:
        raise error(text)

    class Gone:
        open_output_stream = get_file_info = delete_dir = gone

    def leave(step: str, done: int, total: int) -> None:
        if step == "reserve":
            monkeypatch.setattr(ObjectStore, "_open", lambda self: (Gone(), "x"))

    opened = ObjectStore._open
    with pytest.raises(PublishError) as stopped:
        office.run(observe=leave)
    told = str(stopped.value)
    assert f"the object store refuses access or cannot be reached ({kind})) after the reservation" in told
    assert "epsilon 2 is spent. Fix that and complete it with `discreet resume`, at no further cost." in told
    with pytest.raises(PublishError, match="epsilon 2 is spent"):
        office.release().resume()
    monkeypatch.setattr(ObjectStore, "_open", opened)
    office.release().resume()
    office.complete()


def test_a_bucket_that_vanishes_after_the_reservation(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on the command line, with a store that really refuses."""
    monkeypatch.setattr(counts, "PART", 1 << 22)  # as it is in other processes
    uri = office.store.uri("out", bucket="short-lived")
    system, _ = FileSystem.from_uri(
        uri.replace("&region", "&allow_bucket_creation=true&allow_bucket_deletion=true&region")
    )
    system.create_dir("short-lived")

    def leave(step: str, done: int, total: int) -> None:
        if step == "reserve":
            system.delete_dir("short-lived")

    with pytest.raises(PublishError, match=r"no such bucket\)\) after the reservation .* epsilon 2 is spent"):
        office.run(uri, observe=leave)
    refused = office.cli("resume", str(office.agency.spec()))
    assert refused.returncode == 1
    line = refused.stderr.splitlines()[-1]
    assert line.startswith("discreet: release r1: stopped (s3://short-lived/out")
    assert "epsilon 2 is spent. Fix that and complete it with `discreet resume`, at no further cost." in line
    system.create_dir("short-lived")
    again = office.cli("resume", str(office.agency.spec()))
    assert again.returncode == 0, again.stderr
    assert output_at(uri, Owner("0" * 32, "r1")).holds(read(uri).files)


# --- Spark ----------------------------------------------------------------------------------------------------------


def test_workers_write_to_the_store_themselves(office: Office) -> None:
    pytest.importorskip("pyspark", reason="Spark is an extra")
    config = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    spec = str(office.agency.spec(engine={"spark": "local[2]", "config": config}))
    made = office.cli("run", spec, "--out", office.uri, "--simulation", SEED, SPARK_LOCAL_IP="127.0.0.1")
    assert made.returncode == 0, made.stderr
    whole = office.files()
    keys = office.isolated / "keys again"
    duckdbs = Office(office.store, office.folder.with_name("again"), office.isolated, office.prefix + "-again", keys)
    arguments = ("run", str(duckdbs.agency.spec()), "--out", duckdbs.uri, "--simulation", SEED)
    other = duckdbs.cli(*arguments, DISCREET_KEYS=str(keys))
    assert other.returncode == 0, other.stderr
    assert without_ledger(whole) == without_ledger(duckdbs.files())
    assert office.spent() == 2


@pytest.mark.parametrize("way", ["a/../b", "a/./b", "a//b", "a/%2e%2e/b", "a/%2E/b", "a/b%0A", "x/../../elsewhere/b"])
def test_a_prefix_must_be_canonical(office: Office, way: str) -> None:
    """A release that was listed in one place and written in another was overwritten."""
    uri = office.store.uri("PLACE").replace("PLACE", way)
    with pytest.raises(PublishError, match="listed in one place and written in another"):
        office.run(uri)
    office.untouched()


def test_a_store_that_does_not_list_is_refused_before_anything_is_spent(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ObjectStore, "names", lambda self: set())
    with pytest.raises(PublishError, match="does not list what is written there"):
        office.run()
    monkeypatch.undo()
    office.untouched()


def test_a_store_that_refuses_files_costs_nothing(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: ObjectStore, name: str) -> Any:
        raise StoreUnavailable("the object store refuses", where=self.uri, do="ask for the right to write")

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "create", refused)
        with pytest.raises(StoreUnavailable):
            office.run()
    office.untouched()


def test_a_manifest_is_never_alone(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files vanish while the manifest is written: it is removed, the key is kept, and the release can be resumed."""
    create = ObjectStore.create

    def late(self: ObjectStore, name: str) -> Any:
        if name == FILE:
            self.clear(
                sorted(actual for actual in self.names() if actual != FILE and not actual.startswith(".discreet-"))
            )
        return create(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "create", late)
        with pytest.raises(PublishError, match=r"lost .* meanwhile"):
            office.run()
    assert office.files() == {}
    assert len(office.keys.names()) == 1
    office.release().resume()
    office.complete()
