"""Killed at any moment, not only between steps: the same bytes in the end. Slow, so only in `make test-full`."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_crash import CLOCK, DRIVER, contents, simulated

import discreet

pytestmark = pytest.mark.full
MOMENTS = 30


def start(place: Path, spec: Path, verb: str) -> subprocess.Popen[str]:
    arguments = [verb, str(spec), str(place / "discreet-ledger.sqlite"), str(place / "out"), ""]
    return subprocess.Popen(
        [sys.executable, str(DRIVER), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(place: Path, spec: Path) -> None:
    """What an operator would type, until it is done."""
    state = discreet.ledger(place / "discreet-ledger.sqlite").verify().releases().get("r1")
    process = start(place, spec, "run" if state is None else "resume")
    _, error = process.communicate()
    assert process.returncode == 0, error


def test_killed_at_any_moment(tmp_path: Path, isolated: Path) -> None:
    place = tmp_path / "agency"
    agency = simulated(place)
    begun = time.perf_counter()
    finish(place, agency.spec())
    whole = time.perf_counter() - begun
    expected = contents(place / "out")
    reached = set()
    for i in range(MOMENTS):
        shutil.rmtree(isolated / "keys")  # which remembers another ledger of this nonce
        agency = simulated(place)
        spec = agency.spec()
        process = start(place, spec, "run")
        time.sleep(whole * (0.4 + 0.7 * i / MOMENTS))  # before that it only imports
        process.send_signal(signal.SIGKILL)
        process.communicate()
        state = discreet.ledger(agency.ledger_path).verify().releases().get("r1")
        reached.add(state.status if state else "nothing")
        finish(place, spec)
        assert contents(place / "out") == expected
        chain = discreet.ledger(agency.ledger_path).verify()
        assert chain.balance("graduates", CLOCK.date()).epsilon == 2
        assert not list((isolated / "keys").glob("*.key"))
        assert not list((isolated / "tmp").iterdir())
    assert len(reached) > 1, "the moments were badly chosen"
