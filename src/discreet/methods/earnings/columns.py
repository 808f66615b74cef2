"""Published columns of a table of earnings, with their codebook descriptions."""

from __future__ import annotations

from itertools import pairwise

from discreet.domain.bins import Bins
from discreet.methods.earnings.levels import LevelShape
from discreet.methods.earnings.spec import Earnings
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Unit
from discreet.publish.description import Column, code_columns


def earnings_columns(spec: Earnings, unit: Unit, bins: Bins, shape: LevelShape) -> list[Column]:
    """Columns: codes, status, count, percentiles with their limits, bins."""
    codes = code_columns(shape.domain)
    percentiles = [column for percentile in spec.percentiles for column in _percentile(spec, format_exact(percentile))]
    return [*codes, *_counts(unit, shape), *percentiles, *_bins(bins)]


def earnings_about(spec: Earnings, bins: Bins, shape: LevelShape, source: str) -> str:
    """Description of a level for the codebook: sample, bins, suppression, provenance."""
    sample = " and ".join(rule.holds.description() for rule in spec.sample) or "a value"
    edges = ", ".join(f"{edge:,}" for edge in bins.edges)
    parts = [
        f"Percentiles of {spec.value} from protected histograms, of records with {sample}.",
        f"Bins: {bins.provenance}. Edges: {edges}. The first bin takes everything below its upper edge, the last one "
        "everything from its lower edge on; the outermost two edges are nominal and used for interpolation only.",
        f"Cells with a protected count below {shape.suppress_below} are suppressed.",
    ]
    parts += [f"Each cell is a sum of protected cells of {source}: post-processing, no additional ε."] if source else []
    return " ".join(parts)


def _counts(unit: Unit, shape: LevelShape) -> list[Column]:
    bound = "" if unit.entity is None else f"at most {unit.records} per unit, "
    codes = "; ".join(f"{column} {', '.join(listed)}" for column, listed in shape.suppress_codes.items())
    rule = f"the protected count is below {shape.suppress_below}" + (
        f", or the cell has a code suppressed by rule ({codes})" if codes else ""
    )
    return [
        Column("status", "integer", f"1: published; 5: suppressed, because {rule}. A suppressed cell has no numbers"),
        Column(
            "count",
            "integer",
            f"noisy count: the records used ({bound}of the sample, none with a dropped code), plus noise; the sum "
            "of the bins",
        ),
        Column("count_moe90", "integer", "90% margin of error of `count`, for the noise only"),
    ]


def _percentile(spec: Earnings, percentile: str) -> list[Column]:
    label = f"p{percentile.replace('.', '_')}"
    limits = [
        Column(
            f"{label}_{side}90",
            "integer",
            f"{end} limit of an interval that covers the percentile of the histogram without noise, with probability "
            "at least 90% over the noise (not conditional on publication)",
        )
        for side, end in (("low", "lower"), ("high", "upper"))
    ]
    return [
        Column(label, "integer", f"percentile {percentile} of {spec.value}, {ESTIMATORS[spec.estimator]}"),
        *limits,
        Column(
            f"{label}_width",
            "integer",
            f"width of the bin that contains {label}. A histogram does not show how values are spread within a bin, so "
            "the percentile of the values themselves may differ by up to that much, whatever the noise; by more in the "
            "first and the last bin, which are open",
        ),
    ]


def _bins(bins: Bins) -> list[Column]:
    digits, columns = len(str(bins.count)), []
    for number, (lower, upper) in enumerate(pairwise(bins.edges), 1):
        first, last = number == 1, number == bins.count
        span = f"{lower:,} and more" if last else f"below {upper:,}" if first else f"{lower:,} to below {upper:,}"
        about = f"noisy count of the bin {span}: unbiased before suppression, may be negative"
        columns.append(Column(f"bin_{number:0{digits}}", "integer", about))
    return columns


ESTIMATORS = {
    "pseo": "by linear interpolation in the protected histogram (PSEO Beta Appendix, Eq. 4)",
    "shrunk": "from the protected histogram shrunk towards those of similar cells; not that of the published bins",
}
