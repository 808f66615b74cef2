"""Post-perturbation assessment: a published cube against the confidential records (Li & Krenzke 2020, §3.4).

Confidential side: every file says so, and the folder is not a release. No budget is spent, and no result may be
published.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from discreet.engine import Engine, open_engine
from discreet.engine.spans import CELL
from discreet.errors import PublishError, SpecError
from discreet.formatting import Observer, plural, silent
from discreet.methods.hypercube.assessment.comparison import Comparison, compare
from discreet.methods.hypercube.assessment.cubes import (
    Assessment,
    CubeEstimates,
    Tables,
    replicate_errors,
    square_errors,
)
from discreet.methods.hypercube.assessment.cubes import assess as compared
from discreet.methods.hypercube.assessment.measures import PublicationRule, check_limit
from discreet.methods.hypercube.assessment.plots import association_plot, error_plot, near_zero_plot, overlap_plot
from discreet.methods.hypercube.assessment.report import (
    assessment_blocks,
    comparison_blocks,
    comparison_title,
    publishable,
)
from discreet.methods.hypercube.method import HypercubeMethod
from discreet.methods.registry import methods
from discreet.noise.key import ReleaseKey
from discreet.pipeline.check import MARK
from discreet.pipeline.tabulation import read_records, reading_of
from discreet.post.cubes.cube import Cube, CubeTable
from discreet.post.cubes.margins import Floats, Margin
from discreet.publish.cubes import open_counts, open_cube
from discreet.publish.manifest import FILE as MANIFEST
from discreet.publish.manifest import read
from discreet.report.blocks import Block, Figure, Heading, Paragraph, write_report
from discreet.spec import Release

MOST_NUMBERS = 1 << 27  # values of the true cube and its replicates, in memory
MOST_COMPARED, COMPARED_TABLES = 1 << 20, 60  # cells of a cube, and tables per dimension, for the comparison
DIMENSIONS, RUNS = 3, 5
PER_RECORD = (
    "ε and δ of this comparison are per record; for a unit of k records ε is k times as large, and δ is larger."
)
UNTIED = (
    "That these records are those of the release cannot be verified, since the release key is destroyed: the "
    "comparison is valid only for the same, unchanged records."
)
CLOSE = 1e-6  # relative: rounding error of float64 sums
FAR = 10.0  # standard errors of the noise: larger differences of totals are not plausibly noise
RULE = PublicationRule(3, 0.5)


@dataclass(frozen=True)
class AssessmentOptions:
    """The cube, the near-zero limit, and the publication rule."""

    table: str | None = None
    limit: float = 1.0
    rule: PublicationRule = RULE

    def __post_init__(self) -> None:
        check_limit(self.limit)


@dataclass(frozen=True)
class AssessmentReport:
    """The written files, a summary as text, and the assessment."""

    files: list[Path]
    lines: list[str]
    assessment: Assessment


def assess(
    release: Release,
    published: str,
    out: Path,
    options: AssessmentOptions,
    *,
    frame: Any = None,
    observe: Observer = silent,
) -> AssessmentReport:
    """Compares the cubes and writes a report into a new folder with mode 0700."""
    method = _chosen(release, options.table)
    if out.exists() or any((parent / MANIFEST).exists() for parent in out.resolve().parents):
        raise PublishError("already exists, or lies in a release", where=str(out), do="pass a new folder elsewhere")
    if read(published).spec != release.digest():
        raise PublishError(
            "was published from another declaration",
            where=published,
            do="pass the folder of the release that this file declares",
        )
    size = method.design.domain.cells * (2 + method.design.replicates)
    if size > MOST_NUMBERS:
        raise SpecError(
            f"{size:,} true values exceed the limit of {MOST_NUMBERS:,}",
            where=f"table {method.name}",
            do="assess a cube of fewer cells, or with fewer replicates",
        )
    cube = open_cube(published, method.name)
    protected = _protected(cube, open_counts(published, method.name))
    observe("read", 0, 1)
    with open_engine(release.engine) as engine:
        true = _true(engine, release, method, frame)
    observe("read", 1, 1)
    observe("assess", 0, 1)
    rule = options.rule if true.errors is not None and protected.counts is not None else None
    assessment = compared(true, protected, options.limit, rule)
    observe("assess", 1, 1)
    warnings = [UNTIED, *_total_mismatch(cube, true)]
    out.mkdir(mode=0o700, parents=True)
    try:
        files = _write(out, cube, assessment, warnings, _interactive(method, true, observe))
    except BaseException:
        shutil.rmtree(out)
        raise
    return AssessmentReport(files, [MARK, *warnings, *_lines(assessment)], assessment)


def _chosen(release: Release, name: str | None) -> HypercubeMethod:
    """The cube with this name, or the first."""
    cubes = [table for table in methods(release) if isinstance(table, HypercubeMethod)]
    if not cubes:
        raise SpecError(
            "the release declares no table with `method: hypercube`",
            where=f"release {release.release}",
            do="pass a release that declares one",
        )
    chosen = [table for table in cubes if name in (None, table.name)]
    if not chosen:
        known = ", ".join(table.name for table in cubes)
        raise SpecError(f"the release has no cube {name!r}", where="--table", do=f"pass one of {known}")
    return chosen[0]


def _protected(cube: Cube, counts: Floats | None) -> CubeEstimates:
    @lru_cache(maxsize=1)  # estimates and standard errors of a table are requested in turn
    def table(places: tuple[int, ...]) -> CubeTable:
        return cube.table([cube.model.axes[place].name for place in places])

    def estimates(margin: Margin) -> Floats:
        return table(margin.places).estimate

    def errors(margin: Margin) -> Floats:
        return table(margin.places).se

    return CubeEstimates(cube.model.shape, estimates, counts, errors, cube.cells)


def _total_mismatch(cube: Cube, true: CubeEstimates) -> list[str]:
    """A warning if the grand total differs from the records' by more than noise explains. Public controls may
    differ."""
    if any(control.kind == "public" for control in cube.model.controls):
        return []
    published, total = cube.table(), float(true.table(Margin.over(true.shape, []))[0])
    difference, noise = abs(float(published.estimate[0]) - total), float(published.se_perturbation[0])
    if difference <= FAR * noise + CLOSE * abs(total):
        return []
    return [
        f"The grand total of the release differs from that of these records by more than {FAR:g} standard errors of "
        "its noise: they are probably not the records of the release, unless many units exceed max_records, where "
        "the release may have kept other records."
    ]


def _true(engine: Engine, release: Release, method: HypercubeMethod, frame: Any) -> CubeEstimates:
    """The exact cube. Where units exceed max_records, other records may be kept than in the release, whose key is
    destroyed."""
    records = read_records(engine, release, [method], frame).store(engine)
    secret = ReleaseKey.generate().secret("records", release.release, length=16)
    exact = method.exact(reading_of(engine, release, [method], records, secret))
    names = [name for name in exact.columns if name != CELL]
    dense = {name: np.zeros(method.design.domain.cells) for name in names}
    for batch in engine.batches(exact.select(CELL, *names)):
        cells, *columns = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
        for name, column in zip(names, columns, strict=True):
            dense[name][cells] = column
    shape, step, count = method.design.domain.shape, float(method.design.step), dense.pop("n")
    if not dense:
        return CubeEstimates(shape, count, count)
    total = dense.pop("w") * step
    deviations = np.array([dense[name] * step for name in names if name in dense])
    return CubeEstimates(shape, total, count, _true_errors(method, total, deviations))


def _true_errors(method: HypercubeMethod, total: Floats, deviations: Floats) -> Tables | None:
    """Sampling errors of the exact cube: from replicates, or from Σ w², which is tabulated as Σ w²/max in steps."""
    spec, shape = method.design.spec, method.design.domain.shape
    if spec.replicates is not None:
        return replicate_errors(shape, total, total + deviations, float(spec.replicates.factor))
    if spec.squared_weights is not None and spec.weights is not None:
        return square_errors(shape, deviations[0] * float(spec.weights.max), float(spec.squared_weights.design_effect))
    return None


def _interactive(method: HypercubeMethod, true: CubeEstimates, observe: Observer) -> Comparison | None:
    """The comparison with interactive noise; None if the cube has no counts or too many cells."""
    distribution, design = method.design.count_distribution, method.design
    if distribution is None or true.counts is None or design.domain.cells > MOST_COMPARED or design.average is not None:
        return None
    observe("compare", 0, 1)
    counts = np.rint(true.counts).astype(np.int64).reshape(design.domain.shape)
    dimensions = range(1, min(len(design.domain.shape), DIMENSIONS) + 1)
    comparison = compare(counts, distribution, dimensions=dimensions, most=COMPARED_TABLES, runs=RUNS)
    observe("compare", 1, 1)
    return comparison


def _write(
    out: Path, cube: Cube, assessment: Assessment, warnings: list[str], comparison: Comparison | None
) -> list[Path]:
    name, variables = cube.model.cube, [axis.name for axis in cube.model.axes]
    pictures = {"near-zero": near_zero_plot(assessment, "Near-zero cells before and after protection")}
    if any(table.overlaps is not None for table in assessment.tables):
        pictures["overlap"] = overlap_plot(assessment, "Overlap of true and protected confidence intervals")
    if any(table.cramers_v is not None for table in assessment.tables):
        pictures["association"] = association_plot(assessment, "Cramér's V of two-way tables", variables)
    blocks: list[Block] = [Heading(1, f"Assessment of the cube {name}"), *map(Paragraph, [MARK, *warnings])]
    blocks += assessment_blocks(assessment, variables)
    if comparison is not None:
        blocks += [*comparison_blocks(comparison), Paragraph(PER_RECORD)]
        pictures["interactive"] = error_plot(comparison, comparison_title(comparison))
    for file, chart in pictures.items():
        chart.save(str(out / f"{file}.svg"))
        blocks.append(Figure(f"{file}.svg", file.replace("-", " ")))
    (out / "CONFIDENTIAL.txt").write_text(MARK + "\n", encoding="utf-8")
    return write_report(out, f"Assessment of {name}", blocks, {})


def _lines(assessment: Assessment) -> list[str]:
    lines = []
    for one in assessment.dimensions:
        rule, zeros = one.published, one.zero_changes
        cells = "" if rule is None else f"; publishable {rule.before:,} before, {rule.after:,} after"
        lines.append(
            f"{plural(one.dimension, 'variable')}: mean |difference| {one.estimates.mean_abs:,.3g}; near zero, shown "
            f"non-zero {zeros.to_nonzero:,} of {zeros.near_zero:,}; non-zero, shown near zero {zeros.to_zero:,}{cells}"
        )
    return [*lines, publishable(assessment)]
