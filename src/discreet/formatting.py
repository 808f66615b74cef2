"""Texts for people: in words, on a terminal, in files that a spreadsheet opens; and how far something has come.

On a terminal, codes, names of files and values of records may hold anything: what would move the cursor, hide or turn
other text is shown by its number, and nothing is too long, or in need of another encoding.

In a file, no text is a formula, and every one can be read back. A text that begins with = + - @ (also in full width),
a tab or the end of a line has an apostrophe before it; so has a text that begins with an apostrophe, or nobody could
tell. A number such as −1 or +2.5 stays: it is no formula. So whoever reads a field that begins with an apostrophe takes
that one away, and has the text.

>>> guarded("=1+1"), guarded("'s-Gravenhage"), guarded("-1"), guarded("01")
("'=1+1", "''s-Gravenhage", '-1', '01')
>>> unguarded("'=1+1"), unguarded("''s-Gravenhage"), unguarded("-1")
('=1+1', "'s-Gravenhage", '-1')
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from unicodedata import category

if TYPE_CHECKING:
    import pyarrow as pa


def plural(n: int, noun: str, many: str = "") -> str:
    """A number and its noun.

    >>> plural(1, "table"), plural(2000, "category", "categories")
    ('1 table', '2,000 categories')
    """
    return f"{n:,} {noun if n == 1 else many or noun + 's'}"


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


Observer = Callable[[str, int, int], None]  # a step, how much of it is done, how much there is


def silent(step: str, done: int, total: int) -> None:
    """An observer that says nothing."""


@contextmanager
def progress() -> Iterator[Observer]:
    """A bar a step on a terminal; a line a step elsewhere. Only steps and shares of public cells are shown."""
    if not sys.stderr.isatty():
        yield _by_lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<28}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def observe(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(visible(step), total=total)
            bars.update(tasks[step], completed=done)

        yield observe


def _by_lines() -> Observer:
    def observe(step: str, done: int, total: int) -> None:
        if done == total:
            with suppress(OSError):  # whoever was reading has gone: no reason to stop a release
                say(f"{step}: done", err=True)

    return observe


_RISKY = "^['=+@＝＋－＠\t\r\n-]"
_NUMBER = "^[+-][0-9][0-9,]*([.][0-9]+)?([eE][+-]?[0-9]+)?%?$"
_risky, _number = re.compile(_RISKY), re.compile(_NUMBER.removesuffix("$"))


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if _risky.match(text) and not _number.fullmatch(text) else text


def unguarded(text: str) -> str:
    """The text that was guarded. An apostrophe before a letter, as in files that others wrote, is part of the word."""
    return text[1:] if text.startswith("'") and guarded(text[1:]) == text else text


def guarded_column(texts: pa.Array) -> pa.Array:
    """The same for a column of texts."""
    import pyarrow.compute as pc

    risky = pc.match_substring_regex(texts, _RISKY)
    if not pc.any(risky, min_count=0).as_py():
        return texts
    risky = pc.and_not(risky, pc.match_substring_regex(texts, _NUMBER))
    return pc.if_else(risky, pc.binary_join_element_wise("'", texts, ""), texts)


def guarded_table(table: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
    """The same for a table, the names of its columns included: codes become plain texts, numbers stay numbers."""
    columns = [_plain(column) for column in table.columns]
    return type(table).from_arrays(columns, names=[guarded(name) for name in table.column_names])


def _plain(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    plain = column.cast(kind)
    return guarded_column(plain) if pa.types.is_string(kind) or pa.types.is_large_string(kind) else plain
