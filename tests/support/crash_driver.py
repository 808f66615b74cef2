"""A process that runs or resumes a release and kills itself (SIGKILL) at a named step, without clean-up."""

from __future__ import annotations

import datetime as dt
import os
import signal
import sys

import discreet
from discreet.methods.counts import method as counts

CLOCK = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


def main(verb: str, spec: str, ledger: str, out: str, kill_at: str, part: str = "") -> None:
    if part:  # rows in a file: a small number makes a table of many files
        counts.PART = int(part)
    seen: dict[str, int] = {}

    def observe(step: str, done: int, total: int) -> None:
        if done == 0:
            return
        seen[step] = seen.get(step, 0) + 1
        print(f"{step}#{seen[step]}", flush=True)
        if f"{step}#{seen[step]}" == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    release = discreet.release(spec, ledger=discreet.ledger(ledger, clock=lambda: CLOCK))
    if verb == "run":
        release.run(out, simulation="crash test", observe=observe)
    else:
        release.resume(observe=observe)


if __name__ == "__main__":
    main(*sys.argv[1:7])
