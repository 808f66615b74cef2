"""The examples in the source's docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import discreet

MODULES = sorted(
    name for _, name, _ in pkgutil.walk_packages(discreet.__path__, "discreet.") if not name.endswith("__main__")
)


@pytest.mark.parametrize("name", ["discreet", *MODULES])
def test_docstring_examples_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), raise_on_error=False)
    assert result.failed == 0


def test_there_are_examples_and_a_wrong_one_is_caught() -> None:
    finder = doctest.DocTestFinder()
    actual = sum(len(t.examples) for name in MODULES for t in finder.find(importlib.import_module(name)))
    assert actual >= 2
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(wrong, out=lambda _: None).failed == 1
