"""What a person sees on a terminal. Codes, names of files and values of records may hold anything: what would move the
cursor, hide or turn other text is shown by its number, and nothing is too long, or in need of another encoding."""

from __future__ import annotations

import sys
from unicodedata import category

MOST, LAST = 2_000, 500  # characters of a refusal, and how many of them are its end, which says what to do
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, marks without a width or of direction, halves of pairs, line ends
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    r"""A text as one line that shows every character.

    >>> visible("a\x1b[2Jb\n\u202ec")
    'a\\x1b[2Jb\\n\\u202ec'
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    if category(character) not in _HIDDEN:
        return character
    number = ord(character)
    by_number = (
        f"\\x{number:02x}" if number < 1 << 8 else f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"
    )
    return _SHORT.get(character, by_number)


def cut(text: str) -> str:
    """A text that somebody will read: of a very long one the beginning and the end."""
    if len(text) <= MOST:
        return text
    return f"{text[: MOST - LAST]} […{len(text) - MOST:,} characters left out…] {text[-LAST:]}"


def say(text: str = "", *, err: bool = False) -> None:
    """Print one line."""
    stream = sys.stderr if err else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(f"{visible(text)}\n".encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def refuse(error: object) -> None:
    """Print why something was refused."""
    say(cut(visible(f"discreet: {error}")), err=True)
