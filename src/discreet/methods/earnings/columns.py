"""The columns of a table of earnings, in words: what the codebook says."""

from __future__ import annotations

from itertools import pairwise

from discreet.domain.bins import Bins
from discreet.methods.earnings.levels import LevelShape
from discreet.methods.earnings.spec import Earnings
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Unit
from discreet.publish.description import Column, code_columns


def earnings_columns(spec: Earnings, unit: Unit, bins: Bins, shape: LevelShape) -> list[Column]:
    """Codes, status, count, percentiles with their limits, bins."""
    codes = code_columns(shape.domain)
    percentiles = [column for percentile in spec.percentiles for column in _percentile(spec, format_exact(percentile))]
    return [*codes, *_counts(unit, shape), *percentiles, *_bins(bins)]


def earnings_about(spec: Earnings, bins: Bins, shape: LevelShape, source: str) -> str:
    """What the numbers are about, in a paragraph."""
    sample = " and ".join(rule.holds.description() for rule in spec.sample) or "a value"
    borders = ", ".join(f"{border:,}" for border in bins.edges)
    parts = [
        f"Percentiles of {spec.value} from protected histograms, of records with {sample}.",
        f"Bins: {bins.provenance}. Borders: {borders}; the first bin has all below its upper border, the last one all "
        "above its lower, and the outer two are nominal ends, used to interpolate.",
        f"Cells with a protected count below {shape.suppress_below} are suppressed.",
    ]
    parts += [f"Each cell adds up protected cells of {source}: nothing was measured anew."] if source else []
    return " ".join(parts)


def _counts(unit: Unit, shape: LevelShape) -> list[Column]:
    most = "" if unit.entity is None else f"at most {unit.records} of each unit, "
    withheld = "; ".join(f"{column} {', '.join(codes)}" for column, codes in shape.suppress_codes.items())
    rule = f"the protected count is below {shape.suppress_below}" + (
        f", or the cell is withheld ({withheld})" if withheld else ""
    )
    return [
        Column("status", "integer", f"1: published; 5: suppressed, for {rule}. A suppressed cell has no numbers"),
        Column(
            "count",
            "integer",
            f"protected count: the records used ({most}of the sample, none with a dropped code), plus noise; the sum "
            "of the bins",
        ),
        Column("count_moe90", "integer", "margin of error of `count` at 90%: about the noise and nothing else"),
    ]


def _percentile(spec: Earnings, percentile: str) -> list[Column]:
    label = f"p{percentile.replace('.', '_')}"
    limits = [
        Column(
            f"{label}_{side}90",
            "integer",
            f"{end} end of an interval that has, with probability 90% over the noise, published or not, the percentile "
            "of the histogram without noise in it",
        )
        for side, end in (("low", "lower"), ("high", "upper"))
    ]
    return [
        Column(label, "integer", f"percentile {percentile} of {spec.value}, {ESTIMATORS[spec.estimator]}"),
        *limits,
        Column(
            f"{label}_width",
            "integer",
            f"width of the bin that {label} lies in: a histogram does not tell how values are spread inside, so the "
            "percentile of the values themselves may differ by up to that much, whatever the noise; by more in the "
            "first and in the last bin, which have no outer end",
        ),
    ]


def _bins(bins: Bins) -> list[Column]:
    digits, columns = len(str(bins.count)), []
    for number, (lower, upper) in enumerate(pairwise(bins.edges), 1):
        first, last = number == 1, number == bins.count
        span = f"{lower:,} and more" if last else f"below {upper:,}" if first else f"{lower:,} to below {upper:,}"
        about = f"protected count of the bin {span}: unbiased before suppression, may be negative"
        columns.append(Column(f"bin_{number:0{digits}}", "integer", about))
    return columns


ESTIMATORS = {
    "pseo": "by linear interpolation in the protected histogram (Eq. 4 of PSEO's technical appendix)",
    "shrunk": "from the protected histogram shrunk towards those of similar cells; not that of the published bins",
}
