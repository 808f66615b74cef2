"""`discreet serve` as a command: a separate process, a real port, signals."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from discreet.errors import ParameterError
from discreet.methods import METHODS
from discreet.serve.config import Config
from discreet.serve.server import ServerPlan, bind, prefix_of, worker
from support.web_client import WebClient, released

FORBIDDEN = (
    "discreet.engine",
    "discreet.noise",
    "discreet.pipeline",
    "discreet.spec",
    "discreet.privacy.confidential",
    "discreet.api",
    "cryptography",
    "ibis",
    "numba",
)


def forbidden(name: str, *more: str) -> bool:
    """Whether a module must not be loaded in a serving process. What methods add to the command line loads nothing."""
    parts = name.split(".")
    of_a_method = parts[:2] == ["discreet", "methods"] and len(parts) > 3 and parts[3:] != ["commands"]
    shared = parts[:2] == ["discreet", "methods"] and len(parts) == 3 and parts[2] not in (*METHODS, "recode")
    return of_a_method or shared or any(name == f or name.startswith(f"{f}.") for f in (*FORBIDDEN, *more))


COMMAND = [sys.executable, "-c", "from discreet.cli import main; main()", "serve"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory.mktemp("served"))


@contextmanager
def started(*arguments: str | Path, command: list[str] = COMMAND) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running server and its address."""
    process = subprocess.Popen(
        [*command, *map(str, arguments), "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said.startswith("SIMULATION: "), said + process.communicate(timeout=20)[1]
        actual = re.search(r"3 tables at (http://\S+)", process.stdout.readline())
        assert actual
        yield process, actual[1]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=20)


def refused(*arguments: str | Path) -> str:
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    return done.stderr


# --- it starts, answers and leaves --------------------------------------------------------------------------------


def test_the_page_is_there_and_sigterm_ends_it(folder: Path) -> None:
    with started(folder) as (process, address):
        assert httpx.get(address).status_code == 200
        actual = httpx.get(f"{address}api/v2/tables/cube/data?valueCodes[strength]=*")
        assert actual.json()["size"] == [3, 4]
        assert "server" not in actual.headers
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 0
        assert (out, err) == ("", "")  # nothing about what was asked


def test_ctrl_c_ends_it_quietly(folder: Path) -> None:
    with started(folder) as (process, address):
        assert httpx.get(f"{address}health").status_code == 200
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert (process.returncode, err) == (0, "")


@pytest.mark.slow
def test_two_workers_under_a_prefix(folder: Path) -> None:
    with started(folder, "--workers", "2", "--prefix", "statistics/") as (process, address):
        assert address.endswith("/statistics/")
        actual = httpx.get(f"{address}api/v2/tables", timeout=30).json()
        root = address.removesuffix("/statistics/")
        for one in actual["tables"][0]["links"]:
            assert one["href"].startswith("/statistics/api/v2/tables/cube")
            assert httpx.get(root + one["href"], timeout=30).status_code == 200
        same = {httpx.get(f"{address}api/v2/tables/cube/data").content for _ in range(10)}
        assert len(same) == 1
        assert httpx.get(address).status_code == 200
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "Traceback" not in err


SLOW = """
import time, sys
import discreet.serve.server as server
plain = server.create_app
def create_app(*args, **more):
    app = plain(*args, **more)
    @app.get("/api/v2/slow")
    def slow():
        print("running", flush=True)
        time.sleep(1.5)
        return "done"
    return app
server.create_app = create_app
sys.argv[0] = "discreet"
from discreet.cli import main
main()
"""


@pytest.mark.slow
def test_a_running_answer_is_finished_before_it_leaves(folder: Path) -> None:
    with started("serve", folder, command=[sys.executable, "-c", SLOW]) as (process, address):
        got: list[Any] = []
        asking = threading.Thread(target=lambda: got.append(httpx.get(f"{address}api/v2/slow", timeout=30)))
        asking.start()
        assert process.stdout is not None
        while "running" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGTERM)
        asking.join(20)
        assert got[0].json() == "done"
        process.communicate(timeout=20)
        assert process.returncode == 0


# --- it refuses ---------------------------------------------------------------------------------------------------


def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def test_a_folder_that_is_no_release_is_refused(tmp_path: Path, folder: Path) -> None:
    assert "no manifest" in refused(tmp_path)
    assert "no such folder" in refused(tmp_path / "none")
    copy = copied(folder, tmp_path)
    (copy / "manifest.json").unlink()
    assert "no manifest" in refused(folder, copy)


@pytest.mark.slow
def test_a_strange_file_a_changed_file_and_a_link_are_refused(tmp_path: Path, folder: Path) -> None:
    copy = copied(folder, tmp_path)
    (copy / "records.parquet").write_bytes(b"x")
    assert "records.parquet: is not in the manifest" in refused(copy)
    (copy / "records.parquet").unlink()
    file = next(copy.glob("cube*.parquet"))
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert "is not what the manifest lists" in refused(copy)
    file.unlink()
    assert "is not what the manifest lists" in refused(copy)
    file.symlink_to(next(folder.glob(file.name)))
    assert "symbolic link" in refused(copy)


def test_the_same_table_twice_is_refused(folder: Path) -> None:
    assert "as does another release" in refused(folder, folder)


def test_a_port_that_is_taken_is_one_line(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "cannot be bound" in refused(folder, "--port", str(taken.getsockname()[1]))


@pytest.mark.parametrize("prefix", ["a b", "/../x", "//evil.example//x", "é", "a?b"])
def test_a_strange_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(ParameterError, match="not a valid path"):
        prefix_of(prefix)


@pytest.mark.parametrize(("given", "actual"), [("", ""), ("/", ""), ("a", "/a"), ("/a/b/", "/a/b"), ("//a", "/a")])
def test_a_prefix_is_a_path(given: str, actual: str) -> None:
    assert prefix_of(given) == actual


def test_nothing_is_bound_before_everything_is_verified(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "no manifest" in refused(tmp_path, "--port", str(taken.getsockname()[1]))


def test_an_address_of_the_newer_kind_and_one_that_is_none() -> None:
    with pytest.raises(ParameterError, match="cannot be bound"):
        bind("256.0.0.1", 0)
    if socket.has_ipv6:
        try:
            bound = bind("::1", 0)
        except ParameterError:
            pytest.skip("no IPv6 here")
        assert bound.family == socket.AF_INET6
        bound.close()


CHANGED = """
import sys
import discreet.serve.server as server
if __name__ == "__main__":
    class TableCatalogue:
        of = staticmethod(lambda _, *pins, real=server.TableCatalogue.of: real([sys.argv.pop()], *pins))
    server.TableCatalogue = TableCatalogue  # in this process alone: its workers open what it was told to
    from discreet.cli import main
    main()
"""


@pytest.mark.slow
def test_workers_that_find_another_release_stop_instead_of_trying_for_ever(folder: Path, tmp_path: Path) -> None:
    script, gone = tmp_path / "changed.py", tmp_path / "gone"
    script.write_text(CHANGED)
    command = [sys.executable, script, "serve", gone, "--workers", "2", "--port", "0", folder]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"discreet: {gone}: has no manifest" in done.stderr
    assert "discreet: a worker: could not reopen the releases" in done.stderr
    assert "Traceback" not in done.stderr


# --- what is inside -----------------------------------------------------------------------------------------------


def test_a_worker_serves_what_it_is_told_after_a_journey_to_its_process(folder: Path) -> None:
    config = Config(prefix=prefix_of("x"), max_cells=7)
    plan = ServerPlan((str(folder),), config, workers=2, trust_proxy=True)
    web = WebClient(worker(pickle.loads(pickle.dumps(plan))))
    assert web.get("/x/api/v2/config").json()["maxDataCells"] == 7
    web.close()


INSIDE = """
import asyncio, json, sys
import discreet.cli
import httpx
from discreet.serve.app import create_app
from discreet.serve.catalogue import TableCatalogue
from discreet.serve.config import Config, ServerContext

async def main():
    app = create_app(ServerContext(TableCatalogue.of(sys.argv[1:]), Config()))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as web:
        for path in ["/", "/health", "/api/v2/tables", "/api/v2/tables/cube/metadata", "/api/v2/openapi.json"]:
            assert (await web.get(path)).status_code == 200, path
        both = {"cube": "valueCodes[strength]=*", "few": "valueCodes[occupation]=*&valueCodes[strength]=*"}
        for table, asked in both.items():
            for form in ["json-stat2", "csv", "xlsx", "parquet", "sdmx-csv"]:
                path = f"/api/v2/tables/{table}/data?{asked}&outputFormat={form}"
                assert (await web.get(path)).status_code == 200, path

asyncio.run(main())
print(json.dumps(sorted(sys.modules)))
"""


def test_a_process_that_serves_has_nothing_that_opens_confidential_data(folder: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DISCREET")}
    done = subprocess.run(
        [sys.executable, "-c", INSIDE, str(folder)], capture_output=True, text=True, timeout=60, check=False, env=clean
    )
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    assert "discreet.serve.api" in loaded
    assert not [name for name in loaded if forbidden(name)]


def test_a_body_does_not_wait_for_its_headers() -> None:
    """Without TCP_NODELAY every answer over a kept connection takes 40 ms more."""
    bound = bind("127.0.0.1", 0)
    assert bound.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    bound.close()
