"""Commands about the ledger."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

import discreet
from discreet.cli.options import LEDGER, OnlyLedger
from discreet.formatting import plural, say


def ledger_show(ledger: OnlyLedger = LEDGER) -> None:
    """Budgets, releases and what is left."""
    from discreet.cli.output import ledger_lines

    for line in ledger_lines(discreet.ledger(ledger)):
        say(line)


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

        made = verify_folder(discreet.ledger(ledger), manifest)
        say(f"{made.release}: manifest and {plural(len(made.files), 'file')} are those that were committed.")
        head = made.ledger.head
    chain = discreet.ledger(ledger).verify(head)
    also = " and contains the given head" if head else ""
    say(f"{len(chain.entries)} entries, {chain.kind} ledger: every hash fits{also}. Head {chain.head}")


def ledger_pins(
    folders: Annotated[list[str], typer.Argument(help="Folders of published releases.", metavar="FOLDER")],
    ledger: OnlyLedger = LEDGER,
) -> None:
    """Verify folders against the ledger, and print the SHA-256 of each manifest, for `discreet serve --pin`."""
    from discreet.pipeline.verify import verify_folder
    from discreet.publish.pins import line

    opened = discreet.ledger(ledger)
    for text in [line(verify_folder(opened, folder), folder) for folder in folders]:
        say(text)


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
    from discreet.cli.output import unit_option

    set_budget(
        discreet.ledger(ledger),
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


def ledger_record(
    release: Annotated[str, typer.Argument(help="A name for the earlier or outside release.")],
    asset: Annotated[str, typer.Option(help="The asset it was made from.")],
    epsilon: Annotated[str, typer.Option(help="What it cost, for the budget's unit.")],
    note: Annotated[str, typer.Option(help="What it was, where it is described.")],
    delta: Annotated[str, typer.Option(help="Its delta.")] = "0",
    ledger: OnlyLedger = LEDGER,
) -> None:
    """Enter a release made earlier or elsewhere, so that the budget knows of it."""
    from discreet.cli.output import record_outside
    from discreet.privacy.exact import as_refusal

    with as_refusal("record"):
        entry = record_outside(discreet.ledger(ledger), release, asset, epsilon, delta, note)
    say(f"Recorded as entry {entry.number}.")


def ledger_abandon(
    release: Annotated[str, typer.Argument(help="A reserved release.")],
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")],
    ledger: OnlyLedger = LEDGER,
) -> None:
    """End a reservation without a release: its key and staged files are destroyed, its cost stays spent."""
    from discreet.noise.keystore import default_keys
    from discreet.pipeline.abandon import abandon

    entry = abandon(discreet.ledger(ledger), default_keys(), release, reason)
    say(f"Abandoned as entry {entry.number}; the cost stays spent.")


def ledger_restore(
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")],
    ledger: OnlyLedger = LEDGER,
) -> None:
    """Go on from an older copy of the ledger: what it lacks is entered again, or counts as spent."""
    from discreet.noise.keystore import default_keys
    from discreet.pipeline.abandon import restore
    from discreet.privacy.exact import as_refusal

    with as_refusal("restore"):
        restored, unfinished = restore(discreet.ledger(ledger), default_keys(), reason)
    entries = plural(restored.again, "entry", "entries")
    say(f"Restored: {entries} entered again; {plural(len(restored.lost), 'cost')} of lost entries stay spent.")
    for release in unfinished:
        say(f"{release}: its reservation is lost, its key destroyed. Remove what it has staged.")


def add(app: typer.Typer) -> None:
    ledger = typer.Typer(help="What has been spent on which asset.", no_args_is_help=True, rich_markup_mode=None)
    ledger.command("show")(ledger_show)
    ledger.command("verify")(ledger_verify)
    ledger.command("pins")(ledger_pins)
    ledger.command("budget")(ledger_budget)
    ledger.command("record")(ledger_record)
    ledger.command("abandon")(ledger_abandon)
    ledger.command("restore")(ledger_restore)
    app.add_typer(ledger, name="ledger")
