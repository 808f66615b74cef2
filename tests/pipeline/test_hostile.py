"""Hostile input, through the command line: one clear line each, nothing written, nothing spent."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from support import processes
from support.agency import SECRET_CODE, SECRET_PERSON, Agency, graduates


def command(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return processes.discreet(*arguments, cwd=cwd, **environment)


def table(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        data["tables"][0][key] = value

    return change


def top(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        data[key] = value

    return change


def without(key: str) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        del data[key]

    return change


def huge(data: dict[str, Any]) -> None:
    data["domains"] = {f"d{i}": {"values": [str(v) for v in range(1000)]} for i in range(7)}
    data["tables"] = [{"name": "t", "method": "counts", "by": list(data["domains"]), "epsilon": "1"}]


HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "float epsilon": (table("epsilon", 1.5), "exact number, found a float"),
    "zero epsilon": (table("epsilon", "0"), "must be above 0, found 0"),
    "negative epsilon": (table("epsilon", "-1.5"), "must be above 0, found -1.5"),
    "epsilon in words": (table("epsilon", "small"), "exact number, found 'small'"),
    "epsilon below any use": (table("epsilon", "1e-30"), "rate"),
    "missing epsilon": (lambda d: d["tables"][0].pop("epsilon"), "'epsilon' is missing"),
    "missing unit": (without("unit"), "'unit' is missing"),
    "unit without max_records": (top("unit", {"person": "person_id"}), "max_records"),
    "max_records of zero": (top("unit", {"person": "person_id", "max_records": 0}), "max_records"),
    "unit within alpha": (
        top("unit", {"establishment": "person_id", "alpha": "0.1", "adversary": "strong"}),
        "not the size of an establishment",
    ),
    "unknown key": (table("epsilno", "1"), "did you mean 'epsilon'"),
    "unknown top key": (top("realease", "x"), "did you mean 'release'"),
    "unknown method": (table("method", "count"), "did you mean 'counts'"),
    "unknown attribute": (table("by", ["stat"]), "did you mean 'state'"),
    "attribute twice": (table("by", ["state", "state"]), "published twice"),
    "empty domain": (top("domains", {"state": {"values": []}, "degree": {"values": ["1"]}}), "no categories"),
    "category twice": (top("domains", {"state": {"values": ["1", "1"]}, "degree": {"values": ["1"]}}), "twice"),
    "number as code": (top("domains", {"state": {"values": [1]}, "degree": {"values": ["1"]}}), "quote it"),
    "domain overflow": (huge, "1e+21 cells"),
    "unreadable file": (top("source", {"graduates": "release.yaml"}), "format"),
    "missing file": (top("source", {"graduates": "nowhere.parquet"}), "does not exist"),
    "column missing": (lambda d: d["domains"]["state"].update(column="stat"), "has no column 'stat'"),
    "bad release name": (top("release", "../../etc/passwd"), "letters, digits"),
    "asset without budget": (top("asset", "other"), "has no budget"),
    "password in the spec": (
        top("source", {"g": {"postgres": "postgresql://u:secret@h/d", "table": "t"}}), "contains a password",
    ),
}  # fmt: skip


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_spec(agency: Agency, isolated: Path, case: str) -> None:
    change, says = HOSTILE[case]
    spec = agency.spec(change)
    before = snapshot(agency.folder)
    refused = command("run", spec, "--out", agency.folder / "out", cwd=agency.folder)
    assert refused.returncode == 1
    assert says in refused.stderr
    message = refused.stderr.strip().splitlines()[-1]
    assert message.startswith("discreet: ")
    assert "Traceback" not in refused.stderr
    assert SECRET_CODE not in refused.stderr
    assert snapshot(agency.folder) == before  # nothing written, nothing spent
    assert not [p for p in isolated.rglob("*") if p.is_file() and p.suffix != ".ledger"]


def test_the_line_of_the_yaml_is_named(agency: Agency) -> None:
    spec = agency.spec()
    spec.write_text(spec.read_text().replace("epsilon: '1.5'", "epsilon: 1.5"))
    line = next(i for i, text in enumerate(spec.read_text().splitlines(), 1) if "epsilon: 1.5" in text)
    refused = command("plan", spec, cwd=agency.folder)
    assert f"release.yaml, line {line}, tables[0].epsilon" in refused.stderr


def test_wrong_column_type(agency: Agency) -> None:
    lists = pa.array([[1]] * graduates().num_rows)
    agency.write(graduates().set_column(1, "state", lists))
    refused = command("run", agency.spec(), "--out", "out", cwd=agency.folder)
    assert refused.returncode == 1
    assert "cannot be matched with codes" in refused.stderr
    assert not (agency.folder / "out").exists()


def test_output_folder_exists(agency: Agency) -> None:
    (agency.folder / "out").mkdir()
    refused = command("run", agency.spec(), "--out", "out", cwd=agency.folder)
    assert refused.returncode == 1
    assert "already exists" in refused.stderr
    assert len(discreet.ledger(agency.ledger_path).chain().entries) == 2


def test_ledger_locked(agency: Agency, monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.privacy.ledger.store import SQLiteStore

    release = agency.release()
    assert isinstance(release.ledger.store, SQLiteStore)
    release.ledger.store.wait = 0.2
    with sqlite3.connect(agency.ledger_path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(discreet.errors.LedgerError, match="locked by another process"):
            release.run(agency.folder / "out")
        other.execute("ROLLBACK")
    assert not (agency.folder / "out").exists()
    assert len(release.ledger.chain().entries) == 2
    release.run(agency.folder / "out")


def test_no_ledger(agency: Agency) -> None:
    agency.ledger_path.unlink()
    refused = command("run", agency.spec(), "--out", "out", cwd=agency.folder)
    assert "does not exist" in refused.stderr
    assert "discreet ledger budget" in refused.stderr
    assert not agency.ledger_path.exists()


def test_the_terminal_says_substitution_and_overspending(tmp_path: Path) -> None:
    budget = ("ledger", "budget", "a", "--epsilon", "4", "--unit", "record", "--neighbours", "substitution")
    said = command(*budget, cwd=tmp_path)
    assert "unit record, neighbours substitution (an add-remove epsilon counts double)." in said.stdout
    recorded = command("ledger", "record", "old", "--asset", "a", "--epsilon", "5", "--note", "2019", cwd=tmp_path)
    assert "spent 5, left 0 (overspent by 1)" in recorded.stdout
    assert "WARNING: the budget of a is overspent by epsilon 1; no release" in recorded.stdout
    shown = command("ledger", "show", cwd=tmp_path)
    assert "ever spent: epsilon 5, delta 0 under substitution\n" in shown.stdout


@pytest.mark.parametrize("name", ["empty", "nulls", "undeclared", "heavy", "null_persons"])
def test_data_that_breaks_the_rules_never_stops_a_release(agency: Agency, name: str) -> None:
    tables = {
        "empty": graduates().slice(0, 0),
        "nulls": pa.table(
            {"person_id": ["p"] * 3, "state": pa.nulls(3, pa.string()), "degree": pa.nulls(3, pa.string())}
        ),
        "undeclared": pa.table({"person_id": ["p"], "state": [SECRET_CODE], "degree": [SECRET_CODE]}),
        "heavy": pa.table({"person_id": [SECRET_PERSON] * 5000, "state": ["01"] * 5000, "degree": ["01"] * 5000}),
        "null_persons": pa.table({"person_id": pa.nulls(2, pa.string()), "state": ["01"] * 2, "degree": ["01"] * 2}),
    }
    agency.write(tables[name])
    done = command("run", agency.spec(), "--out", "out", cwd=agency.folder)
    assert done.returncode == 0, done.stderr
    assert pq.read_table(agency.folder / "out" / "both.parquet").num_rows == 20
    assert SECRET_CODE not in done.stdout + done.stderr
    assert SECRET_PERSON not in done.stdout + done.stderr
    told = command("check", agency.spec(), cwd=agency.folder)
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("CONFIDENTIAL")
    expected = {
        "empty": "0 records read", "nulls": "state: 3 records missing", "undeclared": "1 undeclared are dropped",
        "heavy": "1 has more than 2 records; 4,998 records", "null_persons": "2 records without one are dropped",
    }  # fmt: skip
    assert expected[name] in told.stdout


def test_check_shows_values_only_when_asked(agency: Agency) -> None:
    assert SECRET_CODE not in command("check", agency.spec(), cwd=agency.folder).stdout
    assert SECRET_CODE in command("check", agency.spec(), "--examples", cwd=agency.folder).stdout


def test_the_whole_command_line(agency: Agency) -> None:
    here = agency.folder
    assert "epsilon 10 for all records of one person" in command("plan", agency.spec(), cwd=here).stdout
    done = command("run", agency.spec(), "--out", "out", cwd=here)
    assert "Published r1" in done.stdout
    assert "protect both: done" in done.stderr
    assert "spent 2, left 8" in command("ledger", "show", cwd=here).stdout
    verified = command("ledger", "verify", "--manifest", "out", cwd=here)
    assert "hash chain verified; it contains the given head" in verified.stdout
    recorded = command("ledger", "record", "old", "--asset", "graduates", "--epsilon", "3", "--note", "2019", cwd=here)
    assert "entry 5" in recorded.stdout
    assert "spent 5, left 5" in recorded.stdout
    assert "WARNING" not in recorded.stdout
    assert "spent 5, left 5" in command("ledger", "show", cwd=here).stdout
    again = command("run", agency.spec(), "--out", "out2", cwd=here)
    assert "new name" in again.stderr
    assert command("plan", agency.spec(release="r2", asset="none"), cwd=here).returncode == 1
    with sqlite3.connect(agency.ledger_path) as connection:
        connection.execute("DROP TRIGGER no_update")
        connection.execute(
            'UPDATE entries SET body = replace(body, \'"epsilon":"3"\', \'"epsilon":"1"\') WHERE number = 5'
        )
    broken = command("ledger", "verify", cwd=here)
    assert broken.returncode == 1
    assert "ledger entry 5" in broken.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--epsilon", "0.1.2", "--unit", "record"), "exact number"),
        (("--epsilon", "-1", "--unit", "record"), "above 0"),
        (("--epsilon", "1", "--unit", "persno:x"), "expected record, person:COLUMN"),
        (("--epsilon", "1", "--unit", "establishment:x"), "--alpha"),
        (("--epsilon", "1", "--unit", "record", "--delta", "2"), "delta"),
        (("--epsilon", "1", "--unit", "record", "--from", "2026-13-01"), "start"),
        (("--epsilon", "1", "--unit", "record", "--neighbours", "odd"), "neighbours"),
    ],
)
def test_hostile_budgets(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    refused = command("ledger", "budget", "a", *arguments, cwd=tmp_path)
    assert refused.returncode == 1
    assert says in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "discreet-ledger.sqlite").exists()


def test_help_is_instant_because_nothing_heavy_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom discreet.cli import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "heavy = {'numpy', 'pyarrow', 'duckdb', 'ibis', 'numba', 'flint', 'pydantic', 'cryptography', 'yaml'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_internal_error_keeps_its_message_inside(agency: Agency) -> None:
    code = (
        "import sys\nimport discreet.pipeline.check as c\n"
        f"def boom(*a): raise ValueError({SECRET_CODE!r})\n"
        "c.check = boom\nsys.argv = ['discreet', 'check', 'release.yaml']\n"
        "from discreet.cli import main\nmain()\n"
    )
    agency.spec()
    done = subprocess.run([sys.executable, "-c", code], cwd=agency.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert SECRET_CODE not in done.stderr
    assert "internal error (ValueError" in done.stderr


SLOW = (
    "import sys, time\nimport discreet.engine.lookups as j\nimport discreet.methods.writing as w\n"
    "def wait(*a, **k):\n    print('now', flush=True)\n    time.sleep(60)\n"
    "{patch}\n"
    "sys.argv = ['discreet', 'run', 'release.yaml', '--out', 'out']\nfrom discreet.cli import main\nmain()\n"
)


@pytest.mark.slow
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ("j._check = wait", "`discreet ledger show` says whether a release is reserved"),
        ("w.write_table = wait", "epsilon 2 is spent. Complete it with `discreet resume`"),
    ],
)
def test_an_interrupt_says_what_was_spent_and_leaves_nothing(
    agency: Agency, isolated: Path, number: str, patch: str, says: str
) -> None:
    agency.spec()
    code = SLOW.format(patch=patch)
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=agency.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "now\n"
        process.send_signal(getattr(signal, number))
        _, error = process.communicate(timeout=30)
    assert process.returncode in (1, 130)
    assert says in error
    assert not list((isolated / "tmp").iterdir())
