"""The field's language: private words, papers called by number and nondescript names are gone, and stay away."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from support.docs_snippets import PAGES
from support.repository import ROOT

SRC = ROOT / "src"
KINDS = (".py", ".md", ".html", ".yaml", ".js", ".css", ".sql", ".svg")
TEXTS = sorted(
    {
        *PAGES,
        ROOT / "CITATION.cff",
        *(file for folder in (SRC, ROOT / "docs") for file in folder.rglob("*") if file.suffix in KINDS),
    }
)
PRIVATE = re.compile(
    r"\binvent(?!or)\w*|\bso\s+many\b|\bmade\s+of\b|\bhardly\b|\bstands\s+once\b", re.IGNORECASE
)  # line breaks may fall between two words
PAPER = re.compile(r"(?<![\w.,/(\[\"'-])00[0-4](?![\w.,]*\d)(?![\w-])")
SAME_NAME = {"LogLaplace", "LaplacePareto"}  # a distribution, and the mechanism that uses it
MODULES = {file: ast.parse(file.read_text("utf-8")) for file in SRC.rglob("*.py")}


def private_words(text: str) -> list[str]:
    return [match[0] for match in PRIVATE.finditer(text)]


def papers_by_number(text: str) -> list[str]:
    """`003, Def. 7.1`, `(004)`; not codes such as "001", and not the numbers of decisions."""
    return [text[max(0, match.start() - 20) : match.end() + 20] for match in PAPER.finditer(text)]


def test_no_text_has_private_words() -> None:
    texts = {str(file.relative_to(ROOT)): private_words(file.read_text(encoding="utf-8")) for file in TEXTS}
    assert {file: words for file, words in texts.items() if words} == {}


def test_no_text_calls_a_paper_by_number() -> None:
    pages = [file for file in TEXTS if file.suffix != ".svg"]  # pictures are full of numbers
    texts = {str(file.relative_to(ROOT)): papers_by_number(file.read_text(encoding="utf-8")) for file in pages}
    assert {file: papers for file, papers in texts.items() if papers} == {}


def test_the_words_are_recognised() -> None:
    text = "Invented records, so\nmany of them, made of nothing; hardly any key stands once. An inventory."
    assert private_words(text) == ["Invented", "so\nmany", "made of", "hardly", "stands once"]
    assert len(papers_by_number("see 003, Def. 7.1; 004: Step 1 and 001 A.3")) == 3
    assert papers_by_number('width 3: "001", 0003, 1,000, 0.001, [0001](0001-x.md), 002-5') == []


def names(tree: ast.Module) -> Iterator[str]:
    """Everything that a module gives a name to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) or (
            isinstance(node, ast.MatchAs | ast.MatchStar) and node.name
        ):
            yield node.name


def test_nothing_is_called_found() -> None:
    assert [str(file.relative_to(SRC)) for file, tree in MODULES.items() if "found" in set(names(tree))] == []


def test_a_nondescript_name_would_be_seen() -> None:
    for code in (
        "found = 1",
        "def f(found): pass",
        "[found for found in x]",
        "def found(): pass",
        "if (found := 1): pass",
    ):
        assert "found" in set(names(ast.parse(code)))


def test_class_names_say_which_class_is_meant() -> None:
    places: dict[str, set[Path]] = defaultdict(set)
    for file, tree in MODULES.items():
        if file.is_relative_to(SRC / "discreet"):
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    places[node.name].add(file)
    assert {name for name, files in places.items() if len(files) > 1} == SAME_NAME
