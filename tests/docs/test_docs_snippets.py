"""Every page's console, Python and file snippets are run in order; what is shown must be what is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.docs_snippets import PAGES, ROOT, Command, Mismatch, Session, Snippet, commands, compare, snippets

RUNNABLE = ("console", "python")
SHOWN = ("sh", "yaml", "json", "text", "sql", "")
QUICK = (
    "README.md",
    "docs/first-release.md",
    "docs/methods/counts.md",
    "docs/reference.md",
)  # the others in `make test-slow`
WITH_CODE = [p for p in PAGES if any(s.language in RUNNABLE for s in snippets(p.read_text(encoding="utf-8")))]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name, marks=[] if name in QUICK else pytest.mark.slow)
        for page in WITH_CODE
        if (name := str(page.relative_to(ROOT)))
    ],
)
def test_snippets_run_and_print_what_is_shown(page: Path, reader: Path) -> None:
    session = Session()
    for snippet in snippets(page.read_text(encoding="utf-8")):
        session.run(snippet)
    assert session.ran


def test_the_tour_and_the_formulas_are_among_them() -> None:
    names = {str(p.relative_to(ROOT)) for p in WITH_CODE}
    assert {
        "README.md",
        "docs/first-release.md",
        "docs/methods/counts.md",
        "docs/operations.md",
        "docs/reference.md",
    } <= names


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_block_has_a_language_that_the_convention_knows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"^\s*```", text, re.MULTILINE)) == 2 * len(snippets(text)), "a fence is open or indented"
    assert {s.language for s in snippets(text)} <= {*RUNNABLE, *SHOWN}


def test_a_wrong_line_of_output_is_caught() -> None:
    compare(Command("x", "a …\n…\nend\n"), "a b c\none\ntwo\nend\n", 1)
    for wrong in ("a\nend\n", "a b\nend\nmore\n", "b a\nend\n", ""):
        with pytest.raises(Mismatch):
            compare(Command("x", "a …\n…\nend\n"), wrong, 1)


def test_a_failing_command_is_caught_and_so_is_a_success_where_a_refusal_is_shown(reader: Path) -> None:
    session = Session()
    session.run(Snippet("console", "", "$ discreet plan nowhere.yaml   # refused\n", 1))
    for body in ("$ discreet plan nowhere.yaml\n", "$ false\n", "$ true   # refused\n", "$ discreet --version\n9\n"):
        with pytest.raises(Mismatch):
            session.run(Snippet("console", "", body, 1))
    with pytest.raises(AssertionError):
        session.run(Snippet("python", "", "assert 1 == 2\n", 1))


def test_commands_continue_over_a_backslash() -> None:
    assert commands("$ a \\\n    b\nc\n$ d\n") == [Command("a b", "c\n"), Command("d", "")]
