"""Releases with a ledger in PostgreSQL: end to end, crashes, a server that goes away, colleagues and their keys."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import discreet
from discreet.api import OpenRelease, set_budget
from discreet.cli import app
from discreet.errors import LedgerError, PublishError, ReleaseKeyError, UnconfirmedWrite
from discreet.noise.keystore import FileKeyStore
from discreet.pipeline.abandon import abandon
from discreet.pipeline.verify import verify_folder
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.postgres import PostgresStore
from support import crash_driver, processes
from support.agency import Agency
from support.crash_driver import CLOCK
from support.postgres_server import PostgresServer, as_user, execute

UNIT = {"kind": "person", "column": "person_id"}


@pytest.fixture
def url(server: PostgresServer) -> str:
    """A ledger with a budget, opened to Ann and Bob."""
    url = server.schema()
    set_budget(discreet.ledger(url), "graduates", epsilon="10", unit=UNIT)
    execute(url, "GRANT SELECT, INSERT ON discreet_entries TO ann, bob")
    return url


@pytest.fixture
def restarted(server: PostgresServer) -> Iterator[PostgresServer]:
    yield server
    server.kill()
    server.start()


def command(agency: Agency, *arguments: object) -> subprocess.CompletedProcess[str]:
    return processes.discreet(*arguments, cwd=agency.folder)


def colleague(agency: Agency, url: str, who: str, keys: Path) -> OpenRelease:
    """The release as somebody else opens it, with a key store of their own."""
    return discreet.release(agency.spec(), ledger=as_user(url, who), keys=FileKeyStore(keys / who))


class PowerCut(BaseException):
    pass


def cut(at: str) -> Callable[[str, int, int], None]:
    def observe(step: str, done: int, total: int) -> None:
        if step == at and done == total:
            raise PowerCut

    return observe


def here(*arguments: object) -> str:
    """The command line in this process."""
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return done.output


def test_from_budget_to_verified_folder(agency: Agency, server: PostgresServer) -> None:
    url = server.schema()
    agency.ledger_path.unlink()
    here("ledger", "budget", "graduates", "--epsilon", "4", "--unit", "person:person_id", "--ledger", url)
    ran = command(agency, "run", agency.spec(ledger=url), "--out", "out")
    assert ran.returncode == 0, ran.stderr
    shown = here("ledger", "show", "--ledger", url)
    assert f"real ledger {url}, 4 entries" in shown
    assert "r1: epsilon 2 on graduates, committed, by me" in shown
    verified = here("ledger", "verify", "--ledger", url, "--manifest", agency.folder / "out")
    assert "manifest and 6 files are those that were committed" in verified
    assert "left 2" in here("plan", agency.spec(ledger=url, release="r2"))
    refused = command(agency, "run", agency.spec(), "--ledger", url, "--out", "again")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "is in the ledger already (committed)" in refused.stderr
    assert not agency.ledger_path.exists()
    assert not [path for path in agency.folder.iterdir() if path.name.startswith("postgres")]


def test_killed_after_the_reservation_and_resumed(agency: Agency, server: PostgresServer, isolated: Path) -> None:
    url = server.schema()
    set_budget(discreet.ledger(url, clock=lambda: CLOCK), "graduates", epsilon="4", unit=UNIT, kind="simulation")

    def drive(verb: str, kill_at: str = "") -> subprocess.CompletedProcess[str]:
        arguments = [verb, str(agency.spec()), url, str(agency.folder / "out"), kill_at]
        return processes.run(crash_driver.main, *arguments)

    assert drive("run", "protect both#1").returncode == -signal.SIGKILL
    assert discreet.ledger(url).verify().releases()["r1"].status == "reserved"
    resumed = drive("resume")
    assert resumed.returncode == 0, resumed.stderr
    assert discreet.ledger(url).verify().releases()["r1"].status == "committed"
    assert not list((isolated / "keys").glob("*.key"))


def test_a_server_killed_before_the_reservation_leaves_nothing(
    agency: Agency, url: str, restarted: PostgresServer, isolated: Path
) -> None:
    release = discreet.release(agency.spec(ledger=url))

    def observe(step: str, done: int, total: int) -> None:
        if step == "key":
            restarted.kill()

    with pytest.raises(LedgerError, match="server cannot be reached"):
        release.run(agency.folder / "out", observe=observe)
    assert not list((isolated / "keys").glob("*.key"))
    assert not (agency.folder / "out").exists()
    restarted.start()
    assert len(release.ledger.verify().entries) == 2
    release.run(agency.folder / "out")


@pytest.mark.parametrize("step", ["reserve", "protect states", "write"])
def test_a_server_killed_after_the_reservation_leaves_a_release_that_resume_completes(
    agency: Agency, url: str, restarted: PostgresServer, isolated: Path, step: str
) -> None:
    release = discreet.release(agency.spec(ledger=url))

    def observe(now: str, done: int, total: int) -> None:
        if now == step and done == total:
            restarted.kill()

    with pytest.raises(PublishError, match=r"server cannot be reached.* after the reservation.*`discreet resume`"):
        release.run(agency.folder / "out", observe=observe)
    restarted.start()
    assert len(list((isolated / "keys").glob("*.key"))) == 1
    release.resume()
    assert release.ledger.verify().balance("graduates", release.ledger.clock().date()).epsilon == 2
    assert not list((isolated / "keys").glob("*.key"))


def test_a_server_killed_after_the_commit_is_needed_no_more(
    agency: Agency, url: str, restarted: PostgresServer, isolated: Path
) -> None:
    release = discreet.release(agency.spec(ledger=url))

    def observe(step: str, done: int, total: int) -> None:
        if step == "commit":
            restarted.kill()

    made = release.run(agency.folder / "out", observe=observe)
    assert not list((isolated / "keys").glob("*.key"))
    restarted.start()
    assert verify_folder(release.ledger, str(agency.folder / "out")) == made


def test_a_reservation_that_was_not_confirmed_keeps_its_key(
    agency: Agency, url: str, restarted: PostgresServer, isolated: Path
) -> None:
    class Unconfirmed(PostgresStore):
        def _commit(self, session: object) -> None:
            super()._commit(session)  # type: ignore[arg-type]
            restarted.kill()
            raise UnconfirmedWrite("the connection was lost", where="test", do="look")

    release = discreet.release(agency.spec(), ledger=Ledger(Unconfirmed(url)))
    with pytest.raises(UnconfirmedWrite):
        release.run(agency.folder / "out")
    assert len(list((isolated / "keys").glob("*.key"))) == 1
    restarted.start()
    discreet.release(agency.spec(ledger=url)).resume()
    assert (agency.folder / "out" / "manifest.json").exists()


def test_only_its_user_completes_a_release(agency: Agency, url: str, tmp_path: Path) -> None:
    ann, bob = (colleague(agency, url, who, tmp_path) for who in ("ann", "bob"))
    for step in ("reserve", "commit"):  # committed files could be published without a key, which would then stay
        out = agency.folder / step
        ann = discreet.release(agency.spec(release=step), ledger=ann.ledger, keys=ann.keys)
        bob = discreet.release(agency.spec(release=step), ledger=bob.ledger, keys=bob.keys)
        with pytest.raises(PowerCut):
            ann.run(out, observe=cut(step))
        with pytest.raises(ReleaseKeyError, match="was reserved by ann, in whose key store its key lies; you are bob"):
            bob.resume()
        assert not out.exists()
        ann.resume()
    assert ann.keys is not None
    assert not ann.keys.names()


def test_a_colleague_may_abandon_and_the_key_goes_when_its_holder_does_so_too(
    agency: Agency, url: str, tmp_path: Path
) -> None:
    ann, bob = (colleague(agency, url, who, tmp_path) for who in ("ann", "bob"))
    assert ann.keys is not None
    assert bob.keys is not None
    with pytest.raises(PowerCut):
        ann.run(agency.folder / "out", observe=cut("reserve"))
    abandon(bob.ledger, bob.keys, "r1", "she is away")
    assert ann.keys.names()
    with pytest.raises(LedgerError, match="was abandoned"):
        abandon(ann.ledger, ann.keys, "r1", "back again")
    assert not ann.keys.names()
    assert ann.ledger.verify().balance("graduates", ann.ledger.clock().date()).epsilon == 2


def test_two_machines_do_not_work_on_one_release(
    agency: Agency, url: str, isolated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = discreet.release(agency.spec(ledger=url))
    refused = []

    def observe(step: str, done: int, total: int) -> None:
        if step == "reserve":
            with monkeypatch.context() as elsewhere:
                elsewhere.setenv("DISCREET_TMP", str(isolated / "another machine"))
                with pytest.raises(LedgerError, match="another process is working on release 'r1'") as caught:
                    release.resume()
                refused.append(caught.value)

    release.run(agency.folder / "out", observe=observe)
    assert refused


def test_a_ledger_in_the_spec_is_no_path(agency: Agency) -> None:
    release = discreet.release(agency.spec(ledger="postgresql://db.example.org/ledger"))
    assert release.ledger.store.place == "postgresql://db.example.org/ledger"
    with pytest.raises(discreet.errors.SpecError, match="contains a password") as caught:
        discreet.release(agency.spec(ledger="postgresql://me:XSECRETX@db.example.org/ledger"))
    assert "XSECRETX" not in str(caught.value)
