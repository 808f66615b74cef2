"""Relative links and their anchors resolve; pages name no machine and no package host."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from support.docs_snippets import PAGES, ROOT, without_fences

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_PRIVATE = re.compile(r"(?<![\w.])/(?:home|root|work|tmp|opt|Users)/|pypi\.|pythonhosted|--index-url|://[^\s/]*mirror")


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    actual: set[str] = set()
    for title in re.findall(r"^#+ (.+)$", without_fences(text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        twins = sum(slug == old or re.fullmatch(re.escape(slug) + r"-\d+", old) is not None for old in actual)
        actual.add(f"{slug}-{twins}" if twins else slug)
    return actual


def broken(page: Path, text: str) -> list[str]:
    """The relative links of a page that lead nowhere."""
    wrong = []
    for target in _LINK.findall(re.sub(r"`[^`\n]*`", "", without_fences(text))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        actual = file.exists() and file.is_relative_to(ROOT)
        if actual and anchor:
            actual = anchor in anchors(text if file == page else file.read_text(encoding="utf-8"))
        wrong += [] if actual else [target]
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    assert broken(page, page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_pages_name_no_machine_and_no_package_host(page: Path) -> None:
    assert _PRIVATE.search(page.read_text(encoding="utf-8")) is None


def test_broken_links_are_found() -> None:
    page = ROOT / "README.md"
    text = "# A b `c`\n[x](nowhere.md) [y](#a-b-c) [z](#gone) [w](docs/reference.md#errors) [v](LICENSE#x) [u](../..)\n"
    assert broken(page, text) == ["nowhere.md", "#gone", "LICENSE#x", "../.."]
    assert all(_PRIVATE.search(text) for text in ("see /home/anne/data", "files.pythonhosted.org"))


def test_every_page_is_reachable_from_the_readme() -> None:
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        links = [link.partition("#")[0] for link in _LINK.findall(page.read_text(encoding="utf-8"))]
        waiting += [(page.parent / link).resolve() for link in links if link and ":" not in link]
    assert set(PAGES) <= seen


def test_the_picture_is_well_formed_and_says_what_it_shows() -> None:
    root = ElementTree.parse(ROOT / "docs/images/path.svg").getroot()
    names = [child.tag.rpartition("}")[2] for child in root]
    assert names[:2] == ["title", "desc"]
