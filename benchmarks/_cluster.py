"""A real standalone cluster on loopback: one master and some workers, each a process, encrypted as the docs ask."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

ENCRYPTED = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.io.encryption.enabled": "true",
}


@dataclass
class Cluster:
    """Its address, its folder of settings, and its processes."""

    master: str
    folder: Path
    environment: dict[str, str]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def settings(self) -> Path:
        """What SPARK_CONF_DIR must be for a driver of this cluster."""
        return self.folder / "conf"

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in self.folder.glob("*.log"))

    def executors(self) -> list[int]:
        """The process numbers of the executors' JVMs."""
        processes = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                text = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if "CoarseGrainedExecutorBackend" in text and f"{self.folder}" in text:
                processes.append(int(entry.parent.name))
        return processes


def _free() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait(port: int, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise TimeoutError("the cluster did not start")


@contextmanager
def cluster(
    folder: Path, workers: int = 2, cores: int = 1, memory: str = "2g", *, encrypted: bool = True, **settings: str
) -> Iterator[Cluster]:
    """Start it, use it, end it."""
    conf, port = folder / "conf", _free()
    conf.mkdir(parents=True)
    lines = {**ENCRYPTED, "spark.authenticate.secret": secrets.token_hex(32)} if encrypted else {}
    lines |= {"spark.executor.memory": memory, **{key.replace("_", "."): value for key, value in settings.items()}}
    defaults = conf / "spark-defaults.conf"
    defaults.touch(mode=0o600)
    defaults.write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
    environment = {
        **os.environ,
        "SPARK_CONF_DIR": str(conf),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
    }
    (folder / "local").mkdir()
    spark = Cluster(f"spark://127.0.0.1:{port}", folder, environment)
    try:
        where = ("--host", "127.0.0.1", "--webui-port", str(_free()))
        spark.processes.append(_launch(spark, "master", "master.Master", *where, "--port", str(port)))
        _wait(port)
        for i in range(workers):
            work = folder / f"worker{i}"
            spark.processes.append(
                _launch(
                    spark, f"worker{i}", "worker.Worker", spark.master, "--host", "127.0.0.1", "--cores", str(cores),
                    "--memory", memory, "--work-dir", str(work), "--webui-port", str(_free()),
                )
            )  # fmt: skip
        yield spark
    finally:
        for process in reversed(spark.processes):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _launch(spark: Cluster, name: str, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
    script = Path(spark.environment["SPARK_HOME"]) / "bin" / "spark-class"
    with (spark.folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [str(script), f"org.apache.spark.deploy.{kind}", *arguments],
            env=spark.environment, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
