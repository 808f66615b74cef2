"""How tables of estimates are described, before and beside what is published."""

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
        composes=composes(design),
        noise=wording.noise(design.noise, design.spec.decay),
        error=None,
        columns=(*code_columns(design.domain), *(_column(design, name) for name in design.columns)),
        about=_about(design),
        parts=len(spans[0]),
        kinds=design.kinds,
    )
    scales = PublishedTable(
        name=f"{design.name}_chi",
        by=tuple(design.spec.groups),
        domain=design.groups.coarse,
        guarantee=guarantee,
        composes="",
        noise="",
        error=None,
        columns=(*code_columns(design.groups.coarse), *(_column(design, name) for name in numbers)),
        about=f"What scales the noise of {design.name}, by group of cells: published as it is; the caveats except it.",
        sum_of=design.name,
        parts=len(spans[1]),
        kinds=design.kinds,
    )
    return [estimates, scales]


def _about(design: EstimateDesign) -> str:
    told = design.spec.statistic.in_words()
    rules = "; ".join(made.description() for made in observed(design.spec))
    told = f"Of each cell: {told}. Variables: {rules}. A cell where it is not defined has a stated value in its place."
    few = ""
    if design.spec.minimum is not None:
        which = "released" if design.spec.minimum.on == "released" else "true"
        few = f" Cells whose {which} number of records is below {design.spec.minimum.count} have no estimate."
    if isinstance(design.spec.size, PublicSizes):
        few += f" Public numbers of records: {design.spec.size.provenance}; a cell that is not listed counts as one."
    chosen = "; ".join(f"{name} {', '.join(codes)}" for name, codes in design.spec.only.items())
    only = f" Only cells with {chosen} are published; the others help to scale the noise." if chosen else ""
    return f"{told}{few}{only}"


def composes(design: EstimateDesign) -> str:
    each = f"{', '.join(design.numbers)}: {len(design.numbers)} numbers of a cell"
    if design.spec.noise == "normal":
        return wording.normal(
            design.spec.epsilon, len(design.numbers), design.charged, design.part("normal") or Fraction(0)
        )
    return (
        f"{each} × {format_exact(design.spec.epsilon)} = {format_exact(design.charged)}; cells share no record: parallel. χ is "
        "published besides, and its cost is not bounded"
    )


def notes(design: EstimateDesign) -> dict[str, tuple[str, ...]]:
    deviation = f"counts: standard deviation of noise {design.noise.deviation_of_count:.3g}"
    one = 2**0.5 / float(design.spec.epsilon)
    estimate = f"estimates: {one:.3g} times χ/N, which the records decide; `discreet tradeoff` makes a public guess"
    groups = f"χ by {' × '.join(design.spec.groups)}" if design.spec.groups else "one χ for all cells"
    notes = [
        design.spec.statistic.in_words(),
        deviation,
        estimate,
        f"{groups}; estimates in steps of 1/{design.steps:,}",
    ]
    if design.spec.minimum is not None:
        kind = design.spec.minimum.on
        notes.append(f"no estimate where the {kind} count is below {design.spec.minimum.count}")
    notes += [f"only {name} {', '.join(codes)} is published" for name, codes in design.spec.only.items()]
    return {design.name: tuple(notes)}


def _column(design: EstimateDesign, name: str) -> Column:
    kind = "integer" if name in ("count", "size") else "number"
    seen = "" if design.noise.size != "true" else " as far as `count` tells"
    power = "N" if design.spec.decay == 1 else f"N^{format_exact(design.spec.decay)}"
    meaning = {
        "estimate": f"protected {design.statistic.name}, plus noise; unbiased where that is defined",
        "noise_sd": f"standard deviation of the noise in `estimate`{seen}",
        "se": "standard error of `estimate`, noise included: √(max(se_sampling, 0)² + noise_sd²) (004, Step 4b)",
        "se_sampling": "protected standard error of the statistic, plus noise; may be negative",
        "se_noise_sd": f"standard deviation of the noise in `se_sampling`{seen}",
        "low95": "with a probability of about 95% (20 records or more) what the cell's records are a sample of lies "
        "between this and `high95`; noise is taken into account",
        "high95": "see `low95`",
        "count": "protected number of records used, plus noise; may be negative",
        "size": "the number N that the noise is divided by: "
        + ("a public list's" if design.noise.size == "public" else f"max(count − {design.noise.margin}, 1)"),
        "chi": f"largest {power} × sensitivity of the statistic observed in a cell of the group with {design.least} or "
        "more records, rounded up; in a group without any, the largest of the others, or the statistic's natural size",
        "chi_error": f"largest {power} × sensitivity of its standard error, rounded up",
    }
    return Column(name, kind, meaning[name])
