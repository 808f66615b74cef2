"""Style sheet and script, under names that change with what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).parent / "static"
TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class Static:
    """One file, to be kept for ever by whoever fetched it."""

    name: str
    type: str
    body: bytes


def all_of(folder: Path = FOLDER) -> dict[str, Static]:
    """By their own names."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.suffix in TYPES:
            body = path.read_bytes()
            digest = sha256(body).hexdigest()[:12]
            found[path.name] = Static(f"{path.stem}.{digest}{path.suffix}", TYPES[path.suffix], body)
    return found
