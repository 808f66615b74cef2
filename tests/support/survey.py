"""A small survey for tests: quotes of occupations with weights and replicates, a ledger, cubes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import discreet
from discreet.api import OpenRelease, set_budget
from discreet.noise.key import ReleaseKey
from discreet.noise.stream import Stream
from discreet.post.cubes.cube import Cube
from discreet.publish.cubes import open_cube

OCCUPATIONS = {"11-1011": "11", "11-1021": "11", "13-1011": "13", "13-2011": "13", "13-2021": "13"}
STRENGTH = ["light", "medium", "heavy"]
OUTDOORS = ["yes", "no"]
SHAPE = (len(OCCUPATIONS), len(STRENGTH), len(OUTDOORS))
CELLS = 30
REPLICATES = 8


def quotes(rows: int = 400, seed: int = 5) -> pa.Table:
    """Quotes of some establishments; occupation 13-2021 has none."""
    rng = np.random.default_rng(seed)
    establishment = np.sort(rng.integers(0, rows // 4, rows))
    weight = np.round(rng.gamma(2.0, 20.0, rows) + 1, 1)
    signs = rng.choice([-0.7, 0.0, 0.0, 0.7], (rows, REPLICATES))
    return pa.table(
        {
            "establishment": [f"E{i:04d}" for i in establishment],
            "occupation": rng.choice(list(OCCUPATIONS)[:4], rows, p=[0.4, 0.3, 0.2, 0.1]),
            "strength": rng.choice(STRENGTH, rows, p=[0.5, 0.3, 0.2]),
            "outdoors": rng.choice(OUTDOORS, rows, p=[0.2, 0.8]),
            "weight": weight,
            **{f"rep_{r + 1}": weight * (1 + signs[:, r]) for r in range(REPLICATES)},
        }
    )


@dataclass(frozen=True)
class ExactCube:
    """What noise is added to: numbers of all cells, weights in steps of the grid."""

    n: np.ndarray
    w: np.ndarray
    d: np.ndarray  # (cells, R)


def exact(table: pa.Table, grid: int = 10, largest: int = 2000, bound: int = 800) -> ExactCube:
    """Brute force, record by record, by Li & Krenzke 2020 and the declaration; `grid` is the number of steps in 1."""
    n, w, d = np.zeros(CELLS, int), np.zeros(CELLS, int), np.zeros((CELLS, REPLICATES), int)
    for row in table.to_pylist():
        if row["weight"] is None or not 0 < row["weight"] < np.inf:
            continue
        places = (
            list(OCCUPATIONS).index(row["occupation"]),
            STRENGTH.index(row["strength"]),
            OUTDOORS.index(row["outdoors"]),
        )
        cell = int(np.ravel_multi_index(places, SHAPE))
        own = min(_steps(row["weight"], grid), largest)
        n[cell] += 1
        w[cell] += own
        for r in range(REPLICATES):
            actual = row[f"rep_{r + 1}"]
            actual = row["weight"] if actual is None or not np.isfinite(actual) else actual
            d[cell, r] += min(max(_steps(actual, grid) - own, -bound), bound)
    return ExactCube(n, w, d)


def _steps(value: float, grid: int) -> int:
    return int(np.floor(value * float(grid) + 0.5))


@dataclass(frozen=True)
class SimulatedCubes:
    """A published simulation, and what its key draws."""

    folder: Path
    release: str
    digest: str
    seed: str

    def stream(self, table: str, purpose: str) -> Stream:
        return ReleaseKey.simulation(self.seed).stream(self.release, table, bytes.fromhex(self.digest), purpose)

    def rows(self, name: str = "cube") -> pa.Table:
        return pq.read_table(self.folder / f"{name}.simulation.parquet")

    def column(self, column: str, name: str = "cube") -> np.ndarray:
        return np.asarray(self.rows(name)[column].to_numpy())

    def steps(self, column: str = "total", name: str = "cube", grid: int = 10) -> np.ndarray:
        """In steps of the grid."""
        return np.round(self.column(column, name) * grid).astype(np.int64)

    @property
    def cube(self) -> Cube:
        return open_cube(self.folder)


def every_occupation(table: pa.Table) -> pa.Table:
    """The same quotes, every fifth of the occupation that else has none: raking needs records everywhere."""
    codes = ["13-2021" if i % 5 == 0 else code for i, code in enumerate(table["occupation"].to_pylist())]
    place = table.column_names.index("occupation")
    return table.set_column(place, "occupation", pa.array(codes, table.schema.field(place).type))


class SurveyAgency:
    """A folder with quotes, public lists, and a ledger."""

    def __init__(self, folder: Path, table: pa.Table | None = None, unit: Any = "record", **more: Any) -> None:
        folder.mkdir(parents=True)
        self.folder, self.unit, self.runs, self.more = folder, unit, 0, more  # `more`: keys of the release
        self.write(quotes() if table is None else table)
        lines = ["occupation,major", *(f"{code},{major}" for code, major in OCCUPATIONS.items())]
        (folder / "occupations.csv").write_text("\n".join(lines) + "\n")
        budget = {key: value for key, value in unit.items() if key != "max_records"} if unit != "record" else unit
        ledger = discreet.ledger(folder / "ledger.sqlite")
        set_budget(ledger, "survey", epsilon="1e12", delta="0.9", unit=budget, kind="simulation")

    def write(self, table: pa.Table) -> None:
        pq.write_table(table, self.folder / "quotes.parquet")

    def spec(self, **changes: Any) -> dict[str, Any]:
        """A release with one cube; a change of None leaves a key out."""
        table = {
            "name": "cube",
            "method": "hypercube",
            "by": ["occupation", "strength", "outdoors"],
            "epsilon": "2",
            **changes,
        }
        return {
            "release": "survey",
            "asset": "survey",
            "source": {"quotes": str(self.folder / "quotes.parquet")},
            "unit": self.unit,
            "domains": {
                "soc": {"hierarchy": "occupations.csv", "levels": ["occupation", "major"]},
                "strength": {"values": STRENGTH},
                "outdoors": {"values": OUTDOORS},
            },
            "tables": [{key: value for key, value in table.items() if value is not None}],
            "ledger": "ledger.sqlite",
            **self.more,
        }

    def open(self, **changes: Any) -> OpenRelease:
        """The release as from a file of its own."""
        self.runs += 1
        declared = {**self.spec(**changes), "release": f"survey{self.runs}"}
        path = self.folder / f"release{self.runs}.yaml"
        path.write_text(yaml.dump(declared, Dumper=_Plain, sort_keys=False))
        return discreet.release(path)

    def run(self, seed: str = "survey", **changes: Any) -> Path:
        """The published folder of a simulation."""
        return self.simulate(seed, **changes).folder

    def simulate(self, seed: str = "survey", **changes: Any) -> SimulatedCubes:
        """A simulation, run."""
        release = self.open(**changes)
        out = self.folder / f"out{self.runs}"
        release.run(out, simulation=seed)
        return SimulatedCubes(out, release.spec.release, release.spec.digest(), seed)


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


WEIGHTS = {"column": "weight", "max": "200", "grid": "0.1", "epsilon": "4"}
CONTROLS = [{"name": "occupations", "by": ["occupation"], "epsilon": "1"}, {"name": "all", "by": [], "epsilon": "1"}]
DEVIATIONS = {"columns": {"prefix": "rep_", "count": REPLICATES}, "epsilon": "20", "bound": "80"}
AVERAGE = {"column": "weight", "max": "200", "grid": "0.1", "noise": "average"}
ESTABLISHMENT = {"establishment": "establishment", "whole": True, "max_records": 2}
TABLES = {**DEVIATIONS, "tables": [["major"], ["strength"]]}
