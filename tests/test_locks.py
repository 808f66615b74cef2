"""Two lock files: the base is a subset of all, both satisfy `pyproject.toml`, and the environment is what is locked."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = DECLARED["project"]
BASE = [Requirement(one) for one in (*PROJECT["dependencies"], *DECLARED["build-system"]["requires"])]
EXTRAS = [Requirement(one) for listed in PROJECT["optional-dependencies"].values() for one in listed]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+) \\\n((?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)

Pins = dict[str, tuple[str, frozenset[str]]]  # version and hashes of each package


def locked(text: str) -> Pins:
    return {
        canonicalize_name(name): (at, frozenset(re.findall("[0-9a-f]{64}", hashes)))
        for name, at, hashes in PIN.findall(text)
    }


def lock(name: str) -> Pins:
    return locked((ROOT / name).read_text(encoding="utf-8"))


PARTS = {"requirements.lock": BASE, "requirements-dev.lock": [*BASE, *EXTRAS]}


def needed(asked: Iterable[Requirement]) -> set[str]:
    """Names of these packages and of all that they need, as the installed ones say."""
    actual, left = set[tuple[str, str]](), [(one, "") for one in asked]
    while left:
        one, within = left.pop()
        if one.marker is not None and not one.marker.evaluate({"extra": within}):
            continue
        name = canonicalize_name(one.name)
        for extra in {"", *one.extras} - {extra for known, extra in actual if known == name}:
            actual.add((name, extra))
            left += [(Requirement(text), extra) for text in requires(name) or ()]
    return {name for name, _ in actual}


@pytest.mark.parametrize("name", PARTS)
def test_every_line_is_a_pin_with_hashes(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    rest = [line for line in PIN.sub("", text).splitlines() if line and not line.lstrip().startswith("#")]
    assert rest == []
    assert len(lock(name)) == text.count("==") > 50


@pytest.mark.parametrize("name", PARTS)
def test_it_pins_what_is_declared_and_nothing_else(name: str) -> None:
    pins = lock(name)
    for one in PARTS[name]:
        assert one.specifier.contains(pins[canonicalize_name(one.name)][0]), one
    assert pins.keys() == needed(PARTS[name])


def test_the_base_is_a_part_of_all() -> None:
    assert lock("requirements.lock").items() < lock("requirements-dev.lock").items()


def test_what_is_installed_is_what_is_locked() -> None:
    pins = lock("requirements-dev.lock")
    assert {name: version(name) for name in pins} == {name: at for name, (at, _) in pins.items()}


def test_the_demo_needs_no_more_than_the_base() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^demo: setup-base$", makefile, re.MULTILINE)
    assert lock("requirements.lock").keys().isdisjoint({"pyspark", "moto", "mypy", "selenium", "pytest"})


def test_a_pin_without_hash_is_seen() -> None:
    assert locked("one==1.0\ntwo==2.0 \\\n    --hash=sha256:" + "0" * 64 + "\n").keys() == {"two"}
