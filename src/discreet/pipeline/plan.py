"""What a release will publish, at what privacy cost and expected error, from its declaration alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

from discreet.errors import GuaranteeError, LedgerError, SpecError
from discreet.formatting import cut, plural, visible
from discreet.methods.protocol import Method
from discreet.methods.registry import methods_and_description
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.state import Balance
from discreet.publish.description import ExpectedError, PublishedTable, ReleaseDescription
from discreet.spec import Recode, Release

NOT_RUN = "{files}: not run, since the declaration may come from someone else. --trust runs it on synthetic numbers."


@dataclass(frozen=True)
class Plan:
    """A release before it is run. `problem` says why it would be refused; empty if it would not."""

    description: ReleaseDescription
    rules: tuple[str, ...]
    balance: Balance | None
    problem: str
    not_run: tuple[str, ...] = ()  # Python files

    @property
    def tables(self) -> tuple[PublishedTable, ...]:
        return self.description.tables

    @property
    def total(self) -> Guarantee:
        return self.description.guarantee

    def __str__(self) -> str:
        return "\n".join(map(visible, self.lines))

    @property
    def lines(self) -> list[str]:
        """The plan as text."""
        lines = [f"Release {self.description.release} on asset {self.description.asset}", ""]
        for table in self.tables:
            by = " × ".join(f"{n} ({s:,})" for n, s in zip(table.by, table.domain.shape, strict=True)) or "all records"
            cost = "recoded, no additional epsilon" if self.description.recoding else table.cost
            details = [table.composition, f"{table.noise}{_expected(table.error)}", *table.notes]
            lines.append(f"  {table.name}: {by} = {plural(table.cells, 'cell')}, {cost}")
            lines += [f"    {text}" for text in details if text]
        lines += ["", *(f"  Rule: {rule}" for rule in self.rules)] if self.rules else []
        lines += ["", f"  {NOT_RUN.format(files=', '.join(self.not_run))}"] if self.not_run else []
        lines += ["", f"  Total: {self.description.composition}"]
        lines += [f"  {self.total.in_words()}"] + [f"  Caveat: {caveat}" for caveat in self.total.caveats]
        if self.balance is not None:
            lines.append(f"  Budget: {budget_line(self.balance)}")
        if self.problem:
            lines.append(cut(f"  Would be refused: {self.problem}"))
        return lines


def plan(release: Release, ledger: Ledger | None = None, *, trust: bool = False) -> Plan:
    """Everything that is known before any budget is spent. Python files are run only if they are trusted."""
    tables, description = methods_and_description(release, trust=trust)
    if release.recode is not None:
        return _recoding(release, release.recode, tables, description, ledger)
    notes = {name: lines for table in tables for name, lines in table.notes().items()}
    balance, problem = None, ""
    if ledger is not None:
        try:
            chain = ledger.chain()
            balance = chain.balance(release.asset, ledger.clock().date())
            balance.charge(description.guarantee)
            chain.refuse_used(release.release)
        except (LedgerError, GuaranteeError) as error:
            problem = str(error)
    return Plan(
        description=replace(
            description, tables=tuple(replace(t, notes=notes.get(t.name, ())) for t in description.tables)
        ),
        rules=(*dict.fromkeys(rule for t in tables for rule in _rules(t)), *_kept(release, description)),
        balance=balance,
        problem=problem,
        not_run=() if trust else tuple(dict.fromkeys(file for table in release.tables for file in table.code)),
    )


def _recoding(
    release: Release, spec: Recode, tables: list[Method], description: ReleaseDescription, ledger: Ledger | None
) -> Plan:
    """The plan of a recoding: what happens to every code. It has no privacy cost, so there is no budget to compare."""
    from discreet.pipeline.stored_measurements import describe_recoding, open_source, plan_recoding, refuse_asset

    if ledger is None:
        raise LedgerError("a recoding is planned with the ledger of its measurements", do="name the ledger")
    chain = ledger.chain()
    source = open_source(release, spec, chain)
    problem = ""
    try:
        chain.refuse_used(release.release)
        refuse_asset(release, source)
        source.verify()
    except (LedgerError, SpecError) as error:
        problem = str(error)
    recodings = plan_recoding(release, spec, tables, source)
    moved = {name: recoding.plan_lines() for name, recoding in recodings.items()}
    planned = tuple(
        replace(table, composition="post-processing of kept measurements", error=None, notes=moved.get(table.name, ()))
        for table in description.tables
    )
    described = replace(description, tables=planned).with_recoding(describe_recoding(source, recodings))
    return Plan(described, rules=(), balance=None, problem=problem)


def budget_line(balance: Balance) -> str:
    """A budget as one line of text."""
    budget = balance.budget
    how = " under substitution (an add-remove epsilon counts double)" if budget.neighbours == "substitution" else ""
    period = (
        f" from {budget.start or 'the beginning'} to {budget.end or 'open end'}" if budget.start or budget.end else ""
    )
    return (
        f"epsilon {format_exact(budget.epsilon)} for {budget.unit.in_words()}{how}{period}; "
        f"spent {format_exact(balance.epsilon)}, {balance.left()}"
    )


def _kept(release: Release, description: ReleaseDescription) -> list[str]:
    """What happens to noisy measurements, if there are any."""
    if not description.measurements:
        return []
    if release.keep_measurements is None:
        return ["noisy measurements are removed at the end; `keep_measurements` would keep them for a later recoding"]
    return [f"noisy measurements are kept in {release.keep_measurements}, on the confidential side"]


def _rules(method: Method) -> list[str]:
    attributes = [a for domain in method.domains for a in domain.attributes if not a.numbered]
    values = [binned.description() for binned in method.binned] + [value.description() for value in method.observed]
    return [f"{a.name}: {a.summary()}" for a in attributes] + values


def _expected(error: ExpectedError | None) -> str:
    return "" if error is None else f"; 90% within ±{error.margin90:,}, mean |error| {error.mean_absolute:.3g}"
