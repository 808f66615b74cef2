"""Real processes racing for the last of a budget: nobody overspends."""

import multiprocessing as mp
import os
import signal
import sqlite3
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import BudgetExceeded, LedgerError
from support.ledger_fakes import TIME, Place, funded_ledger, open_ledger, record_event, reserve
from support.repository import SUPPORT

SPAWN = mp.get_context("spawn")


def ask(place: Place, name: str, amount: str, gate: Any, answers: Any) -> None:
    """One process: wait until all are there, then reserve."""
    ledger = open_ledger(place, wait=30)
    gate.wait(120)
    try:
        entry = ledger.reserve(reserve(name, amount), simulated=False)
        answers.put((name, entry.number))
    except BudgetExceeded:
        answers.put((name, "over budget"))
    except LedgerError:
        answers.put((name, "refused"))


def race(place: Place, names: list[str], amount: str) -> dict[str, Any]:
    gate, answers = SPAWN.Barrier(len(names)), SPAWN.Queue()
    runners = [SPAWN.Process(target=ask, args=(place, name, amount, gate, answers)) for name in names]
    for runner in runners:
        runner.start()
    actual = [answers.get(timeout=180) for _ in runners]
    for runner in runners:
        runner.join(30)
        assert runner.exitcode == 0
    assert len(actual) == len(names)
    return {f"{i}:{name}": answer for i, (name, answer) in enumerate(actual)}


def test_two_processes_and_the_last_of_a_budget(place: Place) -> None:
    ledger = funded_ledger(place, 1)
    answers = race(place, ["x", "y"], "1")
    assert sorted(map(str, answers.values())) == ["3", "over budget"]
    assert ledger.verify().balance("a", TIME.date()).epsilon == 1


@pytest.mark.slow
def test_eight_processes_get_exactly_what_there_is(place: Place) -> None:
    ledger = funded_ledger(place, 1)
    answers = race(place, [f"r{i}" for i in range(8)], "0.3")
    won = sorted(answer for answer in answers.values() if isinstance(answer, int))
    assert won == [3, 4, 5]
    assert sum(answer == "over budget" for answer in answers.values()) == 5
    assert ledger.verify().balance("a", TIME.date()).epsilon == Fraction(9, 10)


@pytest.mark.slow
def test_the_same_release_run_twice_at_once_is_reserved_once(place: Place) -> None:
    ledger = funded_ledger(place, 10)
    answers = race(place, ["same", "same", "same"], "1")
    assert sorted(map(str, answers.values())) == ["3", "refused", "refused"]
    assert ledger.verify().balance("a", TIME.date()).epsilon == 1


DIES = """
import sys, time
from support.ledger_fakes import budget, open_ledger
from discreet.privacy.ledger.state import link
ledger = open_ledger(sys.argv[1])
with ledger.store.transaction() as writer:
    writer.append(link(3, writer.entries()[-1].hash, budget(1000)))
    print("inside", flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX's")
def test_a_process_killed_inside_a_transaction_spends_nothing_and_locks_nothing(place: Place) -> None:
    ledger = funded_ledger(place, 1)
    head = ledger.chain().head
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT.parent), *sys.path])}
    with subprocess.Popen([sys.executable, "-c", DIES, str(place)], env=environment, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == b"inside"
        with pytest.raises(LedgerError, match="locked"):
            open_ledger(place, wait=0.1).record(record_event())
        child.send_signal(signal.SIGKILL)
        child.wait(10)
    assert ledger.verify().head == head
    ledger.reserve(reserve("r", 1), simulated=False)


@pytest.mark.slow
def test_a_writer_waits_for_a_reader(tmp_path: Path) -> None:
    """A reader in the middle of its list holds up a commit; then the answer is an error, and nothing is spent."""
    path = tmp_path / "l.sqlite"
    ledger = funded_ledger(path, 1, wait=0.2)
    reader = sqlite3.connect(path, isolation_level=None)
    try:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM entries").fetchone()
        start = time.monotonic()
        with pytest.raises(LedgerError, match="locked"):
            ledger.reserve(reserve("r", 1), simulated=False)
        assert time.monotonic() - start < 2
    finally:
        reader.close()
    assert ledger.verify().balance("a", TIME.date()).epsilon == 0
