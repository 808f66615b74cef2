"""SVG elements as text, always well-formed whatever the labels; and estimates of text width."""

from __future__ import annotations

import re
from unicodedata import category, east_asian_width
from xml.sax.saxutils import escape

# Characters that XML 1.0 cannot contain, even escaped.
FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
FONT = "sans-serif"
Attributes = dict[str, str | float | None]  # of an element
INK, MUTED, PAPER = "#1a1a1a", "#4a4a4a", "#ffffff"

# Character widths from the space on, in hundredths of an em, of DejaVu Sans, a wide sans-serif font.
WIDTHS = bytes.fromhex(
    "20292e5440604e1c282832542025202240404040404040404040222254545436644545464e403a4e4c1e1e4238574b4f"
    "3d4f46403e4a4563453e452822285432323e4037403e2440401c1c3a1c62403e40402a3528403c523c3c3540224054"
)
WIDEST = 0.9  # em, of other characters
BOLD = 1.15


def clean(text: str) -> str:
    """Text on one line, of characters that XML allows."""
    return " ".join(FORBIDDEN.sub("\ufffd", text).split())


def tag(name: str, *children: str, **attributes: str | float | None) -> str:
    """An element: `class_` is `class`, `stroke_width` is `stroke-width`; children are elements, or escaped text."""
    escaped_text = [
        f'{key.rstrip("_").replace("_", "-")}="{_value(v)}"' for key, v in attributes.items() if v is not None
    ]
    start = " ".join([name, *escaped_text])
    return f"<{start}>{''.join(children)}</{name}>" if children else f"<{start}/>"


def _value(value: str | float) -> str:
    return escape(clean(value), {'"': "&quot;"}) if isinstance(value, str) else short(value)


def short(value: float) -> str:
    """A coordinate, to a hundredth of a pixel."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def escaped_text(text: str) -> str:
    """Escaped text content of an element."""
    return escape(clean(text))


def title(text: str) -> str:
    """A title element, shown as a tooltip."""
    return tag("title", escaped_text(text))


def write(
    text: str,
    x: float,
    y: float,
    size: float = 13,
    anchor: str = "start",
    *,
    bold: bool = False,
    fill: str = INK,
    class_: str = "chart-text",
) -> str:
    """A line of text, its baseline at y."""
    return tag(
        "text",
        escaped_text(text),
        class_=class_,
        x=x,
        y=y,
        font_family=FONT,
        font_size=size,
        font_weight="bold" if bold else None,
        text_anchor=None if anchor == "start" else anchor,
        fill=fill,
    )


def rect(
    x: float, y: float, width: float, height: float, *children: str, fill: str = PAPER, **attributes: str | float | None
) -> str:
    return tag("rect", *children, x=x, y=y, width=width, height=height, fill=fill, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, class_: str, stroke: str, width: float = 1) -> str:
    return tag("line", class_=class_, x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, stroke_width=width)


def path(points: list[tuple[float, float]], *, closed: bool = False, **attributes: str | float | None) -> str:
    places = " L".join(f"{short(x)} {short(y)}" for x, y in points)
    return tag("path", d=f"M{places}{'Z' if closed else ''}", **attributes)


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """An upper estimate of the width in pixels, for most fonts."""
    return sum(map(_em, text)) * size * (BOLD if bold else 1)


def _em(letter: str) -> float:
    if " " <= letter <= "~":
        return WIDTHS[ord(letter) - 32] / 100
    if letter in "…—" or east_asian_width(letter) in "WF":
        return 1.05
    return 0.0 if category(letter) in ("Mn", "Me", "Cf") else WIDEST


def cut(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """The text cut to the room, with an ellipsis if it was cut."""
    if width_of(text, size, bold=bold) <= room:
        return text
    scale = size * (BOLD if bold else 1)
    left, length = room - scale * _em("…"), 0
    for letter in text:
        left -= _em(letter) * scale
        if left < 0:
            break
        length += 1
    return text[:length].rstrip() + "…"


def wrap(text: str, room: float, size: float, most: int, *, bold: bool = False) -> list[str]:
    """The text in at most `most` lines, broken between words where possible; the last line is cut."""
    lines: list[str] = []
    rest = clean(text)
    while rest:
        if len(lines) == most - 1:
            return [*lines, cut(rest, room, size, bold=bold)]
        end = _fitting(rest, room, size * (BOLD if bold else 1))
        lines.append(rest[:end].strip())
        rest = rest[end:].strip()
    return lines


def _fitting(text: str, room: float, scale: float) -> int:
    """How many characters fit on a line: up to a space if possible, otherwise as many as fit, at least one."""
    used, end = 0.0, len(text)
    for i, letter in enumerate(text):
        used += _em(letter) * scale
        if used > room and i:
            end = i
            break
    if end == len(text) or text[end] == " ":
        return end
    space = text.rfind(" ", 0, end)
    return space if space > 0 else end
