"""Altair helpers shared by the charts of the studies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from discreet.report.plots import COLOURS, ends, log_axis

SHADES = (*COLOURS, "#000000", "#CC79A7", "#E69F00", "#56B4E9", "#999999")  # distinguishable with any colour vision
SOLID = [1, 0]
Point = dict[str, Any]


def distinct(values: Iterable[Any]) -> list[Any]:
    """Distinct values in order of first appearance."""
    return list(dict.fromkeys(values))


def log_y(field: str, title: str | None, values: Sequence[float]) -> Any:
    """A logarithmic y axis that covers all values."""
    return log_axis(alt.Y, field, title, *ends(values))


def colour_of(field: str, names: Sequence[str], shades: Sequence[str] = SHADES, **options: Any) -> alt.Color:
    """A colour encoding with one colour per name, in this order."""
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=list(names), range=list(shades)), sort=None, **options)


def dash_of(field: str, names: Sequence[str], dashes: Mapping[str, Sequence[int]], **options: Any) -> alt.StrokeDash:
    """A dash encoding: dashes for some names, solid lines for the others."""
    scale = alt.Scale(domain=list(names), range=[list(dashes.get(name, SOLID)) for name in names])
    return alt.StrokeDash(f"{field}:N", scale=scale, **options)


def panel(layers: Any, title: str, width: int, height: int, size: int = 12) -> Any:
    """One panel of a chart."""
    return layers.properties(width=width, height=height, title=alt.TitleParams(title, fontSize=size))
