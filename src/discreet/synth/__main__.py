"""Write synthetic data: `python -m discreet.synth graduates --rows 1000000 --out DIR`; also `employers`, `atlas`,
`occupations`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.formatting import say
from discreet.synth.atlas import write_atlas
from discreet.synth.education.files import graduates
from discreet.synth.files import Progress
from discreet.synth.occupational.files import write_occupations
from discreet.synth.occupational.requirements import ORS, PAPER
from discreet.synth.workplaces.files import write_employers

A_TRACT = 286  # children


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when written, 2 when refused."""
    given = _parser().parse_args(arguments)
    try:
        written = given.write(given, _show if given.progress else None)
    except DiscreetError as refusal:
        say(str(refusal), err=True)
        return 2
    try:
        for path in vars(written).values():
            for one in path if isinstance(path, tuple) else (path,):
                say(str(one))
        sys.stdout.flush()
    except BrokenPipeError:  # `| head`: the files are written, and nobody reads the rest of the list
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m discreet.synth", description=__doc__)
    agencies = parser.add_subparsers(required=True, metavar="agency")

    def agency(name: str, records: str, text: str, write: Callable[..., object]) -> argparse.ArgumentParser:
        command = agencies.add_parser(name, help=text)
        command.set_defaults(write=write)
        command.add_argument(records, dest="records", metavar="N", type=int, required=True, help="number of records")
        command.add_argument("--out", type=Path, required=True, help="the output folder")
        command.add_argument("--seed", type=int, default=7, help="equal seeds give equal data")
        command.add_argument("--quiet", dest="progress", action="store_false", help="show no progress")
        return command

    def with_data_errors(given: argparse.Namespace, show: Progress | None) -> object:
        return given.kind(given.out, given.records, given.seed, show, data_errors=given.data_errors)

    def atlas(given: argparse.Namespace, show: Progress | None) -> object:
        tracts = given.tracts or -(-given.records // A_TRACT)
        return write_atlas(given.out, given.records, tracts, given.seed, show)

    def occupations(given: argparse.Namespace, show: Progress | None) -> object:
        survey, replicates = PAPER if given.paper else ORS, given.replicates
        return write_occupations(given.out, given.records, given.seed, show, requirements=survey, replicates=replicates)

    for name, records, kind, text in (
        ("graduates", "--rows", graduates, "graduates and their earnings, like the input of PSEO"),
        ("employers", "--jobs", write_employers, "establishments, their jobs and workers, like the input of LODES"),
    ):
        command = agency(name, records, text, with_data_errors)
        command.set_defaults(kind=kind)
        command.add_argument(
            "--clean", dest="data_errors", action="store_false", help="without the data errors of real files"
        )
    text = "children by tract, with their own and their parents' income ranks, like the input of the Opportunity Atlas"
    command = agency("atlas", "--children", text, atlas)
    command.add_argument("--tracts", type=int, help=f"default: one per {A_TRACT} children")
    text = "a sample of jobs and their requirements, like the Occupational Requirements Survey (ORS)"
    command = agency("occupations", "--rows", text, occupations)
    command.add_argument("--replicates", type=int, default=20, help="number of replicate weights, 2 to 160")
    command.add_argument("--paper", action="store_true", help="the ten requirements of Li & Krenzke 2020 (--rows 182)")
    return parser


def _show(done: int, total: int) -> None:
    """One line that is overwritten on a terminal; otherwise only the last one."""
    if done < total and not sys.stderr.isatty():
        return
    end = "\n" if done == total else "\r"
    sys.stderr.write(f"{done:,} of {total:,} records{end}")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
