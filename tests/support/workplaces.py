"""A small register of jobs for tests: workers, workplaces, and who works where; with some data errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.engines import Bureau

SECRET_WORKPLACE = 987_654_321
STRONG = {"establishment": "workplace", "alpha": "0.1", "adversary": "strong"}
WEAK = {**STRONG, "adversary": "weak"}
WHOLE = {"establishment": "workplace", "whole": True, "max_records": 20}
DOMAINS: dict[str, Any] = {
    "place": {"values": ["10", "20", "30", "40"]},
    "sector": {"values": ["A", "B"]},
    "sex": {"values": ["1", "2"]},
    "education": {"values": ["1", "2", "3"], "undeclared": "other"},
}
SIZES = (1, 2, 3, 7, 12, 40, 95, 260)  # place 40 has no establishment


def workplaces() -> pa.Table:
    """One entry an establishment; the last one lies in no declared place."""
    rows = [(100 + i, ("10", "20", "30")[i % 3], "AB"[i % 2]) for i in range(len(SIZES))]
    rows.append((SECRET_WORKPLACE, "99", "A"))
    ids, places, sectors = zip(*rows, strict=True)
    return pa.table({"workplace": ids, "place": places, "sector": sectors})


def jobs() -> pa.Table:
    """Everybody has one job. Five jobs are in no establishment that is listed, or in none at all."""
    at = [100 + i for i, size in enumerate(SIZES) for _ in range(size)]
    at += [SECRET_WORKPLACE, SECRET_WORKPLACE, 5, None, None]
    return pa.table({"worker": list(range(len(at))), "workplace": pa.array(at, pa.int64())})


def workers(count: int) -> pa.Table:
    """Attributes of workers; some have undeclared codes or none."""
    sexes = [("1", "2", "2", "1", "2")[i % 5] if i % 37 else None for i in range(count)]
    educations = [str(i % 3 + 1) if i % 41 else "x" for i in range(count)]
    return pa.table({"worker": list(range(count)), "sex": sexes, "education": educations})


def jobs_with_workplaces() -> pa.Table:
    """The three tables as one file."""
    listed = jobs()
    actual = listed.join(workplaces(), "workplace").join(workers(listed.num_rows), "worker")
    return actual.sort_by("worker")


class Register(Bureau):
    """A bureau with the three tables, and with one file of all."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        listed = jobs()
        self.write(jobs=listed, workers=workers(listed.num_rows), workplaces=workplaces(), full=jobs_with_workplaces())

    def write(self, **tables: pa.Table) -> None:
        for name, table in tables.items():
            pq.write_table(table, self.folder / f"{name}.parquet")

    def spec(self, unit: Mapping[str, Any] = STRONG, *, one_file: bool = False, **table: Any) -> dict[str, Any]:
        """A release of one table of jobs, from three tables or from one file."""
        declared = {"name": "jobs", "method": "employer", "by": ["place", "sector"], "epsilon": "2", **table}
        names = ("full",) if one_file else ("jobs", "workers", "workplaces")
        source = {name: str(self.folder / f"{name}.parquet") for name in names}
        join = {} if one_file else {"join": {"workers": "worker", "workplaces": "workplace"}}
        return {"source": source, **join, "unit": dict(unit), "domains": DOMAINS, "tables": [declared]}
