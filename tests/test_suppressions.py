"""Suppressed exceptions are named: `suppress` never takes every exception."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet

PACKAGES = [Path(discreet.__file__).parent, Path(discreet.__file__).parents[1] / "discreet_studies"]
BLIND = {"Exception", "BaseException"}


def blind(tree: ast.AST) -> Iterator[int]:
    """Lines with `suppress(Exception)`, which ruff's BLE001 does not see."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func).split(".")[-1] != "suppress":
            continue
        if BLIND & {name.id for part in node.args for name in ast.walk(part) if isinstance(name, ast.Name)}:
            yield node.lineno


def test_no_suppression_is_blind() -> None:
    actual = {
        f"{path.relative_to(package.parent)}:{line}"
        for package in PACKAGES
        for path in package.rglob("*.py")
        for line in blind(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert actual == set()


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("with suppress(Exception): pass", [1]),
        ("with contextlib.suppress(OSError, BaseException): pass", [1]),
        ("with suppress(*(ValueError, Exception)): pass", [1]),
        ("with suppress(OSError, json.JSONDecodeError): pass", []),
        ("with suppress(*JAVA_GONE): pass", []),
    ],
)
def test_the_test_sees_them(code: str, lines: list[int]) -> None:
    assert list(blind(ast.parse(code))) == lines
