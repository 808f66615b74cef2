"""Interrupted recodings: run again or resumed, they give the same bytes."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import LedgerError, PublishError
from discreet.pipeline.verify import verify_folder
from discreet.publish.folder import FolderOutput
from support.recoding import CLOCK, EARNINGS, FLOWS, RecodingOffice, RunCrash, Watch, contents

SMALL = ({**EARNINGS, "levels": EARNINGS["levels"][:1]}, {**FLOWS, "levels": []})
STEPS = (
    "read#1", "protect earnings#1", "protect earnings#2", "protect flows#1", "write#1", "commit#1", "publish#1",
)  # fmt: skip
RECORDED = ("commit#1", "publish#1")
Both = tuple[dict[str, bytes], dict[str, bytes]]


def places(office: RecodingOffice) -> Both:
    return contents(office.folder / "out-new"), contents(office.folder / "kept/new")


def hidden(office: RecodingOffice) -> list[str]:
    return sorted(p.name for folder in (office.folder, office.folder / "kept") for p in folder.glob(".*"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Always the same: the ledger, and so its head, says where a release goes."""
    return tmp_path_factory.mktemp("crash") / "office"


@pytest.fixture
def again(measured_office: RecodingOffice, place: Path) -> RecodingOffice:
    shutil.rmtree(place, ignore_errors=True)
    return measured_office.copied(place)


@pytest.fixture(scope="module")
def undisturbed(measured_office: RecodingOffice, place: Path) -> Both:
    shutil.rmtree(place, ignore_errors=True)
    office, watch = measured_office.copied(place), Watch()
    office.open(office.recoding(*SMALL)).run(place / "out-new", observe=watch)
    assert tuple(watch.seen) == STEPS
    return places(office)


def completed(office: RecodingOffice, expected: Both) -> None:
    """What an operator would do, and what must come of it."""
    release = office.open(office.recoding(*SMALL))
    if "new" in office.ledger.chain().derived():
        with pytest.raises(LedgerError, match="complete it with `discreet resume`"):
            release.run(office.folder / "out-new")
        release.resume()
    else:
        with pytest.raises(LedgerError, match="was not derived yet"):
            release.resume()
        release.run(office.folder / "out-new")
    assert places(office) == expected
    assert not hidden(office)
    chain = office.ledger.verify()
    assert sum(event.kind == "derive" for event in chain.events) == 1
    assert office.spent == 15 / 2
    assert verify_folder(office.ledger, office.folder / "out-new").release == "new"
    release.resume()
    assert places(office) == expected


@pytest.mark.parametrize("step", STEPS)
def test_ended_at_any_step(again: RecodingOffice, undisturbed: Both, step: str) -> None:
    with pytest.raises(RunCrash):
        again.open(again.recoding(*SMALL)).run(again.folder / "out-new", observe=Watch(step))
    assert ("new" in again.ledger.chain().names()) == (step in RECORDED)
    assert (again.folder / "out-new").exists() == (step == "publish#1")
    completed(again, undisturbed)


@pytest.mark.parametrize("name", ["publish", "_write_manifest"])
def test_ended_while_publishing(again: RecodingOffice, undisturbed: Both, name: str) -> None:
    """Between the two renames, and between the second and the manifest."""
    then = getattr(FolderOutput, name)

    def crash(self: FolderOutput, *given: Any, **named: Any) -> None:
        if name == "publish" and given[1] is None:
            then(self, *given, **named)
        else:
            raise RunCrash

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FolderOutput, name, crash)
        with pytest.raises(RunCrash):
            again.open(again.recoding(*SMALL)).run(again.folder / "out-new")
    assert contents(again.folder / "kept/new") == undisturbed[1]
    assert (again.folder / "out-new").exists() == (name == "_write_manifest")
    completed(again, undisturbed)


@pytest.mark.parametrize("step", ["protect flows#1", "commit#1"])
def test_killed(again: RecodingOffice, undisturbed: Both, step: str) -> None:
    """SIGKILL in a process of its own."""
    again.open(again.recoding(*SMALL))
    code = (
        "import datetime, os, signal, sys\n"
        "import discreet\n"
        f"name, number = {step!r}.split('#')\n"
        "def observe(step, done, total):\n"
        "    if step == name and done:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "clock = datetime.datetime.fromisoformat(sys.argv[3])\n"
        "ledger = discreet.ledger(sys.argv[2], clock=lambda: clock)\n"
        "discreet.release(sys.argv[1], ledger=ledger).run(sys.argv[4], observe=observe)\n"
    )
    folder = again.folder
    arguments = [folder / "new.yaml", folder / "discreet-ledger.sqlite", CLOCK.isoformat(), folder / "out-new"]
    killed = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert hidden(again)
    completed(again, undisturbed)


@pytest.mark.parametrize("lost", ["out-new", "kept/new"])
def test_what_is_lost_is_made_again(again: RecodingOffice, undisturbed: Both, lost: str) -> None:
    """Unlike a release of records, whose key is gone."""
    release = again.open(again.recoding(*SMALL))
    release.run(again.folder / "out-new")
    shutil.rmtree(again.folder / lost)
    release.resume()
    assert places(again) == undisturbed
    assert not hidden(again)


def test_a_changed_file_is_not_overwritten(again: RecodingOffice) -> None:
    release = again.open(again.recoding(*SMALL))
    release.run(again.folder / "out-new")
    changed = again.folder / "out-new/earnings.simulation.csv"
    changed.write_text("mine\n")
    with pytest.raises(PublishError, match="already exists"):
        release.resume()
    assert changed.read_text() == "mine\n"


@pytest.mark.parametrize("what", ["parameters", "code", "files"])
def test_resumed_with_something_else_is_refused(
    again: RecodingOffice, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    with pytest.raises(RunCrash):
        again.open(again.recoding(*SMALL)).run(again.folder / "out-new", observe=Watch("commit#1"))
    changes: dict[str, Any] = {"recode": {"smallest_weight": "0.01"}} if what == "parameters" else {}
    if what == "code":
        monkeypatch.setattr("discreet.pipeline.recode.code_version", lambda: "0.0.0+changed")
    if what == "files":
        with (again.folder / "crosswalk.csv").open("a") as file:
            file.write("99.0101,99.0101,New\n")
    with pytest.raises(LedgerError, match="the parameters, domains or code of release 'new' changed"):
        again.open(again.recoding(*SMALL, **changes)).resume()
    assert not (again.folder / "out-new").exists()


def test_a_colleague_can_complete_it(again: RecodingOffice, undisturbed: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no key: the measurements alone determine the bytes."""
    with pytest.raises(RunCrash):
        again.open(again.recoding(*SMALL)).run(again.folder / "out-new", observe=Watch("commit#1"))
    shutil.rmtree(again.staging("out-new", "new"))
    ledger = again.ledger
    monkeypatch.setattr(type(ledger), "who", lambda _: "colleague")
    again.open(again.recoding(*SMALL), ledger).resume()
    assert places(again) == undisturbed
