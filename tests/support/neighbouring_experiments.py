"""What an adversary learns about one record, measured on whole releases of neighbouring data sets.

`PYTHONPATH=src:tests python tests/support/neighbouring_experiments.py` prints one JSON object: for two flaws of reading
a lower bound of the privacy loss ln(p/q) at ε = 1, by 400 + 400 real releases, and for two others how much one record
changes the cells of other records. `--runs 40` is faster and less precise; `--only bom` leaves out the others.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import beta

from support.neighbouring_releases import Outcome, ReleaseOffice, changed_cells

EPSILON = 1
RUNS = 400
CONFIDENCE = 0.95
MARK = b"\xef\xbb\xbf"
FARM, SHOP = ("farm",), ("shop",)
HUGE = 10**30
MANY = 20_000
FILES = 5_000
Run = Callable[[str | None], Outcome]


# --- the measure ----------------------------------------------------------------------------------------------------


def share_between(hits: int, runs: int) -> tuple[float, float]:
    """Clopper and Pearson's bounds (Biometrika 26, 1934) of a share: each fails with half of what CONFIDENCE leaves."""
    fails = (1 - CONFIDENCE) / 2
    low = 0.0 if hits == 0 else float(beta.ppf(fails, hits, runs - hits + 1))
    high = 1.0 if hits == runs else float(beta.ppf(1 - fails, hits + 1, runs - hits))
    return low, high


def least_loss(more: int, less: int, runs: int) -> float:
    """A lower bound of ln(p/q) at CONFIDENCE, from the frequency of an event on either side; below 0 it is
    uninformative."""
    low, high = share_between(more, runs)[0], share_between(less, runs)[1]
    return math.log(low / high) if low > 0 else -math.inf


@dataclass(frozen=True)
class Neighbour:
    """One of two neighbouring sets of records, and its release."""

    name: str
    run: Run


def farms_alone(actual: Outcome) -> bool:
    """The event: a farm is published, and no shop. Chosen before any release was made."""
    return actual.cells[FARM] >= 1 and actual.cells[SHOP] <= 0


def measure_loss(more: Neighbour, less: Neighbour, runs: int, real: bool) -> dict[str, Any]:
    """How often the event comes in releases of both sides, and what that says about the loss."""
    started, hits = time.monotonic(), {more.name: 0, less.name: 0}
    for side in (more, less):
        for i in range(runs):
            actual = side.run(None if real else f"{side.name} {i}")
            if actual.refused:
                if actual.spent:
                    raise RuntimeError("refused after something was spent")
                return {"refused": actual.refused, "lower_bound": None, "epsilon": EPSILON}
            if actual.stopped:
                raise RuntimeError(actual.stopped)
            hits[side.name] += farms_alone(actual)
    bound = least_loss(hits[more.name], hits[less.name], runs)
    return {
        "lower_bound": round(bound, 3),
        "epsilon": EPSILON,
        "confidence": CONFIDENCE,
        "releases": [runs, runs],
        "keys": "secret" if real else "test",
        "event": "farm >= 1 and shop <= 0",
        "hits": hits,
        "seconds": round(time.monotonic() - started, 1),
    }


# --- a byte-order mark within a CSV ---------------------------------------------------------------------------------


def bom_files(folder: Path) -> dict[str, Path]:
    """Two files, one person apart. The record of p9 begins with a byte-order mark, as after `cat a.csv b.csv`."""
    head, one, other = b"sector,person_id\n", b"shop,p1\n", MARK + b"farm,p9\n"
    actual = {"without p1": folder / "without.csv", "with p1": folder / "with.csv"}
    actual["without p1"].write_bytes(head + other)
    actual["with p1"].write_bytes(head + one + other)
    return actual


def bom(folder: Path, runs: int = RUNS, real: bool = True) -> dict[str, Any]:
    """Whether p9's record counts is decided by whether p1 has one: two cells move, in opposite directions."""
    office = ReleaseOffice(folder)
    files = bom_files(folder)

    def side(name: str) -> Neighbour:
        return Neighbour(name, lambda key: office.run(str(files[name]), epsilon=str(EPSILON), key=key))

    exact = {name: shown(office.run(str(path))) for name, path in files.items()}
    return {"exact": exact, **measure_loss(side("without p1"), side("with p1"), runs, real)}


# --- 128-bit integers as person ids ----------------------------------------------------------------------------------


def huge(folder: Path, kind: str = "HUGEINT") -> Path:
    """Three persons with long numbers: one with twenty records of farms, of which one may count, two with a shop."""
    path = folder / f"{kind}.duckdb"
    farms = [(HUGE, f"farm{i:02d}") for i in range(20)]
    shops = [(HUGE + 1, "shop00"), (HUGE + 2, "shop00")]
    with duckdb.connect(str(path)) as connection:
        for name, rows in {"whole": farms + shops, "less": shops}.items():
            connection.execute(f"CREATE TABLE {name} (person_id {kind}, job VARCHAR)")
            connection.executemany(
                f"INSERT INTO {name} VALUES (CAST(? AS {kind}), ?)", [(str(person), job) for person, job in rows]
            )
    return path


def jobs(folder: Path) -> dict[str, Any]:
    """A hierarchy: all jobs on farms are one sector."""
    lines = ["job,sector", *(f"farm{i:02d},farm" for i in range(20)), "shop00,shop"]
    (folder / "jobs.csv").write_text("\n".join(lines) + "\n")
    return {"domains": {"job": {"hierarchy": str(folder / "jobs.csv"), "levels": ["job", "sector"]}}, "by": ["sector"]}


def hugeint(folder: Path, runs: int = RUNS, real: bool = True) -> dict[str, Any]:
    """Read as floating-point numbers the three are one person, and the first one's records push out the others'."""
    office = ReleaseOffice(folder)
    database, domain = str(huge(folder)), jobs(folder)

    def at(table: str, epsilon: str, key: str | None) -> Outcome:
        return office.run({"duckdb": database, "table": table}, epsilon=epsilon, key=key, **domain)

    sides = {"with 10^30": "whole", "without 10^30": "less"}
    exact = {name: shown(at(table, "1000", "suite")) for name, table in sides.items()}
    more, less = (Neighbour(name, partial(at, table, str(EPSILON))) for name, table in sides.items())
    return {"exact": exact, **measure_loss(more, less, runs, real)}


# --- negative zeros, in a file whose statistics sort them below zero ------------------------------------------------

DROPPED = {
    "method": "sensitivity",
    "statistic": {"name": "mean", "of": "v"},
    "variables": {"v": {"low": "0", "high": "10", "outside": "drop"}},
}


def zeros(folder: Path, people: int = MANY) -> dict[str, Path]:
    """Farmers who all have the value −0.0, in one row group with one shopkeeper with 5.0, or none."""
    actual = {"without the shop": folder / "without.parquet", "with the shop": folder / "with.parquet"}
    for path, more in zip(actual.values(), (0, 1), strict=True):
        pq.write_table(
            pa.table(
                {
                    "person_id": [f"p{i}" for i in range(people + more)],
                    "sector": ["farm"] * people + ["shop"] * more,
                    "v": [-0.0] * people + [5.0] * more,
                }
            ),
            path,
        )
    return actual


def negative_zero(folder: Path, session: Any = None, people: int = MANY, epsilon: str = "1") -> dict[str, Any]:
    """Estimates on either engine, under one test key: by how much the one shopkeeper moves the farmers."""
    office, actual = ReleaseOffice(folder), {}
    files = zeros(folder, people)
    for engine, where in {"duckdb": None, **({"spark": session} if session is not None else {})}.items():
        without, within = (
            office.run(str(path), table=DROPPED, delta="0.01", epsilon=epsilon, session=where)
            for path in files.values()
        )
        actual[engine] = {
            **dict(zip(files, map(shown, (without, within)), strict=True)),
            "moved": {" ".join(cell): n for cell, n in changed_cells(without, within).items()},
        }
    return actual


# --- columns that differ only in case -------------------------------------------------------------------------------


def case_files(folder: Path, people: int = FILES, bad: bool = False) -> Path:
    """Two files with the columns h and H in another order; in the first perhaps one more record, no UTF-8."""
    folder.mkdir()
    for file, names in {"a": ("pid", "g", "H", "h"), "b": ("pid", "g", "h", "H")}.items():
        raw = [b"farm"] * people + [b"\xff"] * (bad and file == "a")
        columns: Mapping[str, Any] = {
            "pid": pa.array([f"{file}{i}" for i in range(len(raw))]),
            "g": pa.array(["x"] * len(raw)),
            "H": pa.array(["shop"] * len(raw)),
            "h": text(raw),
        }
        pq.write_table(pa.table({name: columns[name] for name in names}), folder / f"{file}.parquet")
    return folder


def text(values: Sequence[bytes | None]) -> pa.Array:
    """Text that need not be UTF-8."""
    raw = pa.array(values, pa.binary())
    return pa.StringArray.from_buffers(len(raw), raw.buffers()[1], raw.buffers()[2], raw.buffers()[0], raw.null_count)


CASED: dict[str, Any] = {
    "domains": {"sector": {"values": ["farm", "shop"], "column": "h"}},
    "unit": {"person": "pid", "max_records": 1},
}


def case(folder: Path, people: int = FILES) -> dict[str, Any]:
    """One record that is not UTF-8 decides from which column all records of the other file are read."""
    office = ReleaseOffice(folder)
    fine = office.run(str(case_files(folder / "fine", people)), **CASED)
    dirty = office.run(str(case_files(folder / "dirty", people, bad=True)), **CASED)
    return {
        "without the dirty text": shown(fine),
        "with it": shown(dirty),
        "moved": {" ".join(cell): n for cell, n in changed_cells(fine, dirty).items()},
    }


# --- all of them ----------------------------------------------------------------------------------------------------


def shown(actual: Outcome) -> Any:
    """An outcome, for JSON."""
    return {" ".join(cell): n for cell, n in actual.cells.items()} or actual.refused or actual.stopped


def all_of_them(folder: Path, runs: int, only: Sequence[str]) -> dict[str, Any]:
    from support.engines import local_spark

    def on_both(place: Path) -> dict[str, Any]:
        (folder / "spark").mkdir()
        with local_spark(folder / "spark") as spark:
            return negative_zero(place, spark.session)

    every: dict[str, Callable[[Path], dict[str, Any]]] = {
        "bom": lambda place: bom(place, runs),
        "hugeint": lambda place: hugeint(place, runs),
        "negative_zero": on_both,
        "case": case,
    }
    return {name: experiment(folder / name) for name, experiment in every.items() if not only or name in only}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", action="append", default=[])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["DISCREET_TMP"] = str(Path(name) / "tmp")
        print(json.dumps(all_of_them(Path(name), arguments.runs, arguments.only), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
