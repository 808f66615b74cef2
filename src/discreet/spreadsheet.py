"""Texts in files that a spreadsheet opens: none of them is a formula, and every one can be read back.

A text that begins with = + - @ (also in full width), a tab or the end of a line has an apostrophe before it; so has a
text that begins with an apostrophe, or nobody could tell. A number such as −1 or +2.5 stays: it is no formula. So
whoever reads a field that begins with an apostrophe takes that one away, and has the text.

>>> guarded("=1+1"), guarded("'s-Gravenhage"), guarded("-1"), guarded("01")
("'=1+1", "''s-Gravenhage", '-1', '01')
>>> unguarded("'=1+1"), unguarded("''s-Gravenhage"), unguarded("-1")
('=1+1', "'s-Gravenhage", '-1')
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

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
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    plain = column.cast(kind)
    return guarded_column(plain) if pa.types.is_string(kind) or pa.types.is_large_string(kind) else plain
