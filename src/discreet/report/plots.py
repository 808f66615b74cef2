"""Common elements of Altair plots: colours, sizes, logarithmic axes, titles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

import altair as alt

COLOURS = ["#0072B2", "#D55E00", "#009E73"]  # distinguishable with colour vision deficiencies (Okabe and Ito)
WIDTH, HEIGHT = 360, 240


def decades(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis: 1, 2 and 5 times powers of ten, within the range."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    steps = [float(f"{m}e{power}") for power in powers for m in (1, 2, 5)]
    return [step for step in steps if low <= step <= high]


def ends(values: Sequence[float]) -> tuple[float, float]:
    """The range of a logarithmic axis, widened if there is a single value."""
    low, high = min(values), max(values)
    return (low, high) if low < high else (low / 2, high * 2)


def log_axis(
    channel: Any, field: str, title: str | None, low: float, high: float, padding: int = 6, **options: Any
) -> Any:
    """A logarithmic axis; `channel` is `alt.X` or `alt.Y`."""
    scale = alt.Scale(type="log", domain=[low, high], nice=False, padding=padding)
    axis = alt.Axis(format="~g", values=decades(low, high), **options)
    return channel(f"{field}:Q", scale=scale, axis=axis, title=title)


def chart(points: Iterable[Mapping[str, object]]) -> alt.Chart:
    """A chart with inline data."""
    return alt.Chart(alt.InlineData(values=[dict(point) for point in points]))


def titled(picture: Any, title: str, subtitle: Sequence[str], **options: Any) -> Any:
    """A chart with its title above, left-aligned."""
    heading = alt.TitleParams(title, subtitle=list(subtitle), anchor="start", **options)
    return picture.properties(title=heading).configure_view(stroke="#cccccc")
