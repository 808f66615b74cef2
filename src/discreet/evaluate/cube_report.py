"""The assessment of a cube as the blocks of a report: confidential, unless the data are invented."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from discreet.document import Block, Heading, Paragraph, Table
from discreet.evaluate.cube_comparison import Comparison, Way
from discreet.evaluate.cubes import Assessment, Dimension
from discreet.privacy.exact import written

CONFIDENTIAL = (
    "Confidential: every number here is computed from the true cube, and tells about it. For those who may see the "
    "records; never to be published, nor to be used for choosing ε on the same records."
)


def assessment_blocks(assessment: Assessment) -> list[Block]:
    """Risk and utility by dimension (002, §3.4)."""
    rule = assessment.rule
    said = (
        f"An estimate is publishable with {rule.least_count:g} records or more and a coefficient of variation of at "
        f"most {rule.most_cv:.0%}, before by true numbers, after by protected ones. "
        if rule
        else ""
    )
    looked = ", ".join(f"{one.tables} of {one.exist}" for one in assessment.dimensions)
    return [
        Heading(2, "Before and after"),
        Paragraph(CONFIDENTIAL),
        Paragraph(
            f"Near zero: below {assessment.limit:,.6g} in absolute value. {said}Overlap: the mean share that the two "
            "confidence intervals of a cell have in common; below zero where they are apart; cells with an interval of "
            "no length are left out. Hellinger's distance and Cramér's V take negative cells as zero. Tables looked "
            f"at, by dimension: {looked}."
        ),
        Table("risk", RISK, [_risk(one) for one in assessment.dimensions]),
        Table("utility", UTILITY, [_utility(one) for one in assessment.dimensions]),
        Paragraph(association(assessment)),
    ]


RISK = (
    "variables",
    "cells",
    "near zero",
    "shown as more",
    "shown near zero, truly more",
    "publishable before",
    "after",
    "gained",
    "lost",
)
UTILITY = (
    "variables",
    "mean |difference|",
    "root mean square",
    "relative",
    "of standard errors: mean |difference|",
    "relative",
    "overlap",
    "apart",
    "Hellinger",
)


def _risk(one: Dimension) -> list[str]:
    kept = one.published
    shown = [f"{n:,}" for n in (kept.before, kept.after, kept.gained, kept.lost)] if kept else ["–"] * 4
    moved = one.moves
    counts = (moved.cells, moved.near_zero, moved.to_nonzero, moved.to_zero)
    return [str(one.dimension), *(f"{n:,}" for n in counts), *shown]


def _utility(one: Dimension) -> list[str]:
    gap, error, lap = one.estimates, one.errors, one.overlaps
    errors = [_number(error.mean_abs), _share(error.relative)] if error else ["–", "–"]
    laps = [_number(lap.mean), f"{lap.disjoint:,}"] if lap else ["–", "–"]
    own = [_number(gap.mean_abs), _number(gap.rms), _share(gap.relative)]
    return [str(one.dimension), *own, *errors, *laps, _number(one.hellinger)]


def association(assessment: Assessment) -> str:
    """Cramér's V in a sentence."""
    pairs = [one.cramers_v for one in assessment.tables if one.cramers_v and not any(map(isnan, one.cramers_v))]
    if not pairs:
        return "Cramér's V: there is no two-way table."
    moved = [after - before for before, after in pairs]
    largest = max(map(abs, moved))
    return (
        f"Cramér's V of {len(pairs)} two-way tables: {sum(b for b, _ in pairs) / len(pairs):.3f} on average before, "
        f"{sum(a for _, a in pairs) / len(pairs):.3f} after; the largest change is {largest:.3f}."
    )


def comparison_blocks(comparison: Comparison) -> list[Block]:
    """Perturbed once, or table by table (002, §2 and §5)."""
    ways = comparison.ways
    dimensions = sorted({line.dimension for line in comparison.lines})
    by = {(line.way, line.dimension): line for line in comparison.lines}
    asked = sum(by[ways[0].name, d].tables for d in dimensions)
    errors = [[str(d), *(_number(by[way.name, d].rms) for way in ways)] for d in dimensions]
    broken = [[str(d), *(_share(by[way.name, d].broken) for way in ways)] for d in dimensions]
    names = [way.name for way in ways]
    return [
        Heading(2, "One cube, or every table on its own"),
        Paragraph(
            f"{asked:,} tables asked for, {comparison.runs} simulations. ε is of all answers together: errors are "
            "to be compared where it is equal. The cube has answered all other tables, too; interactive noise has not."
        ),
        Table("ways", ("way", "ε of all answers", "δ", "noise of a count"), [_way(way) for way in ways]),
        Paragraph("Root mean squared error of a count, by variables of the table:"),
        Table("errors", ("variables", *names), errors),
        Paragraph("Cells of coarser tables that are not the sum of the finer table's:"),
        Table("additivity", ("variables", *names), broken),
    ]


def _way(way: Way) -> Sequence[str]:
    cap = "" if way.law.cap is None else f", at most ±{way.law.cap:,}"
    epsilon = "none: exact controls" if way.epsilon is None else written(way.epsilon)
    return way.name, epsilon, f"{way.delta:.2g}", f"discrete Laplace, rate {float(way.law.rate):.4g}{cap}"


def _number(value: float) -> str:
    return "–" if isnan(value) else f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"


def _share(value: float) -> str:
    return "–" if isnan(value) else f"{value:.1%}"
