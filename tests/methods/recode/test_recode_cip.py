"""NCES's own crosswalk: a table of all 388 old four-digit codes is recoded; only 60.06 needs an override."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.api import OpenRelease, set_budget
from discreet.errors import DomainError
from discreet.methods.recode.crosswalk import Crosswalk, read_crosswalk
from discreet.methods.recode.rollup import Prefix, PublishedCrosswalk
from support.recoding import BORDERS, CLOCK, read_measurements, write_csv
from support.repository import SHARED

REAL = SHARED / "cip" / "Crosswalk2010to2020.csv"
pytestmark = pytest.mark.skipif(not REAL.is_file(), reason=f"the crosswalk of NCES is not at {REAL}")
FILE = {
    "file": str(REAL),
    "old": "CIPCode2010",
    "new": "CIPCode2020",
    "action": "Action",
    "deleted": ["Deleted"],
    "length": 7,
}
TARGET = "61.99"


@pytest.fixture(scope="module")
def crosswalk() -> Crosswalk:
    return read_crosswalk(REAL, "CIPCode2010", "CIPCode2020", action="Action", deleted=["Deleted"], length=7)


@pytest.fixture(scope="module")
def series() -> list[str]:
    """The four-digit codes of 2010, as the file lists them."""
    with REAL.open(newline="", encoding="utf-8-sig") as file:
        actual = [row["CIPCode2010"].strip('="') for row in csv.DictReader(file)]
    return [code for code in dict.fromkeys(actual) if len(code) == 5]


def opened(place: Path, release: str, codes: list[str], **more: Any) -> OpenRelease:
    table = {"name": "pay", "method": "earnings", "by": ["cip4"], "value": "pay", "epsilon": "1"}
    spec = {
        "release": release,
        "asset": "graduates",
        "unit": {"person": "person", "max_records": 1},
        "domains": {"cip4": {"values": codes}},
        "tables": [{**table, "bins": {"edges": list(BORDERS)}}],
        **more,
    }
    (place / f"{release}.yaml").write_text(json.dumps(spec))
    return discreet.release(place / f"{release}.yaml", ledger=discreet.ledger(place / "ledger.sqlite", lambda: CLOCK))


@pytest.fixture
def place(tmp_path: Path, series: list[str], crosswalk: Crosswalk) -> Path:
    """Graduates of every old code, measured, and completions of every finest one that is not deleted."""
    assert len(series) == 388
    drawn = np.random.default_rng(5)
    codes = [code for code in series for _ in range(3)]
    people = [f"P{i}" for i in range(len(codes))]
    pay = np.exp(drawn.normal(10.5, 0.7, len(codes))).astype(int)
    pq.write_table(pa.table({"person": people, "cip4": codes, "pay": pay}), tmp_path / "graduates.parquet")
    lines = [
        (code, int(n)) for code, n in zip(crosswalk.shares, drawn.integers(1, 50, len(crosswalk.shares)), strict=True)
    ]
    write_csv(tmp_path / "completions.csv", ("cipcode", "awards"), lines)
    ledger = discreet.ledger(tmp_path / "ledger.sqlite", clock=lambda: CLOCK)
    set_budget(ledger, "graduates", epsilon="10", unit={"kind": "person", "column": "person"}, kind="simulation")
    release = opened(tmp_path, "old", series, source={"graduates": "graduates.parquet"}, keep_measurements="kept")
    release.run(tmp_path / "out", simulation="suite")
    return tmp_path


def asked(**more: Any) -> dict[str, Any]:
    history = {"file": "completions.csv", "old": "cipcode", "number": "awards"}
    return {
        "measurements": "kept",
        "columns": {"cip4": 5},
        "crosswalk": FILE,
        "history": history,
        "smallest_weight": "0.001",
        **more,
    }


def test_all_old_codes_are_recoded(place: Path, series: list[str], crosswalk: Crosswalk) -> None:
    four = PublishedCrosswalk(crosswalk, (Prefix(5),), (Prefix(5),))
    codes = sorted({new for targets in four.possible.values() for (new,) in targets} | {TARGET})
    with pytest.raises(DomainError, match=r"'60\.06' is deleted in the crosswalk"):
        opened(place, "new", codes, recode=asked()).run(place / "out-new")
    write_csv(place / "overrides.csv", ("from", "to"), [("60.06", TARGET)])
    release = opened(place, "new", codes, recode=asked(overrides="overrides.csv"), keep_measurements="kept-new")
    notes = release.plan().tables[0].notes
    assert set(notes) >= {
        "377 codes of groups: direct",
        "10 codes of groups: probabilistic, by the shares of all records",
        "1 code of a group: override",
    }
    release.run(place / "out-new")
    old, new = read_measurements(place / "kept"), read_measurements(place / "kept-new")
    before, after = old.groups("pay"), new.groups("pay")
    assert (old.counts["pay"].sum(axis=0) == new.counts["pay"].sum(axis=0)).all()
    assert (after[TARGET,] == before["60.06",]).all()
    assert (after["51.12",] == before["51.12",] + before["51.19",] + before["51.21",]).all()
    draws = {key[0]: number for key, number in new.draws("pay").items()}
    assert draws["51.12"] == 3
    for (code,), targets in four.ambiguous.items():
        assert all(draws[target] == -1 for (target,) in targets), code
    unchanged = [c for c in series if four.possible.get((c,)) == ((c,),) and draws[c] == 1]
    assert len(unchanged) > 350
    assert all((after[c,] == before[c,]).all() for c in unchanged)
    assert discreet.ledger(place / "ledger.sqlite").chain().balance("graduates", CLOCK.date()).epsilon == 1
