"""A cube of a million cells on the web: `python -m benchmarks.serve --json`.

A dense cube of ten variables is released for real. Questions show two to four of them, half also limit another, and
every number comes with its standard error and interval. The floor is bare DuckDB: a GROUP BY of the same Parquet file
for the same sums, without errors, on an open connection, fetched as NumPy arrays. `cost_vs_duckdb` is a whole request
over that floor: routing, limits, sums, errors, marks and JSON, through the ASGI application without a network.
`answer_vs_duckdb` is the answering function alone. Then a server of one process at a real port is asked by 1, 8 and 64
clients at once.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from math import prod
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet
from benchmarks._measure import Result, best_of, front
from discreet.api import set_budget
from discreet.noise.keystore import FileKeyStore
from discreet.serve.app import create_app
from discreet.serve.catalogue import TableCatalogue
from discreet.serve.config import Config, ServerContext
from discreet.serve.query_model import TableQuery
from discreet.serve.query_string import link
from discreet.serve.server import ServerPlan, serve

SIZES = {"a": 10, "b": 10, "c": 5, "d": 5, "e": 5, "f": 5, "g": 2, "h": 2, "i": 2, "j": 2}
CELLS = prod(SIZES.values())
RECORDS, QUESTIONS, REQUESTS, WARM = 500_000, 200, 10_000, 500
CLIENTS = {1: 0.1, 8: 0.3, 64: 0.6}  # and the share of requests that each number of them makes
EPSILON, CAP = "2", 7
PERCENTILES = (50, 95, 99)
ROOMY = Config(max_calls=1_000_000_000)
DATA = "/api/v2/tables/cube/data"


def codes(name: str) -> list[str]:
    return [f"{i:02d}" for i in range(SIZES[name])]


def released(folder: Path, rows: int) -> Path:
    """A cube of skewed records, published with a key."""
    rng = np.random.default_rng(7)
    columns = {
        name: pa.DictionaryArray.from_arrays(
            pa.array((rng.beta(0.7, 2.0, rows) * size).astype(np.int32)), pa.array(codes(name))
        )
        for name, size in SIZES.items()
    }
    pq.write_table(pa.table(columns), folder / "records.parquet")
    ledger = discreet.ledger(folder / "ledger.sqlite")
    set_budget(ledger, "records", epsilon="1000", delta="0.1", unit="record")
    declared: dict[str, Any] = {
        "release": "cube",
        "asset": "records",
        "source": {"records": str(folder / "records.parquet")},
        "unit": "record",
        "domains": {name: {"values": codes(name)} for name in SIZES},
        "tables": [{"name": "cube", "method": "hypercube", "by": list(SIZES), "epsilon": EPSILON, "cap": CAP}],
    }
    discreet.release(declared, ledger=ledger, keys=FileKeyStore(folder / "keys")).run(folder / "out")
    return folder / "out"


def questions(many: int) -> list[TableQuery]:
    """Two to four variables; half are limited to some codes of another."""
    rng = np.random.default_rng(3)
    queries = []
    for i in range(many):
        names = rng.permutation(list(SIZES)).tolist()
        ways = 2 + i % 3
        limit = names[ways]
        selected = tuple(sorted(rng.permutation(codes(limit))[: max(1, SIZES[limit] // 2)].tolist()))
        where = ((limit, selected),) if i % 2 else ()
        queries.append(TableQuery(tuple((name, ()) for name in sorted(names[:ways])), where))
    return queries


# --- the same sums, by DuckDB and by the server -------------------------------------------------------------------


def by_duckdb(source: str, queries: list[TableQuery], connection: duckdb.DuckDBPyConnection) -> Callable[[], object]:
    def run() -> object:
        for question in queries:
            names = ", ".join(question.shown)
            tests = " AND ".join(f"list_contains(?, {name})" for name, _ in question.where) or "TRUE"
            sql = f"SELECT {names}, sum(count) FROM {source} WHERE {tests} GROUP BY {names} ORDER BY {names}"
            connection.execute(sql, [list(codes) for _, codes in question.where]).fetchnumpy()
        return None

    return run


def by_answer(served: ServerContext, queries: list[TableQuery]) -> Callable[[], object]:
    table = served.catalogue.table("cube")

    def run() -> object:
        return [len(table.answer(question, served.config.max_cells)) for question in queries]

    return run


def by_app(served: ServerContext, queries: list[TableQuery]) -> Callable[[], object]:
    app, links = create_app(served), [link(question).encode() for question in queries]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def ask(query: bytes) -> None:
        async def send(message: Any) -> None:
            if message.get("status", 200) != 200:
                raise RuntimeError(f"status {message['status']}")

        scope = {"type": "http", "method": "GET", "path": DATA, "query_string": query, "headers": [], "client": None}
        await app({**scope, "scheme": "http", "server": ("test", 80)}, receive, send)

    async def every() -> None:
        for query in links:
            await ask(query)

    return lambda: asyncio.run(every())


def same_sums(
    served: ServerContext, source: str, queries: list[TableQuery], connection: duckdb.DuckDBPyConnection
) -> None:
    """What is compared must be the same."""
    table = served.catalogue.table("cube")
    for question in queries[:20]:
        names = ", ".join(question.shown)
        selected = [list(codes) for _, codes in question.where]
        tests = " AND ".join(f"list_contains(?, {name})" for name, _ in question.where) or "TRUE"
        sql = f"SELECT sum(count) FROM {source} WHERE {tests} GROUP BY {names} ORDER BY {names}"
        theirs = connection.execute(sql, selected).fetchnumpy()
        ours = table.answer(question, served.config.max_cells).numbers["estimate"]
        if not np.allclose(ours, np.asarray(next(iter(theirs.values())), float)):
            raise RuntimeError("the sums differ")


# --- many clients at once -----------------------------------------------------------------------------------------


def run_server(folder: str, pipe: Connection) -> None:
    """A process of its own, as the command has it, with room for all these calls."""
    serve(ServerPlan((folder,), ROOMY, port=0), pipe.send)


async def client(port: int, links: list[str], turns: list[int], times: list[float]) -> int:
    """One connection, one request after another; how many of them failed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    errors = 0
    for turn in turns:
        start = time.perf_counter()
        writer.write(f"GET {DATA}?{links[turn % len(links)]} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        size = next(
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
        )
        body = await reader.readexactly(size)
        times.append(time.perf_counter() - start)
        errors += not (head.startswith(b"HTTP/1.1 200") and body.startswith(b'{"version":"2.0"'))
    writer.close()
    await writer.wait_closed()
    return errors


async def crowd(port: int, links: list[str], clients: int, requests: int) -> tuple[float, list[float], int]:
    """Requests per second, seconds of each, and errors."""
    times: list[float] = []
    start = time.perf_counter()
    shares = [list(range(k, requests, clients)) for k in range(clients)]
    errors = await asyncio.gather(*(client(port, links, share, times) for share in shares))
    return requests / (time.perf_counter() - start), times, sum(errors)


def rss_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 1024


def crowds(out: Path, links: list[str], requests: int) -> Result:
    """A server at a real port, and more and more clients."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=run_server, args=(str(out), theirs), daemon=True)
    begun = time.perf_counter()
    process.start()
    try:
        port = int(ours.recv().rsplit(":", 1)[1].strip("/"))
        with urlopen(f"http://127.0.0.1:{port}/") as page:
            page.read()
        ready = time.perf_counter() - begun
        asyncio.run(crowd(port, links, 8, min(WARM, requests)))
        pid = process.pid or 0
        before = rss_mib(pid)
        result: Result = {"rps": {}, **{f"p{p}_ms": {} for p in PERCENTILES}, "errors": 0}
        for clients, share in CLIENTS.items():
            rps, times, errors = asyncio.run(crowd(port, links, clients, max(clients, round(requests * share))))
            result["rps"][str(clients)] = round(rps, 1)
            for p in PERCENTILES:
                result[f"p{p}_ms"][str(clients)] = round(float(np.percentile(times, p)) * 1e3, 2)
            result["errors"] += errors
        return {
            **result,
            "page_after_seconds": round(ready, 2),
            "rss_mib": round(before, 1),
            "rss_growth_mib": round(rss_mib(pid) - before, 1),
        }
    finally:
        process.terminate()
        process.join()


def measure(arguments: Namespace) -> Result:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        out = released(folder, arguments.records)
        served = ServerContext(TableCatalogue.of([out]), ROOMY)
        queries = questions(arguments.questions)
        parquet = f"read_parquet('{next(out.glob('cube*.parquet'))}')"
        with duckdb.connect() as connection:
            same_sums(served, parquet, queries, connection)
            connection.execute(f"CREATE TABLE loaded AS SELECT * FROM {parquet}")
            best = best_of(
                {
                    "duckdb": by_duckdb(parquet, queries, connection),
                    "duckdb_loaded": by_duckdb("loaded", queries, connection),
                    "answer": by_answer(served, queries),
                    "app": by_app(served, queries),
                },
                rounds=3,
            )
        each = {f"{name}_ms": round(seconds / len(queries) * 1e3, 3) for name, seconds in best.items()}
        return {
            "cells": CELLS,
            "variables": len(SIZES),
            "questions": len(queries),
            **each,
            "cost_vs_duckdb": round(best["app"] / best["duckdb"], 3),
            "answer_vs_duckdb": round(best["answer"] / best["duckdb"], 3),
            "cost_vs_duckdb_loaded": round(best["app"] / best["duckdb_loaded"], 3),
            **crowds(out, [link(question) for question in queries], arguments.requests),
        }


if __name__ == "__main__":
    front(__doc__ or "", measure, records=RECORDS, questions=QUESTIONS, requests=REQUESTS)
