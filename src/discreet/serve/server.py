"""`discreet serve`: verify what is published, bind, answer, and finish what runs before leaving."""

from __future__ import annotations

import re
import resource
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import FastAPI

from discreet.errors import DiscreetError, ParameterError, PublishError
from discreet.formatting import plural, refuse
from discreet.serve.app import create_app
from discreet.serve.catalogue import TableCatalogue
from discreet.serve.config import Config, Served
from discreet.serve.http.connections import KEPT, ROOM, Connection

BACKLOG = 2_048
UNABLE = 3  # uvicorn's word for a worker that should not be started again
_PATH = re.compile(r"(/[A-Za-z0-9_.~-]+)*")
GRACE = 5  # seconds beyond the time of an answer


@dataclass(frozen=True)
class ServerPlan:
    """What is served, where, and by how many."""

    folders: tuple[str, ...]
    config: Config
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    trust_proxy: bool = False
    pins: frozenset[str] | None = None  # of the manifests that may be served


def prefix_of(text: str) -> str:
    """A path such as /statistics; nothing for the root."""
    found = f"/{text.strip('/')}".rstrip("/")
    if not _PATH.fullmatch(found) or {".", ".."} & set(found.split("/")):
        raise ParameterError(f"{text!r} is no path", where="--prefix", do="write /statistics")
    return found


def serve(plan: ServerPlan, say: Callable[[str], object]) -> None:
    """Until a signal comes. Everything is opened and verified before the port is bound."""
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    catalogue = TableCatalogue.of(plan.folders, plan.pins)
    if not catalogue.tables:
        raise PublishError("have no table to serve", where="folders", do="publish one with `formats: [parquet]`")
    bound = bind(plan.host, plan.port)
    _let_in(2 * BACKLOG)
    settings = settings_of(plan.config)
    if catalogue.simulation:
        say("SIMULATION: drawn with a fixed test key. It protects nobody.")
    say(f"{plural(len(catalogue.tables), 'table')} at {address(plan, bound)}")
    with bound, suppress(KeyboardInterrupt):  # uvicorn raises the signal again once all is done
        if plan.workers == 1:
            app = create_app(Served(catalogue, plan.config), trust_proxy=plan.trust_proxy)
            uvicorn.Server(uvicorn.Config(app, **settings)).run(sockets=[bound])
        else:
            config = uvicorn.Config(partial(worker, plan), factory=True, workers=plan.workers, **settings)
            supervisor = Multiprocess(config, sockets=[bound])
            supervisor.run()
            if any(process.exitcode == UNABLE for process in supervisor.processes):
                raise PublishError("could not be opened again", where="a worker", do="see the line above")


def settings_of(config: Config) -> dict[str, Any]:
    """What uvicorn is told."""
    return {
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,  # the guard does it, if it is told to
        "ws": "none",
        "http": Connection,
        "limit_concurrency": ROOM + 1,  # more only if all are being answered
        "timeout_keep_alive": KEPT,
        "backlog": BACKLOG,
        "timeout_graceful_shutdown": round(config.timeout) + GRACE,
    }


def worker(plan: ServerPlan) -> FastAPI:
    """The application of one of several processes, which opens and verifies everything by itself.

    If the release is not what it was, all of them stop: a supervisor would start this one again and again.
    """
    try:
        catalogue = TableCatalogue.of(plan.folders, plan.pins)
    except DiscreetError as error:
        refuse(error)
        sys.exit(UNABLE)
    return create_app(Served(catalogue, plan.config), trust_proxy=plan.trust_proxy)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; a refusal says which address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family, backlog=BACKLOG)
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else a body waits 40 ms for its headers
        return bound
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ParameterError(f"cannot be bound: {reason}", where=f"{host}:{port}", do="choose another --port") from None


def _let_in(files: int) -> None:
    """All that knock at once are let in before the first is sent away: room for that, as far as it is ours to take."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = files if hard == resource.RLIM_INFINITY else min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def address(plan: ServerPlan, bound: socket.socket) -> str:
    """Where people find it on this machine."""
    port = bound.getsockname()[1]
    host = f"[{plan.host}]" if ":" in plan.host else plan.host
    return f"http://{host}:{port}{plan.config.prefix}/"
