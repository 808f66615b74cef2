"""The web application: the API, the pages, and the middleware around both."""

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
from discreet.serve.config import ServerContext
from discreet.serve.http.middleware import RequestLimitMiddleware
from discreet.serve.http.problems import problem
from discreet.serve.models import Health
from discreet.serve.openapi import openapi_document
from discreet.version import __version__

SILENT = dict.fromkeys(
    ("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False
)  # they would record requests
FEWEST = 4  # threads for answers
ABOUT = (
    "Published statistics with noise added for privacy; each table states its guarantee. Compatible with PxWeb API v2."
)


def create_app(served: ServerContext, *, trust_proxy: bool = False) -> FastAPI:
    """The application. With `trust_proxy`, rate limits apply to the client address that the proxy forwards."""
    more: dict[str, Any] = {"telemetry": SILENT}
    app = FastAPI(
        title=served.config.title,
        version=__version__,
        description=ABOUT,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would repeat the host that the request claims
        lifespan=_lifespan(served.config.concurrency),
        **more,
    )
    counts = Counter[str]()
    app.add_middleware(RequestLimitMiddleware, config=served.config, counts=counts, trust_proxy=trust_proxy)
    app.include_router(router(served))
    _server_routes(app, served, counts)
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    app.include_router(pages.router(served), include_in_schema=False)
    return app


def _lifespan(concurrency: int) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def run(_: FastAPI) -> AsyncIterator[None]:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = anyio.to_thread.current_default_thread_limiter()
        threads.total_tokens = min(concurrency, max(FEWEST, 2 * cores))  # more would only cost memory
        yield

    return run


def _server_routes(app: FastAPI, served: ServerContext, counts: Counter[str]) -> None:
    @app.get("/health", response_model=Health, tags=["Server"])
    async def health() -> Health:
        """Check that the server is running, and get counts of its responses."""
        return Health(tables=len(served.catalogue.tables), requests=dict(counts))

    @app.get("/api/v2/openapi.json", include_in_schema=False)
    async def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = openapi_document(app, served.config.prefix)
        return app.openapi_schema


def _invalid_query(_: Request, error: Exception) -> Response:
    if isinstance(error, QueryTooLarge):
        return problem(403, str(error), offers=list(error.offers))
    return problem(404 if isinstance(error, UnknownTable) else 400, str(error))


def _parameter_problem(_: Request, error: Exception) -> Response:
    """A problem that says which values a parameter may have, without quoting the value given."""
    first = error.errors()[0] if isinstance(error, RequestValidationError) else {"loc": (), "msg": ""}
    return problem(400, f"{'.'.join(str(part) for part in first['loc'][1:2])}: {first['msg']}.")


def _http_problem(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    details = {404: "Nothing exists at this address.", 405: "This method is not allowed here."}
    return problem(status, details.get(status, "The request was refused."), headers=headers)


_HANDLERS: dict[type[Exception], Callable[[Request, Exception], Response]] = {
    InvalidQuery: _invalid_query,
    RequestValidationError: _parameter_problem,
    HTTPException: _http_problem,
}
