"""The web application: the API, the pages, and the guard around both."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from discreet.errors import InvalidQuery, QueryTooLarge, UnknownTable
from discreet.serve import pages
from discreet.serve.api import router
from discreet.serve.config import Served
from discreet.serve.http.middleware import Guard
from discreet.serve.http.problems import problem
from discreet.serve.models import Health
from discreet.serve.openapi import described
from discreet.version import __version__

SILENT = dict.fromkeys(("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False)  # what is asked
FEWEST = 4  # threads that answer
ABOUT = "Published, protected statistics with their errors, in the shape of PxWeb API v2."


def create_app(served: Served, *, trust_proxy: bool = False) -> FastAPI:
    """All routes. With `trust_proxy` the address that the proxy in front forwards counts for the rate."""
    more: dict[str, Any] = {"telemetry": SILENT}
    app = FastAPI(
        title=served.config.title,
        version=__version__,
        description=ABOUT,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would repeat whatever host the request claims
        lifespan=_lifespan(served.config.concurrency),
        **more,
    )
    counts = Counter[str]()
    app.add_middleware(Guard, config=served.config, counts=counts, trust_proxy=trust_proxy)
    app.include_router(router(served))
    _plain_routes(app, served, counts)
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    app.include_router(pages.router(served), include_in_schema=False)
    return app


def _lifespan(concurrency: int) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def run(_: FastAPI) -> AsyncIterator[None]:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = anyio.to_thread.current_default_thread_limiter()
        threads.total_tokens = min(concurrency, max(FEWEST, 2 * cores))  # more would only take turns, and memory
        yield

    return run


def _plain_routes(app: FastAPI, served: Served, counts: Counter[str]) -> None:
    @app.get("/health", response_model=Health, tags=["Server"])
    async def health() -> Health:
        """Whether the server is there, and how many requests it has answered."""
        return Health(tables=len(served.catalogue.tables), requests=dict(counts))

    @app.get("/api/v2/openapi.json", include_in_schema=False)
    async def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = described(app, served.config.prefix)
        return app.openapi_schema


def _invalid_query(_: Request, error: Exception) -> Response:
    if isinstance(error, QueryTooLarge):
        return problem(403, str(error), offers=list(error.offers))
    return problem(404 if isinstance(error, UnknownTable) else 400, str(error))


def _invalid(_: Request, error: Exception) -> Response:
    """What a parameter may be; not what it was."""
    first = error.errors()[0] if isinstance(error, RequestValidationError) else {"loc": (), "msg": ""}
    return problem(400, f"{'.'.join(str(part) for part in first['loc'][1:2])}: {first['msg']}.")


def _refused(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    said = {404: "There is nothing at this address.", 405: "This method is not understood here."}
    return problem(status, said.get(status, "It was refused."), headers=headers)


_HANDLERS: dict[type[Exception], Callable[[Request, Exception], Response]] = {
    InvalidQuery: _invalid_query,
    RequestValidationError: _invalid,
    HTTPException: _refused,
}
