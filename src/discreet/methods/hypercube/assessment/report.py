"""The assessment of a cube as blocks of a report: confidential, unless the records are synthetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Literal

from discreet.formatting import plural
from discreet.methods.hypercube.assessment.comparison import Comparison, NoiseStrategy
from discreet.methods.hypercube.assessment.cubes import Assessment, DimensionSummary, TableAssessment
from discreet.privacy.exact import format_exact
from discreet.report.blocks import Block, Heading, Paragraph, Table

CONFIDENTIAL = (
    "Confidential: every number here is computed from the exact cube and reveals information about it. Only for people "
    "who may see the records; not to be published, and not to be used to choose ε for the same records."
)
Kind = Literal["integer", "real", "share"]
Value = str | float | None  # None: unknown


@dataclass(frozen=True)
class NumericTable(Table):
    """A table with plain numbers in its CSV file and formatted numbers (`shown`) in the report."""

    shown: Sequence[Sequence[str]]

    def markdown(self) -> str:
        return Table(self.name, self.columns, self.shown).markdown()

    def html(self, folder: Path) -> str:
        return Table(self.name, self.columns, self.shown).html(folder)


def numbers(name: str, columns: Sequence[tuple[str, Kind]], rows: Sequence[Sequence[Value]]) -> NumericTable:
    """A table of values, formatted by column; text is unchanged."""
    kinds = [kind for _, kind in columns]
    shown = [[_shown(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in rows]
    plain = [["" if _unknown(value) else str(value) for value in row] for row in rows]
    return NumericTable(name, [title for title, _ in columns], plain, shown)


def _unknown(value: Value) -> bool:
    return value is None or (isinstance(value, float) and isnan(value))


def _shown(value: Value, kind: Kind) -> str:
    if value is None or _unknown(value):
        return "–"
    if isinstance(value, str):
        return value
    if kind == "share":
        return f"{value:.1%}"
    return f"{value:,.0f}" if kind == "integer" or abs(value) >= 100 else f"{value:,.3f}"


def assessment_blocks(assessment: Assessment, names: Sequence[str]) -> list[Block]:
    """Risk and utility by dimension (Li & Krenzke 2020, §3.4); `names` are the cube's variables."""
    assessed = ", ".join(f"{one.tables} of {one.exist}" for one in assessment.dimensions)
    limit = f"{assessment.limit:,.6g}"
    blocks: list[Block] = [
        Heading(2, "Before and after"),
        Paragraph(CONFIDENTIAL),
        Paragraph(
            f"Near zero: below {limit} in absolute value. {publishable(assessment)} Differences are protected − true, "
            "of noise and calibration on these very records: sampling error is not included. Relative differences "
            f"are the mean of |difference| / |true| over cells whose true estimate is above {limit} in absolute "
            "value, for standard errors over cells whose true standard error is not 0. True standard errors are of "
            "sampling alone, protected ones of sampling and noise (noise alone if the release has no sampling "
            "variances). Overlap: mean overlap of a cell's true and protected 95% confidence intervals (Karr et al. "
            "2006), negative where they are disjoint; cells with an interval of length zero are left out. Hellinger "
            f"distance and Cramér's V count negative cells as zero. Assessed tables, by dimension: {assessed}."
        ),
        numbers("risk", RISK, [_risk(one) for one in assessment.dimensions]),
        numbers("utility", UTILITY, [_utility(one) for one in assessment.dimensions]),
        Paragraph(association(assessment)),
    ]
    pairs = largest_changes(assessment)
    if pairs:
        blocks.append(numbers("association", ASSOCIATION, [(by(one, names), *v) for one, v in pairs]))
    return blocks


def publishable(assessment: Assessment) -> str:
    """The publication rule, or why it is not evaluated, as a sentence."""
    rule = assessment.rule
    if rule is None:
        return (
            "Publishable estimates are not counted: that needs protected counts (`epsilon` of the table) and sampling "
            "variances (`squared_weights` or `replicates`)."
        )
    return (
        f"An estimate is publishable with {plural(round(rule.least_count), 'record')} or more and a coefficient of "
        f"variation of at most {rule.most_cv:.0%}: before protection by true numbers, after it by protected numbers."
    )


RISK: tuple[tuple[str, Kind], ...] = (
    ("variables", "integer"),
    ("cells", "integer"),
    ("near zero", "integer"),
    ("near zero, shown non-zero", "integer"),
    ("non-zero, shown near zero", "integer"),
    ("publishable before", "integer"),
    ("publishable after", "integer"),
    ("gained", "integer"),
    ("lost", "integer"),
)
UTILITY: tuple[tuple[str, Kind], ...] = (
    ("variables", "integer"),
    ("mean |difference|", "real"),
    ("root mean square", "real"),
    ("relative", "share"),
    ("standard errors: mean |difference|", "real"),
    ("standard errors: relative", "share"),
    ("overlap", "real"),
    ("disjoint", "integer"),
    ("Hellinger", "real"),
)
ASSOCIATION: tuple[tuple[str, Kind], ...] = (("table", "integer"), ("V, true", "real"), ("V, protected", "real"))


def _risk(one: DimensionSummary) -> list[Value]:
    rule, zeros = one.published, one.zero_changes
    cells: list[Value] = [rule.before, rule.after, rule.gained, rule.lost] if rule else [None] * 4
    return [one.dimension, zeros.cells, zeros.near_zero, zeros.to_nonzero, zeros.to_zero, *cells]


def _utility(one: DimensionSummary) -> list[Value]:
    gap, error, lap = one.estimates, one.errors, one.overlaps
    errors: list[Value] = [error.mean_abs, error.relative] if error else [None, None]
    laps: list[Value] = [lap.mean, lap.disjoint] if lap else [None, None]
    return [one.dimension, gap.mean_abs, gap.rms, gap.relative, *errors, *laps, one.hellinger]


def by(table: TableAssessment, names: Sequence[str]) -> str:
    """The variables of a table, as text."""
    return " × ".join(names[place] for place in table.axes)


def largest_changes(assessment: Assessment) -> list[tuple[TableAssessment, tuple[float, float]]]:
    """Two-way tables and their Cramér's V before and after, in descending order of change."""
    pairs = [(one, one.cramers_v) for one in assessment.tables if one.cramers_v is not None]
    known = [(one, v) for one, v in pairs if not any(map(isnan, v))]
    return sorted(known, key=lambda pair: -abs(pair[1][1] - pair[1][0]))


def association(assessment: Assessment) -> str:
    """Cramér's V, as a sentence."""
    pairs = [v for _, v in largest_changes(assessment)]
    if not pairs:
        return "Cramér's V: no two-way tables."
    largest = abs(pairs[0][1] - pairs[0][0])
    return (
        f"Cramér's V of {plural(len(pairs), 'two-way table')}: {sum(b for b, _ in pairs) / len(pairs):.3f} on average "
        f"before, {sum(a for _, a in pairs) / len(pairs):.3f} after; the largest change is {largest:.3f}."
    )


def comparison_title(comparison: Comparison) -> str:
    """The title of the comparison, with its ε."""
    epsilon = format_exact(comparison.strategies[0].epsilon)
    return (
        f"Record counts: one simulated cube (ε = {epsilon} per record, not calibrated), or every table perturbed "
        "separately"
    )


def comparison_blocks(comparison: Comparison) -> list[Block]:
    """Bottom-up against interactive noise (Li & Krenzke 2020, §2 and §5)."""
    strategies = comparison.strategies
    dimensions = sorted({line.dimension for line in comparison.lines})
    lines = {(line.strategy, line.dimension): line for line in comparison.lines}
    requested = sum(lines[strategies[0].name, d].tables for d in dimensions)
    errors: list[list[Value]] = [[d, *(lines[strategy.name, d].rms for strategy in strategies)] for d in dimensions]
    nonadditive: list[list[Value]] = [
        [d, *(lines[strategy.name, d].nonadditive for strategy in strategies)] for d in dimensions
    ]
    return [
        Heading(2, comparison_title(comparison)),
        Paragraph(
            f"{requested:,} tables, {comparison.runs} simulations of noise on unweighted counts; the published "
            "numbers are not used. Errors are of noise alone. ε is the total privacy loss of all tables: compare "
            "errors at equal ε. The cube answers all other tables at no additional ε; interactive noise does not."
        ),
        Table(
            "strategies",
            ("strategy", "total ε", "δ", "noise of a count"),
            [_strategy(strategy) for strategy in strategies],
        ),
        Paragraph("Root mean squared error of a count from noise, by number of variables:"),
        numbers("errors", [("variables", "integer"), *((strategy.name, "real") for strategy in strategies)], errors),
        Paragraph("Share of cells of coarser tables that differ from the sum of the finer table's cells:"),
        numbers(
            "additivity",
            [("variables", "integer"), *((strategy.name, "share") for strategy in strategies)],
            nonadditive,
        ),
    ]


def _strategy(strategy: NoiseStrategy) -> Sequence[str]:
    cap = "" if strategy.distribution.cap is None else f", at most ±{strategy.distribution.cap:,}"
    return (
        strategy.name,
        format_exact(strategy.epsilon),
        f"{strategy.delta:.2g}",
        f"discrete Laplace, rate {float(strategy.distribution.rate):.4g}{cap}",
    )
