"""Paths of the repository, of shared data beside it, and of programs that tests start."""

from __future__ import annotations

from pathlib import Path

SUPPORT = Path(__file__).parent
ROOT = SUPPORT.parents[1]
SHARED = ROOT.parent / "shared" / "data"
