"""Decision records are short, dated, and listed with what they decide; one that changes another says so in both."""

from __future__ import annotations

import re
from datetime import date

import pytest

from support.repository import ROOT

FOLDER = ROOT / "docs/decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in RECORDS}
_DATE = r"\d{4}-\d{2}-\d{2}"
_CHANGES = r"(?: (?:Supersedes|Amends) \d{4}(?:, \d{4})*\.)*"
_CHANGED = rf"(?:\s(?:Superseded|Amended) by \[\d{{4}}\]\([\w-]+\.md\) on {_DATE}(?:: [^.]+)?\.)*"


def title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ")[5:]


def standing(text: str) -> str:
    """The line below the title: date and status."""
    return text.split("\n\n", 2)[1]


def accepted(text: str) -> str:
    """The day of the decision."""
    return standing(text)[len("Accepted ") :][: len("2026-01-01")]


def changed_by(text: str) -> list[tuple[str, str, str]]:
    """How, by which record and when a decision was changed."""
    return re.findall(rf"(Superseded|Amended) by \[(\d{{4}})\]\([^)]*\) on ({_DATE})", standing(text))


def changes(text: str) -> set[tuple[str, str]]:
    """What a decision does to which others."""
    actual = re.findall(r"(Supersedes|Amends) ([\d, ]+)\.", standing(text))
    return {(verb, number) for verb, numbers in actual for number in numbers.split(", ")}


def row(name: str) -> str:
    """A record as the index lists it."""
    how = re.findall(r"(Superseded|Amended) by (\[[^)]*\))", standing(TEXTS[name]))
    status = f"{how[0][0].lower()} by {', '.join(link for _, link in how)}" if how else "accepted"
    return f"| [{name[:4]}]({name}) | {title(TEXTS[name])} | {accepted(TEXTS[name])} | {status} |"


@pytest.mark.parametrize("name", TEXTS)
def test_decisions_are_short_dated_and_complete(name: str) -> None:
    text = TEXTS[name]
    assert text.startswith(f"# {name[:4]} ")
    assert len(text.splitlines()) <= 25
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert re.fullmatch(rf"Accepted {_DATE}\.{_CHANGES}{_CHANGED}", standing(text)), standing(text)
    assert text.split("\n\n", 2)[2].startswith("## Context")


def test_the_index_lists_every_record_with_title_date_and_status() -> None:
    listed = re.findall(r"^\| \[.*$", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == [row(name) for name in TEXTS]  # what is missing can be copied from here


def test_the_index_keeps_the_order_within_a_theme() -> None:
    for theme in (FOLDER / "README.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        numbers = re.findall(r"^\| \[(\d{4})\]", theme, re.MULTILINE)
        assert numbers, theme
        assert numbers == sorted(numbers)


def test_numbers_are_given_once() -> None:
    numbers = [name[:4] for name in TEXTS]
    assert len(set(numbers)) == len(numbers)


def test_a_changed_decision_and_the_one_that_changes_it_name_each_other() -> None:
    texts = {name[:4]: text for name, text in TEXTS.items()}
    verbs = {"Superseded": "Supersedes", "Amended": "Amends"}
    told = {(new, verbs[how], old) for old, text in texts.items() for how, new, _ in changed_by(text)}
    assert told == {(new, verb, old) for new, text in texts.items() for verb, old in changes(text)}
    for text in texts.values():
        for _, new, day in changed_by(text):
            assert day == accepted(texts[new])
            assert date.fromisoformat(accepted(text)) <= date.fromisoformat(day)
