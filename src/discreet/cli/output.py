"""Terminal output of the ledger and of tables; parsing of options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv

from discreet.errors import GuaranteeError, LedgerError, ParameterError, PublishError
from discreet.formatting import cut, guarded_table, visible
from discreet.pipeline.plan import budget_line
from discreet.privacy.exact import format_exact, parse_exact
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.events import Budget, DerivedRelease, Entry, ExternalRelease, Reserve, Restoration
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.state import Chain


def ledger_lines(ledger: Ledger) -> list[str]:
    """Budgets with what is left, then all entries, oldest first."""
    chain = ledger.chain()
    lines = [f"{chain.kind} ledger {ledger.store.place}, {len(chain.entries)} entries, head {chain.head}"]
    if chain.kind == "simulation":
        lines.append("SIMULATION: none of its entries is a release")
    if missing := ledger.lost():
        lines.append(f"ROLLED BACK: {len(missing)} of the entries that this key store has seen are missing")
    for asset in dict.fromkeys(e.asset for e in chain.events if isinstance(e, Budget)):
        try:
            lines.append(f"asset {asset}: {budget_line(chain.balance(asset, ledger.clock().date()))}")
        except LedgerError as error:
            lines.append(cut(f"asset {asset}: {error.what}"))
        lines.append(f"  ever spent: {_lifetime(chain, asset)}")
        users = dict.fromkeys(event.who for event in chain.spending(asset))
        if len(users) > 1:
            lines += [f"    by {who}: {_lifetime(chain, asset, who)}" for who in users]
    states = chain.releases()
    for entry, event in zip(chain.entries, chain.events, strict=True):
        if isinstance(event, Reserve):
            cost, status = format_exact(event.guarantee.epsilon), states[event.release].status
            lines.append(
                f"  {entry.number:>4} {event.time:%Y-%m-%d %H:%M} {event.release}: epsilon {cost} on {event.asset}, "
                f"{status}, by {event.who}"
            )
        elif isinstance(event, Budget):
            period = (
                f" from {event.start or 'the beginning'} to {event.end or 'open end'}"
                if event.start or event.end
                else ""
            )
            lines.append(
                f"  {entry.number:>4} {event.time:%Y-%m-%d %H:%M} budget of {event.asset}: epsilon "
                f"{format_exact(event.epsilon)}, delta {format_exact(event.delta)}{period}, by {event.who}"
            )
        elif isinstance(event, ExternalRelease):
            lines.append(
                f"  {entry.number:>4} {event.time:%Y-%m-%d %H:%M} {event.release}: epsilon "
                f"{format_exact(event.guarantee.epsilon)} on {event.asset}, recorded by {event.who}: {event.note}"
            )
        elif isinstance(event, DerivedRelease):
            lines.append(
                f"  {entry.number:>4} {event.time:%Y-%m-%d %H:%M} {event.release}: epsilon 0 on {event.asset}, derived "
                f"from {event.of}, by {event.who}"
            )
        elif isinstance(event, Restoration):
            lines.append(
                f"  {entry.number:>4} {event.time:%Y-%m-%d %H:%M} restored by {event.who}: {event.reason} "
                f"({event.again} entered again, {len(event.lost)} lost and spent)"
            )
            lines += [
                f"       {e.release}: epsilon {format_exact(e.guarantee.epsilon)} on {e.asset}, lost, by {e.who}"
                for e in event.lost
            ]
    return lines


def _lifetime(chain: Chain, asset: str, who: str | None = None) -> str:
    try:
        total = chain.lifetime(asset, who)
    except GuaranteeError:
        return "for several privacy units that do not compose; see the entries"
    if total is None:
        return "nothing"
    how = " under substitution" if total.neighbours == "substitution" else ""
    return f"epsilon {format_exact(total.epsilon)}, delta {format_exact(total.delta)}{how}"


def balance_lines(ledger: Ledger, asset: str) -> list[str]:
    """The budget in force with what is left, and a warning if it is overspent."""
    balance = ledger.chain().balance(asset, ledger.clock().date())
    lines = [f"asset {asset}: {budget_line(balance)}"]
    over = [("epsilon", -balance.epsilon_left), ("delta", -balance.delta_left)]
    if amounts := " and ".join(f"{name} {format_exact(amount)}" for name, amount in over if amount > 0):
        lines.append(f"WARNING: the budget of {asset} is overspent by {amounts}; no release is possible under it.")
    return lines


def unit_option(text: str, alpha: str | None, adversary: str | None) -> Any:
    """`person:person_id` as a declaration has it. A budget leaves max_records open: a release enforces any number."""
    kind, _, column = text.partition(":")
    if kind != "establishment" and (alpha or adversary):
        raise ParameterError(
            "--alpha and --adversary are for establishment:COLUMN", where="--unit", do="leave them out"
        )
    if text == "record":
        return "record"
    if kind not in ("person", "job", "establishment", "whole_establishment") or not column:
        raise ParameterError(
            f"expected record, person:COLUMN, job:COLUMN, establishment:COLUMN or whole_establishment:COLUMN, "
            f"found {text!r}",
            where="--unit",
            do="name the privacy unit and its column",
        )
    if kind == "establishment":
        if alpha is None or adversary not in ("strong", "weak"):
            raise ParameterError(
                "an establishment within 1+alpha needs --alpha, and --adversary strong or weak",
                where="--unit",
                do="give both; there is no default",
            )
        return {"establishment": column, "alpha": alpha, "adversary": adversary}
    return {"kind": kind, "column": column}


def record_external(ledger: Ledger, release: str, asset: str, epsilon: str, delta: str, note: str) -> Entry:
    """Charge an external release to the asset's budget, for its privacy unit."""
    time = ledger.clock()
    budget = ledger.chain().balance(asset, time.date()).budget
    guarantee = Guarantee(
        unit=budget.unit,
        epsilon=parse_exact(epsilon, "--epsilon"),
        delta=parse_exact(delta, "--delta"),
        neighbours=budget.neighbours,
    )
    return ledger.record(
        ExternalRelease(release=release, asset=asset, guarantee=guarantee, note=note, who=ledger.who(), time=time)
    )


def table_lines(table: pa.Table) -> list[str]:
    """Rows as aligned text: text to the left, numbers to the right, with decimals unless a column is all integers."""
    texts = [_column(column.to_pylist()) for column in table.columns]
    columns = [[visible(name), *column] for name, column in zip(table.column_names, texts, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    left = [not (pa.types.is_floating(field.type) or pa.types.is_integer(field.type)) for field in table.schema]
    return [
        "  ".join(
            t.ljust(w) if to_left else t.rjust(w) for t, w, to_left in zip(row, widths, left, strict=True)
        ).rstrip()
        for row in zip(*columns, strict=True)
    ]


def _column(values: list[Any]) -> list[str]:
    digits = 0 if all(value.is_integer() for value in values if isinstance(value, float)) else 2
    return [_shown(value, digits) for value in values]


def _shown(value: object, digits: int) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value + 0.0:,.{digits}f}"  # no negative zeros
    return f"{value:,}" if isinstance(value, int) else visible(str(value))


def write_csv(table: pa.Table, path: Path) -> None:
    """Write a new file: codes quoted and guarded against spreadsheets, numbers as they are."""
    try:
        with path.open("xb") as file:
            pcsv.write_csv(guarded_table(table), file)
    except FileExistsError:
        raise PublishError("already exists", where=str(path), do="name a new file") from None
