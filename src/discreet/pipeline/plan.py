"""What will leave, at what cost and with what error: known from the declaration alone. Reads no confidential data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from discreet.errors import GuaranteeError, LedgerError, SpecError
from discreet.formatting import plural
from discreet.methods.description import ExpectedError
from discreet.methods.protocol import Method
from discreet.methods.registry import methods
from discreet.pipeline.stored_measurements import open_source, plan_recoding, refuse_asset
from discreet.pipeline.trusted import named, trusted
from discreet.privacy.exact import written
from discreet.privacy.guarantee import Guarantee, compose
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.state import Balance
from discreet.screen import cut, visible
from discreet.spec import Recode, Release

NOT_RUN = "{files}: not run, for a plan may be made of what somebody sent. --trust tries it on invented numbers."
STRICT = (
    "Strict mode: that this release exists tells that no record broke the declared rules. "
    "The promise does not cover what that reveals."
)
LOOKED_UP = (
    "Tables that records are looked up in ({names}) count as given: what one of their rows says of the records that it "
    "is looked up for is not protected."
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
    error: ExpectedError | None
    sum_of: str
    part_of: str
    unpaid: str
    notes: tuple[str, ...]

    @property
    def cost(self) -> str:
        """What it adds to the total, in words."""
        if self.sum_of:
            return f"made of {self.sum_of}, no cost"
        if self.unpaid:
            return self.unpaid
        part = f", part of {self.part_of}'s" if self.part_of else ""
        return f"epsilon {written(self.guarantee.epsilon)}{part}"


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
    derived_from: str = ""
    not_run: tuple[str, ...] = ()  # Python files

    def __str__(self) -> str:
        return "\n".join(map(visible, self.lines))

    @property
    def lines(self) -> list[str]:
        """What people read."""
        lines = [f"Release {self.release} on asset {self.asset}", ""]
        for table in self.tables:
            by = " × ".join(f"{n} ({s:,})" for n, s in zip(table.by, table.shape, strict=True)) or "all records"
            cost = "recoded, no cost" if self.derived_from else table.cost
            said = [table.composes, f"{table.noise}{_expected(table.error)}", *table.notes]
            lines.append(f"  {table.name}: {by} = {plural(table.cells, 'cell')}, {cost}")
            lines += [f"    {text}" for text in said if text]
        lines += ["", *(f"  Rule: {rule}" for rule in self.rules)] if self.rules else []
        measured = sum(not table.sum_of and not table.part_of for table in self.tables)
        lines += ["", f"  {NOT_RUN.format(files=', '.join(self.not_run))}"] if self.not_run else []
        lines += ["", f"  Total: {composition(self.total, measured, self.derived_from)}"]
        lines += [f"  {self.total.in_words()}"] + [f"  Caveat: {caveat}" for caveat in self.total.caveats]
        if self.balance is not None:
            lines.append(f"  Budget: {describe(self.balance)}")
        if self.problem:
            lines.append(cut(f"  Would be refused: {self.problem}"))
        return lines


def plan(release: Release, ledger: Ledger | None = None, *, trust: bool = False) -> Plan:
    """Everything that is known before anything is spent. Python files are run only if they are trusted."""
    tables = trusted(release) if trust else methods(release)
    if release.recode is not None:
        return _recoding(release, release.recode, tables, ledger)
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
        rules=(*dict.fromkeys(rule for t in tables for rule in _rules(t)), *_kept(release, tables)),
        total=total,
        balance=balance,
        problem=problem,
        not_run=() if trust else tuple(named(release)),
    )


def _recoding(release: Release, asked: Recode, tables: list[Method], ledger: Ledger | None) -> Plan:
    """A recoding: what becomes of every code. It costs nothing, so there is no budget to compare with."""
    if ledger is None:
        raise LedgerError("a recoding is planned with the ledger that has its measurements", do="name it")
    chain = ledger.chain()
    source = open_source(release, asked, chain)
    problem = ""
    try:
        chain.refuse_used(release.release)
        refuse_asset(release, source)
        source.verify()
    except (LedgerError, SpecError) as error:
        problem = str(error)
    recodings = plan_recoding(release, asked, tables, source)
    notes = {name: recoding.in_words() for name, recoding in recodings.items()}
    planned = tuple(
        replace(table, composes="made of kept measurements", error=None, notes=notes.get(table.name, ()))
        for t in tables
        for table in _planned(t)
    )
    return Plan(
        release=release.release,
        asset=release.asset,
        tables=planned,
        rules=(),
        total=source.about.guarantee,
        balance=None,
        problem=problem,
        derived_from=source.about.release,
    )


def total_guarantee(release: Release, tables: list[Method]) -> Guarantee:
    """Tables of one release are functions of the same records: their costs add."""
    total = compose(table.guarantee() for table in tables)
    further = [STRICT] if release.strict else []
    further += [LOOKED_UP.format(names=", ".join(release.join))] if release.join else []
    return total.model_copy(update={"caveats": (*total.caveats, *further)}) if further else total


def composition(total: Guarantee, tables: int, derived_from: str = "") -> str:
    """How the total comes about, in words."""
    if derived_from:
        return (
            f"nothing is spent: made of the measurements of {derived_from}, which cost epsilon {written(total.epsilon)}"
        )
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


def _kept(release: Release, tables: list[Method]) -> list[str]:
    """What becomes of measurements, where there are any."""
    if not any(table.measurements() for table in tables):
        return []
    if release.keep is None:
        return ["measurements are removed in the end; `keep` would leave them inside, for a later recoding"]
    return [f"measurements stay in {release.keep}, inside"]


def _rules(method: Method) -> list[str]:
    attributes = [a for domain in method.domains for a in domain.attributes if not a.numbered]
    values = [binned.in_words() for binned in method.binned] + [made.in_words() for made in method.observed]
    return [f"{a.name}: {a.in_words()}" for a in attributes] + values


def _expected(error: ExpectedError | None) -> str:
    return "" if error is None else f"; 90% within ±{error.margin90:,}, mean |error| {error.mean_absolute:.3g}"


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
            part_of=table.part_of,
            unpaid=table.unpaid,
            notes=notes.get(table.name, ()),
        )
        for table in method.published()
    ]
