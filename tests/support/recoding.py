"""Synthetic data for tests of recoding: programmes in an old and a new classification, graduates with pay and jobs.

Of the old four-digit codes 01.01 stays, 01.09 splits across families, 03.01 and 03.02 merge, 52.02 splits inside its
family, and 22.03 is deleted. Of the families 01 splits.
"""

from __future__ import annotations

import csv
import datetime as dt
import itertools
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import yaml

import discreet
from discreet.api import OpenRelease, set_budget
from discreet.noise.keystore import default_keys
from discreet.privacy.ledger.ledger import Ledger
from discreet.publish.folder import FolderOutput, Owner
from discreet.publish.measurements import MeasuredTable, Measurements

Groups = dict[tuple[str, ...], np.ndarray[Any, np.dtype[np.int64]]]
CLOCK = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
NONCE = "0" * 32
CROSSWALK = (
    ("01.0101", "01.0101", "No substantive changes"),
    ("01.0901", "01.0901", "No substantive changes"),
    ("01.0902", "02.0101", "Moved to"),
    ("03.0101", "03.0201", "Moved to"),
    ("03.0201", "03.0201", "No substantive changes"),
    ("52.0201", "52.0201", "No substantive changes"),
    ("52.0202", "52.1001", "Moved to"),
    ("22.0301", "", "Deleted"),
    ("", "22.0001", "New"),
    ("", "22.0101", "New"),
)
OVERRIDES = (("22.03", "22.00", "0.25"), ("22.03", "22.01", "0.75"), ("22", "22", "1"))
ASTER, BIRCH = "00100100", "00100200"
OFFERED = (
    (ASTER, "05", ("01.0101", "01.0901", "01.0902", "03.0101", "03.0201", "52.0201", "22.0301"), "44"),
    (ASTER, "18", ("52.0201", "52.0202"), "44"),
    (BIRCH, "05", ("01.0901", "03.0201", "52.0202"), "06"),
    (BIRCH, "18", ("01.0101", "22.0301"), "06"),
)
COMPLETIONS = (
    (ASTER, "05", "2010", "01.0901", 30),
    (ASTER, "05", "2010", "01.0902", 10),
    (ASTER, "05", "2013", "01.0901", 20),
    (ASTER, "05", "2010", "52.0201", 12),
    (ASTER, "18", "2010", "52.0201", 5),
    (ASTER, "18", "2010", "52.0202", 15),
)
COHORTS, YEARS = ("2010", "2013"), ("1", "5")
INDUSTRIES, STATES = ("11", "52", "62"), (("44", "1"), ("09", "1"), ("06", "9"))
BORDERS = (1, 20_000, 40_000, 60_000, 100_000)
COLUMNS = ("institution", "degree_level", "cipcode", "cip4", "cip2", "home_state")
RECORD = (
    "person_id",
    "institution",
    "degree_level",
    "cipcode",
    "grad_cohort",
    "years_after",
    "pay",
    "industry",
    "state",
)
WHEN = ["grad_cohort", "years_after"]
SHARES = [["institution", "degree_level", "grad_cohort"], ["institution", "degree_level"], ["degree_level"], []]
RECODE: dict[str, Any] = {
    "measurements": "kept/old",
    "columns": {"cip4": 5, "cip2": 2},
    "crosswalk": {"file": "crosswalk.csv", "old": "old", "new": "new", "action": "action", "deleted": ["Deleted"]},
    "history": {"file": "completions.csv", "old": "cipcode", "number": "awards"},
    "shares": SHARES,
    "smallest_weight": "0.001",
    "overrides": "overrides.csv",
}
EARNINGS: dict[str, Any] = {
    "name": "earnings",
    "method": "earnings",
    "by": ["programme4", *WHEN],
    "value": "pay",
    "epsilon": "3",
    "bins": {"edges": list(BORDERS)},
    "levels": [
        {"name": "earnings_family", "by": ["family", *WHEN]},
        {"name": "earnings_school", "by": ["school", *WHEN]},
    ],
}
FAMILIES = {**EARNINGS, "name": "families", "by": ["family", *WHEN], "epsilon": "3/2", "levels": []}
FLOWS: dict[str, Any] = {
    "name": "flows",
    "method": "flows",
    "by": ["programme4", *WHEN],
    "industry": "industry",
    "state": "state",
    "home_state": "home",
    "epsilon": "3/2",
    "levels": [
        {"name": "flows_family", "by": ["family", *WHEN], "to": ["industry"]},
        {"name": "flows_school", "by": ["school", *WHEN], "to": ["division"]},
    ],
}
FAMILY_FLOWS = {**FLOWS, "name": "family_flows", "by": ["family", *WHEN], "levels": []}
TABLES = (EARNINGS, FAMILIES, FLOWS, FAMILY_FLOWS)
PERSON = {"person": "person_id", "max_records": 3}


def domains(programmes: str) -> dict[str, Any]:
    """What tables are by; `programmes` is the list of groups."""
    return {
        "programme": {
            "groups": programmes,
            "columns": ["institution", "degree_level", "cipcode"],
            "coarser": {
                "programme4": ["institution", "degree_level", "cip4"],
                "family": ["institution", "degree_level", "cip2"],
                "school": ["institution", "degree_level"],
                "home": ["home_state"],
            },
            "provenance": "made up",
        },
        "grad_cohort": {"values": list(COHORTS)},
        "years_after": {"values": list(YEARS)},
        "industry": {"values": list(INDUSTRIES)},
        "geography": {"hierarchy": "states.csv", "levels": ["state", "division"], "column": "state"},
    }


def old_programmes() -> list[tuple[str, ...]]:
    return [(i, d, c, c[:5], c[:2], home) for i, d, codes, home in OFFERED for c in codes]


def new_programmes() -> list[tuple[str, ...]]:
    """Everything that an old code may become, at two digits as well as at four."""
    possible: dict[str, dict[str, None]] = {"22": {"22.0001": None, "22.0101": None}}
    for old, new, _ in CROSSWALK:
        if old and new:
            possible.setdefault(old[:2], {})[new] = None
    actual = ((i, d, c, c[:5], c[:2], h) for i, d, codes, h in OFFERED for o in codes for c in possible[o[:2]])
    return list(dict.fromkeys(actual))


def graduates(a_cell: int = 60, seed: int = 7) -> pa.Table:
    """So many graduates of every programme, cohort and year, a person for each record; some without a job. One
    programme has nearly none, so that noise makes negative numbers."""
    drawn, people = np.random.default_rng(seed), itertools.count()
    rows: list[tuple[Any, ...]] = []
    for (i, d, c, *_), cohort, years in itertools.product(old_programmes(), COHORTS, YEARS):
        size = 1 if (i, c) == (BIRCH, "22.0301") else a_cell
        for pay in np.exp(drawn.normal(10.6, 0.7, size)).astype(int).tolist():
            job = ("ZZ", "Z") if drawn.random() < 0.2 else (str(drawn.choice(INDUSTRIES)), str(drawn.choice(STATES)[0]))
            rows.append((f"P{next(people):06}", i, d, c, cohort, years, pay, *job))
    kinds = [*[pa.string()] * 6, pa.int64(), pa.string(), pa.string()]
    columns = zip(RECORD, zip(*rows, strict=True), kinds, strict=True)
    return pa.table({name: pa.array(column, kind) for name, column, kind in columns})


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


@dataclass(frozen=True)
class MeasurementFolder:
    """The noisy measurements stored in a folder."""

    about: Measurements
    counts: Mapping[str, np.ndarray[Any, np.dtype[np.int64]]]

    def table(self, name: str) -> MeasuredTable:
        return next(table for table in self.about.tables if table.name == name)

    def groups(self, name: str) -> Groups:
        """The numbers of each group, by its codes."""
        table = self.table(name)
        keys = itertools.product(*(attribute.categories for attribute in table.attributes))
        return {sum(key, ()): row for key, row in zip(keys, self.counts[name], strict=True)}

    def sums(self, name: str, left_out: int = 2) -> Groups:
        """Totals of whatever does not change: the code, at this place of the key, is added up."""
        actual: Groups = {}
        for key, row in self.groups(name).items():
            rest = key[:left_out] + key[left_out + 1 :]
            actual[rest] = actual.get(rest, np.zeros_like(row)) + row
        return actual

    def draws(self, name: str) -> dict[tuple[str, ...], int]:
        draws = self.table(name).draws or (1,) * self.table(name).groups
        return dict(zip(self.groups(name), draws, strict=True))


def read_measurements(folder: Path) -> MeasurementFolder:
    about = Measurements.model_validate_json((folder / "measurements.json").read_bytes())
    counts = {}
    for table in about.tables:
        pieces = [pq.read_table(folder / name)["count"].to_numpy() for name in sorted(table.files)]
        counts[table.name] = np.concatenate(pieces).reshape(-1, table.width)
    return MeasurementFolder(about, counts)


def read_rows(out: Path, name: str) -> list[dict[str, Any]]:
    """A published table of a simulation."""
    actual: list[dict[str, Any]] = ds.dataset(out / f"{name}.simulation.parquet").to_table().to_pylist()
    return actual


def contents(folder: Path) -> dict[str, bytes]:
    """Every file, also in folders."""
    files = sorted(path for path in folder.rglob("*") if not path.is_dir())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def without_head(folder: Path) -> dict[str, bytes]:
    """Every file, without what the manifest says about the ledger."""
    files = contents(folder)
    manifest = json.loads(files["manifest.json"])
    del manifest["ledger"]
    return {**files, "manifest.json": json.dumps(manifest).encode()}


class RunCrash(BaseException):
    """Not an error: the end of the process."""


class Watch:
    """Counts the steps of a run, and ends it at one of them."""

    def __init__(self, last: str = "") -> None:
        self.seen, self.last = list[str](), last

    def __call__(self, step: str, done: int, total: int) -> None:
        if done == 0:
            return
        self.seen.append(f"{step}#{1 + sum(before.startswith(f'{step}#') for before in self.seen)}")
        if self.seen[-1] == self.last:
            raise RunCrash


def forget_ledger(nonce: str) -> None:
    """A ledger that is made anew with the same nonce is another one."""
    default_keys().remember(nonce, b"")


class RecodingOffice:
    """A folder with graduates, public files and a simulation ledger that all its releases share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def founded(cls, folder: Path) -> RecodingOffice:
        """With everything but a release."""
        folder.mkdir(parents=True)
        office = cls(folder)
        write_csv(folder / "programmes.csv", COLUMNS, old_programmes())
        write_csv(folder / "programmes_new.csv", COLUMNS, new_programmes())
        write_csv(folder / "crosswalk.csv", ("old", "new", "action"), CROSSWALK)
        write_csv(folder / "overrides.csv", ("from", "to", "share"), OVERRIDES)
        write_csv(folder / "states.csv", ("state", "division"), STATES)
        header = ("institution", "degree_level", "grad_cohort", "cipcode", "awards")
        write_csv(folder / "completions.csv", header, COMPLETIONS)
        pq.write_table(graduates(), folder / "graduates.parquet")
        forget_ledger(NONCE)
        ledger = office.ledger
        ledger.create("simulation", nonce=NONCE)
        unit = {"kind": "person", "column": "person_id"}
        set_budget(ledger, "graduates", epsilon="100", unit=unit, kind="simulation")
        return office

    def copied(self, folder: Path) -> RecodingOffice:
        """As if there had never been another."""
        shutil.copytree(self.folder, folder)
        forget_ledger(NONCE)
        return RecodingOffice(folder)

    @property
    def ledger(self) -> Ledger:
        return discreet.ledger(self.folder / "discreet-ledger.sqlite", clock=lambda: CLOCK)

    def staging(self, out: str, release: str) -> Path:
        """Where a release is prepared that goes to `out`."""
        return FolderOutput(self.folder / out, Owner(NONCE, release)).staging

    @property
    def spent(self) -> Any:
        return self.ledger.chain().balance("graduates", CLOCK.date()).epsilon

    def measuring(self, *tables: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
        """A release of records that keeps its measurements; `...` takes a key away."""
        return _declared(
            {
                "release": "old",
                "asset": "graduates",
                "source": {"graduates": "graduates.parquet"},
                "keep_measurements": "kept/old",
                "unit": PERSON,
                "domains": domains("programmes.csv"),
                "tables": [dict(table) for table in tables or TABLES],
                **changes,
            }
        )

    def recoding(self, *tables: Mapping[str, Any], recode: Mapping[str, Any] | None = None, **changes: Any) -> Any:
        """A release made of them; `recode` changes some of its keys."""
        return _declared(
            {
                "release": "new",
                "asset": "graduates",
                "recode": _declared({**RECODE, **(recode or {})}),
                "keep_measurements": "kept/new",
                "unit": PERSON,
                "domains": domains("programmes_new.csv"),
                "tables": [dict(table) for table in tables or TABLES],
                **changes,
            }
        )

    def open(self, spec: Mapping[str, Any], ledger: Ledger | None = None) -> OpenRelease:
        path = self.folder / f"{spec['release']}.yaml"
        path.write_text(yaml.safe_dump(json.loads(json.dumps(spec))))  # no aliases
        return discreet.release(path, ledger=ledger or self.ledger)

    def measure(self, *tables: Mapping[str, Any], **changes: Any) -> Path:
        """Run a release of records; the folder that it is published in."""
        spec = self.measuring(*tables, **changes)
        out = self.folder / f"out-{spec['release']}"
        self.open(spec).run(out, simulation="suite")
        return out

    def recode(self, *tables: Mapping[str, Any], recode: Mapping[str, Any] | None = None, **changes: Any) -> Path:
        """Run a recoding; the folder that it is published in."""
        spec = self.recoding(*tables, recode=recode, **changes)
        out = self.folder / f"out-{spec['release']}"
        self.open(spec).run(out)
        return out

    def kept(self, release: str) -> MeasurementFolder:
        return read_measurements(self.folder / "kept" / release)


def _declared(spec: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if value is not ...}


@contextmanager
def _own_home(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_KEYS", str(folder / "keys"))
        patch.setenv("DISCREET_TMP", str(folder / "tmp"))
        yield


@pytest.fixture(scope="session")
def measured_office(tmp_path_factory: pytest.TempPathFactory) -> RecodingOffice:
    """One whose old release is out. To look at, not to touch."""
    folder = tmp_path_factory.mktemp("recoders")
    with _own_home(folder):
        office = RecodingOffice.founded(folder / "office")
        office.measure()
    return office


@pytest.fixture(scope="session")
def recoded_office(tmp_path_factory: pytest.TempPathFactory, measured_office: RecodingOffice) -> RecodingOffice:
    """One whose new release is out, too. To look at, not to touch."""
    folder = tmp_path_factory.mktemp("recoded")
    with _own_home(folder):
        office = measured_office.copied(folder / "office")
        office.recode()
    return office


@pytest.fixture
def office(measured_office: RecodingOffice, tmp_path: Path) -> RecodingOffice:
    """One whose old release is out, to work with."""
    return measured_office.copied(tmp_path / "office")
