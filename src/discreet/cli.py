"""The command line. Heavy modules are imported inside the commands: `--help` answers at once."""

from __future__ import annotations

import io
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn, Optional

import typer

from discreet import cli_cubes, cli_estimates, cli_serve
from discreet.ending import end
from discreet.errors import DiscreetError
from discreet.screen import cut, refuse, say, visible
from discreet.version import __version__
from discreet.words import plural

app = typer.Typer(
    help="Disclosure avoidance for labour-market statistics: protected tables, their guarantee, and a ledger.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
ledger_app = typer.Typer(help="What has been spent on which asset.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(ledger_app, name="ledger")
cli_estimates.add(app)
cli_cubes.add(app)
cli_serve.add(app)

Spec = Annotated[Path, typer.Argument(help="The release, a YAML file.", metavar="RELEASE.YAML")]
LedgerPlace = Annotated[Optional[str], typer.Option("--ledger", help="The ledger; default: the spec's.")]  # noqa: UP045
OnlyLedger = Annotated[str, typer.Option("--ledger", help="The ledger: a file, or postgresql://USER@HOST/DATABASE.")]
LEDGER = "discreet-ledger.sqlite"
INTERRUPTED = 130
WRONG_USAGE: Any = typer.BadParameter.__mro__[2]  # every refusal of the command line; typer gives it no name of its own
INTERRUPT = (  # it may have hit a resume, or the instant after a reservation: claim nothing about what is spent
    "discreet: interrupted. `discreet ledger show` tells whether a release is reserved; `discreet resume` completes it."
)


def console() -> NoReturn:
    """A command in a process of its own, which is over when it is done."""
    status: object = 0
    try:
        main()
    except SystemExit as ended:
        status = ended.code or 0
    end(status if isinstance(status, int) else 1)


def main() -> None:
    """Run a command; a refusal is one line on standard error and exit code 1 (2 for wrong usage)."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, signal.default_int_handler)  # clean up as after Ctrl-C
    try:
        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # typer's word for Ctrl-C
            say(INTERRUPT, err=True)
        sys.exit(code)
    except WRONG_USAGE as error:
        sys.exit(_usage(error))
    except DiscreetError as error:
        refuse(error)
        sys.exit(1)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        refuse(f"{place}{error.strerror or type(error).__name__}.")
        sys.exit(1)
    except Exception as error:
        refuse(_internal(error))
        sys.exit(70)


def _usage(error: Any) -> int:
    """Print what typer would, which repeats what was typed; the exit code."""
    words = io.StringIO()
    error.show(words)
    for line in words.getvalue().rstrip("\n").split("\n"):
        say(cut(visible(line)), err=True)
    return int(error.exit_code)


def _internal(error: Exception) -> str:
    """Where a programming error happened; its message stays inside, for it may quote a confidential value."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}" if trace else "unknown place"
    return (
        f"internal error ({type(error).__name__} in {place}). Please report it; `discreet ledger show` tells the rest."
    )


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        say(f"discreet {__version__}")
        raise typer.Exit


@app.command()
def plan(
    spec: Spec,
    ledger: LedgerPlace = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run the Python files that the declaration names, on invented numbers.")
    ] = False,
) -> None:
    """What will leave, at what privacy cost, with what expected error. Reads no confidential data, runs no code."""
    found = _open(spec, ledger).plan(trust=trust)
    for line in found.lines:
        say(line)
    if found.problem:
        raise typer.Exit(1)


@app.command()
def check(
    spec: Spec, examples: Annotated[bool, typer.Option(help="Also print frequent undeclared values.")] = False
) -> None:
    """Confidential side: what the declared rules will drop or fold. Writes and spends nothing."""
    from discreet.pipeline.check import lines

    release = _open(spec, None)
    for line in lines(release.check(), release.spec, examples):
        say(line)


@app.command()
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
    from discreet.terminal import progress

    release = _open(spec, ledger)
    with progress() as observe:
        made = release.run(_out(release.spec, out), simulation=simulation, observe=observe)
    _published(made, _out(release.spec, out))


@app.command()
def resume(spec: Spec, ledger: LedgerPlace = None) -> None:
    """Complete an interrupted run: same key, same data, same bytes, no further cost."""
    from discreet.terminal import progress

    release = _open(spec, ledger)
    with progress() as observe:
        made = release.resume(observe=observe)
    chain = release.ledger.chain()
    derived = chain.derived().get(made.release)
    _published(made, derived[0].output if derived else chain.releases()[made.release].reserve.output)


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Where to build the synthetic agency.")] = Path("demo"),
    rows: Annotated[int, typer.Option(help="Records of graduates to invent.", min=1_000)] = 1_000_000,
) -> None:
    """A synthetic agency, released for real: declare, plan, check, run, look at the ledger."""
    from discreet.demo import demo as show

    show(folder, rows)


@app.command("reproduce")
def reproduce_paper(
    paper: Annotated[str, typer.Argument(help="Which one: employer, hypercube or sensitivity.", metavar="PAPER")],
    out: Annotated[Path, typer.Option("--out", help="A folder that is empty or does not exist yet.")],
    jobs: Annotated[int, typer.Option(help="Jobs to invent, for employer.", min=10_000)] = 10_900_000,
    children: Annotated[int, typer.Option(help="Children to invent, for sensitivity.", min=100_000)] = 20_000_000,
    runs: Annotated[int, typer.Option(help="Times to perturb and calibrate, for hypercube.", min=20)] = 1_000,
    seed: Annotated[int, typer.Option(help="The same seed invents the same records.", min=0)] = 7,
) -> None:
    """A paper's tables and figures made again on invented data, our numbers beside theirs."""
    from discreet.reproduce import reproduce
    from discreet.terminal import progress

    size = {"sensitivity": children, "hypercube": runs}.get(paper, jobs)
    with progress() as observe:
        written = reproduce(paper, out, size, seed, observe)
    say(f"{written[0]}: {plural(len(written), 'file')} written.")


@app.command("recode-groups")
def recode_groups(
    spec: Spec,
    old: Annotated[Path, typer.Argument(help="The list of groups that were measured, CSV.", metavar="OLD.CSV")],
    new: Annotated[Path, typer.Argument(help="Where to write the new list.", metavar="NEW.CSV")],
    only: Annotated[Optional[list[str]], typer.Option(help="Take this recoded column, drop the others.")] = None,  # noqa: UP045
    leave_out: Annotated[Optional[list[str]], typer.Option(help="Drop this column.")] = None,  # noqa: UP045
) -> None:
    """The list of groups in a new classification that an old list can become, for a release with `recode`."""
    from discreet.pipeline.groups import write_groups

    number = write_groups(_open(spec, None).spec, old, new, only or [], leave_out or [])
    say(f"{new}: {plural(number, 'group')}.")


@app.command("check-layout")
def check_layout(
    file: Annotated[Path, typer.Argument(help="A published file: CSV, gzipped or not, or Parquet.", metavar="FILE")],
    repair: Annotated[bool, typer.Option("--repair", help="First put back the zeros a spreadsheet took away.")] = False,
) -> None:
    """Whether a file follows the LEHD layout of PSEO earnings (pseoe) or flows (pseof)."""
    from discreet.publish.lehd.check import examine, lines

    found = examine(file, repair)
    for line in lines(found.violations):
        say(line)
    if found.violations:
        zeros = "" if repair or not found.zeros else "; most codes have lost their zeros: try --repair"
        say(f"{file} does not follow the layout {found.layout}: {plural(found.total, 'violation')}{zeros}.")
        raise typer.Exit(1)
    repaired = ", its zeros put back," if repair else ""
    say(f"{file}{repaired} follows the layout {found.layout} ({plural(found.rows, 'row')}).")


@ledger_app.command("show")
def ledger_show(ledger: OnlyLedger = LEDGER) -> None:
    """Budgets, releases and what is left."""
    from discreet.terminal import ledger_lines

    for line in ledger_lines(_ledger(ledger)):
        say(line)


@ledger_app.command("verify")
def ledger_verify(
    ledger: OnlyLedger = LEDGER,
    head: Annotated[Optional[str], typer.Option(help="A head hash from outside.")] = None,  # noqa: UP045
    manifest: Annotated[
        str | None, typer.Option(help="A published folder: its files, manifest and head are checked.")
    ] = None,
) -> None:
    """Check the whole chain, and that it contains a head known from elsewhere."""
    if manifest is not None:
        from discreet.pipeline.verify import verify_folder

        made = verify_folder(_ledger(ledger), manifest)
        say(f"{made.release}: manifest and {plural(len(made.files), 'file')} are those that were committed.")
        head = made.ledger.head
    chain = _ledger(ledger).verify(head)
    also = " and contains the given head" if head else ""
    say(f"{len(chain.entries)} entries, {chain.kind} ledger: every hash fits{also}. Head {chain.head}")


@ledger_app.command("pins")
def ledger_pins(
    folders: Annotated[list[str], typer.Argument(help="Folders of published releases.", metavar="FOLDER")],
    ledger: OnlyLedger = LEDGER,
) -> None:
    """Verify folders against the ledger, and print the SHA-256 of each manifest, for `discreet serve --pin`."""
    from discreet.pipeline.verify import verify_folder
    from discreet.publish.pins import line

    opened = _ledger(ledger)
    for text in [line(verify_folder(opened, folder), folder) for folder in folders]:
        say(text)


@ledger_app.command("budget")
def ledger_budget(
    asset: Annotated[str, typer.Argument(help="What the budget is about.")],
    epsilon: Annotated[str, typer.Option(help='Exact: "10", "1.5" or "3/2".')],
    unit: Annotated[
        str,
        typer.Option(help="record, person:COLUMN, job:COLUMN, establishment:COLUMN or whole_establishment:COLUMN."),
    ],
    delta: Annotated[str, typer.Option(help="Exact; 0 allows pure guarantees only.")] = "0",
    alpha: Annotated[Optional[str], typer.Option(help="For establishments within 1+alpha.")] = None,  # noqa: UP045
    adversary: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="strong or weak, for establishments within 1+alpha."),
    ] = None,
    neighbours: Annotated[str, typer.Option(help="add-remove or substitution.")] = "add-remove",
    start: Annotated[Optional[str], typer.Option("--from", help="First day, 2026-01-01.")] = None,  # noqa: UP045
    end: Annotated[Optional[str], typer.Option("--to", help="Last day.")] = None,  # noqa: UP045
    simulation: Annotated[bool, typer.Option(help="A simulation ledger: as confidential as the records.")] = False,
    ledger: OnlyLedger = LEDGER,
) -> None:
    """Set an asset's budget: how much, for whom, when. Begins the ledger if there is none."""
    from discreet.api import set_budget
    from discreet.terminal import unit_option

    set_budget(
        _ledger(ledger),
        asset,
        epsilon=epsilon,
        delta=delta,
        unit=unit_option(unit, alpha, adversary),
        neighbours=neighbours,
        start=start,
        end=end,
        kind="simulation" if simulation else "real",
    )
    period = f", from {start or 'the beginning'} to {end or 'open end'}" if start or end else ""
    within = f" within 1+{alpha}, {adversary} adversary" if alpha else ""
    say(f"Budget of {asset}: epsilon {epsilon}, delta {delta}, unit {unit}{within}{period}.")


@ledger_app.command("record")
def ledger_record(
    release: Annotated[str, typer.Argument(help="A name for the earlier or outside release.")],
    asset: Annotated[str, typer.Option(help="The asset it was made from.")],
    epsilon: Annotated[str, typer.Option(help="What it cost, for the budget's unit.")],
    note: Annotated[str, typer.Option(help="What it was, where it is described.")],
    delta: Annotated[str, typer.Option(help="Its delta.")] = "0",
    ledger: OnlyLedger = LEDGER,
) -> None:
    """Enter a release made earlier or elsewhere, so that the budget knows of it."""
    from discreet.privacy.refusal import as_refusal
    from discreet.terminal import record_outside

    with as_refusal("record"):
        entry = record_outside(_ledger(ledger), release, asset, epsilon, delta, note)
    say(f"Recorded as entry {entry.number}.")


@ledger_app.command("abandon")
def ledger_abandon(
    release: Annotated[str, typer.Argument(help="A reserved release.")],
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")],
    ledger: OnlyLedger = LEDGER,
) -> None:
    """End a reservation without a release: its key and staged files are destroyed, its cost stays spent."""
    from discreet.noise.keystore import default_keys
    from discreet.pipeline.run import abandon

    entry = abandon(_ledger(ledger), default_keys(), release, reason)
    say(f"Abandoned as entry {entry.number}; the cost stays spent.")


@ledger_app.command("restore")
def ledger_restore(
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")],
    ledger: OnlyLedger = LEDGER,
) -> None:
    """Go on from an older copy of the ledger: what it lacks is entered again, or counts as spent."""
    from discreet.noise.keystore import default_keys
    from discreet.pipeline.run import restore
    from discreet.privacy.refusal import as_refusal

    with as_refusal("restore"):
        restored, unfinished = restore(_ledger(ledger), default_keys(), reason)
    entries = plural(restored.again, "entry", "entries")
    say(f"Restored: {entries} entered again; {plural(len(restored.lost), 'cost')} of lost entries stay spent.")
    for release in unfinished:
        say(f"{release}: its reservation is lost, its key destroyed. Remove what it has staged.")


def _open(spec: Path, ledger: str | None) -> Any:
    from discreet import api

    return api.release(spec, ledger=None if ledger is None else _ledger(ledger))


def _ledger(place: str) -> Any:
    from discreet import api

    return api.ledger(place)


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
    for line in cli_cubes.fallbacks(made, out):
        say(line)
    if made.simulation:
        say(made.notice)
    say(f"Ledger entry {made.ledger.entry}, head {made.ledger.head}")


if __name__ == "__main__":
    console()
