"""Modules, files and Python names that the documentation names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.docs_snippets import PAGES, without_fences
from support.repository import ROOT

PROOFS = sorted((ROOT / "src").rglob("*.md"))
_SUPERSEDED = re.compile(r"^Accepted \S+ Superseded by ", re.MULTILINE)
_DOTTED = re.compile(r"(?<![\w/.-])discreet(?:_studies)?(?:\.[A-Za-z_]\w*)+")
_PROGRAM = re.compile(r"python -m (discreet[\w.]*)")
_PATH = re.compile(r"(?<![\w-])(?:src|tests|docs|benchmarks|scripts)/[\w./-]*\w")
_MODULE = re.compile(r"`((?:\w+/)+(?:\w+(?:\.\w+)?)?)`")
_NO_NAMES = {"discreet.tar.gz", "demo/"}  # an archive, and what `make demo` writes
_BASES = (ROOT, ROOT / "src", ROOT / "src/discreet")


def history(page: Path) -> bool:
    """What is told of the past, in the names of the past."""
    return page.name == "CHANGELOG.md" or _SUPERSEDED.search(page.read_text(encoding="utf-8")) is not None


def for_developers(page: Path) -> bool:
    return page.name == "CONTRIBUTING.md" or page.parent.name == "decisions" or page.is_relative_to(ROOT / "src")


def source(path: Path) -> Path | None:
    """The file of a module or a package."""
    return next((file for file in (Path(f"{path}.py"), path / "__init__.py") if file.is_file()), None)


def defined(name: str) -> bool:
    """Whether a dotted name is a module, or stands in the one that it begins with."""
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        if (file := source(ROOT / "src" / "/".join(parts[:i]))) is not None:
            text = file.read_text(encoding="utf-8")
            return all(re.search(rf"\b{part}\b", text) for part in parts[i:])
    return False


def runs(name: str) -> bool:
    """Whether `python -m` can start it."""
    path = ROOT / "src" / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


def there(path: str) -> bool:
    """A file or folder, a module, or a name in one: `engine/spans.py`, `post/`, `engine/readers.Scan`."""
    stem, _, name = path.rpartition(".")
    for base in _BASES:
        if (base / path).exists() or source(base / path):
            return True
        if stem and (file := source(base / stem)):
            return re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")) is not None
    return False


def unknown(text: str, *, modules: bool) -> list[str]:
    """What a page names that is not there. `NAME` stands for any."""
    actual = [name for name in _DOTTED.findall(text) if not defined(name)]
    actual += [name for name in _PROGRAM.findall(text) if not runs(name)]
    actual += [path for path in _PATH.findall(text) if "NAME" not in path and not (ROOT / path).exists()]
    if modules:
        actual += [path for path in _MODULE.findall(without_fences(text)) if "NAME" not in path and not there(path)]
    return [name for name in actual if name not in _NO_NAMES]


@pytest.mark.parametrize("page", [*PAGES, *PROOFS], ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    if not history(page):
        assert unknown(page.read_text(encoding="utf-8"), modules=for_developers(page)) == []


def test_what_is_gone_is_found() -> None:
    kept = (
        "`discreet.release(spec)` `discreet.domain.bins` `python -m discreet.synth` src/discreet/post/intervals.md "
        "`engine/spans.py` `post/` `engine/readers.Scan` `methods/NAME.py` `tests/support` /etc/discreet.service"
    )
    assert unknown(kept, modules=True) == []
    gone = "`discreet.specfile` `discreet.domain.beans` `engine/opening.py` `mechanisms/` `engine/readers.Scanner`"
    assert unknown(gone, modules=True) == re.findall(r"`(.*?)`", gone)
    assert unknown("`python -m discreet.domain` ../src/discreet/post/gone.md", modules=False) == [
        "discreet.domain",
        "src/discreet/post/gone.md",
    ]
