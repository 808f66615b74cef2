"""The post-perturbation assessment: a published cube against the records that it was made of (002, §3.4).

Confidential side: every file says so, and the folder is no release. Nothing is spent, and nothing may be published.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.document import Block, Figure, Heading, Paragraph, write_report
from discreet.engine import Engine
from discreet.engine.observations import Observations
from discreet.engine.opening import open_engine
from discreet.engine.spans import CELL
from discreet.engine.tabulate import keep_records
from discreet.errors import PublishError, SpecError
from discreet.evaluate.cube_comparison import Comparison, compare
from discreet.evaluate.cube_measures import Rule
from discreet.evaluate.cube_plots import association_plot, error_plot, moves_plot, overlap_plot
from discreet.evaluate.cube_report import assessment_blocks, comparison_blocks
from discreet.evaluate.cubes import Assessment, Side, replicate_errors
from discreet.evaluate.cubes import assess as compared
from discreet.methods import methods
from discreet.methods.hypercube import HypercubeMethod
from discreet.noise.key import ReleaseKey
from discreet.pipeline.check import MARK
from discreet.pipeline.records import read_records
from discreet.post.margins import Floats, Margin
from discreet.publish.cubes import open_counts, open_cube
from discreet.publish.manifest import FILE as MANIFEST
from discreet.publish.manifest import read
from discreet.spec import Release

MOST_NUMBERS = 1 << 27  # of the true cube and its replicates, in memory
MOST_COMPARED, ASKED = 1 << 20, 60  # cells of a cube whose tables are perturbed one by one, tables a dimension
DIMENSIONS, RUNS = 3, 5
PER_RECORD = "ε and δ of this comparison are for one record; a unit of several is hidden by as many times ε."
Observer = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Asked:
    """Which cube, what is near zero, and what counts as publishable."""

    table: str | None = None
    limit: float = 1.0
    records: int = 3
    cv: float = 0.5


@dataclass(frozen=True)
class Assessed:
    """What was written, and what it shows, in words."""

    files: list[Path]
    lines: list[str]
    found: Assessment


def silent(step: str, done: int, total: int) -> None:
    """An observer that says nothing."""


def assess(
    release: Release, published: str, out: Path, asked: Asked, *, frame: Any = None, observe: Observer = silent
) -> Assessed:
    """Compare, and write a report into a new folder that only its owner can read."""
    tables = methods(release)
    cubes = [t for t in tables if isinstance(t, HypercubeMethod) and asked.table in (None, t.name)]
    if not cubes:
        raise SpecError("there is no such cube", where="--table", do="name a table with method hypercube")
    method = cubes[0]
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
    protected = _protected(published, method.name)
    observe("read", 0, 1)
    with open_engine(release.engine) as engine:
        true = _true(engine, release, method, frame)
    observe("read", 1, 1)
    observe("assess", 0, 1)
    rule = Rule(asked.records, asked.cv) if true.errors is not None and protected.counts is not None else None
    found = compared(true, protected, asked.limit, rule)
    observe("assess", 1, 1)
    out.mkdir(mode=0o700, parents=True)
    try:
        files = _write(out, method.name, found, _interactive(method, true, observe))
    except BaseException:
        shutil.rmtree(out)
        raise
    return Assessed(files, _lines(found), found)


def _protected(published: str, name: str) -> Side:
    cube = open_cube(published, name)

    def errors(margin: Margin) -> Floats:
        return cube.table([cube.model.axes[axis.place].name for axis in margin.axes]).se

    return Side(cube.model.shape, cube.values, open_counts(published, name), errors, cube.cells)


def _true(engine: Engine, release: Release, method: HypercubeMethod, frame: Any) -> Side:
    """The exact cube. Of units with too many records others may be kept than the release kept: its key is gone."""
    records = read_records(engine, release, [method], frame, clean=engine.cleans).stored(engine)
    secret = ReleaseKey.generate().secret("records", release.release, length=16)
    rows: Any = Observations(records, release.unit, secret)
    if method.grain == "records":
        rows = keep_records(engine, records.joined(), [method.design.domain], release.unit, secret)
    exact = method.exact(engine, rows)
    names = [name for name in exact.columns if name != CELL]
    dense = np.zeros((len(names), method.design.domain.cells))
    for batch in engine.batches(exact.select(CELL, *names)):
        cells, *columns = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
        for values, column in zip(dense, columns, strict=True):
            values[cells] = column
    shape, step = method.design.domain.shape, float(method.design.step)
    if len(names) == 1:
        return Side(shape, dense[0], dense[0])
    count, total, deviations = dense[0], dense[1] * step, dense[2:] * step
    errors = replicate_errors(shape, total, total + deviations) if len(deviations) else None
    return Side(shape, total, count, errors)


def _interactive(method: HypercubeMethod, true: Side, observe: Observer) -> Comparison | None:
    """The same counts with every table perturbed on its own; none where the cube has no counts or too many cells."""
    law, design = method.design.count_law, method.design
    if law is None or true.counts is None or design.domain.cells > MOST_COMPARED or design.average is not None:
        return None
    observe("compare", 0, 1)
    counts = np.rint(true.counts).astype(np.int64).reshape(design.domain.shape)
    wanted = range(1, min(len(design.domain.shape), DIMENSIONS) + 1)
    found = compare(counts, law, dimensions=wanted, most=ASKED, runs=RUNS)
    observe("compare", 1, 1)
    return found


def _write(out: Path, name: str, found: Assessment, ways: Comparison | None) -> list[Path]:
    pictures = {"near-zero": moves_plot(found, "Cells near zero, before and after")}
    if any(table.overlaps is not None for table in found.tables):
        pictures["overlap"] = overlap_plot(found, "Overlap of confidence intervals")
    if any(table.cramers_v is not None for table in found.tables):
        pictures["association"] = association_plot(found, "Cramér's V of two-way tables")
    blocks: list[Block] = [Heading(1, f"Assessment of the cube {name}"), Paragraph(MARK), *assessment_blocks(found)]
    if ways is not None:
        blocks += [*comparison_blocks(ways), Paragraph(PER_RECORD)]
        pictures["interactive"] = error_plot(ways, "One cube, or every table on its own")
    for file, chart in pictures.items():
        chart.save(str(out / f"{file}.svg"))
        blocks.append(Figure(f"{file}.svg", file.replace("-", " ")))
    (out / "CONFIDENTIAL.txt").write_text(MARK + "\n", encoding="utf-8")
    return write_report(out, f"Assessment of {name}", blocks, {})


def _lines(found: Assessment) -> list[str]:
    lines = [MARK]
    for one in found.dimensions:
        kept = one.published
        gained = "" if kept is None else f"; publishable {kept.before:,} before, {kept.after:,} after"
        lines.append(
            f"{one.dimension} variables: mean |difference| {one.estimates.mean_abs:,.3g}, near zero and shown as more "
            f"{one.moves.to_nonzero:,} of {one.moves.near_zero:,}, the other way {one.moves.to_zero:,}{gained}"
        )
    return lines
