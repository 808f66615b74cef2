"""Why no global bound on a line's sensitivity exists (004, Appendix Figure 1): a picture of invented points."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from discreet.methods.sensitivity.statistics import Floats, Worst
from discreet.methods.sensitivity.utility.envelope_plots import BEFORE, arrow, axis, changed, dots, hollow, lines
from discreet.methods.sensitivity.utility.weighted import fitted
from discreet.report.plots import titled
from discreet_studies.charts import panel

SPREADS = (0.1, 0.03, 0.01)  # half-widths of x


def global_plot(title: str) -> Any:
    """Three invented cells of 20 points, x ever closer, and the line after (0, 1) is added (004, Appendix Figure 1)."""
    panels = []
    axes = axis("x", "x", (0.0, 1.0)), axis("y", "y", (-1.0, 2.0))
    for spread in SPREADS:
        x, y = _tight(spread)
        worst = Worst(added=True, point=(0.0, 1.0), change=0.0)
        before, after = fitted(x, y), changed(x, y, worst)
        picture = alt.layer(
            dots(x, y, *axes),
            *lines(((BEFORE, before), ("after adding (0, 1)", after)), (0.0, 1.0), *axes),
            arrow(0.25, before.at(0.25), after.at(0.25), *axes),
            hollow(worst, *axes),
        )
        moved = abs(after.at(0.25) - before.at(0.25))
        text = f"x within ±{spread:g}: at 0.25 the line moves by {moved:.2f}"
        panels.append(panel(picture, text, 260, 260))
    made = titled(alt.hconcat(*panels, spacing=14), title, ["Invented points."], offset=10)
    return made.configure_legend(orient="top", title=None, symbolStrokeWidth=2, symbolSize=300)


def _tight(spread: float) -> tuple[Floats, Floats]:
    """Twenty points about a steep line through (.5, .5), by a fixed pattern: no data, no chance."""
    place = np.linspace(-1, 1, 20)
    wiggle = np.array([1, -1, -1, 1] * 5)
    return 0.5 + spread * place, 0.5 + 0.2 * place + 0.05 * wiggle
