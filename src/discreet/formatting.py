"""Small things about words, written once."""

from __future__ import annotations

import re


def plural(n: int, noun: str, many: str = "") -> str:
    """A number and its noun.

    >>> plural(1, "table"), plural(2000, "category", "categories")
    ('1 table', '2,000 categories')
    """
    return f"{n:,} {noun if n == 1 else many or noun + 's'}"


_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def as_path(where: str) -> str:
    """A path of this machine, also if it is written as file://."""
    return where[7:] if where.lower().startswith("file://") else where


def is_uri(where: str) -> bool:
    """Whether this names an object store or HDFS (`s3://…`), not a path of this machine."""
    found = _URI.match(where)
    return found is not None and found[1].lower() != "file"
