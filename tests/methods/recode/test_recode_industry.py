"""Another classification: pay by sector is recoded between industry classifications, with weights and roll-ups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.api import OpenRelease, set_budget
from discreet.errors import DomainError
from support.recoding import BORDERS, CLOCK, MeasurementFolder, read_measurements, read_rows, write_csv

PARENTS = (
    ("3111", "31-33"),
    ("3361", "31-33"),
    ("4541", "44-45"),
    ("4551", "44-45"),
    ("4571", "44-45"),
    ("5111", "51"),
    ("5131", "51"),
    ("5191", "51"),
    ("6111", "61"),
)
CROSSWALK = (
    ("3111", "3111", "1"),
    ("3361", "3361", "1"),
    ("4541", "4551", "3"),
    ("4541", "5131", "1"),  # retail becomes information: a quarter of it
    ("4571", "4571", "1"),
    ("5111", "5131", "2"),
    ("5111", "5191", "5"),  # inside the sector
    ("6111", "6111", "1"),
)
OLD, NEW = ("31-33", "44-45", "51", "61"), ("61", "51", "44-45", "31-33")  # in another order
YEARS = ("2017", "2022")
SIZES = {"3111": 300, "3361": 250, "4541": 400, "5111": 200, "6111": 150}
RECODE: dict[str, Any] = {
    "measurements": "kept",
    "columns": {"sector": {"file": "parents.csv", "code": "code", "parent": "sector"}},
    "crosswalk": {"file": "crosswalk.csv", "old": "naics_old", "new": "naics_new", "weight": "share"},
    "history": {"file": "employment.csv", "old": "naics", "number": "jobs"},
    "smallest_weight": "1/1000",
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with jobs, public files and a ledger."""
    drawn, rows = np.random.default_rng(3), list[tuple[str, str, str, int]]()
    sectors = dict(PARENTS)
    for year in YEARS:
        for code, size in SIZES.items():
            pay = np.exp(drawn.normal(10.5, 0.7, size)).astype(int).tolist()
            rows += [(f"P{len(rows) + i}", sectors[code], year, p) for i, p in enumerate(pay)]
    names = ("person", "sector", "year", "pay")
    pq.write_table(
        pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))), tmp_path / "jobs.parquet"
    )
    write_csv(tmp_path / "parents.csv", ("code", "sector"), PARENTS)
    write_csv(tmp_path / "crosswalk.csv", ("naics_old", "naics_new", "share"), CROSSWALK)
    jobs = [("4541", 900), ("4571", 300), ("5111", 50), ("3111", 10), ("6111", 10)]
    write_csv(tmp_path / "employment.csv", ("naics", "jobs"), jobs)
    ledger = discreet.ledger(tmp_path / "ledger.sqlite", clock=lambda: CLOCK)
    set_budget(ledger, "jobs", epsilon="10", unit={"kind": "person", "column": "person"}, kind="simulation")
    return tmp_path


def opened(place: Path, release: str, sectors: tuple[str, ...], **more: Any) -> OpenRelease:
    import json

    spec = {
        "release": release,
        "asset": "jobs",
        "unit": {"person": "person", "max_records": 1},
        "domains": {"sector": {"values": list(sectors)}, "year": {"values": list(YEARS)}},
        "tables": [
            {
                "name": "pay",
                "method": "earnings",
                "by": ["year", "sector"],
                "value": "pay",
                "epsilon": "1",
                "bins": {"edges": list(BORDERS)},
                "levels": [{"name": "years", "by": ["year"]}],
            }
        ],
        **more,
    }
    (place / f"{release}.yaml").write_text(json.dumps(spec))
    return discreet.release(place / f"{release}.yaml", ledger=discreet.ledger(place / "ledger.sqlite", lambda: CLOCK))


def moved(place: Path, **asked: Any) -> tuple[MeasurementFolder, MeasurementFolder]:
    """Before and after."""
    opened(place, "old", OLD, source={"jobs": "jobs.parquet"}, keep_measurements="kept").run(
        place / "out", simulation="suite"
    )
    opened(place, "new", NEW, recode={**RECODE, **asked}, keep_measurements="kept-new").run(place / "out-new")
    return read_measurements(place / "kept"), read_measurements(place / "kept-new")


def test_sectors_move_and_totals_stay(place: Path) -> None:
    old, new = moved(place)
    before, after = old.sums("pay", left_out=1), new.sums("pay", left_out=1)
    assert all((before[key] == after[key]).all() for key in before)
    groups, was = new.groups("pay"), old.groups("pay")
    for year in YEARS:
        assert (groups[year, "31-33"] == was[year, "31-33"]).all()
        assert (groups[year, "61"] == was[year, "61"]).all()
        left = was[year, "44-45"] - groups[year, "44-45"]
        assert (groups[year, "51"] == was[year, "51"] + left).all()
        total = int(was[year, "44-45"].sum())
        share = (900 / 4) / (900 + 300)  # of 4541 a quarter moves, of 4571 nothing
        assert abs(left.sum() - share * total) < 4 * (total * share * (1 - share)) ** 0.5
    draws = {key[1]: number for key, number in new.draws("pay").items()}
    assert draws == {"31-33": 1, "61": 1, "44-45": -1, "51": -1}
    assert read_rows(place / "out-new", "years") == read_rows(place / "out", "years")


def test_an_override_takes_the_place_of_weights(place: Path) -> None:
    write_csv(place / "overrides.csv", ("from", "to"), [("44-45", "44-45"), ("44-45", "51")])
    old, new = moved(place, overrides="overrides.csv", rule="balanced")
    for year in YEARS:
        was = old.groups("pay")[year, "44-45"]
        assert (np.abs(new.groups("pay")[year, "44-45"] - was / 2) < 1).all()


def test_a_code_without_a_parent_is_refused(place: Path) -> None:
    write_csv(place / "parents.csv", ("code", "sector"), PARENTS[:-1])
    with pytest.raises(DomainError, match="'6111' has no parent"):
        moved(place)
    assert not (place / "out-new").exists()
