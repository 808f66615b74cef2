"""Shared by the benchmarks: interleaved best-of timing, peak memory, one JSON object on standard output."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

Result = dict[str, Any]


def seconds(run: Callable[[], object]) -> float:
    """Wall-clock seconds of one run."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def best_of(contestants: Mapping[str, Callable[[], object]], rounds: int = 5) -> dict[str, float]:
    """The best time of each, interleaved, so that slow phases of the machine affect all alike."""
    best = dict.fromkeys(contestants, float("inf"))
    for run in contestants.values():
        run()  # compile, build tables, touch memory
    for _ in range(rounds):
        for name, run in contestants.items():
            best[name] = min(best[name], seconds(run))
    return best


def peak_rss_mib() -> float:
    """The peak resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def peak_rss_of(run: Callable[..., object], *arguments: object) -> float:
    """The peak resident memory of a separate process that does only this."""
    process = multiprocessing.get_context("spawn").Process(target=run, args=arguments)
    process.start()
    process.join()
    if process.exitcode != 0:
        raise RuntimeError("the measured process failed")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


@contextmanager
def stdout_redirected() -> Iterator[None]:
    """Redirect standard output to standard error meanwhile, also of libraries and child processes: DuckDB and Spark
    print progress bars."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)


def front(description: str, run: Callable[[argparse.Namespace], Result], **options: int) -> None:
    """`python -m benchmarks.NAME [--json] [--option N …]`: run, then print one JSON object or a table."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--size", choices=["default", "full"], default="default", help="full: the large case")
    for name, default in options.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default, help=f"default {default}")
    arguments = parser.parse_args()
    start = time.perf_counter()
    with stdout_redirected():
        result = run(arguments)
    result = {"seconds": round(time.perf_counter() - start, 3), "peak_rss_mib": round(peak_rss_mib(), 1), **result}
    if arguments.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:32} {value:,.4g}" if isinstance(value, float) else f"{name:32} {value}")
