"""`discreet tradeoff`: the errors of estimates at each ε, and the ε that meets a target (Chetty & Friedman 2019, Step
3).

ε must not be chosen by inspecting the data that it protects: the input is synthetic, public, or an earlier release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from discreet.errors import ParameterError, PublishError, SourceError
from discreet.methods.sensitivity.statistics import Floats, Variable
from discreet.methods.sensitivity.statistics.line import Line
from discreet.methods.sensitivity.utility.tradeoff import Distribution, Point, epsilon_for, tradeoff
from discreet.methods.sensitivity.utility.tradeoff_plots import tradeoff_plot
from discreet.privacy.exact import format_exact
from discreet.privacy.gaussian import true_epsilon
from discreet.publish import manifest
from discreet.publish.parquet import table_of
from discreet.publish.published import read_verified, refuse_inconsistent
from discreet.publish.storage import storage_at
from discreet.report.blocks import as_csv
from discreet.synth.atlas import atlas

DELTA = Fraction(1, 10**6)  # at which the cost of normal noise is stated
CHILDREN, TRACTS, SMALL = 400_000, 4_000, 20
AT = 0.25


@dataclass(frozen=True)
class PublicCells:
    """Cells that are not confidential: estimates, numbers of records, χ, and areas within which they are ranked."""

    estimate: Floats
    count: Floats
    chi: Floats
    area: tuple[str, ...] | None
    about: str
    areas: str = "area"  # name of the areas


def synthetic_cells(seed: int) -> PublicCells:
    """A synthetic atlas: the prediction at the 25th percentile in every tract with 20 children or more."""
    data = atlas(CHILDREN, TRACTS, seed, lean=True)
    rank = Variable("parent_rank", 0.0, 1.0)
    sizes = data.tracts.size
    order = np.lexsort((data.kid_rank, data.parent_rank, data.tract))
    starts = np.append(0, np.cumsum(sizes[sizes > 0]))
    local = Line(rank, Variable("kid_rank", 0.0, 1.0), "prediction", AT).local(
        [data.parent_rank[order], data.kid_rank[order]], starts, errors=False
    )
    large = (local.n >= SMALL) & np.isfinite(local.sensitivity)
    chi = float((local.n[large] * local.sensitivity[large]).max())
    county = np.array(data.tracts.county)[sizes > 0][large]
    about = f"{int(large.sum()):,} synthetic tracts (seed {seed}), prediction at {AT:g}, χ = {chi:.4g}"
    scales = np.full(int(large.sum()), chi)
    return PublicCells(local.statistic[large], local.n[large].astype(float), scales, tuple(county), about, "county")


def public_cells(path: Path, chi: str | None, area: str | None, provenance: str) -> PublicCells:
    """A public file of cells: columns `estimate` and `count`, and optionally an area."""
    table = _read(path)
    for column in ("estimate", "count", *([area] if area else [])):
        if column not in table.column_names:
            raise SourceError(
                f"has no column {column!r}", where=str(path), do=f"it has {', '.join(table.column_names)}"
            )
    if chi is None:
        raise ParameterError("χ of a public file is not known", where="--chi", do="give a public guess")
    table = table.filter(pc.is_valid(table["estimate"]))
    about = f"{table.num_rows:,} cells of {path.name} ({provenance}), χ = {chi}"
    areas = None if area is None else tuple(str(code) for code in table[area].to_pylist())
    return PublicCells(
        _floats(table, "estimate"),
        _floats(table, "count"),
        np.full(table.num_rows, _number(chi)),
        areas,
        about,
        area or "",
    )


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not 0 < number < np.inf:
        raise ParameterError(f"{text!r} is not a positive number", where="--chi", do="give one such as 13.02")
    return number


def released_cells(folder: Path, name: str | None, area: str | None) -> PublicCells:
    """An earlier release of estimates: its published numbers are used in place of the true ones."""
    release = manifest.read(folder)
    with refuse_inconsistent(str(folder)):
        return _released_cells(release, folder, name, area)


def _released_cells(release: manifest.Manifest, folder: Path, name: str | None, area: str | None) -> PublicCells:
    tables = {table.name: table for table in release.tables if table.method == "sensitivity"}
    offered = [name for name in tables if f"{name}_chi" in tables]
    chosen = name or next(iter(offered), "")
    if chosen not in offered:
        raise PublishError(
            f"has no table {chosen!r} of estimates",
            where=str(folder),
            do=f"choose with --table: {', '.join(offered) or 'none'}",
        )
    estimates, scales = (_published(release, folder, tables[t].files) for t in (chosen, f"{chosen}_chi"))
    if "count" not in estimates.column_names and "size" not in estimates.column_names:
        raise PublishError("publishes no numbers of records", where=str(folder), do="name another release")
    size = "size" if "size" in estimates.column_names else "count"
    chi = _scales_of(estimates, scales)
    shown = estimates["estimate"].is_valid().to_numpy() & (_floats(estimates, size) >= 1)
    if area is not None and area not in estimates.column_names:
        raise PublishError(f"has no column {area!r}", where=str(folder), do="give one of its columns of codes")
    codes = None if area is None else np.array([str(code) for code in estimates[area].to_pylist()])[shown]
    about = (
        f"{int(shown.sum()):,} cells of {release.release}; published (noisy) numbers are used in place of the true ones"
    )
    areas = None if codes is None else tuple(codes.tolist())
    return PublicCells(
        _floats(estimates, "estimate")[shown], _floats(estimates, size)[shown], chi[shown], areas, about, area or ""
    )


def _scales_of(estimates: pa.Table, scales: pa.Table) -> Floats:
    """χ of each cell, by the codes that both tables have; the largest where its group is not known."""
    largest = float(np.max(_floats(scales, "chi")))
    codes = [name for name in scales.column_names if name not in ("chi", "chi_error")]
    if not codes or not all(name in estimates.column_names for name in codes):
        return np.full(estimates.num_rows, largest)
    known = dict(zip(zip(*(scales[c].to_pylist() for c in codes), strict=True), _floats(scales, "chi"), strict=True))
    return np.array([known[key] for key in zip(*(estimates[c].to_pylist() for c in codes), strict=True)])


def _published(release: manifest.Manifest, folder: Path, files: Sequence[str]) -> pa.Table:
    contents = (read_verified(release, storage_at(str(folder)), name) for name in files if name.endswith(".parquet"))
    return pa.concat_tables([table_of(content) for content in contents]).unify_dictionaries()


def _read(path: Path) -> pa.Table:
    try:
        return pcsv.read_csv(path, pcsv.ReadOptions(use_threads=False)) if path.suffix == ".csv" else table_of(path)
    except (OSError, pa.ArrowException):
        raise SourceError("is not readable as CSV or Parquet", where=str(path), do="check the path") from None


def _floats(table: pa.Table, column: str) -> Floats:
    values: Floats = table[column].cast(pa.float64()).fill_null(np.nan).to_numpy()
    return values


@dataclass(frozen=True)
class TradeoffCurve:
    """Errors at each ε, and the ε that meets the target, if there is one."""

    known: PublicCells
    distribution: Distribution
    share: Fraction
    points: list[Point]
    chosen: Fraction | None

    def lines(self) -> list[str]:
        """The curve as a text table."""
        part = f"{format_exact(100 * self.share)}%"
        within = f" of their {self.known.areas}" if self.known.area is not None else ""
        out = [
            self.known.about,
            f"{self.distribution.capitalize()} noise. False top: of the cells shown in the top {part}{within}, the "
            "share whose true value is not there.",
            f"{'ε':>8} {'root MSE':>10} {'false top':>12} {'false bottom':>15}",
        ]
        out += [
            f"{format_exact(p.epsilon):>8} {p.mse_exact**0.5:10.4g} {p.false_top:12.1%} {p.false_bottom:15.1%}"
            for p in self.points
        ]
        out.append("ε is per quantity: an estimate with its standard error and a count costs three times as much.")
        if self.chosen is None:
            return out
        out.append(f"The target accuracy needs ε = {format_exact(self.chosen)} per quantity.")
        if self.distribution == "normal":
            cost = true_epsilon([self.chosen], DELTA)
            out.append(
                f"Normal noise of that ε costs {format_exact(cost)} per quantity at δ = {format_exact(DELTA)}: it is "
                "weaker."
            )
        return out

    def write(self, folder: Path) -> list[Path]:
        """Writes the table and the plot to a folder without them."""
        files = [folder / "tradeoff.csv", folder / "tradeoff.svg"]
        if any(file.exists() for file in files):
            raise PublishError("already has a trade-off", where=str(folder), do="name another folder")
        names = ("epsilon", "mse_exact", "mse_simulated", "false_top", "false_bottom")
        rows = [(format_exact(p.epsilon), p.mse_exact, p.mse, p.false_top, p.false_bottom) for p in self.points]
        folder.mkdir(parents=True, exist_ok=True)
        files[0].write_text(as_csv(names, rows), encoding="utf-8")
        title = f"Accuracy against ε per quantity, {self.distribution} noise: {self.known.about}"
        area = "" if self.known.area is None else self.known.areas
        tradeoff_plot(self.points, title, self.share, area, self.chosen).save(str(files[1]))
        return files


def tradeoff_input(
    synthetic: bool,
    seed: int,
    public: Path | None,
    provenance: str | None,
    chi: str | None,
    release: Path | None,
    table: str | None,
    area: str | None,
) -> PublicCells:
    """The one input that is given."""
    if sum((synthetic, public is not None, release is not None)) != 1:
        raise ParameterError(
            "needs exactly one input that is not confidential",
            where="tradeoff",
            do="give --synthetic, --public FILE or --release FOLDER",
        )
    if public is not None:
        if not provenance:
            raise ParameterError(
                "the origin of the public file is missing", where="--provenance", do="state where it comes from"
            )
        return public_cells(public, chi, area, provenance)
    return released_cells(release, table, area) if release is not None else synthetic_cells(seed)


@dataclass(frozen=True)
class TradeoffTargets:
    """The ε to evaluate, and the target accuracy."""

    epsilons: tuple[Fraction, ...]
    distribution: Distribution
    share: Fraction
    mse: float | None = None
    misclassified: float | None = None

    def __post_init__(self) -> None:
        for name, wrong, do in (
            ("--epsilons", not self.epsilons or min(self.epsilons) <= 0, "give positive numbers, separated by commas"),
            ("--distribution", self.distribution not in ("laplace", "normal"), "write laplace or normal"),
            ("--share", not 0 < self.share <= Fraction(1, 2), 'give a share up to a half, such as "0.1"'),
            ("--target-mse", self.mse is not None and self.misclassified is not None, "give one target, not two"),
            ("--target-mse", self.mse is not None and not 0 < self.mse < np.inf, "give a positive number"),
            (
                "--target-misclassification",
                self.misclassified is not None and not 0 < self.misclassified < 1,
                "give a share between 0 and 1",
            ),
        ):
            if wrong:
                raise ParameterError("cannot be used", where=name, do=do)


def tradeoff_curve(known: PublicCells, targets: TradeoffTargets) -> TradeoffCurve:
    """Errors at each ε; and the smallest ε, to a hundredth, that meets a target."""
    arrays = known.estimate, known.count, known.chi
    if not known.estimate.size:
        raise SourceError("has no cell with an estimate", where=known.about, do="name another input")
    distribution, share, area, chosen = targets.distribution, targets.share, known.area, None
    if targets.mse is not None or targets.misclassified is not None:
        mse, wrong = targets.mse, targets.misclassified
        chosen = epsilon_for(
            *arrays, target_mse=mse, target_misclassification=wrong, distribution=distribution, areas=area, share=share
        )
    epsilons = sorted({*targets.epsilons, *([chosen] if chosen is not None else [])})
    return TradeoffCurve(known, distribution, share, tradeoff(*arrays, epsilons, distribution, area, share), chosen)
