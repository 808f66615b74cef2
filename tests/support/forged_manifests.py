"""Forged manifests in which every digest is correct, so that only the ledger reveals the forgery."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any


def forged_text(text: str | bytes, change: Callable[[dict[str, Any]], object]) -> str:
    """A manifest's text after a change, with a matching digest: in plain Python, as in the docs."""
    said = json.loads(text)
    change(said)
    plain = {key: value for key, value in said.items() if key not in ("digest", "ledger")}
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    said["digest"] = sha256(canonical.encode()).hexdigest()
    return json.dumps(said, indent=2, ensure_ascii=False) + "\n"


def forge_manifest(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "manifest.json"
    path.write_text(forged_text(path.read_text(encoding="utf-8"), change), encoding="utf-8")


def forge_file_digest(folder: Path, path: Path) -> None:
    """Update the manifest with the current digest of a file."""
    forge_manifest(folder, lambda said: said["files"].update({path.name: sha256(path.read_bytes()).hexdigest()}))
