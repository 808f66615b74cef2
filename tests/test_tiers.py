"""Every test is in `make test`, in `make test-slow` or in `make test-full`, and none is left out by all."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import tomllib

import pytest

from support.repository import ROOT
from support.tiers import NEEDS, TIERS

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
MARKS = (*NEEDS, *TIERS, "hypothesis")


def chosen(target: str) -> str:
    """The expression by which a target chooses its tests; without one it runs all."""
    recipe = re.search(rf"^{target}:.*\n\t(\$\(PYTEST\).*)", MAKEFILE, re.MULTILINE)
    assert recipe, target
    actual = re.search(r'-m "([^"]*)"', recipe[1])
    return actual[1] if actual else "True"


def test_the_tiers_cover_every_test() -> None:
    """Whatever marks a test has."""
    runs = {target: compile(chosen(target), target, "eval") for target in ("test", "test-slow", "test-full")}
    for flags in itertools.product((False, True), repeat=len(MARKS)):
        marks = dict(zip(MARKS, flags, strict=True))
        tiers = [target for target, code in runs.items() if eval(code, {}, marks)]
        assert "test-full" in tiers
        quick, drawn = not marks["slow"] and not marks["full"], marks["hypothesis"]
        soon = (["test"] if quick else []) + (["test-slow"] if not marks["full"] and (marks["slow"] or drawn) else [])
        assert tiers == [*soon, "test-full"]
        assert bool(soon) != marks["full"]


def test_every_submission_runs_both_and_the_coverage_has_a_floor() -> None:
    steps = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()[-3:]
    assert steps == ["make lint", "make test COVERAGE=yes", "make test-slow COVERAGE=yes"]
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["coverage"]
    assert declared["run"]["branch"]
    assert declared["report"]["fail_under"] >= 80


def collected(*options: str) -> set[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-n", "0", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return {line for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.slow
def test_what_starts_slowly_is_slow_but_for_the_core() -> None:
    """Browser and Spark: by fixture, by parameter, by folder."""
    where = ("tests/browser", "tests/engine/test_engine_suite.py", "tests/engine/spark/test_spark_guards.py")
    quick, core = collected(*where, "-m", "not slow and not full"), collected(*where, "-m", "core")
    assert collected(*where, "-m", "browser and core")
    assert collected(*where, "-m", "spark and core")
    assert collected(*where, "-m", "core and (full or slow)") == set()
    assert core < quick
    assert all("[duckdb" in test for test in quick - core)


@pytest.mark.parametrize("value", ["postgres"])
def test_a_parameter_says_what_is_needed(value: str, request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker(value)


def test_what_is_quick_says_nothing(request: pytest.FixtureRequest) -> None:
    assert not [mark.name for mark in request.node.iter_markers()]
