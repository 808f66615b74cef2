"""Code that a declaration names: it runs for who checks or runs the release, or says that it is trusted. A plan, which
somebody may make of a file that they were sent, reads it as text."""

from __future__ import annotations

from discreet.methods.protocol import Method
from discreet.methods.registry import methods
from discreet.spec import Release


def trusted(release: Release) -> list[Method]:
    """The tables of a release, their own functions tried on synthetic numbers: from here on they may be called."""
    found = methods(release)
    for method in found:
        method.try_code()
    return found


def named(release: Release) -> list[str]:
    """The Python files of a declaration."""
    return list(dict.fromkeys(file for table in release.tables for file in table.code))
