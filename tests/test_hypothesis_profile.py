"""Hypothesis examples are the same in every run: set in one profile file, and overridden by no test."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import settings

from support.hypothesis_profile import EVERYWHERE, FAST, FEW, FULL, examples

HERE = Path(__file__).parent
FILES = sorted(path for path in HERE.rglob("*.py") if path.name not in ("hypothesis_profile.py", Path(__file__).name))


def calls(node: ast.AST) -> list[tuple[str, ast.Call]]:
    actual = [call for call in ast.walk(node) if isinstance(call, ast.Call)]
    return [(getattr(call.func, "id", getattr(call.func, "attr", "")), call) for call in actual]


def own(text: str) -> list[str]:
    """What a test file says of its own about how examples are drawn."""
    named = calls(ast.parse(text))
    keys = [f"{name}({k.arg}=…)" for name, call in named if name in ("settings", "examples") for k in call.keywords]
    settled = [f"{name}(…)" for name, _ in named if name in ("register_profile", "load_profile", "seed")]
    settled += [key for key in keys if any(word in key for word in (*EVERYWHERE, "max_examples"))]
    return settled


def unmarked(text: str) -> list[str]:
    """Tests that draw examples inside: Hypothesis does not know them, so they say themselves that slower tiers must run
    them with all of theirs."""
    actual = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    inside = [f for f in actual if {name for line in f.body for name, _ in calls(line)} & {"given", RUN_MACHINE}]
    return [function.name for function in inside if "mark.hypothesis" not in text and "mark.slow" not in text]


RUN_MACHINE = "run_state_machine_as_test"


def test_the_profile_is_in_force() -> None:
    actual = settings()
    assert {name: getattr(actual, name) for name in EVERYWHERE} == EVERYWHERE
    assert settings.get_current_profile_name() in (FAST, FULL)


def test_few_examples_are_fewer_and_all_are_what_a_test_asks_for() -> None:
    before = settings.get_current_profile_name()
    try:
        settings.load_profile(FAST)
        assert [examples(number).max_examples for number in (3, 500)] == [3, FEW]
        settings.load_profile(FULL)
        assert [examples(number).max_examples for number in (3, 500)] == [3, 500]
    finally:
        settings.load_profile(before)


def test_no_test_file_says_otherwise() -> None:
    assert len(FILES) > 100
    assert {str(path.relative_to(HERE)): actual for path in FILES if (actual := own(path.read_text()))} == {}


def test_whoever_draws_inside_a_test_marks_it() -> None:
    assert {str(path.relative_to(HERE)): actual for path in FILES if (actual := unmarked(path.read_text()))} == {}
    assert unmarked("def test():\n    @given(x)\n    def run(x): ...\n    run()") == ["test"]


@pytest.mark.parametrize(
    "text",
    [
        "@settings(max_examples=3)\ndef test(): ...",
        "@examples(3, deadline=None)\ndef test(): ...",
        "distributions = settings(derandomize=True)",
        "x = hypothesis.settings(database=None)",
        "settings.load_profile('ci')",
        "@seed(1)\ndef test(): ...",
    ],
)
def test_a_file_that_does_is_found(text: str) -> None:
    assert own(text)
    assert not own("@examples(3)\ndef test(): connect(database='x')")
