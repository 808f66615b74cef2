"""Descriptions of tables of estimates: for plans, codebooks and manifests."""

from __future__ import annotations

from fractions import Fraction

from discreet.engine.spans import Spans
from discreet.methods.sensitivity import wording
from discreet.methods.sensitivity.design import EstimateDesign
from discreet.methods.sensitivity.spec import PublicSizes
from discreet.methods.sensitivity.statistic import observed
from discreet.privacy.exact import format_exact
from discreet.publish.description import Column, PublishedTable, code_columns


def published(design: EstimateDesign, spans: tuple[Spans, ...]) -> list[PublishedTable]:
    guarantee, numbers = design.guarantee, ("chi", "chi_error")[: 1 + design.errors]
    estimates = PublishedTable(
        name=design.name,
        by=tuple(design.spec.by),
        domain=design.domain,
        guarantee=guarantee,
        composition=composes(design),
        noise=wording.noise(design.noise, design.spec.decay),
        error=None,
        columns=(*code_columns(design.domain), *(_column(design, name) for name in design.columns)),
        about=_about(design),
        parts=len(spans[0]),
        formats=design.kinds,
    )
    scales = PublishedTable(
        name=f"{design.name}_chi",
        by=tuple(design.spec.groups),
        domain=design.groups.coarse,
        guarantee=guarantee,
        composition="",
        noise="",
        error=None,
        columns=(*code_columns(design.groups.coarse), *(_column(design, name) for name in numbers)),
        about=f"Noise scale χ of {design.name}, by group of cells: published without noise, which no guarantee covers.",
        part_of=design.name,
        no_cost_note="χ without noise: covered by no epsilon",
        parts=len(spans[1]),
        formats=design.kinds,
    )
    return [estimates, scales]


def _about(design: EstimateDesign) -> str:
    rules = "; ".join(value.description() for value in observed(design.spec))
    what = (
        f"For each cell: {design.spec.statistic.describe()}. Variables: {rules}. Where the statistic is undefined, a "
        "fixed fallback value takes its place."
    )
    few = ""
    if design.spec.suppress_below is not None:
        rule = design.spec.suppress_below
        few = f" Cells whose {rule.on} number of records is below {rule.count} have no estimate."
    if isinstance(design.spec.cell_size, PublicSizes):
        few += (
            f" Public numbers of records: {design.spec.cell_size.provenance}; a cell that is not listed counts as one."
        )
    chosen = "; ".join(f"{name} {', '.join(codes)}" for name, codes in design.spec.only.items())
    only = f" Only cells with {chosen} are published; the others count towards χ." if chosen else ""
    return f"{what}{few}{only}"


def composes(design: EstimateDesign) -> str:
    each = f"{', '.join(design.quantities)}: {len(design.quantities)} per cell"
    if design.spec.noise == "normal":
        return wording.normal(
            design.spec.epsilon, len(design.quantities), design.charged, design.part("normal") or Fraction(0)
        )
    return (
        f"{each} × {format_exact(design.spec.epsilon)} = {format_exact(design.charged)}; cells share no record: "
        "parallel. χ is published without noise, and its privacy loss is not bounded"
    )


def notes(design: EstimateDesign) -> dict[str, tuple[str, ...]]:
    deviation = f"counts: noise with standard deviation {design.noise.deviation_of_count:.3g}"
    one = 2**0.5 / float(design.spec.epsilon)
    estimate = f"estimates: {one:.3g} times χ/N, which depends on the records; `discreet tradeoff` gives a public guess"
    groups = f"χ by {' × '.join(design.spec.groups)}" if design.spec.groups else "one χ for all cells"
    notes = [
        design.spec.statistic.describe(),
        deviation,
        estimate,
        f"{groups}; estimates on a grid of 1/{design.steps:,}",
    ]
    if design.spec.suppress_below is not None:
        kind = design.spec.suppress_below.on
        notes.append(f"no estimate where the {kind} count is below {design.spec.suppress_below.count}")
    notes += [f"only {name} {', '.join(codes)} is published" for name, codes in design.spec.only.items()]
    return {design.name: tuple(notes)}


def _column(design: EstimateDesign, name: str) -> Column:
    kind = "integer" if name in ("count", "size") else "number"
    seen = "" if design.noise.size != "true" else ", approximated with `count` for N"
    power = "N" if design.spec.decay == 1 else f"N^{format_exact(design.spec.decay)}"
    meaning = {
        "estimate": f"noisy {design.statistic.name}; the noise has mean 0",
        "noise_sd": f"standard deviation of the noise in `estimate`{seen}",
        "se": "standard error of `estimate`, noise included: √(max(se_sampling, 0)² + noise_sd²) (Chetty & Friedman "
        "2019, Step 4b, with noise on the sampling part only)",
        "se_sampling": "noisy sampling standard error of the statistic; may be negative",
        "se_noise_sd": f"standard deviation of the noise in `se_sampling`{seen}",
        "low95": "lower limit of a confidence interval of about 95% (20 records or more) for the value in the "
        "population that the records are a sample of: covers sampling and noise",
        "high95": "upper limit, see `low95`",
        "count": "noisy number of records used; may be negative",
        "size": "N in the noise scale χ/N: "
        + ("from a public list" if design.noise.size == "public" else f"max(count − {design.noise.margin}, 1)"),
        "chi": f"largest {power} × sensitivity of the statistic observed in a cell of the group with {design.least} or "
        "more records, rounded up; in a group without any, the largest of the others, or the statistic's natural size",
        "chi_error": f"largest {power} × sensitivity of its standard error, rounded up",
    }
    return Column(name, kind, meaning[name])
