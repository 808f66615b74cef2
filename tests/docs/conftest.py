"""A reader's machine: nothing of the real home is touched."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with a home, a key store and a private temporary folder of its own."""
    work = tmp_path / "work"
    work.mkdir()
    for name, folder in (("HOME", "home"), ("DISCREET_KEYS", "keys"), ("DISCREET_TMP", "private")):
        path = tmp_path / folder
        path.mkdir(mode=0o700)
        monkeypatch.setenv(name, str(path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(work)
    return work
