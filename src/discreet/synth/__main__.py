"""`python -m discreet.synth graduates --rows 1000000 --out DIR`: write invented records; also `employers`, `atlas`,
`occupations`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.screen import say
from discreet.synth.atlas import AtlasFiles, write_atlas
from discreet.synth.education.files import Graduates, graduates
from discreet.synth.files import Progress
from discreet.synth.occupational.files import OccupationFiles, write_occupations
from discreet.synth.occupational.requirements import ORS, PAPER
from discreet.synth.workplaces.files import EmployerFiles, write_employers

A_TRACT = 286  # children


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when written, 2 when refused."""
    given = _parser().parse_args(arguments)
    try:
        written = given.write(given)
    except DiscreetError as refusal:
        say(str(refusal), err=True)
        return 2
    for path in vars(written).values():
        for one in path if isinstance(path, tuple) else (path,):
            say(str(one))
    return 0


def _graduates(given: argparse.Namespace) -> Graduates:
    return graduates(given.out, given.records, given.seed, _progress(given), dirt=given.dirt)


def _employers(given: argparse.Namespace) -> EmployerFiles:
    return write_employers(given.out, given.records, given.seed, _progress(given), dirt=given.dirt)


def _atlas(given: argparse.Namespace) -> AtlasFiles:
    return write_atlas(
        given.out, given.records, given.tracts or -(-given.records // A_TRACT), given.seed, _progress(given)
    )


def _occupations(given: argparse.Namespace) -> OccupationFiles:
    return write_occupations(
        given.out,
        given.records,
        given.seed,
        _progress(given),
        requirements=PAPER if given.paper else ORS,
        replicates=given.replicates,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m discreet.synth", description=__doc__)
    agencies = parser.add_subparsers(required=True, metavar="agency")
    for name, write, records, text in (
        ("graduates", _graduates, "--rows", "graduates and their earnings, like PSEO's input"),
        ("employers", _employers, "--jobs", "establishments, their jobs and workers, like LODES's input"),
        (
            "atlas",
            _atlas,
            "--children",
            "children in tracts, their parents' and their own ranks, like the atlas's input",
        ),
        ("occupations", _occupations, "--rows", "a sample of jobs and what they ask for, like the ORS"),
    ):
        agency = agencies.add_parser(name, help=text)
        agency.set_defaults(write=write)
        agency.add_argument(records, dest="records", metavar="N", type=int, required=True, help="at most 10^8")
        agency.add_argument("--out", type=Path, required=True, help="the folder to write into")
        agency.add_argument("--seed", type=int, default=7, help="the same seed gives the same agency")
        if name == "atlas":
            agency.add_argument("--tracts", type=int, help=f"default: one for {A_TRACT} children")
        elif name == "occupations":
            agency.add_argument("--replicates", type=int, default=20, help="how many replicate weights; 2 to 160")
            agency.add_argument("--paper", action="store_true", help="the ten requirements of 002; it has --rows 182")
        else:
            agency.add_argument("--clean", dest="dirt", action="store_false", help="leave out the dirt of real files")
        agency.add_argument("--quiet", dest="progress", action="store_false", help="show no progress")
    return parser


def _progress(given: argparse.Namespace) -> Progress | None:
    return _show if given.progress else None


def _show(done: int, total: int) -> None:
    """One line that is written over; where nobody can, only the last."""
    if done < total and not sys.stderr.isatty():
        return
    end = "\n" if done == total else "\r"
    sys.stderr.write(f"{done:,} of {total:,} records{end}")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
