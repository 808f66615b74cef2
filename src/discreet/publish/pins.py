"""Which releases are the agency's own: the SHA-256 of each manifest, told to whoever has no ledger.

A line is what `sha256sum FOLDER/manifest.json` prints, so that both sides can do without us.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from discreet.errors import ParameterError
from discreet.publish.manifest import FILE, Manifest

_LINE = re.compile(r"\\?([0-9a-f]{64})(\s.*)?")


def pin_of(manifest: Manifest) -> str:
    """The SHA-256 of a manifest's file, whose text `manifest.read` has compared."""
    return sha256(manifest.text().encode()).hexdigest()


def line(manifest: Manifest, folder: str) -> str:
    """A pin and where it was taken; an odd name is written as sha256sum does, on one line."""
    name = f"{folder.rstrip('/')}/{FILE}"
    plain = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{'' if plain == name else chr(92)}{pin_of(manifest)}  {plain}"


def read(path: Path) -> frozenset[str]:
    """The pins of a file."""
    try:
        return parsed(path.read_text(encoding="utf-8").splitlines(), str(path))
    except UnicodeDecodeError:
        raise ParameterError("is no list of pins", where=str(path), do="name the file that the agency sent") from None


def parsed(lines: Iterable[str], where: str) -> frozenset[str]:
    """The pins of some lines; blank ones are none, and names after a pin mean nothing."""
    found = set()
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        if (match := _LINE.fullmatch(text.rstrip())) is None:
            raise ParameterError(
                f"line {number} is no pin", where=where, do="write what `sha256sum FOLDER/manifest.json` prints"
            )
        found.add(match[1])
    if not found:
        raise ParameterError("has no pin", where=where, do="write what `sha256sum FOLDER/manifest.json` prints")
    return frozenset(found)
