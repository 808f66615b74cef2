"""A real standalone cluster: a master and workers, each a process, with encrypted channels. Tasks, executors,
workers and drivers are killed; the bytes stay those of DuckDB and the ledger is charged once."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks._cluster import ENCRYPTED, Cluster, cluster

import discreet
from discreet.api import set_budget
from discreet.noise.key import ReleaseKey
from discreet.spec import loader
from support.agency import SECRET_CODE, SECRET_PERSON, SPEC, Agency, graduates
from support.cluster_driver import CLOCK, SEED
from support.repository import SUPPORT

pytestmark = pytest.mark.full
DRIVER = SUPPORT / "cluster_driver.py"
PART = 2  # the larger table has ten parts
BRIEF = {
    "spark.sql.shuffle.partitions": "3",
    "spark.driver.memory": "600m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.memory": "600m",
}
HOSTS = ("127.0.0.1", "127.0.0.2")  # two hosts: a speculated task goes to another one, a shuffle over the wire


def add_worker(actual: Cluster, host: str) -> int:
    """One more worker of one core; the number of its process, which leads a group."""
    name = f"worker{len(actual.processes)}"
    script = Path(actual.environment["SPARK_HOME"]) / "bin" / "spark-class"
    with (actual.folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(script), "org.apache.spark.deploy.worker.Worker", actual.master, "--host", host, "--cores", "1",
             "--memory", "1g", "--work-dir", str(actual.folder / name), "--webui-port", "0"],
            env={**actual.environment, "SPARK_LOCAL_IP": host}, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    actual.processes.append(process)
    return process.pid


@contextmanager
def two_hosts(folder: Path, *, encrypted: bool = True) -> Iterator[Cluster]:
    with cluster(folder, workers=0, encrypted=encrypted) as actual:
        for host in HOSTS:
            add_worker(actual, host)
        yield actual


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def spark(home: Path) -> Iterator[Cluster]:
    with two_hosts(home / "spark") as actual:
        yield actual


class Office:
    """An agency with a simulation ledger, always in the same place and with the same nonce: its releases differ in
    what happens to them alone. Drivers are processes of their own."""

    def __init__(self, folder: Path, isolated: Path, actual: Cluster | None) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.folder, self.isolated, self.cluster = folder, isolated, actual
        self.agency = Agency.__new__(Agency)
        self.agency.folder, self.agency.ledger_path = folder, folder / "discreet-ledger.sqlite"
        self.agency.write(graduates())
        ledger = discreet.ledger(self.agency.ledger_path, clock=lambda: CLOCK)
        ledger.create("simulation", nonce="0" * 32)
        unit = {"kind": "person", "column": "person_id"}
        set_budget(ledger, "graduates", epsilon="10", unit=unit, kind="simulation")
        self.before = {path.name for path in folder.iterdir()} | {"release.yaml"}
        self.marks = isolated / "marks"
        self.marks.mkdir()

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def start(
        self,
        verb: str = "run",
        config: dict[str, str] | None = None,
        *,
        settings: Path | None = None,
        duckdb: bool = False,
        **options: Any,
    ) -> subprocess.Popen[str]:
        spec = dict(SPEC)
        if self.cluster is not None and not duckdb:
            spec["engine"] = {"spark": self.cluster.master, "config": {**BRIEF, **(config or {})}}
            options["cluster"] = str(self.cluster.folder)
        path = self.folder / "release.yaml"
        path.write_text(yaml.safe_dump(spec))
        options = {"part": PART, "marks": str(self.marks), **options}
        actual = settings or (self.cluster.settings if self.cluster is not None else self.folder)
        return subprocess.Popen(
            [sys.executable, str(DRIVER), verb, str(path), str(self.agency.ledger_path), str(self.out),
             json.dumps(options)],
            env={**os.environ, "SPARK_CONF_DIR": str(actual), "SPARK_LOCAL_IP": HOSTS[0]},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def drive(self, *arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
        return ended(self.start(*arguments, **options))

    def spent(self) -> int:
        return int(discreet.ledger(self.agency.ledger_path).verify().balance("graduates", CLOCK.date()).epsilon)

    def marked(self) -> set[str]:
        return {path.name for path in self.marks.iterdir()}

    def published(self) -> dict[str, bytes]:
        """The files of a release that is complete: charged once, its key destroyed, nothing beside it."""
        state = discreet.ledger(self.agency.ledger_path).verify().releases()["r1"]
        assert state.status == "committed"
        assert self.spent() == 2
        self.nothing_left()
        assert {path.name for path in self.folder.iterdir()} == self.before | {"out"}
        return contents(self.out)

    def nothing_left(self) -> None:
        """No key: what the key store remembers of the ledger stays. And no workspace."""
        for actual in ("keys/*.key", "tmp/*"):
            assert not list(self.isolated.glob(actual)), actual

    def untouched(self) -> None:
        """Nothing is spent or left behind."""
        assert discreet.ledger(self.agency.ledger_path).verify().names() == set()
        assert self.spent() == 0
        self.nothing_left()
        assert {path.name for path in self.folder.iterdir()} == self.before


def ended(process: subprocess.Popen[str], seconds: float = 300) -> subprocess.CompletedProcess[str]:
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def contents(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if not path.is_dir())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The text of a refusal: one line, without a confidential value."""
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    line = done.stderr.removesuffix("\n")
    assert line.startswith("discreet: ")
    assert SECRET_PERSON not in line
    assert SECRET_CODE not in line
    return line


@pytest.fixture
def office(home: Path, isolated: Path, spark: Cluster) -> Office:
    return Office(home / "agency", isolated, spark)


@pytest.fixture(scope="module")
def duckdbs(home: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What DuckDB publishes under the same key."""
    isolated = tmp_path_factory.mktemp("duckdb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_KEYS", str(isolated / "keys"))
        patch.setenv("DISCREET_TMP", str(isolated / "tmp"))
        office = Office(home / "agency", isolated, None)
        done = office.drive()
    assert done.returncode == 0, done.stderr
    return office.published()


# --- undisturbed, and searched --------------------------------------------------------------------------------------


def test_the_bytes_are_those_of_duckdb(office: Office, duckdbs: dict[str, bytes]) -> None:
    done = office.drive()
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert office.published() == duckdbs
    assert sum(name.startswith("both.simulation.parquet/part-") for name in duckdbs) == 10


# What an eye on disks or wires would look for, not hidden by compression, and over the wire wherever that is possible.
OPEN = {
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.broadcast.compress": "false",
    "spark.rdd.compress": "false",
    "spark.shuffle.readHostLocalDisk": "false",
    "spark.shuffle.reduceLocality.enabled": "false",
    "spark.locality.wait": "0s",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
SENTINELS = [SECRET_PERSON.encode(), SECRET_CODE.encode()]


class Search:
    """Which needles were found, and where."""

    def __init__(self, needles: list[bytes]) -> None:
        self.needles, self.actual, self.searched = needles, set[tuple[str, bytes]](), Counter[str]()

    def look(self, place: str, content: bytes) -> None:
        self.searched[place] += len(content)
        self.actual |= {(place, needle) for needle in self.needles if needle in content}


class Disks(threading.Thread):
    """Reads whatever appears in some folders, again whenever it has grown."""

    def __init__(self, search: Search, *folders: Path) -> None:
        super().__init__(daemon=True)
        self._search, self._folders, self._seen = search, folders, dict[Path, int]()
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.1):
            self._look()

    def _look(self) -> None:
        names = (Path(root, name) for folder in self._folders for root, _, names in os.walk(folder) for name in names)
        for path in names:
            with contextlib.suppress(OSError):  # it may be gone again
                if path.is_file() and path.stat().st_size != self._seen.get(path, 0):
                    self._seen[path] = path.stat().st_size
                    self._search.look(path.name, path.read_bytes())

    def __enter__(self) -> Disks:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()
        self._look()


class Wire(threading.Thread):
    """Reads what passes through some ports of the loopback interface."""

    def __init__(self, search: Search, ports: set[int]) -> None:
        super().__init__(daemon=True)
        self._search, self._ports, self._tails = search, ports, dict[bytes, bytes]()
        self._ended = threading.Event()
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self._socket.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE: nothing is to be missed
        self._socket.bind(("lo", 0))
        self._socket.settimeout(0.2)

    def run(self) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                frame, (_, _, kind, *_) = self._socket.recvfrom(1 << 17)
                if kind != socket.PACKET_OUTGOING:  # on loopback each comes twice
                    self._read(frame[14:])

    def _read(self, packet: bytes) -> None:
        start = (packet[0] & 15) * 4
        if packet[9] != socket.IPPROTO_TCP:
            return
        ports = struct.unpack_from("!HH", packet, start)
        if self._ports.isdisjoint(ports):
            return
        payload = packet[start + (packet[start + 12] >> 4) * 4 :]
        flow = packet[12:20] + packet[start : start + 4]
        place = next(str(port) for port in ports if port in self._ports)
        self._search.look(place, self._tails.get(flow, b"") + payload)
        self._tails[flow] = payload[-64:] if payload else self._tails.get(flow, b"")

    def __enter__(self) -> Wire:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()
        self._socket.close()


def secrets_of(office: Office) -> list[bytes]:
    """Every secret that goes to the workers, as it is and in hexadecimal; the key itself, which does not."""
    key, spec = ReleaseKey.simulation(SEED), loader.build(dict(SPEC), office.folder)
    raw = [key.expose(), key.secret("records", spec.release, length=16).expose()]
    for table in spec.tables:
        digest = bytes.fromhex(spec.digest())
        raw.append(key.stream_secret(spec.release, table.name, digest, f"counts/{table.form}").expose())
    return [*raw, *(secret.hex().encode() for secret in raw)]


def fixed_ports() -> dict[str, str]:
    """Settings for the ports through which drivers and executors talk."""
    with contextlib.ExitStack() as stack:
        actual = [stack.enter_context(socket.socket()) for _ in range(3)]
        for each in actual:
            each.bind(("0.0.0.0", 0))
        names = ("spark.driver.port", "spark.driver.blockManager.port", "spark.blockManager.port")
        return {name: str(each.getsockname()[1]) for name, each in zip(names, actual, strict=True)}


PLAIN_JOB = """
import sys
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

master, source, secret, *settings = sys.argv[1:]
conf = SparkConf().setMaster(master).setAll([line.split("=", 1) for line in settings])
spark = SparkSession(SparkContext(conf=conf))
sent = spark.sparkContext.broadcast(bytes.fromhex(secret))
print(spark.sparkContext.parallelize(range(4), 4).map(lambda _: len(sent.value)).collect())
rows = spark.read.parquet(source)
rows.repartition(3, "person_id").write.format("noop").mode("overwrite").save()
print(len(rows.rdd.map(str).collect()))  # a frame's own collect would compress
spark.stop()
"""


def test_disks_and_wires_show_nothing(
    office: Office, spark: Cluster, duckdbs: dict[str, bytes], tmp_path: Path
) -> None:
    """Records and secrets on the way between driver and executors, and in files of the cluster. The same search finds
    them on a cluster without encryption, where Spark runs alone."""
    ports = fixed_ports()
    secrets = secrets_of(office)
    authentication = dict(line.split() for line in (spark.settings / "spark-defaults.conf").read_text().splitlines())
    cluster_secret = authentication["spark.authenticate.secret"].encode()
    disks = Search([*SENTINELS, *secrets, cluster_secret])
    wire = Search([*SENTINELS, *secrets, cluster_secret])
    try:
        watched = Wire(wire, set(map(int, ports.values())))
    except PermissionError:
        pytest.skip("only root may look at the wire")
    with Disks(disks, spark.folder, office.isolated / "tmp"), watched:
        done = office.drive("run", {**OPEN, **ports})
    assert done.returncode == 0, done.stderr
    assert disks.actual == {("spark-defaults.conf", cluster_secret)}
    assert wire.actual == set()
    assert all(wire.searched[port] > 10_000 for port in ports.values()), wire.searched  # all of them were used
    assert office.published() == duckdbs

    script = tmp_path / "plain.py"
    script.write_text(PLAIN_JOB)
    with two_hosts(tmp_path / "plain", encrypted=False) as plain:
        disks, wire = Search([*SENTINELS, *secrets]), Search([*SENTINELS, *secrets])
        settings = [f"{key}={value}" for key, value in {**BRIEF, **OPEN, **ports}.items()]
        with Disks(disks, plain.folder), Wire(wire, set(map(int, ports.values()))):
            subprocess.run(
                [sys.executable, str(script), plain.master, str(office.folder / "graduates.parquet"), secrets[2].hex(),
                 *settings],
                env={**plain.environment, "SPARK_LOCAL_DIRS": str(tmp_path / "driver")},
                check=True, capture_output=True,
            )  # fmt: skip
    for control in (disks, wire):
        assert {needle for _, needle in control.actual} >= {*SENTINELS, secrets[2]}


# --- tasks and executors --------------------------------------------------------------------------------------------

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "100ms",
}


def test_a_task_that_fails_twice(office: Office, duckdbs: dict[str, bytes]) -> None:
    done = office.drive(fault="fails_twice")
    assert done.returncode == 0, done.stderr
    assert office.marked() == {"attempt-0", "attempt-1", "attempt-2"}
    assert office.published() == duckdbs


def test_an_executor_that_is_killed_while_it_draws(office: Office, duckdbs: dict[str, bytes]) -> None:
    done = office.drive(fault="loses_its_executor")
    assert done.returncode == 0, done.stderr
    assert office.marked() == {"lost"}
    assert office.published() == duckdbs


def test_two_attempts_write_the_same_part_at_once(office: Office, duckdbs: dict[str, bytes]) -> None:
    done = office.drive("run", SPECULATION, fault="is_attempted_twice_at_once")
    assert done.returncode == 0, done.stderr
    assert len(office.marked()) >= 2
    assert office.published() == duckdbs


# --- drivers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "fault", "duckdb"),
    [
        ("reserve", None, False),
        ("protect both", "waits", False),
        ("protect both", "waits", True),
        ("commit", None, False),
        ("publish", None, True),
    ],
)
def test_a_driver_that_is_killed(
    office: Office, duckdbs: dict[str, bytes], step: str, fault: str | None, duckdb: bool
) -> None:
    """And resumed, on the cluster or without it."""
    killed = office.drive("run", at={step: ["wait", "kill"] if fault else ["kill"]}, fault=fault)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    if fault is not None:
        assert office.marked() == {"waits"}  # a worker was at work
        assert "protect both 10/10" not in killed.stdout
    assert office.spent() == 2
    assert len(list((office.isolated / "keys").glob("*.key"))) == 1
    again = office.drive("resume", duckdb=duckdb)
    assert again.returncode == 0, again.stderr
    assert office.published() == duckdbs


def test_begun_on_duckdb_and_resumed_on_the_cluster(office: Office, duckdbs: dict[str, bytes]) -> None:
    assert office.drive("run", duckdb=True, at={"protect both": ["kill"]}).returncode == -signal.SIGKILL
    again = office.drive("resume")
    assert again.returncode == 0, again.stderr
    assert office.published() == duckdbs


# --- the source -----------------------------------------------------------------------------------------------------


def test_a_source_that_changed_is_never_drawn_from(office: Office, duckdbs: dict[str, bytes]) -> None:
    """Its rows are lost after the reservation and would be read again: as they are now, not as the key knows them."""
    stopped = one_line(office.drive(at={"reserve": ["change", "executors"]}))
    assert "its source changed while it was read" in stopped
    assert "epsilon 2 is spent" in stopped
    assert not office.out.exists()
    assert not list(office.folder.glob(".discreet-*"))  # nothing that was drawn from other data lies about
    assert office.spent() == 2
    refused = one_line(office.drive("resume"))
    assert "bound to other data" in refused
    assert not list(office.folder.glob(".discreet-*"))
    office.agency.write(graduates())
    again = office.drive("resume")
    assert again.returncode == 0, again.stderr
    assert office.published() == duckdbs


def test_rows_that_are_lost_are_read_again(office: Office, duckdbs: dict[str, bytes]) -> None:
    """The same, with a source that did not change."""
    done = office.drive(at={"reserve": ["executors"]})
    assert done.returncode == 0, done.stderr
    assert office.published() == duckdbs


# --- the whole cluster ----------------------------------------------------------------------------------------------


def test_all_workers_are_lost_for_good(tmp_path: Path, isolated: Path, home: Path, duckdbs: dict[str, bytes]) -> None:
    with two_hosts(tmp_path / "spark") as actual:
        office = Office(home / "agency", isolated, actual)
        workers = [process.pid for process in actual.processes[1:]]
        stopped = one_line(office.drive(at={"reserve": ["workers"]}, workers=workers, lost=5))
        assert "the cluster has had no executors for 5 seconds" in stopped
        assert "epsilon 2 is spent" in stopped
        assert "`discreet resume`" in stopped
        assert not office.out.exists()
        assert not list(office.folder.glob(".discreet-*"))
        assert not list((isolated / "tmp").iterdir())
        for host in HOSTS:
            add_worker(actual, host)
        again = office.drive("resume")
        assert again.returncode == 0, again.stderr
        assert office.published() == duckdbs


# --- clusters that are refused --------------------------------------------------------------------------------------


def settings(folder: Path, **lines: str) -> Path:
    """A driver's own spark-defaults.conf."""
    folder.mkdir(parents=True)
    text = "".join(f"{key} {value}\n" for key, value in {**ENCRYPTED, **lines}.items())
    (folder / "spark-defaults.conf").write_text(text)
    return folder


def test_clusters_without_encryption_or_with_another_secret(tmp_path: Path, isolated: Path) -> None:
    """Spark itself needs a minute to find out, so both are tried at once."""
    other = settings(tmp_path / "other", **{"spark.authenticate.secret": "XOTHERSECRETX"})
    running = []
    with (
        cluster(tmp_path / "plain", workers=1, memory="1g", encrypted=False) as plain,
        cluster(tmp_path / "encrypted", workers=1, memory="1g") as encrypted,
    ):
        for actual in (plain, encrypted):
            own = isolated / actual.folder.name
            own.mkdir()
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("DISCREET_KEYS", str(own / "keys"))
                patch.setenv("DISCREET_TMP", str(own / "tmp"))
                office = Office(tmp_path / f"agency-{actual.folder.name}", own, actual)
                running.append((office, office.start(settings=other)))
        for office, done in [(office, ended(process)) for office, process in running]:
            line = one_line(done)
            assert f"master {office.cluster.master}: does not accept this process" in line  # type: ignore[union-attr]
            assert "without encryption, with another secret" in line
            assert "Compare spark-defaults.conf on both sides" in line
            assert "XOTHERSECRETX" not in line
            office.untouched()


def test_a_cluster_without_workers_or_with_too_small_ones(tmp_path: Path, isolated: Path) -> None:
    with cluster(tmp_path / "spark", workers=0) as actual:
        office = Office(tmp_path / "agency", isolated, actual)
        line = one_line(office.drive(patience=3))
        assert "the cluster has run no task within 3 seconds" in line
        assert "free workers that are large enough" in line
        office.untouched()
        add_worker(actual, HOSTS[0])
        assert "has run no task" in one_line(office.drive("run", {"spark.executor.memory": "99g"}, patience=3))
        office.untouched()
