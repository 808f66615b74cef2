"""What cubes say about themselves."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.privacy.guarantee import INFORMAL

AVERAGE = INFORMAL + (
    "weighted totals have the noise of the counts times an average weight (002, §3.2). All totals lie on a lattice "
    "that one record moves, and total less average weight times count is free of noise: with a weight of its own a "
    "record can be found for certain. The stated epsilon is that of the counts alone."
)
WEIGHTS = (
    "Weights, and replicate weights, count as given with each record. Where they were adjusted to other records "
    "(non-response, calibration, replicates dealt out in the order of the file), a record's influence on the weights "
    "of others is not covered."
)
OBSERVED = "The average weight is that of these records; published numbers show it exactly."
FALLBACK = "Where raking does not meet every control, least squares take its place, and the model file says so."


def exact(by: Sequence[str]) -> str:
    """The caveat of a control that is not protected."""
    return INFORMAL + (
        f"the control totals by {', '.join(by) or 'nothing'} are those of the records, without noise: whoever knows "
        "all records but one can tell that one's."
    )


def rule(column: str, most: str, grid: str, above: str) -> str:
    """What becomes of a weight, for the codebook."""
    fate = f"counts as {most}" if above == "clamp" else "means that the record is dropped"
    return (
        f"{column}: between 0 and {most}, rounded to multiples of {grid}; more {fate}; records without a positive "
        "weight are dropped"
    )
