"""Commands about a release: plan, check, run, resume; the demo; a look at a published layout."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

import discreet
from discreet.cli.options import LedgerPlace, Spec
from discreet.formatting import plural, progress, say
from discreet.methods import COMMANDS


def plan(
    spec: Spec,
    ledger: LedgerPlace = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run the Python files that the declaration names, on invented numbers.")
    ] = False,
) -> None:
    """What will leave, at what privacy cost, with what expected error. Reads no confidential data, runs no code."""
    found = discreet.release(spec, ledger=ledger).plan(trust=trust)
    for line in found.lines:
        say(line)
    if found.problem:
        raise typer.Exit(1)


def check(
    spec: Spec, examples: Annotated[bool, typer.Option(help="Also print frequent undeclared values.")] = False
) -> None:
    """Confidential side: what the declared rules will drop or fold. Writes and spends nothing."""
    from discreet.pipeline.check import lines

    release = discreet.release(spec)
    for line in lines(release.check(), release.spec, examples):
        say(line)


def run(
    spec: Spec,
    out: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--out", help="A folder that does not exist yet, or an empty prefix like s3://bucket/name."),
    ] = None,
    ledger: LedgerPlace = None,
    simulation: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Use a fixed test key made of this text. Marks every output; needs a simulation ledger."),
    ] = None,
) -> None:
    """Protect, publish, commit to the ledger. Resumable."""
    release = discreet.release(spec, ledger=ledger)
    with progress() as observe:
        made = release.run(_out(release.spec, out), simulation=simulation, observe=observe)
    _published(made, _out(release.spec, out))


def resume(spec: Spec, ledger: LedgerPlace = None) -> None:
    """Complete an interrupted run: same key, same data, same bytes, no further cost."""
    release = discreet.release(spec, ledger=ledger)
    with progress() as observe:
        made = release.resume(observe=observe)
    chain = release.ledger.chain()
    derived = chain.derived().get(made.release)
    _published(made, derived[0].output if derived else chain.releases()[made.release].reserve.output)


def demo(
    folder: Annotated[Path, typer.Argument(help="Where to build the synthetic agency.")] = Path("demo"),
    rows: Annotated[int, typer.Option(help="Records of graduates to invent.", min=1_000)] = 1_000_000,
) -> None:
    """A synthetic agency, released for real: declare, plan, check, run, look at the ledger."""
    from discreet.cli.demo import demo as show

    show(folder, rows)


def check_layout(
    file: Annotated[Path, typer.Argument(help="A published file: CSV, gzipped or not, or Parquet.", metavar="FILE")],
    repair: Annotated[bool, typer.Option("--repair", help="First put back the zeros a spreadsheet took away.")] = False,
) -> None:
    """Whether a file follows the LEHD layout of PSEO earnings (pseoe) or flows (pseof)."""
    from discreet.publish.lehd.check import check_layout

    found = check_layout(file, repair)
    for violation in found.violations:
        say(str(violation))
    if found.violations:
        zeros = "" if repair or not found.zeros else "; most codes have lost their zeros: try --repair"
        say(f"{file} does not follow the layout {found.layout}: {plural(found.total, 'violation')}{zeros}.")
        raise typer.Exit(1)
    repaired = ", its zeros put back," if repair else ""
    say(f"{file}{repaired} follows the layout {found.layout} ({plural(found.rows, 'row')}).")


def _out(spec: Any, out: str | None) -> str:
    if out is not None:
        return out
    named = spec.output or spec.release
    return named if "://" in named else str(spec.base / named)


def _published(made: Any, out: str) -> None:
    tables = plural(len(made.tables), "table")
    say(f"Published {made.release} in {out}: {tables}, {made.composition}.")
    say(made.guarantee_in_words)
    for caveat in made.guarantee.caveats:
        say(f"Caveat: {caveat}")
    for name in dict.fromkeys(table.method for table in made.tables):
        for line in _told_by(name, made, out):
            say(line)
    if made.simulation:
        say(made.notice)
    say(f"Ledger entry {made.ledger.entry}, head {made.ledger.head}")


def _told_by(method: str, made: Any, out: str) -> list[str]:
    """What the commands of a method have to tell of a release of it, if anything."""
    if (module := f"discreet.methods.{method}.commands") not in COMMANDS:
        return []
    told: list[str] = getattr(import_module(module), "afterwards", lambda *_: [])(made, out)
    return told


def add(app: typer.Typer) -> None:
    app.command()(plan)
    app.command()(check)
    app.command()(run)
    app.command()(resume)
    app.command()(demo)
    app.command("check-layout")(check_layout)
