"""`python -m discreet.synth graduates --rows 1000000 --out DIR`: write a synthetic agency, also of `employers`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.synth.employer_files import write_employers
from discreet.synth.writing import graduates


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when written, 2 when refused."""
    given = _parser().parse_args(arguments)
    try:
        written = given.write(given.out, given.records, given.seed, _show if given.progress else None, dirt=given.dirt)
    except DiscreetError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 2
    sys.stdout.writelines(f"{path}\n" for path in vars(written).values())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m discreet.synth", description=__doc__)
    agencies = parser.add_subparsers(required=True, metavar="agency")
    for name, write, records, text in (
        ("graduates", graduates, "--rows", "graduates and their earnings, like PSEO's input"),
        ("employers", write_employers, "--jobs", "establishments, their jobs and workers, like LODES's input"),
    ):
        agency = agencies.add_parser(name, help=text)
        agency.set_defaults(write=write)
        agency.add_argument(records, dest="records", metavar="N", type=int, required=True, help="from 10000 to 10^8")
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
