"""Commands about a release: plan, check, run, resume; demo; check-layout."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

import discreet
from discreet.cli.options import LedgerPlace, Spec
from discreet.formatting import plural, progress, say
from discreet.methods import COMMANDS

if TYPE_CHECKING:
    from discreet.publish.manifest import Manifest
    from discreet.spec import Release


def plan(
    spec: Spec,
    ledger: LedgerPlace = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run the Python files that the declaration names, on synthetic numbers.")
    ] = False,
) -> None:
    """Show tables, privacy cost and expected error.

    Reads no confidential data, spends nothing, and runs no code that the declaration names unless it is trusted.
    """
    planned = discreet.release(spec, ledger=ledger).plan(trust=trust)
    for line in planned.lines:
        say(line)
    if planned.problem:
        raise typer.Exit(1)


def check(
    spec: Spec, examples: Annotated[bool, typer.Option(help="Also print the most frequent undeclared values.")] = False
) -> None:
    """Count records that the rules affect (confidential).

    Reads the records and counts those that the declared rules will drop, clamp or recode to "other". Spends no
    privacy budget and writes nothing. The output is confidential.
    """
    from discreet.pipeline.check import lines

    release = discreet.release(spec)
    for line in lines(release.check(), release.spec, examples):
        say(line)


def run(
    spec: Spec,
    out: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--out", help="Output: a new folder, or an empty prefix such as s3://bucket/name."),
    ] = None,
    ledger: LedgerPlace = None,
    simulation: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Simulate with a fixed test key derived from this text. Needs a simulation ledger."),
    ] = None,
) -> None:
    """Spend the privacy budget and publish the release.

    Tabulates the records, reserves the privacy cost in the ledger, adds noise, commits and publishes. An
    interrupted run is completed by `discreet resume`.
    """
    release = discreet.release(spec, ledger=ledger)
    with progress() as observe:
        manifest = release.run(_out(release.spec, out), simulation=simulation, observe=observe)
    _published(manifest, _out(release.spec, out))


def resume(spec: Spec, ledger: LedgerPlace = None) -> None:
    """Complete an interrupted run at no further cost.

    Same key, same data, same noise, same bytes. Refused if data, declaration or code have changed.
    """
    release = discreet.release(spec, ledger=ledger)
    with progress() as observe:
        manifest = release.resume(observe=observe)
    chain = release.ledger.chain()
    derived = chain.derived().get(manifest.release)
    _published(manifest, derived[0].output if derived else chain.releases()[manifest.release].reserve.output)


def demo(
    folder: Annotated[Path, typer.Argument(help="New folder for the synthetic agency.")] = Path("demo"),
    rows: Annotated[int, typer.Option(help="Number of synthetic records of graduates.", min=1_000)] = 1_000_000,
) -> None:
    """Try every step on a synthetic agency.

    Generates synthetic records, then declares, plans, checks and runs real releases of them, and shows the ledger.
    """
    from discreet.cli.demo import demo as show

    show(folder, rows)


def check_layout(
    file: Annotated[Path, typer.Argument(help="A published file: CSV (or .csv.gz) or Parquet.", metavar="FILE")],
    repair: Annotated[
        bool, typer.Option("--repair", help="First restore leading zeros that a spreadsheet removed.")
    ] = False,
) -> None:
    """Validate a file against the LEHD layout of PSEO.

    The layouts of PSEO earnings (pseoe) and flows (pseof).
    """
    from discreet.publish.lehd.check import check_layout

    result = check_layout(file, repair)
    for violation in result.violations:
        say(str(violation))
    if result.violations:
        zeros = "" if repair or not result.zeros else "; most codes have lost their leading zeros: try --repair"
        say(f"{file} does not follow the layout {result.layout}: {plural(result.total, 'violation')}{zeros}.")
        raise typer.Exit(1)
    repaired = ", its leading zeros restored," if repair else ""
    say(f"{file}{repaired} follows the layout {result.layout} ({plural(result.rows, 'row')}).")


def _out(spec: Release, out: str | None) -> str:
    if out is not None:
        return out
    declared = spec.output or spec.release
    return declared if "://" in declared else str(spec.base / declared)


def _published(manifest: Manifest, out: str) -> None:
    tables = plural(len(manifest.tables), "table")
    say(f"Published {manifest.release} in {out}: {tables}, {manifest.composition}.")
    say(manifest.guarantee_in_words)
    for caveat in manifest.guarantee.caveats:
        say(f"Caveat: {caveat}")
    for name in dict.fromkeys(table.method for table in manifest.tables):
        for line in _method_lines(name, manifest, out):
            say(line)
    if manifest.simulation:
        say(manifest.notice)
    say(f"Ledger entry {manifest.ledger.entry}, head {manifest.ledger.head}")


def _method_lines(method: str, manifest: Manifest, out: str) -> list[str]:
    """What a method reports about its part of a release, if anything."""
    if (module := f"discreet.methods.{method}.commands") not in COMMANDS:
        return []
    lines: list[str] = getattr(import_module(module), "afterwards", lambda *_: [])(manifest, out)
    return lines


def add(app: typer.Typer) -> None:
    app.command()(plan)
    app.command()(check)
    app.command()(run)
    app.command()(resume)
    app.command()(demo)
    app.command("check-layout")(check_layout)
