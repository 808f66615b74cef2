"""A release of flows end to end: plan and manifest, empty sources, partitions of the work, crashes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import PublishError
from discreet.methods import histograms
from discreet.methods.flows import division_suppression
from discreet.methods.flows import sums as flow_sums
from discreet.methods.flows import tables as flow_tables
from support.flows import (
    DOMAINS,
    LEVELS,
    PERSON,
    SUPPRESS,
    ZZ,
    CareersAgency,
    Record,
    Z,
    arrow,
    filled,
    graduates,
    matrix,
    plain,
    read,
    read_csv,
    spec,
    table,
)

RECORDS = graduates(20)
TABLES = ("flows", "flows_measured", *LEVELS, "flows_unobserved", "flows_correction")
LAID_OUT = [{"name": name, **LEVELS[name]} for name in LEVELS if name not in ("places", "everybody")]


@pytest.fixture
def office(tmp_path: Path) -> CareersAgency:
    return CareersAgency(tmp_path / "office", RECORDS)


# --- plan, manifest, ledger, codebook -------------------------------------------------------------------------------


def test_the_plan_states_cost_and_weights(office: CareersAgency) -> None:
    text = str(office.open(spec()).plan())
    assert "cells are disjoint, at most 3 records per unit: L1 sensitivity 3, noise rate ε/3 = 1" in text
    assert (
        "flows: family (4) × grad_cohort (2) × years_after (2) × industry and state (16) = 256 cells, epsilon 3" in text
    )
    assert "P(k) ∝ exp(−1·|k|); 90% within ±2" in text
    assert "job_flows: 2 of 15 values are 0 and count as 1 in the weights" in text
    assert "employment: 3 of 15 values are 0 and count as 1 in the weights" in text
    assert "the correction subtracts about 7 units; the noise of its total is within ±9 with probability 90%" in text
    assert "Total: epsilon 3 (one table)" in text
    costs = [line for line in text.splitlines() if re.search(r" = \d+ cells?, ", line)]
    assert len(costs) == len(TABLES)
    assert all(line.endswith(" of flows, no additional epsilon") for line in costs[1:])
    assert "Would be refused" not in text


def test_the_plan_of_one_record_a_unit(office: CareersAgency) -> None:
    text = str(office.open(spec(plain(), unit="record")).plan())
    assert "cells are disjoint: parallel composition, ε = 3 for the whole table" in text
    assert "P(k) ∝ exp(−3·|k|)" in text
    assert "job_flows" not in text


@pytest.mark.parametrize(("records", "rate"), [(1, "3"), (2, "1.5"), (12, "0.25")])
def test_epsilon_is_divided_by_the_records_of_a_person(office: CareersAgency, records: int, rate: str) -> None:
    opened = office.open(spec(plain(), unit={**PERSON, "max_records": records}))
    plan = opened.plan()
    assert f"exp(−{rate}·|k|)" in plan.tables[0].noise
    assert plan.total.epsilon == 3
    made = opened.run(office.folder / "out", simulation="divided")
    assert made.guarantee.epsilon == 3
    assert made.guarantee.unit.records == records


def test_the_manifest_and_the_ledger_are_about_one_measurement(office: CareersAgency) -> None:
    opened, out = office.open(spec()), office.folder / "out"
    made = opened.run(out, simulation="manifest")
    assert made.guarantee.epsilon == 3
    assert made.composition == "epsilon 3 (one table)"
    assert [t.name for t in made.tables] == list(TABLES)
    assert [t.sum_of for t in made.tables] == ["", *["flows"] * (len(TABLES) - 1)]
    assert {t.method for t in made.tables} == {"flows"}
    assert {t.guarantee.epsilon for t in made.tables} == {3}
    files = CareersAgency.files(out)
    assert set(files) == {*made.files, "manifest.json"}
    assert {name for t in made.tables for name in t.files} | {"codebook.json", "codebook.md"} == set(made.files)
    assert not [name for name in files if "~" in name]
    assert opened.ledger.verify().balance("records", opened.ledger.clock().date()).epsilon == 3


def test_flows_and_earnings_add_their_costs(tmp_path: Path) -> None:
    paid = arrow(RECORDS)
    office = CareersAgency(tmp_path / "office", paid.append_column("pay", pa.array([30_000] * paid.num_rows)))
    pay = {"name": "pay", "method": "earnings", "by": ["school"], "value": "pay", "epsilon": "1/2"}
    opened = office.open(spec(plain(), pay))
    assert opened.plan().total.epsilon == Fraction(7, 2)
    assert opened.run(tmp_path / "out", simulation="both").guarantee.epsilon == Fraction(7, 2)


def test_the_codebook_names_every_column_of_each_file(office: CareersAgency) -> None:
    files = office.published(spec())
    book = json.loads(files["codebook.json"])["tables"]
    assert list(book) == list(TABLES)
    for name, about in book.items():
        assert [c["name"] for c in about["columns"]] == list(read(files, name).columns)
        assert all(c["meaning"] for c in about["columns"])
        assert set(about["files"]) <= set(files)


def test_csv_alone_and_no_measurements(office: CareersAgency) -> None:
    files = office.published(spec(table(formats=["csv"], measurements=False, levels=...)))
    assert "flows.simulation.parquet" not in files
    assert not [name for name in files if "measured" in name]
    assert (read_csv(files, "flows")["flow"].astype(int) > 0).all()


# --- total mechanisms -----------------------------------------------------------------------------------------------

STRANGE: list[Record] = [(f"P{i}", "99999999", *r[2:]) for i, r in enumerate(RECORDS)]
IDLE: list[Record] = [(*r[:6], ZZ, Z) for r in RECORDS]
SOURCES: dict[str, list[Record]] = {
    "nobody": [],
    "nobody of a declared programme": STRANGE,
    "nobody with a person": [(None, *r[1:]) for r in RECORDS],
    "nobody with a destination": [(*r[:6], None, None) for r in RECORDS],
    "nobody with a job": IDLE,
    "one record": RECORDS[:1],
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_release_is_published_whatever_the_records_are(tmp_path: Path, source: str) -> None:
    office = CareersAgency(tmp_path / "office", SOURCES[source])
    files, usual = (
        office.published(spec(table(layout="lehd", levels=LAID_OUT))),
        CareersAgency(tmp_path / "usual", RECORDS),
    )
    assert files.keys() == usual.published(spec(table(layout="lehd", levels=LAID_OUT))).keys()
    noisy, flow = matrix(filled(files, "flows_measured"), "measured"), matrix(filled(files), "flow")
    assert flow.sum(axis=1).tolist() == np.maximum(noisy.sum(axis=1), 0).tolist()
    assert (flow >= 0).all()
    if source == "nobody with a job":
        assert noisy[:, -1].sum() > 200
    assert abs(noisy[:, :-1]).max() < 20
    for name in ("divisions", "both"):
        assert len(read(files, name)) == 16 * 3 * (3 if name == "both" else 1)


def test_no_text_depends_on_which_records_occur(tmp_path: Path) -> None:
    """Two sources that have nothing in common: the same files, labels, columns and texts."""
    actual = [
        CareersAgency(tmp_path / f"o{i}", records).published(spec()) for i, records in enumerate((RECORDS, STRANGE))
    ]
    assert actual[0].keys() == actual[1].keys()
    for name in actual[0]:
        if name.startswith("codebook"):
            assert actual[0][name] == actual[1][name]
    for name in ("flows", *LEVELS, "flows_unobserved", "flows_correction"):
        one, two = (read(files, name) for files in actual)
        assert list(one.columns) == list(two.columns)
        assert not one.equals(two)
        if name in LEVELS:
            codes = [c for c in one.columns if c != "status" and not c.startswith(("employed", "in_state", "marginal"))]
            assert one[codes].equals(two[codes])


@pytest.mark.parametrize("by", [[], ["years_after"]])
def test_one_group_or_few(office: CareersAgency, by: list[str]) -> None:
    level = {"name": "all", "by": [], "to": ["division"]}
    files = office.published(spec(plain(by=by, levels=[level])))
    total = int(read(files, "flows_measured")["measured"].sum())
    assert int(read(files, "flows")["flow"].sum()) == total
    jobs = read(files, "flows").query("industry != 'ZZ'")["flow"].sum()
    assert int(read(files, "all")["employed"].sum()) == int(jobs)
    assert len(read(files, "all")) == 3


def test_one_industry_in_one_state(tmp_path: Path) -> None:
    """The smallest table: a job, or none."""
    office = CareersAgency(tmp_path / "office", [(f"P{i}", *r[1:6], "11", "06") for i, r in enumerate(RECORDS)])
    one = {"industry": {"values": ["11"]}, "state": {"values": ["06"]}}
    domains = {**{n: d for n, d in DOMAINS.items() if n not in ("geography", "industry")}, **one}
    level = {"name": "there", "by": [], "to": ["state", "industry"]}
    files = office.published(spec(plain(by=[], levels=[level]), domains=domains))
    (row,) = read(files, "there").to_dict("records")
    assert abs(row["employed"] - len(RECORDS)) < 20
    assert (row["state"], row["industry"], row["employed_moe90"]) == ("06", "11", 2)


# --- however it is cut ----------------------------------------------------------------------------------------------

PIECES: dict[str, list[tuple[Any, str, int]]] = {
    "parts": [(histograms, "PART", 5 * 16), (histograms, "RANGE", 7)],
    "words": [(flow_tables, "WORDS", 1)],
    "rows": [
        (flow_tables, "ROWS", 16),
        (flow_sums, "ROWS", 3),
        (division_suppression, "ROWS", 5),
        (division_suppression, "CHUNK", 3),
    ],
    "threads": [(flow_tables, "THREADS", 1), (histograms, "PART", 16)],
    "all": [
        *(
            (histograms, "PART", 3 * 16),
            (histograms, "RANGE", 5),
            (flow_tables, "WORDS", 9),
            (flow_tables, "THREADS", 5),
        ),
        *(
            (flow_tables, "ROWS", 40),
            (flow_sums, "ROWS", 7),
            (division_suppression, "ROWS", 7),
            (division_suppression, "CHUNK", 5),
        ),
    ],
}


@pytest.mark.parametrize("cut", PIECES)
def test_the_numbers_are_the_same_however_the_work_is_cut(
    office: CareersAgency, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    declared = spec(table(layout="lehd", levels=LAID_OUT))
    whole = office.published(declared)
    for module, name, size in PIECES[cut]:
        assert isinstance(getattr(module, name), int)
        monkeypatch.setattr(module, name, size)
    pieces = office.published(declared)
    assert any("/part-" in name for name in pieces) == (cut in ("parts", "threads", "all"))
    tables = {name.split(".")[0] for name in whole if name.endswith(".parquet")}
    assert tables == {name.split(".")[0] for name in pieces if "parquet" in name}
    assert len(tables) == 3 + len(LAID_OUT) + 2
    for name in tables:
        assert read(pieces, name).equals(read(whole, name))
        if name != "flows_measured":
            texts = [read_csv(files, name).to_csv(index=False) for files in (pieces, whole)]
            assert texts[0] == texts[1]


# --- crashes --------------------------------------------------------------------------------------------------------


class Crash(BaseException):
    """Not an error: the end of the process."""


def crash_after(step: int) -> Callable[[str, int, int], None]:
    def observe(name: str, done: int, total: int) -> None:
        if name == "protect flows" and done == step:
            raise Crash

    return observe


@pytest.mark.parametrize("step", [1, 5, 9, 12])
def test_crashed_between_parts_then_resumed(
    office: CareersAgency, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Of four parts: measured, read for weights, corrected."""
    monkeypatch.setattr(histograms, "PART", 4 * 16)
    expected, opened, out = office.published(spec()), office.open(spec()), tmp_path / "out"
    with pytest.raises(Crash):
        opened.run(out, simulation="suite", observe=crash_after(step))
    assert not out.exists()
    opened.resume()
    assert CareersAgency.files(out) == expected
    assert {path.name for path in tmp_path.iterdir()} == {"office", "out"}
    assert opened.ledger.verify().balance("records", opened.ledger.clock().date()).epsilon == 3


def test_measurements_that_were_changed_meanwhile_are_refused(office: CareersAgency, tmp_path: Path) -> None:
    expected, opened, out = office.published(spec()), office.open(spec()), tmp_path / "out"
    touched = []

    def tamper(name: str, done: int, total: int) -> None:
        if name == "protect flows" and done == 1:
            for path in tmp_path.rglob("flows~measured*"):
                kept = pq.read_table(path)
                pq.write_table(pa.table({"count": kept["count"].to_numpy() + 1}).cast(kept.schema), path)
                touched.append(path)

    with pytest.raises(PublishError, match="is not the file that was written"):
        opened.run(out, simulation="suite", observe=tamper)
    assert len(touched) == 1
    opened.resume()
    assert CareersAgency.files(out) == expected


def test_suppression_is_of_the_declaration_and_costs_nothing(office: CareersAgency) -> None:
    for changes in ({}, {"suppress": ...}, {"suppress": {**SUPPRESS, "threshold": "1"}}):
        assert office.open(spec(table(**changes))).plan().total.epsilon == 3
