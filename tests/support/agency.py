"""A small agency for tests: confidential records with some data errors, a ledger with a budget, releases as YAML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import discreet
from discreet.api import OpenRelease, set_budget

# Values that occur nowhere else: whatever leaks can be searched for.
SECRET_PERSON = "XSECRETPERSONX"
SECRET_CODE = "XSECRETCODEX"


def graduates(people: int = 300) -> pa.Table:
    """Persons with 1–5 records, some of them dirty."""
    rows = []
    for p in range(people):
        for r in range(1 + p % 5):
            state, degree = f"{(p * 7 + r) % 4 + 1:02d}", f"{(p + r) % 3 + 1:02d}"
            rows.append((f"P{p:06d}", state, degree))
    rows += [(SECRET_PERSON, "01", "01")] * 9  # far too many records
    rows += [
        ("P000001", SECRET_CODE, "01"),
        ("P000002", None, "02"),
        (None, "01", "01"),
        ("P000003", "01", SECRET_CODE),
    ]
    people_, states, degrees = zip(*rows, strict=True)
    return pa.table({"person_id": people_, "state": states, "degree": degrees})


SPEC: dict[str, Any] = {
    "release": "r1",
    "asset": "graduates",
    "source": {"graduates": "graduates.parquet"},
    "unit": {"person": "person_id", "max_records": 2},
    "domains": {
        "state": {"values": ["01", "02", "03", "04", "05"]},
        "degree": {"values": ["01", "02", "03"], "undeclared": "other"},
    },
    "tables": [
        {"name": "both", "method": "counts", "by": ["state", "degree"], "epsilon": "1.5", "nonnegative": True},
        {"name": "states", "method": "counts", "by": ["state"], "epsilon": "1/2"},
    ],
}


class Agency:
    """A folder with confidential records, a ledger with a budget, and releases written as YAML."""

    def __init__(self, folder: Path, budget: str = "10", kind: str = "real") -> None:
        folder.mkdir(parents=True)
        self.folder, self.ledger_path = folder, folder / "discreet-ledger.sqlite"
        self.write(graduates())
        unit = {"kind": "person", "column": "person_id"}
        set_budget(discreet.ledger(self.ledger_path), "graduates", epsilon=budget, unit=unit, kind=kind)  # type: ignore[arg-type]

    def write(self, table: pa.Table) -> None:
        pq.write_table(table, self.folder / "graduates.parquet")

    def spec(self, change: Callable[[dict[str, Any]], None] | None = None, **changes: Any) -> Path:
        data = yaml.safe_load(yaml.safe_dump({**SPEC, **changes}))
        if change is not None:
            change(data)
        path = self.folder / "release.yaml"
        path.write_text(yaml.safe_dump(data))
        return path

    def release(self, change: Callable[[dict[str, Any]], None] | None = None, **changes: Any) -> OpenRelease:
        return discreet.release(self.spec(change, **changes))
