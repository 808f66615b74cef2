"""What a client may keep, and whether it has it already: entity tags."""

from __future__ import annotations

from hashlib import sha256

from fastapi import Request

AGE = 300  # seconds that an answer may be kept without asking again


def tag_of(content: bytes) -> str:
    """Equal contents have the same."""
    return f'"{sha256(content).hexdigest()[:32]}"'


def cached(tag: str) -> dict[str, str]:
    return {"ETag": tag, "Cache-Control": f"public, max-age={AGE}"}


def has(request: Request, tag: str) -> bool:
    """Whether the client has this one already."""
    said = request.headers.get("if-none-match", "")
    known = {one.strip().removeprefix("W/") for one in said.split(",")}
    return request.method == "GET" and bool(known & {tag, "*"})
