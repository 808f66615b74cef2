"""Text output: on a terminal, in files that a spreadsheet opens; and progress.

On a terminal, codes, file names and values of records may hold anything: control and direction characters are escaped,
long texts are shortened, and characters that the terminal's encoding lacks are replaced.

In a file, no text is a formula (no CSV injection), and every text can be recovered. A text that begins with = + - @
(also in full width), a tab or a line end gets an apostrophe in front; so does a text that begins with an apostrophe, to
keep the encoding invertible. A number such as −1 or +2.5 is no formula and stays. To read a field that begins with an
apostrophe, remove it.

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
    """A number with its noun.

    >>> plural(1, "table"), plural(2000, "category", "categories")
    ('1 table', '2,000 categories')
    """
    return f"{n:,} {noun if n == 1 else many or noun + 's'}"


MOST, LAST = 2_000, 500  # characters of a message, and how many of them are its end, which says what to do
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, zero-width and direction marks, surrogates, line ends
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    r"""A text on one line, with every invisible character escaped.

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
    """A text for people: of a very long one, the beginning and the end."""
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
    """Print an error message."""
    say(cut(visible(f"discreet: {error}")), err=True)


Observer = Callable[[str, int, int], None]  # step, done, total


def silent(step: str, done: int, total: int) -> None:
    """An observer that prints nothing."""


@contextmanager
def progress() -> Iterator[Observer]:
    """A progress bar per step on a terminal, a line per step elsewhere. Shows only steps and shares of public cells."""
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
            with suppress(OSError):  # the reader has gone: no reason to stop a release
                say(f"{step}: done", err=True)

    return observe


_RISKY = "^['=+@＝＋－＠\t\r\n-]"
_NUMBER = "^[+-][0-9][0-9,]*([.][0-9]+)?([eE][+-]?[0-9]+)?%?$"
_risky, _number = re.compile(_RISKY), re.compile(_NUMBER.removesuffix("$"))


def guarded(text: str) -> str:
    """A text that no spreadsheet reads as a formula."""
    return f"'{text}" if _risky.match(text) and not _number.fullmatch(text) else text


def unguarded(text: str) -> str:
    """The original of a guarded text. An apostrophe before a letter, as in files of others, is part of the text."""
    return text[1:] if text.startswith("'") and guarded(text[1:]) == text else text


def guarded_column(texts: pa.Array) -> pa.Array:
    """`guarded` for a column of texts."""
    import pyarrow.compute as pc

    risky = pc.match_substring_regex(texts, _RISKY)
    if not pc.any(risky, min_count=0).as_py():
        return texts
    risky = pc.and_not(risky, pc.match_substring_regex(texts, _NUMBER))
    return pc.if_else(risky, pc.binary_join_element_wise("'", texts, ""), texts)


def guarded_table(table: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
    """`guarded` for a table and its column names: codes become plain text, numbers stay numbers."""
    columns = [_plain(column) for column in table.columns]
    return type(table).from_arrays(columns, names=[guarded(name) for name in table.column_names])


def _plain(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    plain = column.cast(kind)
    return guarded_column(plain) if pa.types.is_string(kind) or pa.types.is_large_string(kind) else plain
