"""PostgreSQL connection strings: how one is told from a file, and what may not stand in it."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

SCHEMES = ("postgresql://", "postgres://")
PASSWORD = "contains a password; put it into ~/.pgpass or the environment (PGPASSWORD)"  # noqa: S105 - a sentence


def is_url(place: str) -> bool:
    """Whether this names a PostgreSQL database, and not a file.

    >>> is_url("postgresql://db.example.org/ledger"), is_url("books/postgres.sqlite")
    (True, False)
    """
    return place.startswith(SCHEMES)


def holds_password(text: str) -> bool:
    """Whether a connection string (URL or keywords) carries a secret; a file with it in clear would be read by others.

    >>> holds_password("postgresql://me:secret@db/x"), holds_password("host=db password = s"), holds_password("host=db")
    (True, True, False)
    """
    if re.search(r"password\s*=|://[^/@\s]*:[^/@\s]*@", text):
        return True
    return any("password" in key for key, _ in parse_qsl(text.partition("?")[2], keep_blank_values=True))


def without_password(text: str) -> str:
    """The same text; for fields of a spec."""
    if holds_password(text):
        raise ValueError(PASSWORD)
    return text


def with_defaults(url: str, defaults: dict[str, str]) -> str:
    """The URL with these parameters, where it does not set them itself.

    >>> with_defaults("postgresql://db/x?sslmode=verify-full", {"sslmode": "prefer", "connect_timeout": "10"})
    'postgresql://db/x?sslmode=verify-full&connect_timeout=10'
    """
    query = url.partition("?")[2]
    given = {key for key, _ in parse_qsl(query, keep_blank_values=True)}
    more = "&".join(f"{key}={value}" for key, value in defaults.items() if key not in given)
    return url + ("&" if query else "" if url.endswith("?") else "?") * bool(more) + more
