"""A recoding in the ledger: one entry with ε 0, against which folders are verified."""

from __future__ import annotations

import datetime as dt
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.cli.output import ledger_lines
from discreet.errors import DiscreetError, PublishError
from discreet.pipeline.verify import verify_folder
from discreet.publish.manifest import FILE, read
from support.forged_manifests import forge_manifest
from support.recoding import CLOCK, EARNINGS, RecodingOffice, contents

ONE = {**EARNINGS, "levels": []}


@pytest.fixture
def done(recoded_office: RecodingOffice, tmp_path: Path) -> RecodingOffice:
    """One whose new release is out, to tamper with."""
    return recoded_office.copied(tmp_path / "office")


def test_the_entry_says_what_was_made_of_what(recoded_office: RecodingOffice) -> None:
    chain = recoded_office.ledger.verify()
    derived, entry = chain.derived()["new"]
    assert entry == chain.entries[-1]
    assert (derived.of, derived.cost, derived.asset) == ("old", "0", "graduates")
    assert derived.files.keys() == contents(recoded_office.folder / "out-new").keys() - {FILE}
    assert derived.kept == chain.kept("new")
    assert derived.kept.keys() == contents(recoded_office.folder / "kept/new").keys()
    assert derived.output.endswith("out-new")
    assert derived.keep.endswith("kept/new")
    made = read(recoded_office.folder / "out-new")
    assert (made.ledger.entry, made.ledger.head, made.reserved) == (entry.number, entry.hash, CLOCK.date())


def test_nothing_is_spent(recoded_office: RecodingOffice, measured_office: RecodingOffice) -> None:
    assert recoded_office.spent == measured_office.spent == Fraction(15, 2)
    chain = recoded_office.ledger.chain()
    assert chain.lifetime("graduates") == measured_office.ledger.chain().lifetime("graduates")
    assert len(chain.entries) == len(measured_office.ledger.chain().entries) + 1


def test_a_recoding_needs_no_budget_left(office: RecodingOffice) -> None:
    unit = {"kind": "person", "column": "person_id"}
    discreet.api.set_budget(office.ledger, "graduates", epsilon="15/2", unit=unit, kind="simulation")
    assert office.ledger.chain().balance("graduates", CLOCK.date()).epsilon_left == 0
    office.recode(ONE)
    assert office.spent == Fraction(15, 2)


def test_a_derived_folder_is_verified(recoded_office: RecodingOffice) -> None:
    for path in (recoded_office.folder / "out-new", recoded_office.folder / "out-new" / FILE):
        assert verify_folder(recoded_office.ledger, path).release == "new"
    assert verify_folder(recoded_office.ledger, recoded_office.folder / "out-old").release == "old"


def test_any_changed_file_is_found(done: RecodingOffice) -> None:
    out = done.folder / "out-new"
    for path in sorted(out.iterdir()):
        if path.name == FILE:  # of which the ledger knows what was promised, not every sentence
            continue
        whole = path.read_bytes()
        for place in (0, len(whole) // 2, len(whole) - 2):
            changed = bytearray(whole)
            changed[place] ^= 1
            path.write_bytes(changed)
            with pytest.raises(DiscreetError):
                verify_folder(done.ledger, out)
        path.unlink()
        with pytest.raises(DiscreetError):
            verify_folder(done.ledger, out)
        path.write_bytes(whole)
    (out / "more.csv").write_text("x")
    with pytest.raises(PublishError, match="files that are not those that were committed"):
        verify_folder(done.ledger, out)
    (out / "more.csv").unlink()
    assert verify_folder(done.ledger, out).release == "new"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("derived_from", ""),
        ("derived_from", "other"),
        ("asset", "other"),
        ("spec", "0" * 64),
        ("code", "0"),
        ("reserved", "2026-01-03"),
        ("simulation", False),
        ("files", {}),
    ],
)
def test_a_changed_manifest_is_found(done: RecodingOffice, key: str, value: Any) -> None:
    path = done.folder / "out-new" / FILE
    text = json.loads(path.read_text())
    assert text[key] != value
    forge_manifest(done.folder / "out-new", lambda text: text.update({key: value}))
    with pytest.raises(DiscreetError, match=r"manifest|is not in the ledger"):
        verify_folder(done.ledger, done.folder / "out-new")


def test_a_guarantee_other_than_the_reserved_one_is_detected(done: RecodingOffice) -> None:
    forge_manifest(done.folder / "out-new", lambda text: text["guarantee"].update(epsilon="1"))
    with pytest.raises(PublishError, match="manifest that is not the one that was committed"):
        verify_folder(done.ledger, done.folder / "out-new")


def test_a_ledger_that_was_rolled_back_is_found(
    recoded_office: RecodingOffice, measured_office: RecodingOffice
) -> None:
    with pytest.raises(DiscreetError, match="rolled back"):
        verify_folder(measured_office.ledger, recoded_office.folder / "out-new")


def test_the_terminal_shows_it(recoded_office: RecodingOffice) -> None:
    lines = ledger_lines(recoded_office.ledger)
    (line,) = [line for line in lines if " new: " in line]
    assert "2026-01-02 03:04 new: epsilon 0 on graduates, derived from old, by " in line
    assert any("spent 7.5, left 92.5" in line for line in lines)
    assert any("ever spent: epsilon 7.5, delta 0" in line for line in lines)


def test_from_the_command_line(office: RecodingOffice) -> None:
    office.open(office.recoding(ONE))
    spec, out = str(office.folder / "new.yaml"), str(office.folder / "out-new")
    ledger = ["--ledger", str(office.folder / "discreet-ledger.sqlite")]

    def output(*arguments: str) -> str:
        actual = CliRunner().invoke(app, list(arguments))
        assert actual.exit_code == 0, actual.output
        return actual.output

    assert "recoded, no additional epsilon" in output("plan", spec, *ledger)
    text = output("run", spec, "--out", out, *ledger)
    assert (
        f"Published new in {out}: 1 table, no additional privacy loss: post-processing of the measurements of old"
        in text
    )
    assert "SIMULATION" in text
    assert f"Published new in {out}" in output("resume", spec, *ledger)
    number = len(contents(office.folder / "out-new")) - 1
    verified = output("ledger", "verify", "--manifest", out, *ledger)
    assert f"new: manifest and {number} files are those that were committed" in verified
    assert "derived from old" in output("ledger", "show", *ledger)


def test_a_clock_that_is_a_little_behind_changes_nothing(office: RecodingOffice) -> None:
    """At midnight: the entry takes the time of the one before it, and the manifest its day."""
    midnight = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
    unit = {"kind": "person", "column": "person_id"}
    path = office.folder / "discreet-ledger.sqlite"
    ahead = discreet.ledger(path, clock=lambda: midnight)
    behind = discreet.ledger(path, clock=lambda: midnight - dt.timedelta(seconds=5))
    discreet.api.set_budget(ahead, "graduates", epsilon="100", unit=unit, kind="simulation")
    office.open(office.recoding(ONE), behind).run(office.folder / "out-new")
    assert behind.chain().derived()["new"][0].time == midnight
    assert verify_folder(behind, office.folder / "out-new").reserved == midnight.date()
