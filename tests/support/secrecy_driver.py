"""A release on Spark with every observable channel recorded: what could be observed is kept in a folder as evidence.

Run as a process of its own: `secrecy_driver.py FOLDER`. First with encrypted disks, through discreet; then, in the same
Java process, with plain ones and without discreet, as a positive control of the search.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import SparkSession

from discreet.engine.spark.engine import SparkEngine
from discreet.engine.spark.session import CHANNELS, REQUIRED
from discreet.noise.keystore import FileKeyStore
from support.agency import SECRET_CODE, SECRET_PERSON, Agency
from support.engines import BRIEF

PAGES = 300
SETTINGS = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.logBlockUpdates.enabled": "true",
    "spark.sql.maxPlanStringLength": "1000000",
    "spark.sql.debug.maxToStringFields": "1000",
    "spark.sql.shuffle.partitions": "3",
    # Everything that can be on a disk is there, uncompressed.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.broadcast.compress": "false",
    "spark.rdd.compress": "false",
    "spark.shuffle.spill.numElementsForceSpillThreshold": "50",
    "spark.sql.windowExec.buffer.in.memory.threshold": "5",
    "spark.sql.windowExec.buffer.spill.threshold": "5",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


@contextmanager
def session(folder: Path, encrypted: bool) -> Iterator[SparkSession]:
    """A session with a local folder and an event log of its own."""
    (folder / "events").mkdir(parents=True)
    conf = SparkConf().setMaster("local[2]").setAppName("secrecy")
    for key, value in SETTINGS.items():
        conf.set(key, value)
    conf.set("spark.local.dir", str(folder / "local")).set("spark.eventLog.dir", f"file://{folder}/events")
    for key, value in {**REQUIRED, **CHANNELS}.items() if encrypted else ():
        conf.set(key, value)
    context = SparkContext(conf=conf)
    context.pythonExec = sys.executable
    context.setLogLevel("DEBUG")
    made = SparkSession(context)
    try:
        yield made
    finally:
        made.stop()


class Watcher(threading.Thread):
    """Copies whatever appears in some folders, again whenever it has grown."""

    def __init__(self, copies: Path, *folders: Path) -> None:
        super().__init__(daemon=True)
        self._folders, self._copies, self._seen = folders, copies, dict[Path, int]()
        self._ended = threading.Event()
        copies.mkdir(parents=True)

    def run(self) -> None:
        while not self._ended.wait(0.05):
            self.look()

    def look(self) -> None:
        for path in (path for folder in self._folders for path in folder.rglob("*")):
            with contextlib.suppress(OSError):
                size = path.stat().st_size
                if path.is_file() and size != self._seen.get(path, 0):
                    self._seen[path] = size
                    shutil.copyfile(path, self._copies / f"{len(list(self._copies.iterdir()))}-{path.name}")

    def end(self) -> None:
        self._ended.set()
        self.join()
        self.look()


def crawl(base: str, application: str, folder: Path) -> None:
    """Every page of the UI and of its REST interface that links lead to."""
    folder.mkdir(parents=True, exist_ok=True)
    api = f"{base}/api/v1/applications/{application}"
    asked = ["jobs", "stages?details=true", "allexecutors", "executors/driver/threads", "storage/rdd", "environment"]
    known = [f"{base}/{page}/" for page in ("jobs", "stages", "storage", "environment", "executors", "SQL")]
    known += [f"{api}/{page}" for page in asked] + [f"{api}/sql?details=true&planDescription=true&length=500"]
    for number, page in enumerate(known):
        if number >= PAGES:
            break
        with contextlib.suppress(urllib.error.HTTPError, UnicodeError):
            text = urllib.request.urlopen(page, timeout=60).read().decode()
            (folder / f"{number}.html").write_text(f"{page}\n{text}")
            for link in re.findall(r'href="(/[^"#]*)"', text):
                target = base + link.replace("&amp;", "&")
                if target not in known and not re.search(r"/static/|kill|\.(js|css|png|svg)|sort=", target):
                    known.append(target)


def watched_release(folder: Path) -> None:
    """One release with a real key, watched."""
    evidence, agency = folder / "evidence", Agency(folder / "agency")
    store, needles = FileKeyStore(folder / "keys"), dict[str, str]()
    closures, plans = list[bytes](), list[str]()
    dumps, view, keep = CloudPickleSerializer.dumps, SparkEngine._view, SparkEngine._persist

    def watched_dumps(self: Any, value: Any) -> bytes:
        closures.append(dumps(self, value))
        return closures[-1]

    def watched_view(self: Any, frame: Any, *source: str) -> Any:
        plans.append(str(frame._jdf.queryExecution()))
        return view(self, frame, *source)

    def watched_keep(self: Any, frame: Any) -> Any:
        plans.append(str(frame._jdf.queryExecution()))
        return keep(self, frame)

    with session(folder, encrypted=True) as spark:
        watcher = Watcher(evidence / "local", folder / "local")
        watcher.start()
        CloudPickleSerializer.dumps = watched_dumps
        SparkEngine._view, SparkEngine._persist = watched_view, watched_keep
        release = agency.release()
        release = type(release)(release.spec, None, release.ledger, store, spark)
        ui = (str(spark.sparkContext.uiWebUrl), spark.sparkContext.applicationId)

        def observe(step: str, done: int, total: int) -> None:
            if step == "key":
                key, name = store.load(store.names()[0]), release.spec.release
                needles["key"] = key.expose().hex()
                needles["ranking"] = key.secret("records", name, length=16).expose().hex()
                for table in release.spec.tables:
                    spec = bytes.fromhex(release.spec.digest())
                    secret = key.stream_secret(name, table.name, spec, f"counts/{table.form}")
                    needles[f"stream {table.name}"] = secret.expose().hex()
            if step == "write":  # noise is drawn, the key still there
                crawl(*ui, evidence / "ui")

        release.run(folder / "agency" / "out", observe=observe)
        CloudPickleSerializer.dumps = dumps
        SparkEngine._view, SparkEngine._persist = view, keep
        watcher.end()
    for kind, actual in {"closures": closures, "plans": [plan.encode() for plan in plans]}.items():
        (evidence / kind).mkdir()
        for i, content in enumerate(actual):
            (evidence / kind / str(i)).write_bytes(content)
    shutil.copytree(folder / "agency" / "out", evidence / "out")
    shutil.copytree(folder / "events", evidence / "events")
    shutil.copyfile(agency.ledger_path, evidence / "ledger")
    (folder / "needles.json").write_text(json.dumps(needles))


def control(folder: Path) -> None:
    """The same kinds of work in the open; and discreet, which must refuse such a session."""
    import discreet

    needles = json.loads((folder / "needles.json").read_text())
    agency = Agency(folder / "agency2")
    with session(folder / "control", encrypted=False) as spark:
        # Python's broadcasts lie where the first context of this Java process had its folder.
        watcher = Watcher(folder / "control" / "copies", folder / "control" / "local", folder / "local")
        watcher.start()
        sent = spark.sparkContext.broadcast(bytes.fromhex(needles["key"]))
        rows = [(SECRET_PERSON, SECRET_CODE, i) for i in range(200)]
        frame = spark.createDataFrame(rows, "person string, code string, i int").repartition(3, "i")
        frame.rdd.map(lambda row: len(sent.value)).count()
        entries = len(discreet.ledger(agency.ledger_path).chain().entries)
        refusal = ""
        try:
            discreet.release(agency.spec(), session=spark).run(folder / "agency2" / "out")
        except discreet.errors.DiscreetError as error:
            refusal = str(error)
        watcher.end()
        after = len(discreet.ledger(agency.ledger_path).chain().entries)
    left = [str(p.name) for p in (folder / "agency2").iterdir()]
    (folder / "refusal.json").write_text(json.dumps({"refusal": refusal, "spent": after - entries, "left": left}))


if __name__ == "__main__":
    root = Path(sys.argv[1])
    (root / "evidence").mkdir()
    with (root / "evidence" / "log").open("wb") as log:
        brief = SparkConf(loadDefaults=False).setMaster("local[2]").setAll(list(BRIEF.items()))
        gateway = launch_gateway(brief, popen_kwargs={"stdout": log, "stderr": log})
        SparkContext._ensure_initialized(gateway=gateway)
        watched_release(root)
        log.flush()
    shutil.copyfile(root / "evidence" / "log", root / "log copy")
    (root / "evidence" / "log").unlink()
    shutil.move(root / "log copy", root / "evidence" / "log")  # what Java prints from here on belongs to the control
    control(root)
    gateway.shutdown()
