"""A small atlas for tests: children in tracts, a ledger with a budget, tables of estimates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import discreet
from discreet.api import OpenRelease, set_budget

STATES = {"0": "N", "1": "N", "2": "S"}  # of a tract's first digit
SIZES = (40, 25, 60, 31, 22, 80)
LINE = {"name": "prediction", "x": "parent_rank", "y": "kid_rank", "at": "0.25"}
UNIT_INTERVAL = {"low": "0", "high": "1"}


def children(seed: int = 3) -> pa.Table:
    """Children of six tracts; the sizes are odd on purpose."""
    rng = np.random.default_rng(seed)
    tract = np.repeat([f"{i % 3}{i:02d}" for i in range(len(SIZES))], SIZES)
    x = rng.random(tract.size)
    y = np.clip(0.25 + 0.4 * x + rng.normal(0, 0.2, tract.size), 0, 1)
    order = rng.permutation(tract.size)
    return pa.table(
        {
            "child": [f"C{i:05d}" for i in range(tract.size)],
            "tract": tract[order],
            "parent_rank": x[order],
            "kid_rank": y[order],
            "treated": np.where(rng.random(tract.size) < 0.5, "yes", "no"),
        }
    )


def tracts() -> list[str]:
    return sorted({f"{i % 3}{i:02d}" for i in range(len(SIZES))} | {"299"})  # one without children


class AtlasAgency:
    """A folder with records, a public list of tracts, and a ledger."""

    def __init__(self, folder: Path, table: pa.Table | None = None, unit: Any = "record") -> None:
        folder.mkdir(parents=True)
        self.folder, self.unit = folder, unit
        self.write(children() if table is None else table)
        lines = ["tract,state", *(f"{code},{STATES[code[0]]}" for code in tracts())]
        (folder / "tracts.csv").write_text("\n".join(lines) + "\n")
        budget = {key: value for key, value in unit.items() if key != "max_records"} if unit != "record" else unit
        ledger = discreet.ledger(folder / "ledger.sqlite")
        set_budget(ledger, "children", epsilon="1e12", delta="0.5", unit=budget, kind="simulation")

    def write(self, table: pa.Table) -> None:
        pq.write_table(table, self.folder / "children.parquet")

    def spec(self, **changes: Any) -> dict[str, Any]:
        """A release with one table; a change of None leaves a key out."""
        table = {
            "name": "mobility",
            "method": "sensitivity",
            "by": ["tract"],
            "statistic": LINE,
            "variables": {"parent_rank": UNIT_INTERVAL, "kid_rank": UNIT_INTERVAL},
            "epsilon": "4",
            "delta": "0.000001",
            **changes,
        }
        return {
            "release": "atlas",
            "asset": "children",
            "source": {"children": str(self.folder / "children.parquet")},
            "unit": self.unit,
            "domains": {"places": {"hierarchy": "tracts.csv", "levels": ["tract", "state"]}},
            "tables": [{key: value for key, value in table.items() if value is not None}],
            "ledger": "ledger.sqlite",
        }

    def open(self, release: str = "atlas", **changes: Any) -> OpenRelease:
        path = self.folder / "release.yaml"
        path.write_text(yaml.dump({**self.spec(**changes), "release": release}, Dumper=_Plain, sort_keys=False))
        return discreet.release(path)

    def run(self, out: str = "out", seed: str = "test", **changes: Any) -> dict[str, pa.Table]:
        """A simulated release: its tables by name."""
        made = self.open(f"atlas-{out}", **changes).run(self.folder / out, simulation=seed)
        files = {table.name: [f for f in table.files if f.endswith(".parquet")] for table in made.tables}
        return {
            name: pa.concat_tables([pq.read_table(self.folder / out / f) for f in actual])
            for name, actual in files.items()
        }


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True
