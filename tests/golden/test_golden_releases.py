"""What every method publishes under a test key, to the byte: a change of the house changes none of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden_releases import DIGESTS, RELEASES


def test_every_release_has_its_digests() -> None:
    assert json.loads(DIGESTS.read_text()).keys() == RELEASES.keys()


@pytest.mark.parametrize("name", RELEASES)
def test_published_bytes_are_as_before(name: str, tmp_path: Path) -> None:
    before, after = json.loads(DIGESTS.read_text())[name], RELEASES[name](tmp_path)
    assert sorted(file for file in before.keys() | after.keys() if before.get(file) != after.get(file)) == []
