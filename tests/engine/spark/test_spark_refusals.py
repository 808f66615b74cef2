"""Missing requirements of Spark are reported in one line, before anything is read or spent."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import discreet
from discreet.errors import DiscreetError
from support.agency import SECRET_CODE, SECRET_PERSON, Agency, graduates

PLAIN = [sys.executable, "-m", "discreet"]
BRIEF = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "spark.driver.memory": "512m"}
SPARKS = ("JAVA_HOME", "SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_PYTHON", "DISCREET_SPARK_LOG")


class Office:
    """An agency whose releases run on Spark, in processes of their own."""

    def __init__(self, agency: Agency, isolated: Path) -> None:
        self.agency, self.isolated = agency, isolated
        self.before = agency.ledger_path.read_bytes()

    def refused(
        self,
        master: str = "local[1]",
        config: dict[str, str] | None = None,
        *,
        command: list[str] | None = None,
        environment: dict[str, str] | None = None,
        **changes: Any,
    ) -> str:
        """The line with which a run is refused. Nothing was spent and nothing is left, or the test fails here."""
        spec = self.agency.spec(engine={"spark": master, "config": config or {}}, **changes)
        files = set(self.agency.folder.iterdir())
        variables = {name: value for name, value in os.environ.items() if name not in SPARKS}
        done = subprocess.run(
            [*(command or PLAIN), "run", str(spec), "--out", "out"],
            cwd=self.agency.folder,
            env={**variables, "SPARK_LOCAL_IP": "127.0.0.1", **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        assert done.returncode == 1, done.stderr
        assert done.stdout == ""
        assert not left_running(self.isolated)
        self.nothing_left(files)
        return one_line(done.stderr.removesuffix("\n"))

    def nothing_left(self, files: set[Path]) -> None:
        """Nothing is spent; no key, no output and no temporary folder lies about."""
        assert self.agency.ledger_path.read_bytes() == self.before
        assert discreet.ledger(self.agency.ledger_path).verify().names() == set()
        assert set(self.agency.folder.iterdir()) == files
        assert not list((self.isolated / "keys").glob("*.key"))
        assert not (self.isolated / "tmp").exists() or not list((self.isolated / "tmp").iterdir())


def one_line(text: str) -> str:
    """The text, which is one sentence or two of discreet's own and names no confidential value."""
    assert text.startswith("discreet: ")
    assert "\n" not in text
    assert text.endswith(".")
    assert "internal error" not in text
    assert not any(secret in text for secret in (SECRET_PERSON, SECRET_CODE, "P000001"))
    return text


def left_running(isolated: Path, seconds: float = 10.0) -> list[str]:
    """Processes that a run of this test started and that do not end: Java's, or the workers' Python."""
    mark, end = f"DISCREET_TMP={isolated / 'tmp'}".encode(), time.monotonic() + seconds
    while (actual := _started_with(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    return actual


def _started_with(mark: bytes) -> list[str]:
    actual = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int(entry.name) != os.getpid() and mark in (entry / "environ").read_bytes().split(b"\0"):
                actual.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return actual


@pytest.fixture
def office(agency: Agency, isolated: Path) -> Office:
    return Office(agency, isolated)


@pytest.fixture
def listening() -> Iterator[str]:
    """A master as far as a first knock at its door can tell."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"spark://127.0.0.1:{server.getsockname()[1]}"


def free_port() -> int:
    with socket.socket() as actual:
        actual.bind(("127.0.0.1", 0))
        return int(actual.getsockname()[1])


# --- Java -----------------------------------------------------------------------------------------------------------


def test_no_java_on_the_path(office: Office, tmp_path: Path) -> None:
    line = office.refused(environment={"PATH": str(tmp_path)})
    assert line == (
        "discreet: engine spark: Spark needs Java, and none was found. "
        "Install Java 17 or 21 and point JAVA_HOME to it."
    )  # fmt: skip


def test_no_java_in_java_home(office: Office, tmp_path: Path) -> None:
    line = office.refused(environment={"JAVA_HOME": str(tmp_path)})
    assert f"none was found in JAVA_HOME ({tmp_path})" in line
    assert "Install Java 17 or 21" in line


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "this one is version 11"),
        ('java version "1.8.0_392"', "this one is version 8"),
        ("Unrecognized option: -version", "of an unknown version"),
    ],
)
def test_the_wrong_java(office: Office, tmp_path: Path, said: str, told: str) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\n")
    java.chmod(0o755)
    path = f"{java.parent}:{os.environ['PATH']}"
    line = office.refused(environment={"PATH": path} if "1.8" in said else {"JAVA_HOME": str(tmp_path / "jdk")})
    assert "Spark needs Java 17 or 21" in line
    assert told in line
    assert "point JAVA_HOME to it" in line


def test_a_java_process_that_does_not_start(office: Office) -> None:
    line = office.refused(config={"spark.driver.memory": "1k"})
    assert "its Java process did not start" in line
    assert "spark.driver.memory" in line


def test_a_setting_that_spark_does_not_take(office: Office) -> None:
    line = office.refused(config={**BRIEF, "spark.task.cpus": "XnumberX"})
    assert "master local[1]: does not start with this config" in line
    assert "XnumberX" not in line


# --- the master and its secret --------------------------------------------------------------------------------------


def test_a_master_that_does_not_answer(office: Office) -> None:
    port = free_port()
    for master in (f"spark://127.0.0.1:{port}", "spark://nowhere.invalid:7077", "spark://127.0.0.1"):
        line = office.refused(master)
        assert f"engine spark, master {master}: the master does not answer" in line
        assert "Check its address" in line


def test_a_cluster_whose_secret_is_not_known_here(office: Office, listening: str, tmp_path: Path) -> None:
    line = office.refused(listening, environment={"SPARK_CONF_DIR": str(tmp_path)})
    assert f"master {listening}: the cluster's secret is not known on this machine" in line
    assert "spark-defaults.conf of $SPARK_CONF_DIR" in line


@pytest.mark.parametrize(
    "key", ["spark.authenticate.secret", "spark.ssl.keyStorePassword", "spark.hadoop.fs.s3a.access.key"]
)
def test_a_secret_has_no_place_in_a_release(office: Office, key: str) -> None:
    line = office.refused(config={key: "XSECRETSECRETX"})
    assert f"config has the secret {key!r}" in line
    assert "spark-defaults.conf" in line
    assert "XSECRETSECRETX" not in line


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.authenticate", "false"),
        ("spark.network.crypto.enabled", "false"),
        ("spark.network.crypto.saslFallback", "true"),
    ],
)
def test_channels_must_be_encrypted(office: Office, listening: str, key: str, value: str) -> None:
    line = office.refused(listening, {key: value})
    assert f"master {listening}: its channels or disks are not encrypted" in line
    assert f"Set {key} {'true' if value == 'false' else 'false'} before" in line


def test_disks_must_be_encrypted(office: Office, tmp_path: Path) -> None:
    off = "spark.io.encryption.enabled"
    (tmp_path / "spark-defaults.conf").write_text(f"{off} false\n")
    for line in (
        office.refused(config={off: "false"}),
        office.refused(environment={"SPARK_CONF_DIR": str(tmp_path)}),
    ):
        assert "master local[1]: its channels or disks are not encrypted" in line
        assert f"Set {off} true before the session starts" in line


@pytest.mark.parametrize("master", ["sparc://host:7077", "local[2", "mesos://host:5050", ""])
def test_a_master_that_is_none(office: Office, master: str) -> None:
    assert "engine" in office.refused(master)


# --- the source -----------------------------------------------------------------------------------------------------


def test_a_source_that_is_not_there(office: Office, tmp_path: Path) -> None:
    elsewhere = {"SPARK_LOCAL_DIRS": str(tmp_path / "elsewhere")}  # Spark prefers it to the folder that we name
    line = office.refused(config=BRIEF, source={"graduates": "nowhere.parquet"}, environment=elsewhere)
    assert "source nowhere.parquet: " in line
    assert not (tmp_path / "elsewhere").exists()


class InOneSession:
    """Releases on the session that all tests of this process share: a session for each would take long."""

    def __init__(self, office: Office, session: Any) -> None:
        self.office, self.session = office, session

    def refused(self, **changes: Any) -> str:
        agency = self.office.agency
        release = discreet.release(agency.spec(**changes), session=self.session)
        files = set(agency.folder.iterdir())
        with pytest.raises(DiscreetError) as refusal:
            release.run(agency.folder / "out")
        assert refusal.value.__cause__ is None
        assert refusal.value.__context__ is None  # or a trace would print what Spark said
        self.office.nothing_left(files)
        return one_line(f"discreet: {refusal.value}")


@pytest.fixture
def shared(office: Office, spark: Any) -> InOneSession:
    return InOneSession(office, spark.session)


def test_a_csv_file_runs_on_duckdb(shared: InOneSession) -> None:
    (shared.office.agency.folder / "graduates.csv").write_text("person_id,state,degree\nP000001,01,01\n")
    line = shared.refused(source={"graduates": "graduates.csv"})
    assert line.endswith("source graduates.csv: is csv; on Spark only Parquet is read. Convert it, or run on DuckDB.")


@pytest.mark.parametrize("path", ["nowhere.parquet", "file:///nowhere/graduates.parquet", "nothing://x/graduates"])
def test_a_path_that_leads_nowhere(shared: InOneSession, path: str) -> None:
    assert f"source {path}: " in shared.refused(source={"graduates": path})


@pytest.mark.parametrize("source", [{"duckdb": "x.db", "table": "t"}, {"postgres": "postgresql://h/d", "table": "t"}])
def test_a_database_runs_on_duckdb(shared: InOneSession, source: dict[str, str]) -> None:
    assert "source: cannot be read by Spark. Name a Parquet path" in shared.refused(source={"graduates": source})


def test_a_source_without_a_declared_column(shared: InOneSession) -> None:
    shared.office.agency.write(graduates().drop_columns("degree"))
    line = shared.refused()
    assert "source graduates.parquet: has no column 'degree'" in line


@pytest.mark.parametrize("keep", [slice(0), slice(100), slice(-100, None)], ids=["empty", "begun", "the end alone"])
def test_a_broken_parquet_file(shared: InOneSession, keep: slice) -> None:
    path = shared.office.agency.folder / "graduates.parquet"
    path.write_bytes(path.read_bytes()[keep])
    assert "source graduates.parquet: is not readable as Parquet" in shared.refused()


def test_a_parquet_file_that_breaks_while_it_is_read(shared: InOneSession) -> None:
    """Its end is whole, so that its columns are known; its pages are not. A worker says which file it is, and nothing
    of what it found (`one_line`)."""
    path = shared.office.agency.folder / "graduates.parquet"
    pq.write_table(graduates(3000), path, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[4:2000] = b"\xff" * 1996
    path.write_bytes(content)
    assert "a worker failed (source graduates.parquet: is not readable as Parquet (OSError)" in shared.refused()


# --- the driver's own Python ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["pyspark", "pandas"])
def test_a_package_is_not_installed(office: Office, package: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from discreet.cli import main; main()"
    line = office.refused(command=[sys.executable, "-c", code])
    assert f"engine spark: needs {package}, which is not installed. Pip install 'discreet[spark]'." in line


def test_a_session_that_is_open_already_is_neither_used_nor_closed(office: Office, tmp_path: Path) -> None:
    """Nobody has said that it may be used; the user's work in it goes on."""
    script = tmp_path / "open.py"
    script.write_text(
        "import atexit, os, sys\n"
        "from pyspark.sql import SparkSession\n"
        "stderr = os.dup(2)\n"
        "os.dup2(os.open(os.devnull, os.O_WRONLY), 2)\n"  # what the user's Spark itself says
        "session = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        "os.dup2(stderr, 2)\n"
        "from discreet.cli import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    assert session.range(3).count() == 3\n"
        "    session.stop()\n"
    )
    line = office.refused(command=[sys.executable, str(script)])
    assert "a Spark session is already open in this process" in line
    assert "session=" in line


# --- the workers' Python --------------------------------------------------------------------------------------------


NO_PATH = {"PYTHONPATH": ""}  # a worker would inherit it


def python_with(folder: Path, *paths: Path | str) -> dict[str, str]:
    """The setting for a Python of the same version that finds only these folders."""
    base = Path(sys._base_executable)  # type: ignore[attr-defined]
    subprocess.run([base, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "found.pth").write_text("".join(f"{path}\n" for path in paths))
    return {**BRIEF, "spark.pyspark.python": str(folder / "bin" / "python")}


def test_a_worker_without_discreet(office: Office, tmp_path: Path) -> None:
    line = office.refused(config=python_with(tmp_path / "bare"), environment=NO_PATH)
    assert "engine spark: discreet is not installed on a worker. Install the same version there" in line
    assert "spark.pyspark.python" in line


def test_a_worker_with_discreet_alone(office: Office, tmp_path: Path) -> None:
    line = office.refused(
        config=python_with(tmp_path / "alone", Path(discreet.__file__).parents[1]), environment=NO_PATH
    )
    assert "engine spark: a worker lacks a package that discreet needs" in line


def test_a_worker_with_another_discreet(office: Office, tmp_path: Path) -> None:
    other = shutil.copytree(Path(discreet.__file__).parent, tmp_path / "other" / "discreet")
    with (other / "words.py").open("a") as file:
        file.write("# one line more\n")
    packages = Path(pq.__file__).parents[2]
    line = office.refused(config=python_with(tmp_path / "venv", other.parent, packages), environment=NO_PATH)
    assert f"engine spark: the worker on {os.uname().nodename} has discreet 0.1.0+" in line
    assert "Install the same versions" in line


def test_a_worker_whose_python_is_not_there(office: Office, tmp_path: Path) -> None:
    line = office.refused(config={**BRIEF, "spark.pyspark.python": str(tmp_path / "python3")})
    assert "engine spark: a worker cannot start its Python" in line
    assert "spark.pyspark.python" in line


def other_python() -> str | None:
    """A Python of another minor version that can run Spark's own code, if this machine has one."""
    for minor in {10, 11, 12, 13, 14} - {sys.version_info.minor}:
        beside = Path(sys.base_prefix).parent.glob(f"*/bin/python3.{minor}")
        for name in (shutil.which(f"python3.{minor}"), *map(str, beside)):
            ends = name and subprocess.run([name, "-c", "import ctypes"], capture_output=True, check=False).returncode
            if ends == 0:  # a shim may lead nowhere
                return name
    return None


def test_a_worker_with_another_python(office: Office) -> None:
    if (other := other_python()) is None:
        pytest.skip("this machine has one Python")
    line = office.refused(config={**BRIEF, "spark.pyspark.python": other}, environment=NO_PATH)
    assert "engine spark: a worker has a different version of Python than this process" in line
    assert "spark.pyspark.python" in line
