"""`python -m discreet.synth graduates --rows 1000000 --out DIR`: write a synthetic agency."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.synth.writing import graduates


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when written, 2 when refused."""
    given = _parser().parse_args(arguments)
    try:
        written = graduates(given.out, given.rows, given.seed, _show if given.progress else None, dirt=given.dirt)
    except DiscreetError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 2
    sys.stdout.writelines(f"{path}\n" for path in vars(written).values())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m discreet.synth", description=__doc__)
    agencies = parser.add_subparsers(required=True, metavar="agency")
    agency = agencies.add_parser("graduates", help="graduates and their earnings, like PSEO's input")
    agency.add_argument("--rows", type=int, required=True, help="records to write, 10000 to 100000000 and beyond")
    agency.add_argument("--out", type=Path, required=True, help="the folder to write into")
    agency.add_argument("--seed", type=int, default=7, help="the same seed gives the same agency")
    agency.add_argument("--clean", dest="dirt", action="store_false", help="leave out the dirt of real files")
    agency.add_argument("--quiet", dest="progress", action="store_false", help="show no progress")
    return parser


def _show(done: int, total: int) -> None:
    end = "\n" if done == total else "\r"
    sys.stderr.write(f"{done:,} of {total:,} records{end}")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
