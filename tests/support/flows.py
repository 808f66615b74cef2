"""Synthetic data for tests of flows: graduates of a few institutions, their jobs, and public files about jobs."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.engines import Bureau

PROGRAMMES = (
    "institution,degree_level,cipcode,cip4,cip2,state\n"
    "00100100,05,01.0101,01.01,01,44\n"
    "00100100,05,01.0901,01.09,01,44\n"
    "00100100,05,52.0201,52.02,52,44\n"
    "00100200,18,52.0201,52.02,52,06\n"
    "00100200,18,52.0203,52.02,52,06\n"
    "00100300,05,01.0101,01.01,01,66\n"  # a home that is no destination
)
STATES = {"06": "9", "34": "2", "36": "2", "41": "9", "44": "1"}  # and their divisions
SECTORS = ("11", "31-33", "52")
DIVISIONS = tuple(dict.fromkeys(STATES.values()))
COHORTS, YEARS = ("2010", "2013"), ("1", "5")
HOMES = ("44", "06", "66")
ZZ, Z = "ZZ", "Z"
FINEST = ("institution", "degree_level", "cipcode")
GROUP = ["institution", "degree_level", "cip2", "grad_cohort", "years_after"]  # columns of the table's groups
TO = ["industry", "state"]
COARSER = {
    "family": ["institution", "degree_level", "cip2"],
    "school": ["institution", "degree_level"],
    "school_family": ["institution", "cip2"],
    "college": ["institution"],
    "home": ["state"],
}
DOMAINS: dict[str, Any] = {
    "programme": {"groups": "programmes.csv", "columns": list(FINEST), "coarser": COARSER, "provenance": "made up"},
    "grad_cohort": {"values": list(COHORTS)},
    "years_after": {"values": list(YEARS)},
    "industry": {"values": list(SECTORS)},
    "geography": {"hierarchy": "states.csv", "levels": ["state", "division"]},
}
BY = ["family", "grad_cohort", "years_after"]
LEVELS: dict[str, dict[str, Any]] = {
    "total": {"by": BY, "to": []},
    "divisions": {"by": BY, "to": ["division"]},
    "sectors": {"by": BY, "to": ["industry"]},
    "both": {"by": BY, "to": ["industry", "division"]},
    "turned": {"by": ["family", "years_after"], "to": ["division", "industry"]},
    "schools": {"by": ["school", "grad_cohort", "years_after"], "to": ["division"]},
    "places": {"by": ["home"], "to": ["industry"]},
    "everybody": {"by": [], "to": []},
}
SUPPRESS: dict[str, Any] = {
    "division": "division",
    "missing": "missing.csv",
    "periods": ["grad_cohort", "years_after"],
    "by": ["college"],
    "threshold": "1/4",
}
CORRECTION: dict[str, Any] = {
    "job_flows": {"file": "job_flows.csv"},
    "employment": {"file": "employment.csv"},
    "industry_flows": ["school_family"],
}
MISSING = "grad_cohort,years_after,state\n2013,5,41\n2013,5,34\n2010,5,06\n2010,5,44\n"
PERSON: dict[str, Any] = {"person": "person_id", "max_records": 3}
Record = tuple[str | None, ...]  # person, institution, degree, field, cohort, years, industry, state
COLUMNS = ("person_id", *FINEST, "grad_cohort", "years_after", *TO)


def programmes() -> list[dict[str, str]]:
    """The public list, one programme a row."""
    return list(csv.DictReader(PROGRAMMES.splitlines()))


def job_flows() -> str:
    """Hires from every home to every state; two are 0, and one pair stands on two lines."""
    lines = [
        f"{h},{s},{(3 * i + 2 * j + 1) % 7 * 11}"
        for (i, h), (j, s) in itertools.product(*map(enumerate, (HOMES, STATES)))
    ]
    return "\n".join(["from_state,to_state,hires", *lines, "44,06,5", "99,06,7"]) + "\n"


def employment() -> str:
    """Jobs in every sector of every state; three are 0."""
    lines = [
        f"{s},{k},{(i * 5 + j * 3) % 8 * 2.5}"
        for (i, s), (j, k) in itertools.product(*map(enumerate, (STATES, SECTORS)))
    ]
    return "\n".join(["state,industry,employment", *lines, "99,11,8"]) + "\n"


def table(**changes: Any) -> dict[str, Any]:
    """A declared table of flows with everything there is; `...` takes a key away."""
    declared = {
        "name": "flows",
        "method": "flows",
        "by": BY,
        "industry": "industry",
        "state": "state",
        "home_state": "home",
        "epsilon": "3",
        "correction": CORRECTION,
        "levels": [{"name": name, **level} for name, level in LEVELS.items()],
        "suppress": SUPPRESS,
        **changes,
    }
    return {key: value for key, value in declared.items() if value is not ...}


def plain(**changes: Any) -> dict[str, Any]:
    """A declared table of flows and nothing more."""
    return table(**{"home_state": ..., "correction": ..., "levels": ..., "suppress": ..., **changes})


def spec(*tables: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """A release of these tables, or of the usual one; no two parts of it are one object, which YAML would show."""
    declared = {
        "source": {"graduates": "graduates.parquet"},
        "unit": PERSON,
        "domains": DOMAINS,
        "tables": tables or [table()],
        **changes,
    }
    copied: dict[str, Any] = json.loads(json.dumps(declared))
    return copied


def arrow(records: Sequence[Record]) -> pa.Table:
    """Records as the source has them."""
    columns = list(zip(*records, strict=True)) or [()] * len(COLUMNS)
    return pa.table({n: pa.array(c, pa.string()) for n, c in zip(COLUMNS, columns, strict=True)})


def graduates(a_group: int = 40, seed: int = 11) -> list[Record]:
    """Graduates of every programme, cohort and year but the last institution's of 2013, a person for each record: most
    at a declared destination, some marginal, some at one that is not declared or missing."""
    drawn, people = np.random.default_rng(seed), itertools.count()
    industries, states = [*SECTORS, ZZ, "99", None], [*STATES, Z, "77", None]
    actual: list[Record] = []
    for row, cohort, years in itertools.product(programmes(), COHORTS, YEARS):
        if row["institution"] == "00100300" and cohort == "2013":
            continue
        for _ in range(a_group):
            to = industries[drawn.choice(6, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05])]
            at = states[drawn.choice(8, p=[0.3, 0.25, 0.1, 0.05, 0.1, 0.1, 0.05, 0.05])]
            at = Z if to == ZZ and drawn.random() < 0.9 else at
            actual.append((f"P{next(people):06}", *(row[c] for c in FINEST), cohort, years, to, at))
    return actual


class CareersAgency(Bureau):
    """A bureau with the public files, and graduates to publish about."""

    def __init__(self, folder: Path, records: Sequence[Record] | pa.Table = ()) -> None:
        super().__init__(folder)
        states = [f"{state},{division}" for state, division in STATES.items()]
        public = {
            "programmes.csv": PROGRAMMES,
            "states.csv": "\n".join(["state,division", *states]) + "\n",
            "job_flows.csv": job_flows(),
            "employment.csv": employment(),
            "missing.csv": MISSING,
        }
        for name, text in public.items():
            (folder / name).write_text(text)
        self.employ(records)

    def employ(self, records: Sequence[Record] | pa.Table) -> None:
        """Other graduates in place of these."""
        pq.write_table(records if isinstance(records, pa.Table) else arrow(records), self.folder / "graduates.parquet")


@contextmanager
def published(folder: Path, records: Sequence[Record], declared: Mapping[str, Any]) -> Iterator[dict[str, bytes]]:
    """The files of one simulated release, for many tests to look at: with keys and a temporary folder of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_KEYS", str(folder / "keys"))
        patch.setenv("DISCREET_TMP", str(folder / "tmp"))
        yield CareersAgency(folder / "office", records).published(declared)


# --- what was published ---------------------------------------------------------------------------------------------


def read(files: Mapping[str, bytes], name: str) -> pd.DataFrame:
    """A published table of a simulation, in one file or in parts; codes are text."""
    whole = f"{name}.simulation.parquet"
    parts = [whole] if whole in files else sorted(n for n in files if n.startswith(f"{whole}/"))
    actual = pa.concat_tables([pq.read_table(pa.BufferReader(files[part])) for part in parts])
    return pd.DataFrame(
        {c: actual[c].to_pylist() for c in actual.column_names}, columns=actual.column_names, dtype=object
    )


def read_csv(files: Mapping[str, bytes], name: str) -> pd.DataFrame:
    """The same from CSV, all of it text."""
    whole = f"{name}.simulation.csv"
    parts = [whole] if whole in files else sorted(n for n in files if n.startswith(f"{whole}/"))
    return pd.concat([pd.read_csv(io.BytesIO(files[part]), dtype=str, keep_default_na=False) for part in parts])


def cells() -> pd.DataFrame:
    """Every declared cell of the usual table, in order, by hand: with its home and its division."""
    families = list(dict.fromkeys((p["institution"], p["degree_level"], p["cip2"], p["state"]) for p in programmes()))
    to = [*itertools.product(SECTORS, STATES), (ZZ, Z)]
    rows = [
        (i, d, c, cohort, years, k, s, home, STATES.get(s))
        for (i, d, c, home), cohort, years, (k, s) in itertools.product(families, COHORTS, YEARS, to)
    ]
    return pd.DataFrame(rows, columns=[*GROUP, *TO, "home", "division"])


def filled(files: Mapping[str, bytes], name: str = "flows") -> pd.DataFrame:
    """Every declared cell, with the published numbers, or 0 where there is no row."""
    published = read(files, name)
    actual = cells().merge(published, how="left", on=[*GROUP, *TO], validate="one_to_one", indicator=True)
    if (actual["_merge"] == "both").sum() != len(published):
        raise ValueError("a row is of no declared cell")
    actual["listed"] = actual.pop("_merge") == "both"
    for column in ("flow", "measured"):
        if column in actual:
            actual[column] = actual[column].fillna(0).astype(np.int64)
    return actual


def matrix(frame: pd.DataFrame, column: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """One row a group, one column a destination."""
    actual: np.ndarray[Any, np.dtype[np.int64]] = frame[column].to_numpy(np.int64)
    return actual.reshape(-1, len(SECTORS) * len(STATES) + 1)


def true_counts(
    records: Sequence[Record], undeclared: bool = False, missing: bool = False
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The exact flows, one record at a time: what noise is added to."""
    family = {tuple(p[c] for c in FINEST): (p["institution"], p["degree_level"], p["cip2"]) for p in programmes()}
    frame = cells()
    places = {tuple(key): i for i, key in enumerate(frame[[*GROUP, *TO]].itertuples(index=False))}
    counts = np.zeros(len(frame), np.int64)
    for _, *finest, cohort, years, industry, state in records:
        group = family.get(tuple(finest))  # type: ignore[arg-type]
        if group is None or cohort not in COHORTS or years not in YEARS:
            continue
        job = industry in SECTORS and state in STATES
        nowhere = (industry, state) == (ZZ, Z) or undeclared or (missing and None in (industry, state))
        if job or nowhere:
            counts[places[(*group, cohort, years, *((industry, state) if job else (ZZ, Z)))]] += 1
    return counts.reshape(-1, len(SECTORS) * len(STATES) + 1)
