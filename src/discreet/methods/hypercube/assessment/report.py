"""The assessment of a cube as the blocks of a report: confidential, unless the data are invented."""

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
    "Confidential: every number here is computed from the true cube, and tells about it. For those who may see the "
    "records; never to be published, nor to be used for choosing ε on the same records."
)
Kind = Literal["whole", "real", "share"]
Value = str | float | None  # nothing: unknown


@dataclass(frozen=True)
class NumericTable(Table):
    """A table whose file has plain numbers, for programs; the report shows `shown`, for readers."""

    shown: Sequence[Sequence[str]]

    def markdown(self) -> str:
        return Table(self.name, self.columns, self.shown).markdown()

    def html(self, folder: Path) -> str:
        return Table(self.name, self.columns, self.shown).html(folder)


def numbers(name: str, columns: Sequence[tuple[str, Kind]], rows: Sequence[Sequence[Value]]) -> NumericTable:
    """Of values, column by column: text is what it is."""
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
    return f"{value:,.0f}" if kind == "whole" or abs(value) >= 100 else f"{value:,.3f}"


def assessment_blocks(assessment: Assessment, names: Sequence[str]) -> list[Block]:
    """Risk and utility by dimension (002, §3.4); `names` are the cube's variables."""
    looked = ", ".join(f"{one.tables} of {one.exist}" for one in assessment.dimensions)
    limit = f"{assessment.limit:,.6g}"
    blocks: list[Block] = [
        Heading(2, "Before and after"),
        Paragraph(CONFIDENTIAL),
        Paragraph(
            f"Near zero: below {limit} in absolute value. {publishable(assessment)} Differences: protected less true; "
            f"relative ones are the mean of |difference| / |true|, over cells whose true estimate is above {limit} in "
            "absolute value, and for standard errors over cells whose true one is not 0. Overlap: the mean share that "
            "the two confidence intervals of a cell have in common; below zero where they are apart; cells with an "
            "interval of no length are left out. Hellinger's distance and Cramér's V take negative cells as zero. "
            f"Tables looked at, by dimension: {looked}."
        ),
        numbers("risk", RISK, [_risk(one) for one in assessment.dimensions]),
        numbers("utility", UTILITY, [_utility(one) for one in assessment.dimensions]),
        Paragraph(association(assessment)),
    ]
    pairs = moved_most(assessment)
    if pairs:
        blocks.append(numbers("association", ASSOCIATION, [(by(one, names), *v) for one, v in pairs]))
    return blocks


def publishable(assessment: Assessment) -> str:
    """When an estimate is, or why that is not asked, in a sentence."""
    rule = assessment.rule
    if rule is None:
        return (
            "Publishable estimates are not counted: that takes protected counts (`epsilon` of the table), and sampling "
            "errors (`squared_weights` or `replicates`)."
        )
    return (
        f"An estimate is publishable with {plural(round(rule.least_count), 'record')} or more and a coefficient of "
        f"variation of at most {rule.most_cv:.0%}, before by true numbers, after by protected ones."
    )


RISK: tuple[tuple[str, Kind], ...] = (
    ("variables", "whole"),
    ("cells", "whole"),
    ("near zero", "whole"),
    ("shown as more", "whole"),
    ("shown near zero, truly more", "whole"),
    ("publishable before", "whole"),
    ("publishable after", "whole"),
    ("gained", "whole"),
    ("lost", "whole"),
)
UTILITY: tuple[tuple[str, Kind], ...] = (
    ("variables", "whole"),
    ("mean |difference|", "real"),
    ("root mean square", "real"),
    ("relative", "share"),
    ("standard errors: mean |difference|", "real"),
    ("standard errors: relative", "share"),
    ("overlap", "real"),
    ("apart", "whole"),
    ("Hellinger", "real"),
)
ASSOCIATION: tuple[tuple[str, Kind], ...] = (("table", "whole"), ("V, true", "real"), ("V, protected", "real"))


def _risk(one: DimensionSummary) -> list[Value]:
    kept, moved = one.published, one.moves
    shown: list[Value] = [kept.before, kept.after, kept.gained, kept.lost] if kept else [None] * 4
    return [one.dimension, moved.cells, moved.near_zero, moved.to_nonzero, moved.to_zero, *shown]


def _utility(one: DimensionSummary) -> list[Value]:
    gap, error, lap = one.estimates, one.errors, one.overlaps
    errors: list[Value] = [error.mean_abs, error.relative] if error else [None, None]
    laps: list[Value] = [lap.mean, lap.disjoint] if lap else [None, None]
    return [one.dimension, gap.mean_abs, gap.rms, gap.relative, *errors, *laps, one.hellinger]


def by(table: TableAssessment, names: Sequence[str]) -> str:
    """The variables of a table."""
    return " × ".join(names[place] for place in table.axes)


def moved_most(assessment: Assessment) -> list[tuple[TableAssessment, tuple[float, float]]]:
    """Two-way tables and their Cramér's V before and after, those that changed most first."""
    pairs = [(one, one.cramers_v) for one in assessment.tables if one.cramers_v is not None]
    known = [(one, v) for one, v in pairs if not any(map(isnan, v))]
    return sorted(known, key=lambda pair: -abs(pair[1][1] - pair[1][0]))


def association(assessment: Assessment) -> str:
    """Cramér's V in a sentence."""
    pairs = [v for _, v in moved_most(assessment)]
    if not pairs:
        return "Cramér's V: there is no two-way table."
    largest = abs(pairs[0][1] - pairs[0][0])
    return (
        f"Cramér's V of {plural(len(pairs), 'two-way table')}: {sum(b for b, _ in pairs) / len(pairs):.3f} on average "
        f"before, {sum(a for _, a in pairs) / len(pairs):.3f} after; the largest change is {largest:.3f}."
    )


def comparison_title(comparison: Comparison) -> str:
    """What is compared, and at which ε."""
    epsilon = format_exact(comparison.strategies[0].epsilon)
    return f"Raw counts: one simulated cube (ε = {epsilon} for a record, not calibrated), or every table on its own"


def comparison_blocks(comparison: Comparison) -> list[Block]:
    """Perturbed once, or table by table (002, §2 and §5)."""
    ways = comparison.strategies
    dimensions = sorted({line.dimension for line in comparison.lines})
    lines = {(line.strategy, line.dimension): line for line in comparison.lines}
    asked = sum(lines[ways[0].name, d].tables for d in dimensions)
    errors: list[list[Value]] = [[d, *(lines[way.name, d].rms for way in ways)] for d in dimensions]
    nonadditive: list[list[Value]] = [[d, *(lines[way.name, d].nonadditive for way in ways)] for d in dimensions]
    return [
        Heading(2, comparison_title(comparison)),
        Paragraph(
            f"{asked:,} tables asked for, {comparison.runs} simulations of unweighted counts; the published numbers "
            "are not used. ε is of all answers together: errors are to be compared where it is equal. The cube has "
            "answered all other tables, too; interactive noise has not."
        ),
        Table("ways", ("way", "ε of all answers", "δ", "noise of a count"), [_way(way) for way in ways]),
        Paragraph("Root mean squared error of a count, by variables of the table:"),
        numbers("errors", [("variables", "whole"), *((way.name, "real") for way in ways)], errors),
        Paragraph("Cells of coarser tables that are not the sum of the finer table's:"),
        numbers("additivity", [("variables", "whole"), *((way.name, "share") for way in ways)], nonadditive),
    ]


def _way(way: NoiseStrategy) -> Sequence[str]:
    cap = "" if way.distribution.cap is None else f", at most ±{way.distribution.cap:,}"
    return (
        way.name,
        format_exact(way.epsilon),
        f"{way.delta:.2g}",
        f"discrete Laplace, rate {float(way.distribution.rate):.4g}{cap}",
    )
