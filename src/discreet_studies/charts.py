"""The small vocabulary that the studies' charts share, in Altair's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from discreet.report.plots import COLOURS, decades, ends

SHADES = (*COLOURS, "#000000", "#CC79A7", "#E69F00", "#56B4E9", "#999999")  # told apart by all eyes
SOLID = [1, 0]
Point = dict[str, Any]


def chart(points: Iterable[Mapping[str, object]]) -> alt.Chart:
    """Of points that lie in the chart itself."""
    return alt.Chart(alt.InlineData(values=[dict(point) for point in points]))


def in_order(values: Iterable[Any]) -> list[Any]:
    """Each once, in the order in which they come first."""
    return list(dict.fromkeys(values))


def log_y(field: str, title: str | None, values: Sequence[float]) -> alt.Y:
    """A logarithmic axis over all values."""
    low, high = ends(values)
    scale = alt.Scale(type="log", domain=[low, high], nice=False, padding=6)
    return alt.Y(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(values=decades(low, high), format="~g"))


def coloured(field: str, names: Sequence[str], shades: Sequence[str] = SHADES, **options: Any) -> alt.Color:
    """A colour for each name, in this order."""
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=list(names), range=list(shades)), sort=None, **options)


def dashed(field: str, names: Sequence[str], dashes: Mapping[str, Sequence[int]], **options: Any) -> alt.StrokeDash:
    """A dash for some names, solid lines for the others."""
    scale = alt.Scale(domain=list(names), range=[list(dashes.get(name, SOLID)) for name in names])
    return alt.StrokeDash(f"{field}:N", scale=scale, **options)


def panel(layers: Any, title: str, width: int, height: int, size: int = 12) -> Any:
    """One of several pictures."""
    return layers.properties(width=width, height=height, title=alt.TitleParams(title, fontSize=size))


def titled(picture: Any, title: str, subtitle: Sequence[str], **options: Any) -> Any:
    """A whole picture with its title above, at the left."""
    heading = alt.TitleParams(title, subtitle=list(subtitle), anchor="start", **options)
    return picture.properties(title=heading).configure_view(stroke="#cccccc")
