"""Random queries, valid and hostile: always a page, never a failure, and input is always escaped."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import httpx
from fastapi import FastAPI

from discreet.serve.config import Config, ServerContext
from discreet.serve.pages import router
from discreet.serve.query_model import QueryableTable
from support.served_cubes import cubes_and_pay

HOSTILE = [
    "",
    "\x00",
    "'; DROP TABLE x",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "9" * 400,
    "-1",
    "1e9",
    "٣",
    "💣",
]
FIELDS = {
    "totals": ["1", "0"],
    "share": ["rows", "columns", "all"],
    "error": ["se", "none"],
    "sort": ["value", "-value", "label", "-label"],
    "top": ["3", "0"],
    "page": ["1", "2", "77"],
    "chart": ["bars", "lines", "sankey", "ranges", "tiles", "number"],
}


def asked(table: QueryableTable, rng: random.Random) -> list[tuple[str, str]]:
    """Random form fields, nine in ten of them as the form would send them."""

    def pick(good: list[str]) -> str:
        return rng.choice(good if good and rng.random() < 0.93 else HOSTILE)

    names = [v.id for v in table.variables]
    actual = [("rows", pick([*names, ""])) for _ in range(rng.randint(0, 2))]
    actual += [("columns", pick([*names, ""]))] if rng.random() < 0.5 else []
    for v in rng.sample(table.variables, min(len(names), rng.randint(0, 2))):
        actual.append((rng.choice(["only.", "at."]) + v.id, pick(list(v.codes))))
        actual.append(("key", pick(list(v.codes))))
    actual += [(f"only.{rng.choice(HOSTILE)}", rng.choice(HOSTILE))] if rng.random() < 0.05 else []
    actual += [(name, pick([m.id for m in table.measures])) for name in ("measure", "what") if rng.random() < 0.4]
    return actual + [(name, pick(good)) for name, good in FIELDS.items() if rng.random() < 0.4]


def test_every_query_has_a_page(tmp_path: Path) -> None:
    catalogue, rng = cubes_and_pay(tmp_path), random.Random(7)
    app = FastAPI()
    app.include_router(router(ServerContext(catalogue, Config(max_cells=80))))
    codes: dict[int, int] = {}

    async def ask() -> None:
        transport = httpx.ASGITransport(app=app)  # failures are raised here
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            for _ in range(400):
                table = rng.choice(list(catalogue.tables.values()))
                path = f"/tables/{table.summary.id}{rng.choice(['', '', '', '/chart.svg'])}"
                answer = await client.get(path, params=asked(table, rng))
                codes[answer.status_code] = codes.get(answer.status_code, 0) + 1
                assert "<script>alert" not in answer.text

    asyncio.run(ask())
    assert set(codes) <= {200, 400, 404}
    assert min(codes[200], codes[400]) > 50
