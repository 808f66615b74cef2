"""Exclusive lock files, also while processes keep creating and removing them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from discreet.filelock import try_lock


def test_of_many_who_wait_one_at_a_time_has_the_lock(tmp_path: Path) -> None:
    inside, most = [0], [0]

    def work(_: int) -> bool:
        with try_lock(tmp_path / "x.lock", wait=20) as free:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            inside[0] -= 1
        return free

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(800)))
    assert most == [1]
    assert not list(tmp_path.iterdir())


def test_without_waiting_a_second_lock_fails(tmp_path: Path) -> None:
    with try_lock(tmp_path / "x.lock") as first, try_lock(tmp_path / "x.lock") as second:
        assert (first, second) == (True, False)
    with try_lock(tmp_path / "x.lock") as again:
        assert again
