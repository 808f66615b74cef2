"""Noise of comparisons: no ledger is charged, so only simulation keys are accepted."""

from __future__ import annotations

from discreet.errors import ReleaseKeyError
from discreet.noise.key import ReleaseKey
from discreet.noise.stream import Stream


def simulation_stream(key: ReleaseKey, table: str, about: bytes, purpose: str) -> Stream:
    """The noise stream for one purpose of a comparison."""
    if not key.simulated:
        raise ReleaseKeyError("a comparison has no ledger", where="key", do="use ReleaseKey.simulation")
    return key.stream("evaluate", table, about, purpose)
