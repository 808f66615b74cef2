"""Attacks: locations that coincide, entries that claim too much, numbers that stop a reserved release."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import DiscreetError, LedgerError, ParameterError, PublishError
from discreet.privacy.ledger.events import DerivedRelease
from discreet.publish.folder import FolderOutput, Owner
from support.recoding import CLOCK, EARNINGS, FLOWS, RecodingOffice, contents, write_csv


def unspent(office: RecodingOffice, spec: dict[str, Any], out: Path, error: type[DiscreetError], match: str) -> None:
    head, spent = office.ledger.chain().head, office.spent
    with pytest.raises(error, match=match):
        office.open(spec).run(out, simulation="suite")
    assert (office.ledger.chain().head, office.spent) == (head, spent)
    assert not out.exists()


@pytest.mark.parametrize("value", ["1e-50", "1e-300"])
def test_controls_that_no_correction_takes_are_refused_before_the_reservation(tmp_path: Path, value: str) -> None:
    office = RecodingOffice.founded(tmp_path / "office")
    rows = [(s, k, value if (s, k) == ("44", "11") else 5) for s in ("44", "09", "06") for k in ("11", "52", "62")]
    write_csv(office.folder / "employment.csv", ("state", "industry", "employment"), rows)
    flows = {**FLOWS, "correction": {"employment": "employment.csv"}}
    unspent(office, office.measuring(flows), office.folder / "out", ParameterError, "tables.flows.correction")


def test_a_name_too_long_for_a_folder(tmp_path: Path) -> None:
    office = RecodingOffice.founded(tmp_path / "office")
    long = office.measuring(EARNINGS, keep_measurements=f"kept/{'k' * 256}")
    unspent(office, long, office.folder / "out", PublishError, "too long a name")
    short, head = office.measuring(EARNINGS), office.ledger.chain().head
    with pytest.raises(PublishError, match="too long a name"):
        office.open(short).run(office.folder / ("k" * 256), simulation="suite")
    assert office.ledger.chain().head == head


def test_what_is_staged_has_a_short_name_however_long_the_others_are(tmp_path: Path) -> None:
    office, name = RecodingOffice.founded(tmp_path / "office"), "k" * 255
    long = office.measuring(EARNINGS, release="r" * 100, keep_measurements=f"kept/{name}")
    office.open(long).run(office.folder / name, simulation="suite")
    assert {path.name for path in (office.folder / "kept").iterdir()} == {name}


def test_a_location_where_another_release_keeps_measurements_is_refused(tmp_path: Path) -> None:
    office = RecodingOffice.founded(tmp_path / "office")
    office.measure(EARNINGS)
    shutil.rmtree(office.folder / "kept/old")  # gone for now, not given up
    again = office.measuring(EARNINGS, release="other")
    unspent(office, again, office.folder / "out-other", PublishError, "is where release 'old' keeps its measurements")


@pytest.mark.parametrize("out", ["out", "kept/out"])
@pytest.mark.parametrize("below", ["", "kept"])
def test_a_staging_folder_cannot_keep_measurements(tmp_path: Path, out: str, below: str) -> None:
    office = RecodingOffice.founded(tmp_path / "office")
    output = FolderOutput(office.folder / out, Owner("0" * 32, "old"))
    for _, place in output.occupied_paths:
        spec = office.measuring(EARNINGS, keep_measurements=str(Path(place, below)))
        unspent(office, spec, output.folder, PublishError, "place of what is published")


def test_forged_measurements_have_no_guarantee(measured_office: RecodingOffice, tmp_path: Path) -> None:
    """A ledger's writer enters a derivation whose measurements claim less than was paid: nobody publishes of it."""
    office = measured_office.copied(tmp_path / "office")
    fake = office.folder / "kept/fake"
    shutil.copytree(office.folder / "kept/old", fake)
    about = json.loads((fake / "measurements.json").read_text())
    about["release"], about["guarantee"]["epsilon"] = "fake", "1/1000"
    (fake / "measurements.json").write_text(json.dumps(about))
    kept = {name: hashlib.sha256(data).hexdigest() for name, data in contents(fake).items()}
    entry = derived("fake", "graduates", "old", kept)
    office.ledger.derive(entry, simulated=True)
    head = office.ledger.chain().head
    spec = office.recoding(EARNINGS, recode={"measurements": "kept/fake"})
    with pytest.raises(LedgerError, match="claim another asset or guarantee than was reserved"):
        office.open(spec).run(office.folder / "out-new")
    assert office.ledger.chain().head == head


def test_what_is_derived_is_of_the_same_asset(measured_office: RecodingOffice, tmp_path: Path) -> None:
    office = measured_office.copied(tmp_path / "office")
    office.ledger.derive(derived("strange", "another", "old", {}), simulated=True)
    with pytest.raises(LedgerError, match="derives 'strange' from what was not kept"):
        office.ledger.verify()


def derived(release: str, asset: str, of: str, kept: dict[str, str]) -> DerivedRelease:
    made = {"spec": "0" * 64, "code": "x", "output": "/x", "files": {}, "manifest": "", "who": "me", "time": CLOCK}
    return DerivedRelease(release=release, asset=asset, of=of, kept=kept, **made)
