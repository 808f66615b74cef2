"""Pins: SHA-256 of the manifests of an agency's releases, for users who have no access to the ledger.

A line is what `sha256sum FOLDER/manifest.json` prints, so pins can be made and checked without this program.
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
    """The SHA-256 of a manifest's file; `manifest.read` has checked that the file has this text."""
    return sha256(manifest.text().encode()).hexdigest()


def line(manifest: Manifest, folder: str) -> str:
    """A pin and the file it was taken of; special characters are escaped as sha256sum does."""
    name = f"{folder.rstrip('/')}/{FILE}"
    plain = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{'' if plain == name else chr(92)}{pin_of(manifest)}  {plain}"


def read(path: Path) -> frozenset[str]:
    """The pins of a file."""
    try:
        return parsed(path.read_text(encoding="utf-8").splitlines(), str(path))
    except UnicodeDecodeError:
        raise ParameterError(
            "is not a list of pins", where=str(path), do="name the file that the agency provided"
        ) from None


def parsed(lines: Iterable[str], where: str) -> frozenset[str]:
    """The pins of these lines; blank lines and the names after pins are ignored."""
    pins = set()
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        if (match := _LINE.fullmatch(text.rstrip())) is None:
            raise ParameterError(
                f"line {number} is not a pin", where=where, do="write what `sha256sum FOLDER/manifest.json` prints"
            )
        pins.add(match[1])
    if not pins:
        raise ParameterError("has no pin", where=where, do="write what `sha256sum FOLDER/manifest.json` prints")
    return frozenset(pins)
