"""Pages for people: the catalogue, the table builder and what the marks mean. They work without a script."""

from __future__ import annotations

from discreet.serve.pages.routes import router

__all__ = ["router"]
