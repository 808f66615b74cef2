"""Synthetic data for tests of earnings: a public list of programmes, graduates with pay, releases of percentiles."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support.engines import Bureau

PROGRAMMES = (
    "institution,degree_level,cipcode,cip4,cip2,state\n"
    "00100100,05,01.0101,01.01,01,44\n"
    "00100100,05,01.0901,01.09,01,44\n"
    "00100100,05,52.0201,52.02,52,44\n"
    "00100200,05,01.0101,01.01,01,44\n"
    "00100200,18,52.0201,52.02,52,44\n"
    "00100200,18,52.0203,52.02,52,44\n"
    "00100300,05,01.0101,01.01,01,06\n"
)
INSTITUTIONS = 'institution,label\n00100100,"Aster College, North"\n00100200,Birch\n00100300,Cedar\n'
COHORTS, YEARS = ("2010", "2013"), ("1", "5", "10")
FINEST = ("institution", "degree_level", "cipcode")
COARSER = {
    "programme4": ["institution", "degree_level", "cip4"],
    "family": ["institution", "degree_level", "cip2"],
    "school": ["institution", "degree_level"],
    "state4": ["state", "degree_level", "cip4"],
}
BORDERS = (1, 20_000, 40_000, 60_000, 100_000)  # four bins: a histogram small enough to inspect
DOMAINS: dict[str, Any] = {
    "programme": {
        "groups": "programmes.csv",
        "columns": list(FINEST),
        "coarser": COARSER,
        "provenance": "made up",
    },
    "institution": {"codes": "institutions.csv", "label": "label"},
    "grad_cohort": {"values": list(COHORTS)},
    "years_after": {"values": list(YEARS)},
}
PERSON = {"person": "person_id", "max_records": 3}
Record = tuple[str, str, str, str, str, str, int | float | None]


def programmes() -> list[dict[str, str]]:
    """The public list, one programme a row."""
    return list(csv.DictReader(PROGRAMMES.splitlines()))


def table(**changes: Any) -> dict[str, Any]:
    """A declared table of earnings; `...` takes a key away."""
    declared = {
        "name": "earnings",
        "method": "earnings",
        "by": ["programme4", "grad_cohort", "years_after"],
        "value": "pay",
        "epsilon": "3",
        "bins": {"edges": list(BORDERS)},
        **changes,
    }
    return {key: value for key, value in declared.items() if value is not ...}


def spec(*tables: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """A release of these tables, or of the usual one."""
    return {
        "source": {"graduates": "graduates.parquet"},
        "unit": PERSON,
        "domains": DOMAINS,
        "tables": [dict(one) for one in tables] or [table()],
        **changes,
    }


def arrow(records: Sequence[Record]) -> pa.Table:
    """Records as the source has them: person, institution, degree, field, cohort, years, pay."""
    names = ("person_id", *FINEST, "grad_cohort", "years_after", "pay")
    columns = list(zip(*records, strict=True)) or [()] * len(names)
    kinds = [*[pa.string()] * 6, pa.int64()]
    return pa.table({n: pa.array(c, kind) for n, c, kind in zip(names, columns, kinds, strict=True)})


def graduates(a_cell: int = 120, only: Sequence[str] = (), seed: int = 7) -> list[Record]:
    """So many graduates in every cell of the finest list, or of these institutions alone, a person for each record."""
    drawn, people = np.random.default_rng(seed), itertools.count()
    actual: list[Record] = []
    for row, cohort, years in itertools.product(programmes(), COHORTS, YEARS):
        if not only or row["institution"] in only:
            pay = np.exp(drawn.normal(10.6, 0.7, a_cell)).astype(int)
            actual += [(f"P{next(people):06}", *(row[c] for c in FINEST), cohort, years, int(p)) for p in pay]
    return actual


class Registrar(Bureau):
    """A bureau with the public files, and graduates to publish about."""

    def __init__(self, folder: Path, records: Sequence[Record] | pa.Table = ()) -> None:
        super().__init__(folder)
        (folder / "programmes.csv").write_text(PROGRAMMES)
        (folder / "institutions.csv").write_text(INSTITUTIONS)
        self.enrol(records)

    def enrol(self, records: Sequence[Record] | pa.Table) -> None:
        """Other graduates in place of these."""
        pq.write_table(records if isinstance(records, pa.Table) else arrow(records), self.folder / "graduates.parquet")


def read(files: Mapping[str, bytes], name: str) -> pa.Table:
    """A published Parquet file of a simulation."""
    return pq.read_table(pa.BufferReader(files[f"{name}.simulation.parquet"]))


def bins_of(published: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The histograms of a table whose cells are all published, one row a cell."""
    columns = [c for c in published.column_names if c.startswith("bin_")]
    return np.stack([published[c].to_numpy() for c in columns], axis=1)
