"""Commands about the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Optional, cast

import typer

import discreet
from discreet.cli.options import LEDGER, OnlyLedger
from discreet.formatting import plural, say

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Neighbours


def ledger_show(ledger: OnlyLedger = LEDGER) -> None:
    """Show budgets, what is left of them, and every release."""
    from discreet.cli.output import ledger_lines

    for line in ledger_lines(discreet.ledger(ledger)):
        say(line)


def ledger_verify(
    ledger: OnlyLedger = LEDGER,
    head: Annotated[Optional[str], typer.Option(help="A head hash known from elsewhere.")] = None,  # noqa: UP045
    manifest: Annotated[
        str | None, typer.Option(help="A published folder: verify its files, manifest and head.")
    ] = None,
) -> None:
    """Verify the hash chain, and published folders against it.

    Every entry, and that the chain contains a head hash known from elsewhere: otherwise the ledger was rolled back.
    """
    if manifest is not None:
        from discreet.pipeline.verify import verify_folder

        published = verify_folder(discreet.ledger(ledger), manifest)
        say(f"{published.release}: manifest and {plural(len(published.files), 'file')} are those that were committed.")
        head = published.ledger.head
    chain = discreet.ledger(ledger).verify(head)
    also = "; it contains the given head" if head else ""
    say(f"{len(chain.entries)} entries, {chain.kind} ledger: hash chain verified{also}. Head {chain.head}")


def ledger_pins(
    folders: Annotated[list[str], typer.Argument(help="Folders of published releases.", metavar="FOLDER")],
    ledger: OnlyLedger = LEDGER,
) -> None:
    """Print manifest digests of verified folders.

    Verifies each folder against the ledger and prints the SHA-256 of its manifest, for `discreet serve --pin`.
    """
    from discreet.pipeline.verify import verify_folder
    from discreet.publish.pins import line

    opened = discreet.ledger(ledger)
    for text in [line(verify_folder(opened, folder), folder) for folder in folders]:
        say(text)


def ledger_budget(
    asset: Annotated[str, typer.Argument(help="The asset: the confidential data that the budget protects.")],
    epsilon: Annotated[str, typer.Option(help="Privacy budget epsilon, exact: 10, 1.5 or 3/2.")],
    unit: Annotated[
        str,
        typer.Option(
            help="Privacy unit: record, person:COLUMN, job:COLUMN, establishment:COLUMN or whole_establishment:COLUMN."
        ),
    ],
    delta: Annotated[
        str, typer.Option(help="Privacy budget delta, exact; 0 allows pure differential privacy only.")
    ] = "0",
    alpha: Annotated[Optional[str], typer.Option(help="For establishments: size within a factor 1+alpha.")] = None,  # noqa: UP045
    adversary: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="For establishments: strong or weak."),
    ] = None,
    neighbours: Annotated[str, typer.Option(help="Neighbouring relation: add-remove or substitution.")] = "add-remove",
    start: Annotated[Optional[str], typer.Option("--from", help="First day of the period, such as 2026-01-01.")] = None,  # noqa: UP045
    end: Annotated[Optional[str], typer.Option("--to", help="Last day of the period.")] = None,  # noqa: UP045
    simulation: Annotated[
        bool, typer.Option(help="Begin a simulation ledger: as confidential as the records.")
    ] = False,
    ledger: OnlyLedger = LEDGER,
) -> None:
    """Set the privacy budget of an asset.

    Epsilon, delta, privacy unit and period. Begins the ledger if there is none.
    """
    from discreet.api import set_budget
    from discreet.cli.output import unit_option

    set_budget(
        discreet.ledger(ledger),
        asset,
        epsilon=epsilon,
        delta=delta,
        unit=unit_option(unit, alpha, adversary),
        neighbours=cast("Neighbours", neighbours),  # `set_budget` refuses others
        start=start,
        end=end,
        kind="simulation" if simulation else "real",
    )
    period = f", from {start or 'the beginning'} to {end or 'open end'}" if start or end else ""
    within = f" within 1+{alpha}, {adversary} adversary" if alpha else ""
    how = ", neighbours substitution (an add-remove epsilon counts double)" if neighbours == "substitution" else ""
    say(f"Budget of {asset}: epsilon {epsilon}, delta {delta}, unit {unit}{within}{how}{period}.")


def ledger_record(
    release: Annotated[str, typer.Argument(help="A name for the external release.")],
    asset: Annotated[str, typer.Option(help="The asset that it used.")],
    epsilon: Annotated[str, typer.Option(help="Its epsilon, for the budget's privacy unit.")],
    note: Annotated[str, typer.Option(help="What it was, and where it is documented.")],
    delta: Annotated[str, typer.Option(help="Its delta.")] = "0",
    ledger: OnlyLedger = LEDGER,
) -> None:
    """Charge an external release to a budget.

    A release made earlier or elsewhere, so that its cost counts.
    """
    from discreet.cli.output import balance_lines, record_external
    from discreet.privacy.exact import as_refusal

    opened = discreet.ledger(ledger)
    with as_refusal("record"):
        entry = record_external(opened, release, asset, epsilon, delta, note)
    say(f"Recorded as entry {entry.number}.")
    for line in balance_lines(opened, asset):
        say(line)


def ledger_abandon(
    release: Annotated[str, typer.Argument(help="The name of a reserved release.")],
    reason: Annotated[str, typer.Option(help="The reason, which is recorded.")],
    ledger: OnlyLedger = LEDGER,
) -> None:
    """End a reservation; its cost stays spent.

    Destroys the key and staged files of a release that will not be completed.
    """
    from discreet.noise.keystore import default_keys
    from discreet.pipeline.abandon import abandon

    entry = abandon(discreet.ledger(ledger), default_keys(), release, reason)
    say(f"Abandoned as entry {entry.number}; the cost stays spent.")


def ledger_restore(
    reason: Annotated[str, typer.Option(help="The reason, which is recorded.")],
    ledger: OnlyLedger = LEDGER,
) -> None:
    """Continue from an older copy of the ledger.

    Entries that it lacks are entered again, or their costs count as spent.
    """
    from discreet.noise.keystore import default_keys
    from discreet.pipeline.abandon import restore
    from discreet.privacy.exact import as_refusal

    with as_refusal("restore"):
        restored, unfinished = restore(discreet.ledger(ledger), default_keys(), reason)
    entries = plural(restored.again, "entry", "entries")
    say(f"Restored: {entries} entered again; {plural(len(restored.lost), 'cost')} of lost entries stay spent.")
    for release in unfinished:
        say(f"{release}: its reservation is lost, its key destroyed. Remove its staged files.")


def add(app: typer.Typer) -> None:
    ledger = typer.Typer(
        help="Manage privacy budgets and verify releases.", no_args_is_help=True, rich_markup_mode=None
    )
    ledger.command("show")(ledger_show)
    ledger.command("verify")(ledger_verify)
    ledger.command("pins")(ledger_pins)
    ledger.command("budget")(ledger_budget)
    ledger.command("record")(ledger_record)
    ledger.command("abandon")(ledger_abandon)
    ledger.command("restore")(ledger_restore)
    app.add_typer(ledger, name="ledger")
