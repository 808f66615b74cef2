"""Plots for the operator: local sensitivities under their envelope χ/N^r, and the most influential record of one cell.

Confidential side: every file says so, and the folder is not a release. Nothing is spent, and nothing may be published.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.domain import Domain
from discreet.engine import Engine, open_engine
from discreet.engine.observations import Observations
from discreet.engine.spans import CELL
from discreet.errors import PublishError, SourceError, SpecError
from discreet.methods.registry import methods
from discreet.methods.sensitivity.audit import CellInfluences, cell_influences, cell_label
from discreet.methods.sensitivity.method import SensitivityMethod
from discreet.methods.sensitivity.statistics.line import Line
from discreet.methods.sensitivity.utility.envelope_plots import cell_plot, envelope_plot
from discreet.noise.key import ReleaseKey
from discreet.pipeline.check import MARK
from discreet.pipeline.tabulation import read_records
from discreet.publish.manifest import FILE as MANIFEST
from discreet.spec import Release


@dataclass(frozen=True)
class EnvelopePictures:
    """The files written, and a summary."""

    files: list[Path]
    lines: list[str]


def envelope(
    release: Release, name: str | None, codes: dict[str, str], out: Path, frame: Any = None
) -> EnvelopePictures:
    """Figures 1 and 2 of Chetty & Friedman 2019 for a table of estimates, in a new folder with mode 0700."""
    tables = methods(release, trust=True)
    table = _chosen(tables, name)
    if out.exists() or any((parent / MANIFEST).exists() for parent in out.resolve().parents):
        raise PublishError("already exists, or lies in a release", where=str(out), do="name a new folder elsewhere")
    with open_engine(release.engine) as engine:
        records = read_records(engine, release, tables, frame).store(engine)
        secret = ReleaseKey.generate().secret("records", release.release, length=16)
        rows = Observations(records, release.unit, secret)
        influences = cell_influences(engine, table, rows)
        scaled = influences.n.astype(float) ** float(table.design.spec.decay) * influences.sensitivity
        usable = np.isfinite(scaled) & (influences.n >= table.design.least)
        if not usable.any():
            raise SourceError(
                "no cell has a finite sensitivity", where=f"table {table.name}", do="see `discreet check`"
            )
        cell = (
            _number(table.design.domain, codes) if codes else int(influences.cells[usable][np.argmax(scaled[usable])])
        )
        out.mkdir(mode=0o700, parents=True)
        try:
            (out / "CONFIDENTIAL.txt").write_text(MARK + "\n", encoding="utf-8")
            files = [_envelope(table, influences, float(scaled[usable].max()), out)]
            files += _cell(engine, table, rows, cell, out)
        except BaseException:
            shutil.rmtree(out)
            raise
    shown = f"; cell shown: {cell_label(table.design.domain, cell)}" if len(files) > 1 else ""
    only = "" if shown or not codes else "; plots of single cells are available for unwinsorised lines only"
    groups = table.design.groups.coarse.cells
    chi = f"χ = {scaled[usable].max():.4g}{f', the largest of {groups} groups' if groups > 1 else ''}"
    return EnvelopePictures(files, [MARK, f"{chi}{shown}{only}"])


def _envelope(table: SensitivityMethod, influences: CellInfluences, chi: float, out: Path) -> Path:
    large = influences.n >= table.design.least
    groups = "" if table.design.groups.coarse.cells == 1 else ", the largest χ of all groups"
    title = f"{table.name}: sensitivities and their envelope{groups}"
    chart = envelope_plot(
        influences.n[large], influences.sensitivity[large], chi, title, float(table.design.spec.decay)
    )
    chart.save(str(out / "envelope.svg"))
    return out / "envelope.svg"


def _cell(engine: Engine, table: SensitivityMethod, rows: Observations, cell: int, out: Path) -> list[Path]:
    """The plot of one cell, for lines."""
    line = table.design.statistic
    if not isinstance(line, Line):
        return []
    observations = rows.of(engine, table.design.domain, table.observed)
    observations = observations.filter(observations[CELL] == cell)
    batches = list(engine.batches(observations.order_by(observations.columns)))
    if not batches or not sum(batch.num_rows for batch in batches):
        raise SourceError("has no records", where="--cell", do="name another cell")
    x, y = (np.concatenate([b.column(i).to_numpy(zero_copy_only=False) for b in batches]) for i in (1, 2))
    bounds = (line.x.low, line.x.high), (line.y.low, line.y.high)
    worst = line.worst([x, y], table.design.search)
    title = f"{table.name}: {cell_label(table.design.domain, cell)}"
    cell_plot(x, y, worst, line.at, title, (line.x.name, line.y.name), bounds).save(str(out / "cell.svg"))
    return [out / "cell.svg"]


def _chosen(tables: list[Any], name: str | None) -> SensitivityMethod:
    matching = [table for table in tables if isinstance(table, SensitivityMethod) and name in (None, table.name)]
    if not matching:
        raise SpecError("no such table of estimates", where="--table", do="name a table with method sensitivity")
    return matching[0]


def _number(domain: Domain, codes: dict[str, str]) -> int:
    """The cell with these codes, one for each published column."""
    if unknown := next((column for column in codes if column not in domain.columns), None):
        known = ", ".join(domain.columns)
        raise SpecError(f"{unknown!r} is not a column of codes", where="--cell", do=f"use {known}")
    if missing := next((column for column in domain.columns if column not in codes), None):
        raise SpecError(f"{missing} is missing", where="--cell", do=f"add {missing}=CODE")
    numbers = []
    for attribute in domain.attributes:
        key = tuple(codes[column] for column in attribute.columns)
        if key not in attribute.published:
            raise SpecError(
                f"{'/'.join(key)!r} is not a category of {attribute.name!r}", where="--cell", do="use a declared one"
            )
        numbers.append(attribute.published.index(key))
    return domain.number(numbers)
