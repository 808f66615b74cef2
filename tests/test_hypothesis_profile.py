"""Drawn examples are the same in every run: one profile says so, and no test says otherwise."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import settings

from support.hypothesis_profile import EVERYWHERE, NAME

HERE = Path(__file__).parent
FILES = sorted(path for path in HERE.rglob("*.py") if path.name != "hypothesis_profile.py")


def own(text: str) -> list[str]:
    """What a test file says of its own about how examples are drawn."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    named = [(getattr(call.func, "id", getattr(call.func, "attr", "")), call) for call in calls]
    keys = [f"{name}({k.arg}=…)" for name, call in named if name == "settings" for k in call.keywords]
    loaded = [f"{name}(…)" for name, _ in named if name in ("register_profile", "load_profile", "seed")]
    return [key for key in keys if any(word in key for word in EVERYWHERE)] + loaded


def test_the_profile_is_in_force() -> None:
    found = settings()
    assert {name: getattr(found, name) for name in EVERYWHERE} == EVERYWHERE
    assert settings.get_current_profile_name() == NAME


def test_no_test_file_says_otherwise() -> None:
    assert len(FILES) > 100
    assert {str(path.relative_to(HERE)): found for path in FILES if (found := own(path.read_text()))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "@settings(max_examples=3, deadline=None)\ndef test(): ...",
        "laws = settings(derandomize=True)",
        "x = hypothesis.settings(database=None)",
        "settings.load_profile('ci')",
        "@seed(1)\ndef test(): ...",
    ],
)
def test_a_file_that_does_is_found(text: str) -> None:
    assert own(text)
    assert not own("@settings(max_examples=3)\ndef test(): connect(database='x')")
