"""The report: what was done, what came out, and how it compares with the paper."""

from __future__ import annotations

import numpy as np

from discreet.privacy.exact import written
from discreet.report.blocks import Block, Figure, Heading, Paragraph
from discreet_studies.claims import verdicts
from discreet_studies.sensitivity import tables
from discreet_studies.sensitivity.births import SEEDS
from discreet_studies.sensitivity.cells import EPSILON
from discreet_studies.sensitivity.formal import EPSILONS, PLANNED, SIZES, best_formal, least_observed
from discreet_studies.sensitivity.study import Study
from discreet_studies.sensitivity.table1 import JAIL
from discreet_studies.sensitivity.verdicts import claims

TITLE = "Maximum observed sensitivity: the tables and figures of 004, made again"


def report(study: Study) -> list[Block]:
    """All blocks, in order."""
    blocks: list[Block] = [Heading(1, TITLE), *map(Paragraph, _about(study)), Heading(2, "What holds, what does not")]
    blocks += [verdicts(claims(study)), Paragraph(READING)]
    for section in (_table1, _figures, _choosing, _unsaid, _formal):
        blocks += section(study)
    return blocks


READING = (
    "Verdicts are about this invented atlas, and follow from the thresholds that each claim names. The atlas was made "
    "so that Figure 3 comes out as in the paper: that the slope vanishes here shows how it happens, not how often."
)


def _about(study: Study) -> tuple[str, ...]:
    data = study.data
    return (
        "SIMULATION. Nothing here is a release, and no real child is in it. 004 is Chetty and Friedman, A Practical "
        "Method to Reduce Privacy Loss when Disclosing Statistics Based on Small Samples, NBER 25626, 2019.",
        f"Data: {data.children:,} invented children (seed {data.seed}) in {data.tracts:,} tracts, {data.counties:,} "
        f"counties and {data.states:,} states; {data.cells:,} cells of tract × race × gender have twenty children or "
        f"more. Figure 3 is repeated on {SEEDS} atlases of this size, seeds {data.seed} to {data.seed + SEEDS - 1}.",
        "Estimates are predictions at parent rank .25 from the line of a child's outcome on the parents' rank, in "
        "every tract with twenty children or more of the group. χ is the largest N × sensitivity within a state (and "
        "race and gender, where a row is of one), sensitivities are exact maxima over additions and removals, noise is "
        "√2·χ/(εN)·ω with Normal ω at nominal ε = 8: as in the paper. What that is worth stands below. "
        "All noise is drawn under fixed public simulation keys, so that the same seed gives the same report.",
    )


def _table1(study: Study) -> list[Block]:
    jail = next(row for row in study.table1 if row.asked.outcome == JAIL and row.asked.label == "White boys")
    flat = "" if jail.flat is None else f": here in {jail.flat:.0%} of the cells of White boys' incarceration"
    return [
        Heading(2, "Table 1: what the variance of estimates is made of"),
        Paragraph(
            "Percent of the variance over cells of more than fifty children, weighted by children of parents below the "
            "median rank. Both ranks are winsorised within each cell at 5% and 95% (at least one value each side), as "
            "in the paper, and the sensitivity knows it. Outcomes that are 0 or 1 are not winsorised: where fewer than "
            f"5% are 1, all would become 0{flat}."
        ),
        tables.table1(study),
        Paragraph(
            "The paper's row of incarceration, Black boys, adds to 98.92, not 100: at least one number of it is "
            "misprinted. χ below is the median state's; reliability is signal's part of the variance."
        ),
        tables.reliability(study),
    ]


def _figures(study: Study) -> list[Block]:
    blocks: list[Block] = [Heading(2, "Figures")]
    if study.example:
        made = study.example
        blocks.append(
            Figure(
                "figure-1.svg",
                f"The cell of twenty that is most like the paper's: θ = {made.theta:.3f} (paper .212), local "
                f"sensitivity {abs(made.worst.change):.3f} (paper .137).",
            )
        )
    drawn_in, plain = study.envelopes
    reach = np.percentile(drawn_in.reach, [5, 50, 95])
    caption = (
        f"χ = {drawn_in.chi:.2f} winsorised, {plain.chi:.2f} plain (the paper's example: 13.02). N × sensitivity is "
        f"{reach[0]:.0%}, {reach[1]:.0%} and {reach[2]:.0%} of χ at the 5th, 50th and 95th percentile of cells."
    )
    blocks += [Figure("figure-2.svg", caption), Figure("figure-3.svg", "Slopes with robust standard errors.")]
    blocks += [Paragraph("Several atlases, so that no lucky seed makes the point:"), tables.slopes(study)]
    blocks += [
        Figure("appendix-figure-1.svg", "Global sensitivity is infinite: nothing bounds how alike the parents may be."),
        Paragraph("The exact sensitivity of twenty points on a line at x0 = .25, as x comes together:"),
        tables.growth(study),
        Figure("appendix-figure-2.svg", "Suppressing by the numerator leaves out low rates first."),
    ]
    return blocks


def _choosing(study: Study) -> list[Block]:
    text = (
        "How often a tract shown in the top or bottom tenth of its county is not there by its true estimate, Normal "
        "noise, χ by state. On invented data, as choosing ε on the confidential data would itself speak about them. "
        "The last table: the smallest ε (in tenths) at which both errors are at most the stated share."
    )
    pictures: list[Block] = [
        Figure(f"choosing-epsilon-{number}.svg", one.label) for number, one in enumerate(study.chosen, 1)
    ]
    return [Heading(2, "Choosing ε"), Paragraph(text), *pictures, tables.choosing(study), tables.needed(study)]


def _unsaid(study: Study) -> list[Block]:
    bad = study.counterexample
    return [
        Heading(2, "What the paper's form does not promise"),
        Heading(3, "Corners are not the maximum"),
        Paragraph(
            f"Five children with parents at ranks .48 to .52 on a steep line: corners find {bad.corners:.3f}, the "
            f"truth is {bad.exact:.3f}, at ({bad.point[0]:.3f}, {bad.point[1]:g}). Income ranks by tract, race and "
            "gender, where a cell is unbounded if one more child can move it without limit:"
        ),
        tables.corners(study),
        tables.chis(study),
        Heading(3, "Normal noise at nominal ε = 8"),
        Paragraph(
            "Normal noise with the variance of Laplace noise at ε = 8 has not its promise. Exact, in ball arithmetic, "
            "were χ and N public:"
        ),
        tables.nominal(study),
        Heading(3, "Noise divided by the true N"),
        Paragraph(
            "The spread of the noise depends on N, which is confidential: far out, the likelihood ratio of N and N + 1 "
            "children grows without bound under Laplace noise too. Dividing by the noisy count loses ε·Ñ/N where it is "
            "above N. A private lower bound, the noisy count less a margin that it passes with probability 10⁻⁶, costs:"
        ),
        tables.bounded(study),
        Heading(3, "One ω for estimate and count"),
        Paragraph(
            "With the same ω in θ̃ and Ñ (004, Step 4c names the same definition, and the authors' code reuses the "
            "draw), who knows N subtracts Ñ − N and has θ exactly. Nobody needs to know N: at ε = 8 the count's noise "
            "is so small that rounding finds it. Teenage birth rates of Black girls, found exactly means within 10⁻⁹:"
        ),
        tables.recovered(study),
    ]


def _formal(study: Study) -> list[Block]:
    if not study.costs:
        return [Heading(2, "What a real guarantee costs"), Paragraph("Too few cells: give more children.")]
    said = []
    for size in SIZES:
        best, mos = best_formal(study.costs, size, EPSILON), least_observed(study.costs, size, EPSILON)
        if best and mos:
            errors = f"{best.row.against_ols.rmse:.4f} against {mos:.4f}"
            said.append(f"N ≈ {size}: {best.row.method}, {errors}")
    text = (
        "Income ranks, the plain line, cells of all groups and states with about so many children. Errors are root "
        "mean squares against the least-squares prediction, which itself has none and no privacy. Maximum observed "
        "sensitivity (Laplace noise; χ by state, race and gender, or one χ for the compared cells) is not "
        "formally private at any ε: χ is published exactly. Private χ learns its quantile from the cells, so it wants "
        "many of them; where the test fails it answers ½. n is confidential, so the smooth line is planned once, for a "
        f"public guess of {PLANNED} records and a spread of x of ⅛, whatever the cells. Theil–Sen is about another "
        "line, so it stays away from least squares however large ε."
    )
    first = ", ".join(f"{e} (N ≈ {size})" for size in SIZES if (e := _ahead(study, size)))
    at_eight = f"Some formal method errs less from ε = {first} on. " if first else ""
    at_eight += "The best formal method at ε = 8 beside maximum observed sensitivity, with the χ that does better: "
    at_eight += f"{'; '.join(said)}."
    return [
        Heading(2, "What a real guarantee costs"),
        Paragraph(text),
        Paragraph(at_eight),
        Figure(
            "guarantee-costs.svg",
            "Dashed: maximum observed sensitivity, χ by state, race and gender, which promises less.",
        ),
        tables.costs(study),
        tables.promises(study),
    ]


def _ahead(study: Study, size: int) -> str:
    """The smallest ε from which on some formal method errs less than maximum observed sensitivity; empty if none."""
    found = ""
    for epsilon in reversed(EPSILONS):
        best, mos = best_formal(study.costs, size, epsilon), least_observed(study.costs, size, epsilon)
        if not (best and mos and best.row.against_ols.rmse < mos):
            break
        found = written(epsilon)
    return found
