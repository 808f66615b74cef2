"""Client-side caching: entity tags and conditional requests."""

from __future__ import annotations

from hashlib import sha256

from fastapi import Request

AGE = 300  # seconds for which an answer may be cached without revalidation


def tag_of(content: bytes) -> str:
    """The entity tag of some content."""
    return f'"{sha256(content).hexdigest()[:32]}"'


def cache_headers(tag: str) -> dict[str, str]:
    return {"ETag": tag, "Cache-Control": f"public, max-age={AGE}"}


def client_has(request: Request, tag: str) -> bool:
    """Whether the client has cached this content already."""
    header = request.headers.get("if-none-match", "")
    known = {one.strip().removeprefix("W/") for one in header.split(",")}
    return request.method == "GET" and bool(known & {tag, "*"})
