"""What every test needs: an isolated home. And the small agency that many use."""

from __future__ import annotations

from pathlib import Path

import pytest

from agency import Agency


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the user's keys or temporary folder."""
    home = tmp_path_factory.mktemp("isolated")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("DISCREET_KEYS", str(home / "keys"))
    monkeypatch.setenv("DISCREET_TMP", str(home / "tmp"))
    return home


@pytest.fixture
def agency(tmp_path: Path) -> Agency:
    return Agency(tmp_path / "agency")
