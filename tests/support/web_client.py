"""A small release on the web, for tests: a cube with a coarser variable, counts, a sparse table, and a client."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from discreet.serve.app import create_app
from discreet.serve.catalogue import TableCatalogue
from discreet.serve.config import Config, ServerContext
from support.survey import CONTROLS, WEIGHTS, SurveyAgency

COUNTS: dict[str, Any] = {"name": "counts", "method": "counts", "by": ["strength", "outdoors"], "epsilon": "1"}
SPARSE: dict[str, Any] = {**COUNTS, "name": "few", "form": "sparse", "by": ["occupation", "strength"]}
ROOMY = Config(max_calls=1_000_000)


def released(home: Path) -> Path:
    """The folder of a release: additive tables, and two that are only looked up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_KEYS", str(home / "keys"))
        patch.setenv("DISCREET_TMP", str(home / "tmp"))
        survey = SurveyAgency(home / "survey")
        cube = survey.spec(weights=WEIGHTS, controls=CONTROLS)["tables"][0]
        survey.more["tables"] = [cube, COUNTS, SPARSE]
        return survey.run()


def open_app(folder: Path, config: Config = ROOMY, **more: Any) -> FastAPI:
    return create_app(ServerContext(TableCatalogue.of([folder]), config), **more)


class WebClient:
    """Requests without a network, one after another."""

    def __init__(self, app: FastAPI, address: str = "127.0.0.1") -> None:
        self._loop = asyncio.new_event_loop()
        transport = httpx.ASGITransport(app=app, client=(address, 1))
        self._client = httpx.AsyncClient(transport=transport, base_url="http://test")

    def __call__(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self._loop.run_until_complete(self._client.request(method, path, **more))

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self("POST", path, **more)

    def together(self, paths: list[str]) -> list[httpx.Response]:
        async def ask() -> list[httpx.Response]:
            return await asyncio.gather(*(self._client.get(path) for path in paths))

        return self._loop.run_until_complete(ask())

    def close(self) -> None:
        self._loop.run_until_complete(self._client.aclose())
        self._loop.close()


def is_problem(response: Any) -> bool:
    """A well-formed refusal that reveals no internals."""
    actual = response.json()
    internals = ("Traceback", "/src/", "site-packages", ".py", "/tmp/")
    return (
        response.headers["content-type"] == "application/problem+json"
        and actual["status"] == response.status_code
        and {"type", "title", "status", "detail"} <= set(actual)
        and not any(text in response.text for text in internals)
    )
