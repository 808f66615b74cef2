"""Which code this is: the version and a digest of what determines published bytes. A release key is bound to it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path, PurePosixPath

__version__ = "0.1.0"

# Folders and modules of these names, wherever they lie, read what is published, choose or invent what is not, or show
# it: no run, resumption or recoding imports one of them.
ASIDE = frozenset({"__main__", "assessment", "cli", "commands", "report", "serve", "synth", "utility"})
SOURCES = frozenset({".py", ".csv", ".json", ".sql", ".toml", ".yaml"})


def determines_bytes(path: PurePosixPath) -> bool:
    """Whether this file of the package may have a part in what is published. What is new has, until it is named."""
    return path.suffix in SOURCES and ASIDE.isdisjoint(path.with_suffix("").parts)


@cache
def code_version() -> str:
    """The version and a digest of every file that determines published bytes: an edited copy is another code."""
    return _with_digest(determines_bytes)


@cache
def package_version() -> str:
    """The version and a digest of every source file, also of those that only show what is published."""
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
