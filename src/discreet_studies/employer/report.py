"""The report: what was done, what came out, and how it compares with the paper."""

from __future__ import annotations

from discreet.privacy.exact import written
from discreet.report.blocks import Block, Figure, Heading, Paragraph
from discreet_studies.employer import tables
from discreet_studies.employer.figures import SUMMARY_TITLE, TITLES
from discreet_studies.employer.findings import findings
from discreet_studies.employer.region import agreeing, infusion_error, interval
from discreet_studies.employer.study import Study
from discreet_studies.employer.workloads import WORKER_CELLS

TITLE = "Employer–employee statistics: the study of 003, made again"

READING = (
    "A verdict is made of its parts: all of them hold, some, or none. Close to 1 means at least .95; large places have "
    "10,000 people or more."
)


def report(study: Study) -> list[Block]:
    """All blocks, in order."""
    found = findings(study)
    blocks: list[Block] = [Heading(1, TITLE), *map(Paragraph, _about(study)), Heading(2, "The six findings")]
    blocks.append(tables.summary(found))
    blocks.append(Paragraph(READING))
    for finding in found:
        blocks += [Heading(3, f"Finding {finding.number}: {finding.verdict}"), Paragraph(finding.claim)]
        blocks += [tables.parts(finding), *([Paragraph(finding.beyond)] if finding.beyond else [])]
    blocks += [Heading(2, "Figures"), Figure("summary.svg", SUMMARY_TITLE)]
    blocks += [Figure(f"figure-{number}.svg", title) for number, title in TITLES.items()]
    blocks.append(Paragraph("ratios.csv and correlations.csv have every number, for all cells of the domain too."))
    for workload, what in ((1, "establishments"), (2, "single queries"), (3, f"ε/{WORKER_CELLS} a worker cell")):
        blocks += [Heading(2, f"Baseline, workload {workload}: {what}"), tables.baseline(study, workload)]
    blocks += [Heading(2, "Rankings at the baseline"), Paragraph(_ranked()), tables.rankings(study)]
    blocks += _moved(study)
    blocks += [Heading(2, "Table 1: requirements, by executed attacks and audits"), *_tested(study)]
    if study.attacked:
        blocks += [Heading(2, "Every attack on every mechanism"), Paragraph(_attacked(study)), tables.attacked(study)]
    blocks += [Heading(2, "Table 2: the smallest ε of smooth Laplace"), tables.smallest_epsilons()]
    blocks.append(
        Paragraph(
            "The paper's condition gives ε = −2·ln(δ)·ln(1+α). Its rows labelled δ = .05 are those of .005, and 2.13 "
            "should be 2.77. The exact δ of the same noise allows the smaller ε of the last two columns."
        )
    )
    blocks += [Heading(2, "The cost of errors, and relative errors"), Paragraph(_cost()), tables.costs(study)]
    blocks += [Heading(2, "Per-record zCDP with unit splitting"), Paragraph(_split()), tables.split(study)]
    blocks += [Heading(2, "Closed forms and trials"), Paragraph(_trials(study)), tables.agreement(study)]
    blocks += [Heading(2, "Pairs that are left out"), tables.left_out(study)]
    return blocks


def _about(study: Study) -> tuple[str, ...]:
    data, infusion = study.data, study.infusion
    return (
        "SIMULATION. Nothing here is a release, and no real establishment is in it. 003 is Haney and others, Utility "
        "Cost of Formal Privacy for Releasing National Employer-Employee Statistics, SIGMOD 2017.",
        f"Data: {data.jobs:,} invented jobs (seed {data.seed}) in {data.establishments:,} establishments, "
        f"{data.above_1000:,} of them above 1,000 jobs, in {data.places:,} places. Of the {data.cells:,} cells of "
        f"place × sector × ownership {data.occupied:,} have an establishment; {data.below_1000:.1%} of these have "
        "fewer than 1,000 jobs. The paper: 10.9 million jobs, about 527,000 establishments, 740 to 815 above 1,000, "
        "over 93%.",
        f"Noise infusion: s = {written(infusion.s)}, t = {written(infusion.t)}, shape {infusion.shape}, small counts "
        f"below {written(infusion.limit)} redrawn. These are our choice: an agency keeps its own secret, and every "
        "ratio depends on them (see below). Its error is the mean over trials with other factors each time.",
        "Ratios are expected L1 errors in closed form, before rounding to integers, over those of noise infusion. The "
        "paper does not say which cells it averages over. We take those with at least one establishment, as that is "
        "public knowledge; all cells of the domain stand beside.",
        "Printed: the constants of the paper. Tight, joint, exact and Laplace–Pareto are ours: the same promise with "
        "less noise. Both smooth Laplace have δ = .05, as in the paper's figures; all others have none. The geometric "
        "hides one job only; truncation hides whole establishments and leaves out those of θ jobs or more.",
        f"Workload 3 gives each of {WORKER_CELLS} worker cells ε/{WORKER_CELLS} and δ/{WORKER_CELLS}. One job is in "
        "one cell, and truncation bounds all jobs of an establishment, so these two keep the whole ε. Laplace–Pareto, "
        "strong, takes its scale from whole establishments and serves all worker cells with one ε: it hides from a "
        "strong adversary what the others hide from a weak one.",
    )


def _ranked() -> str:
    return (
        "Spearman's correlation at α = .1, ε = 2, means over trials: with the order of noise infusion, as in the "
        "paper, and with the true order, which no agency could publish."
    )


def _moved(study: Study) -> list[Block]:
    low, high = interval(study)
    ours, agreed = infusion_error(study), agreeing(study)
    pairs = ", ".join(f"({written(row.s)}, {written(row.t)})" for row in agreed) or "none of the grid"
    uniform = next(row.infusion for row in study.swept if row.workload == 1 and row.shape == "uniform")
    reason = (
        f"With other s and t only the divisor of a ratio changes: noise infusion's mean error, {ours:.3g} jobs a cell "
        f"here. What the paper reports of α = .1 (log-Laplace and smooth gamma at most 3, smooth Laplace at most 1, "
        f"truncation at ε = 4 at least 10 at every θ) holds together where that error is from {low:.3g} to {high:.3g}"
    )
    reason += " jobs" if low <= high else " jobs: nowhere"
    said = f"{reason}; on the grid, for (s, t) = {pairs}. Uniform factors instead of a ramp: {uniform:.3g} jobs."
    return [
        Heading(2, "How the ratios depend on noise infusion"),
        Paragraph(said),
        Figure("infusion-parameters.svg", "Workload 1 with other parameters of noise infusion"),
        tables.moved(study),
        Paragraph("All places together, every ratio of a workload, at any α and ε, is multiplied by the same number:"),
        tables.factors(study),
    ]


def _tested(study: Study) -> list[Block]:
    if not study.tested:
        return [Paragraph("No establishment can be a target here: give more jobs.")]
    note = (
        "At α = .1 and ε = 2 for all worker cells together. Audits give lower bounds of the loss from draws alone: "
        "they refute or fail to. Attacks: the share of targets found, beside a guess without the publication. The "
        "shape is asked at 2ε, which is what the paper's proof gives."
    )
    return [Paragraph(note), tables.tested(study.tested)]


def _attacked(study: Study) -> str:
    whom = [attack.rate.trials for attack in study.attacked[0].attacks]
    return (
        f"α = .1, ε = 4 for all worker cells together (smooth Laplace: δ = .05). Targets are alone in their cell, "
        f"{whom[0]:,} for one worker's sex and {whom[1]:,} for size, shape and growth, or the difference between two "
        f"tables in {whom[3]:,} cells. The attacker knows what 003, §5.2 says. Infusion is as in the paper, and "
        "rounded. The last columns: the median error of a size from one publication and from 16, which would cost 16 "
        "times as much; a ledger refuses that."
    )


def _cost() -> str:
    return (
        "Workload 1 at α = .1, ε = 2, by trials of published integers; cells without an establishment are published as "
        "zero. A job in error costs $3.50 (003, §3.2), summed over cells, or over the totals of places. The last two "
        "columns: counts whose mean relative error is within ten percentage points of that of one publication of "
        "noise infusion, or at most ten points larger."
    )


def _split() -> str:
    return (
        "Normal noise of one scale everywhere, chosen so that an establishment of the reference size is promised "
        "(α, ε) = (.1, 2) up to δ. Smaller ones are promised more, larger ones less: compare ratios only with the ε of "
        "the largest establishment in view. Only the last reference size promises everybody the same."
    )


def _trials(study: Study) -> str:
    return (
        f"{study.trials} trials from simulation keys, over cells with an expected error of at least 5 jobs, where "
        "rounding to integers changes it by less than 0.3%."
    )
