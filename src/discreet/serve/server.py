"""`discreet serve`: verify the releases, bind the port, answer, and finish running requests before exit."""

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
from discreet.serve.config import Config, ServerContext
from discreet.serve.http.connections import KEEP_ALIVE, MAX_CONNECTIONS, Connection

BACKLOG = 2_048
CANNOT_START = 3  # uvicorn's exit code for a worker that should not be restarted
_PATH = re.compile(r"(/[A-Za-z0-9_.~-]+)*")
GRACE = 5  # seconds beyond the time limit of an answer


@dataclass(frozen=True)
class ServerPlan:
    """What is served, at which address, and by how many workers."""

    folders: tuple[str, ...]
    config: Config
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    trust_proxy: bool = False
    pins: frozenset[str] | None = None  # of the manifests that may be served


def prefix_of(text: str) -> str:
    """A path such as /statistics; nothing for the root."""
    path = f"/{text.strip('/')}".rstrip("/")
    if not _PATH.fullmatch(path) or {".", ".."} & set(path.split("/")):
        raise ParameterError(f"{text!r} is not a valid path", where="--prefix", do="write it like /statistics")
    return path


def serve(plan: ServerPlan, say: Callable[[str], object]) -> None:
    """Serve until a signal arrives. All releases are opened and verified before the port is bound."""
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    catalogue = TableCatalogue.of(plan.folders, plan.pins)
    if not catalogue.tables:
        raise PublishError("have no table to serve", where="folders", do="publish one with `formats: [parquet]`")
    bound = bind(plan.host, plan.port)
    _raise_file_limit(2 * BACKLOG)
    settings = settings_of(plan.config)
    if catalogue.simulation:
        say("SIMULATION: drawn with a fixed test key. It protects nobody.")
    say(f"{plural(len(catalogue.tables), 'table')} at {address(plan, bound)}")
    with bound, suppress(KeyboardInterrupt):  # uvicorn raises the signal again once all is done
        if plan.workers == 1:
            app = create_app(ServerContext(catalogue, plan.config), trust_proxy=plan.trust_proxy)
            uvicorn.Server(uvicorn.Config(app, **settings)).run(sockets=[bound])
        else:
            config = uvicorn.Config(partial(worker, plan), factory=True, workers=plan.workers, **settings)
            supervisor = Multiprocess(config, sockets=[bound])
            supervisor.run()
            if any(process.exitcode == CANNOT_START for process in supervisor.processes):
                raise PublishError("could not reopen the releases", where="a worker", do="see the error above")


def settings_of(config: Config) -> dict[str, Any]:
    """Settings for uvicorn."""
    return {
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,  # the middleware does it, with trust_proxy
        "ws": "none",
        "http": Connection,
        "limit_concurrency": MAX_CONNECTIONS + 1,  # exceeded only while all of them are being answered
        "timeout_keep_alive": KEEP_ALIVE,
        "backlog": BACKLOG,
        "timeout_graceful_shutdown": round(config.timeout) + GRACE,
    }


def worker(plan: ServerPlan) -> FastAPI:
    """The application of one of several processes, each of which opens and verifies the releases itself.

    If a release has changed, all processes stop: the supervisor would otherwise restart this one forever.
    """
    try:
        catalogue = TableCatalogue.of(plan.folders, plan.pins)
    except DiscreetError as error:
        refuse(error)
        sys.exit(CANNOT_START)
    return create_app(ServerContext(catalogue, plan.config), trust_proxy=plan.trust_proxy)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; the error names the address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family, backlog=BACKLOG)
        bound.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
        )  # otherwise Nagle's algorithm delays bodies by 40 ms
        return bound
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ParameterError(f"cannot be bound: {reason}", where=f"{host}:{port}", do="choose another --port") from None


def _raise_file_limit(files: int) -> None:
    """Raise the limit on open files, as far as permitted: a full backlog is accepted before connections are closed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = files if hard == resource.RLIM_INFINITY else min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def address(plan: ServerPlan, bound: socket.socket) -> str:
    """The URL of the server on this machine."""
    port = bound.getsockname()[1]
    host = f"[{plan.host}]" if ":" in plan.host else plan.host
    return f"http://{host}:{port}{plan.config.prefix}/"
