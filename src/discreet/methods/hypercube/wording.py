"""Published caveats of cubes."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.privacy.guarantee import INFORMAL

AVERAGE = INFORMAL + (
    "the noise of weighted totals is the noise of the counts times an average weight (Li & Krenzke 2020, §3.2). All "
    "totals lie on a lattice that shifts with a single record, and total − average weight × count contains no noise: a "
    "record with a distinctive weight can be detected with certainty. The stated epsilon covers the counts only."
)
WEIGHTS = (
    "Weights and replicate weights are treated as attributes of each record. Where they depend on other records "
    "(non-response adjustment, calibration, replicates assigned in file order), a record's influence on the weights of "
    "others is not covered."
)
OBSERVED = "The average weight is computed from these records, and published numbers reveal it exactly."
FALLBACK = (
    "Where raking does not meet every control, generalised least squares replaces it, and the model file says so."
)


def exact(by: Sequence[str]) -> str:
    """The caveat of an exact control."""
    return INFORMAL + (
        f"the control totals{' by ' + ', '.join(by) if by else ''} are exact confidential totals, without noise: an "
        "adversary who knows all records but one learns that record's contribution."
    )


def rule(column: str, most: str, grid: str, above: str) -> str:
    """How weights are bounded, for the codebook."""
    rest = f"larger weights are clamped to {most}" if above == "clamp" else "records with a larger weight are dropped"
    return (
        f"{column}: between 0 and {most}, rounded to multiples of {grid}; {rest}; records without a positive weight "
        "are dropped"
    )
