"""Descriptions of a cube's published tables, for `plan`, the codebook and the manifest."""

from __future__ import annotations

from fractions import Fraction

from discreet.formatting import plural
from discreet.methods.hypercube import wording
from discreet.methods.hypercube.design import CubeDesign, PreparedControl
from discreet.methods.hypercube.spec import RakingCalibration
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.cubes.variance import KnownMargin, reduction
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Guarantee
from discreet.publish.description import Column, ExpectedError, PublishedTable, code_columns

MODEL = "the model for queries: axes and coarser levels, noise, controls, calibration, source of sampling variances"
LEVEL = Fraction(9, 10)
SHOWN = 4  # dimensions whose expected errors `plan` lists


def published(design: CubeDesign, parts: int) -> list[PublishedTable]:
    """The cube, its controls, and deviations of replicates where they are published."""
    cube = PublishedTable(
        name=design.name,
        by=tuple(design.spec.by),
        domain=design.domain,
        guarantee=design.guarantee if design.in_memory else design.cube_guarantee,
        composition=design.composes(),
        noise=noise(design),
        error=_error(design),
        columns=tuple(columns(design)),
        about=_about(design),
        form=design.spec.form,
        parts=parts,
        formats=design.kinds,
    )
    tables = [cube, *(_control(design, control) for control in design.controls)]
    guarantee = design.deviation_guarantee
    if guarantee is not None and design.spec.replicates is not None and not design.spec.replicates.tables:
        tables.append(_deviations(design, guarantee))
    return tables


def _control(design: CubeDesign, control: PreparedControl) -> PublishedTable:
    by = " by " + ", ".join(control.spec.by) if control.spec.by else ""
    about = {
        "measured": f"Control totals{by}: noisy measurements with their own epsilon.",
        "exact": f"Control totals{by}: exact confidential totals, without noise. The caveats say what that reveals.",
        "public": f"Control totals{by} from a public file: {control.spec.provenance}.",
    }[control.kind]
    distribution = control.distribution
    what = "number of records" if design.spec.weights is None else "sum of weights"
    meaning = {
        "measured": f"{what}, plus noise",
        "exact": f"exact confidential {what}, without noise: not protected",
        "public": "public total",
    }[control.kind]
    column = Column("total", "number", meaning)
    about_step = (
        "the amount that calibration adds to every cell of the cube in this total, cells without a row included"
    )
    step = (Column("step", "number", about_step),) if "step" in design.control_columns else ()
    return PublishedTable(
        name=control.name,
        by=tuple(control.spec.by),
        domain=control.cells.coarse,
        guarantee=design.table_guarantee(control),
        composition="",
        noise="" if distribution is None else _distribution(distribution, design),
        error=None,
        columns=(*code_columns(control.cells.coarse), column, *step),
        about=about,
        part_of=design.name,
        no_cost_note={"measured": "", "exact": "no epsilon: not protected", "public": "public, no privacy loss"}[
            control.kind
        ],
        formats=design.kinds,
    )


def _deviations(design: CubeDesign, guarantee: Guarantee) -> PublishedTable:
    replicates = design.spec.replicates
    names = [] if replicates is None else replicates.names
    own = [Column(f"d{i}", "number", f"sum of {name} − weight, plus noise") for i, name in enumerate(names, 1)]
    return PublishedTable(
        name=f"{design.name}_replicates",
        by=tuple(design.spec.by),
        domain=design.domain,
        guarantee=guarantee,
        composition="",
        noise="" if design.deviation_distribution is None else _distribution(design.deviation_distribution, design),
        error=None,
        columns=(*code_columns(design.domain), *own),
        about="Noisy deviations of replicate totals from the total, for sampling variances: factor/R · Σ d² less the "
        "noise, see the model.",
        part_of=design.name,
        formats=design.kinds,
    )


def _distribution(distribution: DiscreteLaplace, design: CubeDesign, step: Fraction | None = None) -> str:
    unit = design.step if step is None else step
    cap = "" if distribution.cap is None else f", |k| ≤ {distribution.cap:,}"
    each = "" if unit == 1 else f", in steps of {format_exact(unit)}"
    return f"discrete Laplace (two-sided geometric), P(k) ∝ exp(−{format_exact(distribution.rate)}·|k|){cap}{each}"


def noise(design: CubeDesign) -> str:
    """The mechanism, as text and formula."""
    parts = []
    if design.count_distribution is not None:
        parts.append(f"counts: {_distribution(design.count_distribution, design, Fraction(1))}")
    if design.total_distribution is not None:
        parts.append(f"totals: {_distribution(design.total_distribution, design)}")
    if design.average is not None:
        parts.append("totals: the noise of the count times an average weight, without a guarantee")
    if design.spec.form == "sparse":
        parts.append(
            f"exact sparse form: cells without a row are 0, non-zero noise in about {plural(design.noisy_rows, 'cell')}"
        )
    return "; ".join(parts)


def _error(design: CubeDesign) -> ExpectedError | None:
    """Expected error of a count from noise, before calibration."""
    if design.count_distribution is None or design.spec.measure != "count":
        return None
    distribution = design.count_distribution
    return ExpectedError(distribution.margin(LEVEL), distribution.variance() ** 0.5, distribution.mean_abs())


def _about(design: CubeDesign) -> str:
    lines = ["Every table is a sum of cells of this cube: the same set of cells has the same value in all tables."]
    weights = design.spec.weights
    if weights is not None:
        lines.append(
            wording.rule(weights.column, format_exact(weights.max), format_exact(weights.grid), weights.above) + "."
        )
    if design.controls:
        names = ", ".join(control.name for control in design.controls)
        rule = design.spec.calibration
        by = (
            "least squares"
            if not isinstance(rule, RakingCalibration)
            else f"raking (tolerance {format_exact(rule.tolerance)})"
        )
        lines.append(
            f"Calibrated to {names} by {by}." + (f" {wording.FALLBACK}" if isinstance(rule, RakingCalibration) else "")
        )
    return " ".join(lines)


def columns(design: CubeDesign) -> list[Column]:
    """The published columns and their meaning."""
    cost = design.cube_guarantee
    within = f"δ = {format_exact(cost.delta)}" if cost.delta else "δ = 0"
    meaning = {
        "count": "number of records used, plus noise; may be negative",
        "total": "sum of the records' weights, plus noise; may be negative"
        if design.average is None
        else "sum of the records' weights plus the noise of the count times an average weight: has no guarantee, see "
        "the caveats",
        "calibrated": f"`{design.spec.measure}` calibrated to the controls; may be negative",
        "whole": f"`{'calibrated' if design.controls else design.spec.measure}` rounded to non-negative integers that "
        "add up to the rounded controls, with the exceptions that the model lists; small cells are biased upwards "
        "and, since sums are kept, large cells and tables that are not controls downwards: queries do not use it",
    }
    kinds = {"count": "integer", "whole": "integer"}
    described = code_columns(design.domain)
    for name in design.columns:
        loss = f" (perturbed cube: ε = {format_exact(cost.epsilon)}, {within})" if name == "count" else ""
        described.append(Column(name, kinds.get(name, "number"), meaning[name] + loss))
    return described


def notes(design: CubeDesign) -> dict[str, tuple[str, ...]]:
    """Expected errors of tables by their number of variables, from the declaration alone."""
    lines = []
    cost = design.cube_guarantee
    if cost.delta:
        lines.append(f"the noise is capped: δ = {format_exact(cost.delta)}")
    if design.average is None:
        lines += _expected(design)
    else:
        lines.append("errors of totals are proportional to the average weight")
    if design.spec.variance_source is None and design.spec.weights is not None:
        lines.append(
            "standard errors will cover the noise alone, not sampling: declare `squared_weights` or `replicates` for "
            "both"
        )
    return {design.name: tuple(lines)}


def _expected(design: CubeDesign) -> list[str]:
    step = float(design.step)
    shape, variance = design.domain.shape, design.distribution.variance() * step**2
    known = KnownMargin.among(
        (control.margin, 0.0 if control.distribution is None else control.distribution.variance() * step**2)
        for control in design.controls
    )
    lines = []
    for dimension in range(1, min(len(shape), SHOWN) + 1):
        cells = reduction(shape, variance, known, dimension)
        better = f", calibrated {_size(cells.after**0.5)}" if known else ""
        lines.append(
            f"tables of {plural(dimension, 'variable')}: standard deviation of noise {_size(cells.before**0.5)}{better}"
        )
    return lines


def _size(value: float) -> str:
    """Three significant digits."""
    return f"{value:.3g}" if value < 1000 else f"{float(f'{value:.3g}'):,.0f}"
