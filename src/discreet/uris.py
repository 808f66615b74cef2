"""Locations as users write them: paths, object stores, PostgreSQL databases; passwords in them are refused."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def as_path(where: str) -> str:
    """A local path, also if it is written as file://."""
    return where[7:] if where.lower().startswith("file://") else where


def is_uri(where: str) -> bool:
    """Whether this names an object store or HDFS (`s3://…`), not a local path."""
    match = _URI.match(where)
    return match is not None and match[1].lower() != "file"


SCHEMES = ("postgresql://", "postgres://")
PASSWORD = "contains a password; put it into ~/.pgpass or the environment (PGPASSWORD)"  # noqa: S105 - a sentence


def is_postgres(place: str) -> bool:
    """Whether this names a PostgreSQL database, and not a file.

    >>> is_postgres("postgresql://db.example.org/ledger"), is_postgres("books/postgres.sqlite")
    (True, False)
    """
    return place.startswith(SCHEMES)


def holds_password(text: str) -> bool:
    """Whether a connection string (URL or keywords) contains a password.

    >>> holds_password("postgresql://me:secret@db/x"), holds_password("host=db password = s"), holds_password("host=db")
    (True, True, False)
    """
    if re.search(r"password\s*=|://[^/@\s]*:[^/@\s]*@", text):
        return True
    return any("password" in key for key, _ in parse_qsl(text.partition("?")[2], keep_blank_values=True))


def without_password(text: str) -> str:
    """The same text, refused if it contains a password; a validator of declarations."""
    if holds_password(text):
        raise ValueError(PASSWORD)
    return text


def with_defaults(url: str, defaults: dict[str, str]) -> str:
    """The URL with these parameters added, unless it sets them itself.

    >>> with_defaults("postgresql://db/x?sslmode=verify-full", {"sslmode": "prefer", "connect_timeout": "10"})
    'postgresql://db/x?sslmode=verify-full&connect_timeout=10'
    """
    query = url.partition("?")[2]
    given = {key for key, _ in parse_qsl(query, keep_blank_values=True)}
    more = "&".join(f"{key}={value}" for key, value in defaults.items() if key not in given)
    return url + ("&" if query else "" if url.endswith("?") else "?") * bool(more) + more
