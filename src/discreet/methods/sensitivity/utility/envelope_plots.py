"""Plots of sensitivity: cells under their envelope, the most influential observation of one cell.

Both show confidential cells, and say so in their titles unless the data are synthetic.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import Floats, WorstRecord
from discreet.methods.sensitivity.utility.weighted import Fit, fitted
from discreet.report.plots import COLOURS, chart, ends, log_axis, titled

MARK = "CONFIDENTIAL. "
MOST_DOTS, NEAREST = 3_000, 500  # dots in a plot; of these, closest to the envelope, all shown
BEFORE, AFTER = "fitted line", "after the worst change"


def heading(title: str, *, synthetic: bool) -> str:
    """A title that marks a plot of confidential data."""
    return title if synthetic else MARK + title


def envelope_plot(
    n: ArrayLike, sensitivity: ArrayLike, chi: float, title: str, rate: float = 1.0, *, synthetic: bool = False
) -> Any:
    """Local sensitivities against cell size, log scales, below the line χ/N^r (Chetty & Friedman 2019, Figure 2).

    Cells with infinite sensitivity are omitted and counted in the subtitle; of very many, a part is shown.
    """
    size, local = np.asarray(n, np.float64), np.asarray(sensitivity, np.float64)
    finite = np.isfinite(local) & (local > 0)
    if not finite.any():
        raise ParameterError("no cell has a finite sensitivity", where="sensitivity", do="inspect the cells first")
    shown = _thinned(np.flatnonzero(finite), (local * size**rate))
    dots = [{"n": float(size[i]), "local": float(local[i])} for i in shown]
    sizes = ends(size[finite].tolist())
    line = [{"n": x, "local": chi / x**rate} for x in np.geomspace(*sizes, 20).tolist()]
    power = "N" if rate == 1 else f"N^{rate:g}"
    low, high = ends([row["local"] for row in (*dots, *line)])
    x = log_axis(alt.X, "n", "observations in the cell (log scale)", *sizes, padding=8, grid=False)
    y = log_axis(alt.Y, "local", "local sensitivity (log scale)", low, high, padding=8, grid=False)
    points = chart(dots).mark_point(size=14, filled=True, opacity=0.45, color=COLOURS[0]).encode(x=x, y=y)
    bound = chart(line).mark_line(strokeWidth=2.2, color=COLOURS[1]).encode(x=x, y=y)
    label = chart([line[12] | {"text": f"χ/{power}, χ = {chi:.4g}"}])
    name = label.mark_text(align="left", baseline="bottom", fontSize=13, color=COLOURS[1], dx=8, dy=-6)
    layers = alt.layer(points, bound, name.encode(x=x, y=y, text="text:N"))
    return finished(layers, heading(title, synthetic=synthetic), _outside(finite, shown))


def _thinned(cells: NDArray[np.int64], reach: Floats) -> list[int]:
    """All cells, or the nearest to the envelope and every k-th of the rest in the order of nearness."""
    order = cells[np.argsort(-reach[cells], kind="stable")]
    if len(order) <= MOST_DOTS:
        return [int(cell) for cell in order]
    rest = order[NEAREST:][:: -(-(len(order) - NEAREST) // (MOST_DOTS - NEAREST))]
    return [int(cell) for cell in np.concatenate([order[:NEAREST], rest])]


def _outside(finite: NDArray[np.bool_], shown: list[int]) -> list[str]:
    lines = ["Each dot: the largest change of a cell's statistic when one observation is added or removed."]
    if len(shown) < int(finite.sum()):
        lines.append(
            f"Shown are {len(shown):,} of {int(finite.sum()):,}: the {NEAREST} nearest to the line, and others."
        )
    if not finite.all():
        lines.append(f"{int((~finite).sum()):,} cells without a finite, positive sensitivity are not shown.")
    return lines


def cell_plot(
    x: ArrayLike,
    y: ArrayLike,
    worst: WorstRecord,
    at: float,
    title: str,
    names: tuple[str, str] = ("x", "y"),
    bounds: tuple[tuple[float, float], tuple[float, float]] = ((0.0, 1.0), (0.0, 1.0)),
    *,
    synthetic: bool = False,
) -> Any:
    """One cell, its line, the point that changes its height at `at` most (hollow), and the line after (Chetty &
    Friedman 2019, Figure 1)."""
    across, up = np.asarray(x, np.float64), np.asarray(y, np.float64)
    before, after = fitted(across, up), changed(across, up, worst)
    moved = after.at(at) - before.at(at)
    verb = "Adding" if worst.added else "Removing"
    subtitle = [
        f"At {at:g} the line is at {before.at(at):.3f}. {verb} the hollow point changes it to {after.at(at):.3f}:",
        f"the local sensitivity of this cell of {across.size} is {abs(moved):.3f}.",
    ]
    axes = axis("x", names[0], bounds[0]), axis("y", names[1], bounds[1])
    picture = alt.layer(
        dots(across, up, *axes),
        *lines(((BEFORE, before), (AFTER, after)), bounds[0], *axes),
        arrow(at, before.at(at), after.at(at), *axes),
        hollow(worst, *axes),
    )
    return finished(picture, heading(title, synthetic=synthetic), subtitle)


def changed(x: Floats, y: Floats, worst: WorstRecord) -> Fit:
    """The line after the worst change; `point` is (x, y)."""
    if worst.added:
        return fitted(np.append(x, worst.point[0]), np.append(y, worst.point[1]))
    gone = int(np.argmin(np.abs(x - worst.point[0]) + np.abs(y - worst.point[1])))
    return fitted(np.delete(x, gone), np.delete(y, gone))


def axis(which: str, name: str, bounds: tuple[float, float]) -> Any:
    kind = alt.X if which == "x" else alt.Y
    return kind(
        f"{which}:Q",
        scale=alt.Scale(domain=list(bounds), nice=False, padding=6),
        axis=alt.Axis(grid=False, tickCount=6, format="~g"),
        title=name,
    )


def dots(x: Floats, y: Floats, *axes: Any) -> Any:
    values = [{"x": a, "y": b} for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    points = chart(values).mark_point(size=38, filled=True, color=COLOURS[0], opacity=0.85)
    return points.encode(x=axes[0], y=axes[1])


def lines(fits: tuple[tuple[str, Fit], ...], ends: tuple[float, float], *axes: Any) -> list[Any]:
    """The fitted lines from bound to bound, the second one dashed."""
    names = [name for name, _ in fits]
    colour = alt.Color("which:N", scale=alt.Scale(domain=names, range=["#000000", COLOURS[1]]), sort=None, title=None)
    dash = alt.StrokeDash("which:N", scale=alt.Scale(domain=names, range=[[1, 0], [6, 3]]), sort=None, title=None)
    rows = [{"which": name, "x": end, "y": fit.at(end)} for name, fit in fits for end in ends]
    base = chart(rows).mark_line(strokeWidth=2, clip=True)
    return [base.encode(x=axes[0], y=axes[1], color=colour, strokeDash=dash)]


def arrow(at: float, low: float, high: float, *axes: Any) -> Any:
    """The change of the statistic."""
    base = chart([{"x": at, "y": low, "to": high}])
    return base.mark_rule(strokeWidth=3, color=COLOURS[2], clip=True).encode(x=axes[0], y=axes[1], y2="to:Q")


def hollow(worst: WorstRecord, *axes: Any) -> Any:
    base = chart([{"x": worst.point[0], "y": worst.point[1]}])
    mark = base.mark_point(size=90, filled=False, strokeWidth=2, color=COLOURS[1], fill="white", opacity=1)
    return mark.encode(x=axes[0], y=axes[1])


def finished(picture: Any, title: str, subtitle: list[str]) -> Any:
    plot = titled(picture.properties(width=480, height=360), title, subtitle, offset=10)
    return plot.configure_legend(orient="top", title=None, symbolStrokeWidth=2, symbolSize=300)
