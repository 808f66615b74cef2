"""Noise of comparisons: nothing is charged for it, so it comes of simulation keys alone."""

from __future__ import annotations

from discreet.errors import ReleaseKeyError
from discreet.noise.key import ReleaseKey
from discreet.noise.stream import Stream


def simulation_stream(key: ReleaseKey, table: str, about: bytes, purpose: str) -> Stream:
    """The stream of one purpose of a comparison."""
    if not key.simulated:
        raise ReleaseKeyError("a comparison has no ledger", where="key", do="use ReleaseKey.simulation")
    return key.stream("evaluate", table, about, purpose)
