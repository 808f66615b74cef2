"""What will leave, at what cost and with what error: known from the declaration alone. Reads no confidential data."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import GuaranteeError, LedgerError
from discreet.methods import ExpectedError, Method, methods
from discreet.privacy.exact import written
from discreet.privacy.guarantee import Guarantee, compose
from discreet.privacy.ledger import Balance, Ledger
from discreet.spec import Release
from discreet.words import plural

STRICT = (
    "Strict mode: that this release exists tells that no record broke the declared rules. "
    "The promise does not cover what that reveals."
)


@dataclass(frozen=True)
class PlannedTable:
    """One table before it is drawn."""

    name: str
    by: tuple[str, ...]
    shape: tuple[int, ...]
    cells: int
    guarantee: Guarantee
    composes: str
    noise: str
    error: ExpectedError
    sum_of: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A whole release before it is run. `problem` says why it would be refused, if it would."""

    release: str
    asset: str
    tables: tuple[PlannedTable, ...]
    rules: tuple[str, ...]
    total: Guarantee
    balance: Balance | None
    problem: str

    def __str__(self) -> str:
        lines = [f"Release {self.release} on asset {self.asset}", ""]
        for table in self.tables:
            by = " × ".join(f"{n} ({s:,})" for n, s in zip(table.by, table.shape, strict=True)) or "all records"
            cost = f"sum of {table.sum_of}, no cost" if table.sum_of else f"epsilon {written(table.guarantee.epsilon)}"
            lines += [
                f"  {table.name}: {by} = {plural(table.cells, 'cell')}, {cost}",
                f"    {table.composes}",
                f"    {table.noise}; 90% within ±{table.error.margin90}, mean |error| {table.error.mean_absolute:.3g}",
                *(f"    {note}" for note in table.notes),
            ]
        lines += ["", *(f"  Rule: {rule}" for rule in self.rules)] if self.rules else []
        measured = sum(not table.sum_of for table in self.tables)
        lines += ["", f"  Total: {composition(self.total, measured)}"]
        lines += [f"  {self.total.in_words()}"] + [f"  Caveat: {caveat}" for caveat in self.total.caveats]
        if self.balance is not None:
            lines.append(f"  Budget: {describe(self.balance)}")
        if self.problem:
            lines.append(f"  Would be refused: {self.problem}")
        return "\n".join(lines)


def plan(release: Release, ledger: Ledger | None = None) -> Plan:
    """Everything that is known before anything is spent."""
    tables = methods(release)
    total = total_guarantee(release, tables)
    balance, problem = None, ""
    if ledger is not None:
        try:
            chain = ledger.chain()
            balance = chain.balance(release.asset, ledger.clock().date())
            balance.charge(total)
            chain.refuse_used(release.release)
        except (LedgerError, GuaranteeError) as error:
            problem = str(error)
    return Plan(
        release=release.release,
        asset=release.asset,
        tables=tuple(planned for t in tables for planned in _planned(t)),
        rules=tuple(dict.fromkeys(rule for t in tables for rule in _rules(t))),
        total=total,
        balance=balance,
        problem=problem,
    )


def total_guarantee(release: Release, tables: list[Method]) -> Guarantee:
    """Tables of one release are functions of the same records: their costs add."""
    total = compose(table.guarantee() for table in tables)
    return total.model_copy(update={"caveats": (*total.caveats, STRICT)}) if release.strict else total


def composition(total: Guarantee, tables: int) -> str:
    """How the total comes about, in words."""
    how = "one table" if tables == 1 else f"{tables} tables on the same records: sequential, their costs add"
    delta = f", delta {written(total.delta)}" if total.delta else ""
    return f"epsilon {written(total.epsilon)}{delta} ({how})"


def describe(balance: Balance) -> str:
    """A budget in one line."""
    budget = balance.budget
    how = " replaced (so an add-remove cost counts double)" if budget.neighbours == "substitution" else ""
    period = (
        f" from {budget.start or 'the beginning'} to {budget.end or 'open end'}" if budget.start or budget.end else ""
    )
    return (
        f"epsilon {written(budget.epsilon)} for {budget.unit.in_words()}{how}{period}; "
        f"spent {written(balance.epsilon)}, {balance.left()}"
    )


def _rules(method: Method) -> list[str]:
    attributes = [a for domain in method.domains for a in domain.attributes if not a.numbered]
    return [f"{a.name}: {a.in_words()}" for a in attributes] + [binned.in_words() for binned in method.binned]


def _planned(method: Method) -> list[PlannedTable]:
    notes = method.outlook()
    return [
        PlannedTable(
            name=table.name,
            by=table.by,
            shape=table.domain.shape,
            cells=table.domain.cells,
            guarantee=table.guarantee,
            composes=table.composes,
            noise=table.noise,
            error=table.error,
            sum_of=table.sum_of,
            notes=notes.get(table.name, ()),
        )
        for table in method.published()
    ]
