"""Small things about words, written once."""

from __future__ import annotations


def plural(n: int, noun: str, many: str = "") -> str:
    """A number and its noun.

    >>> plural(1, "table"), plural(2000, "category", "categories")
    ('1 table', '2,000 categories')
    """
    return f"{n:,} {noun if n == 1 else many or noun + 's'}"
