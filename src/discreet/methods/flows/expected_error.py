"""What is known of flows before anything is spent: zeros in control files, and what noise does to small groups."""

from __future__ import annotations

from math import pi
from typing import TYPE_CHECKING

import numpy as np

from discreet.post.summary import margins

if TYPE_CHECKING:
    from discreet.methods.flows.method import FlowsMethod


def flows_notes(method: FlowsMethod) -> tuple[str, ...]:
    """Lines for `plan`."""
    lines = list[str]()
    for name, used, component in (
        ("job_flows", method.spec.correction.job_flows, method.weights.jobs),
        ("employment", method.spec.correction.employment, method.weights.employment),
    ):
        if used is not None:
            zeros = int((component <= 0).sum())
            lines.append(f"{name}: {zeros:,} of {component.size:,} values are 0 and count as 1 in the weights")
    cells = method.destinations.cells
    margin = int(margins(method.law.rate, np.array([cells]))[0])
    excess = (cells * method.law.variance() / (2 * pi)) ** 0.5  # half a group's noise in total, if it is normal
    return (
        *lines,
        f"of a group of {cells:,} cells some {method.moved:,.0f} units of noise are moved by the correction; its total "
        f"is within ±{margin:,} with 90%",
        f"a group with hardly anybody becomes 0, or too large: by {excess:,.0f} on average. So sums of corrected flows "
        "over many small groups are too large; sums of measurements are not",
    )
