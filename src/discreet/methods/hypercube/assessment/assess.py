"""The post-perturbation assessment: a published cube against the records that it was made of (002, §3.4).

Confidential side: every file says so, and the folder is no release. Nothing is spent, and nothing may be published.
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
from discreet.methods.hypercube.assessment.cubes import Assessment, Side, Tables, replicate_errors, square_errors
from discreet.methods.hypercube.assessment.cubes import assess as compared
from discreet.methods.hypercube.assessment.measures import PublicationRule, check_limit
from discreet.methods.hypercube.assessment.plots import association_plot, error_plot, moves_plot, overlap_plot
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

MOST_NUMBERS = 1 << 27  # of the true cube and its replicates, in memory
MOST_COMPARED, ASKED = 1 << 20, 60  # cells of a cube whose tables are perturbed one by one, tables a dimension
DIMENSIONS, RUNS = 3, 5
PER_RECORD = "ε and δ of this comparison are for one record; a unit of several is hidden by as many times ε."
UNTIED = (
    "Nothing ties these records to the release, whose key is destroyed: the comparison means something only if they "
    "are the ones that it was made of, unchanged."
)
CLOSE = 1e-6  # relative: what doubles may differ by
FAR = 10.0  # standard errors of the noise: a total further off is hardly noise
RULE = PublicationRule(3, 0.5)


@dataclass(frozen=True)
class AssessmentOptions:
    """Which cube, what is near zero, and what counts as publishable."""

    table: str | None = None
    limit: float = 1.0
    rule: PublicationRule = RULE

    def __post_init__(self) -> None:
        check_limit(self.limit)


@dataclass(frozen=True)
class AssessmentReport:
    """What was written, and what it shows, in words."""

    files: list[Path]
    lines: list[str]
    found: Assessment


def assess(
    release: Release,
    published: str,
    out: Path,
    asked: AssessmentOptions,
    *,
    frame: Any = None,
    observe: Observer = silent,
) -> AssessmentReport:
    """Compare, and write a report into a new folder that only its owner can read."""
    method = _chosen(release, asked.table)
    if out.exists() or any((parent / MANIFEST).exists() for parent in out.resolve().parents):
        raise PublishError("exists already, or lies in a release", where=str(out), do="name a new folder elsewhere")
    if read(published).spec != release.digest():
        raise PublishError(
            "was not made by this declaration", where=published, do="name the release that this file declares"
        )
    size = method.design.domain.cells * (2 + method.design.replicates)
    if size > MOST_NUMBERS:
        raise SpecError(
            f"{size:,} true numbers are more than {MOST_NUMBERS:,}",
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
    rule = asked.rule if true.errors is not None and protected.counts is not None else None
    found = compared(true, protected, asked.limit, rule)
    observe("assess", 1, 1)
    doubts = [UNTIED, *_strange(cube, true)]
    out.mkdir(mode=0o700, parents=True)
    try:
        files = _write(out, cube, found, doubts, _interactive(method, true, observe))
    except BaseException:
        shutil.rmtree(out)
        raise
    return AssessmentReport(files, [MARK, *doubts, *_lines(found)], found)


def _chosen(release: Release, name: str | None) -> HypercubeMethod:
    """The cube of this name, or the first."""
    cubes = [table for table in methods(release) if isinstance(table, HypercubeMethod)]
    if not cubes:
        raise SpecError(
            "the release has no table of method hypercube",
            where=f"release {release.release}",
            do="assess a release that declares one",
        )
    chosen = [table for table in cubes if name in (None, table.name)]
    if not chosen:
        known = ", ".join(table.name for table in cubes)
        raise SpecError(f"there is no cube {name!r}", where="--table", do=f"name one of {known}")
    return chosen[0]


def _protected(cube: Cube, counts: Floats | None) -> Side:
    @lru_cache(maxsize=1)  # estimates and standard errors are asked for one after the other
    def table(places: tuple[int, ...]) -> CubeTable:
        return cube.table([cube.model.axes[place].name for place in places])

    def estimates(margin: Margin) -> Floats:
        return table(margin.places).estimate

    def errors(margin: Margin) -> Floats:
        return table(margin.places).se

    return Side(cube.model.shape, estimates, counts, errors, cube.cells)


def _strange(cube: Cube, true: Side) -> list[str]:
    """Whether the grand total is further from the records' than noise would bring it. Public controls may be."""
    if any(control.kind == "public" for control in cube.model.controls):
        return []
    shown, told = cube.table(), float(true.table(Margin.over(true.shape, []))[0])
    apart, noise = abs(float(shown.estimate[0]) - told), float(shown.se_perturbation[0])
    if apart <= FAR * noise + CLOSE * abs(told):
        return []
    return [
        f"The grand total of the release is further from these records' than {FAR:g} standard errors of its noise: "
        "they are hardly those that it was made of, unless many units have too many records, of which others were kept."
    ]


def _true(engine: Engine, release: Release, method: HypercubeMethod, frame: Any) -> Side:
    """The exact cube. Of units with too many records others may be kept than the release kept: its key is gone."""
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
        return Side(shape, count, count)
    total = dense.pop("w") * step
    moved = np.array([dense[name] * step for name in names if name in dense])
    return Side(shape, total, count, _true_errors(method, total, moved))


def _true_errors(method: HypercubeMethod, total: Floats, moved: Floats) -> Tables | None:
    """Sampling errors of the exact cube: from replicates, or from Σ w², which was counted in steps of Σ w²/max."""
    spec, shape = method.design.spec, method.design.domain.shape
    if spec.replicates is not None:
        return replicate_errors(shape, total, total + moved, float(spec.replicates.factor))
    if spec.squares is not None and spec.weights is not None:
        return square_errors(shape, moved[0] * float(spec.weights.max), float(spec.squares.effect))
    return None


def _interactive(method: HypercubeMethod, true: Side, observe: Observer) -> Comparison | None:
    """The same counts with every table perturbed on its own; none where the cube has no counts or too many cells."""
    distribution, design = method.design.count_distribution, method.design
    if distribution is None or true.counts is None or design.domain.cells > MOST_COMPARED or design.average is not None:
        return None
    observe("compare", 0, 1)
    counts = np.rint(true.counts).astype(np.int64).reshape(design.domain.shape)
    wanted = range(1, min(len(design.domain.shape), DIMENSIONS) + 1)
    found = compare(counts, distribution, dimensions=wanted, most=ASKED, runs=RUNS)
    observe("compare", 1, 1)
    return found


def _write(out: Path, cube: Cube, found: Assessment, doubts: list[str], ways: Comparison | None) -> list[Path]:
    name, variables = cube.model.cube, [axis.name for axis in cube.model.axes]
    pictures = {"near-zero": moves_plot(found, "Cells near zero, before and after")}
    if any(table.overlaps is not None for table in found.tables):
        pictures["overlap"] = overlap_plot(found, "Overlap of confidence intervals")
    if any(table.cramers_v is not None for table in found.tables):
        pictures["association"] = association_plot(found, "Cramér's V of two-way tables", variables)
    blocks: list[Block] = [Heading(1, f"Assessment of the cube {name}"), *map(Paragraph, [MARK, *doubts])]
    blocks += assessment_blocks(found, variables)
    if ways is not None:
        blocks += [*comparison_blocks(ways), Paragraph(PER_RECORD)]
        pictures["interactive"] = error_plot(ways, comparison_title(ways))
    for file, chart in pictures.items():
        chart.save(str(out / f"{file}.svg"))
        blocks.append(Figure(f"{file}.svg", file.replace("-", " ")))
    (out / "CONFIDENTIAL.txt").write_text(MARK + "\n", encoding="utf-8")
    return write_report(out, f"Assessment of {name}", blocks, {})


def _lines(found: Assessment) -> list[str]:
    lines = []
    for one in found.dimensions:
        kept = one.published
        gained = "" if kept is None else f"; publishable {kept.before:,} before, {kept.after:,} after"
        lines.append(
            f"{plural(one.dimension, 'variable')}: mean |difference| {one.estimates.mean_abs:,.3g}, near zero and "
            f"shown as more {one.moves.to_nonzero:,} of {one.moves.near_zero:,}, the other way {one.moves.to_zero:,}"
            f"{gained}"
        )
    return [*lines, publishable(found)]
