"""Code version: the version number and a digest of all code that determines published bytes. Keys are bound to it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path, PurePosixPath

__version__ = "0.1.0"

# Folders and modules of these names read published files, help to choose parameters, generate synthetic data or display
# output: no run, resumption or recoding imports one of them.
ASIDE = frozenset({"__main__", "assessment", "cli", "commands", "report", "serve", "synth", "utility"})
SOURCES = frozenset({".py", ".csv", ".json", ".sql", ".toml", ".yaml"})


def determines_bytes(path: PurePosixPath) -> bool:
    """Whether this file of the package may affect published bytes. A new one does, until it is listed in `ASIDE`."""
    return path.suffix in SOURCES and ASIDE.isdisjoint(path.with_suffix("").parts)


@cache
def code_version() -> str:
    """The version and a digest of every file that determines published bytes: an edited copy is another version."""
    return _with_digest(determines_bytes)


@cache
def package_version() -> str:
    """The version and a digest of every source file, also of those that only display output."""
    return _with_digest(lambda path: path.suffix in SOURCES)


def _with_digest(covers: Callable[[PurePosixPath], bool]) -> str:
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.*")):
        name = path.relative_to(root).as_posix()
        if covers(PurePosixPath(name)):
            content = path.read_bytes()
            digest.update(f"{name}:{len(content)}:".encode() + content)
    return f"{__version__}+{digest.hexdigest()[:16]}"
