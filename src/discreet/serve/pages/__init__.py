"""Web pages: the catalogue, the table builder and the explanations. They work without JavaScript."""

from __future__ import annotations

from discreet.serve.pages.routes import router

__all__ = ["router"]
