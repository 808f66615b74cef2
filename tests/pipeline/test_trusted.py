"""A Python file that a declaration names is run by `check` and `run`, and by `plan` only if it is trusted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.api import OpenRelease
from discreet.cli import app
from discreet.errors import ParameterError
from discreet.methods.sensitivity.utility.envelope import envelope
from support.sensitivity import UNIT_INTERVAL, AtlasAgency

LEAVES_A_MARK = """
from pathlib import Path
Path({mark!r}).write_text("run")
def middle(columns):
    Path({mark!r}).write_text("called")
    return float(columns[0].mean())
"""
FUNCTION = {"name": "function", "file": "sent.py", "function": "middle", "of": ["kid_rank"], "scale": "1"}


@pytest.fixture
def atlas(tmp_path: Path) -> AtlasAgency:
    return AtlasAgency(tmp_path / "atlas")


@pytest.fixture
def mark(atlas: AtlasAgency) -> Path:
    """A file that is there once the code has run."""
    mark = atlas.folder / "mark"
    (atlas.folder / "sent.py").write_text(LEAVES_A_MARK.format(mark=str(mark)))
    return mark


@pytest.fixture
def sent(atlas: AtlasAgency, mark: Path) -> OpenRelease:
    table = {"statistic": FUNCTION, "variables": {"kid_rank": UNIT_INTERVAL}, "cell_size": "true", "search": "corners"}
    return atlas.open(**table, delta=None, publish=["estimate", "count"])


def test_a_declaration_is_opened_and_planned_without_running_its_file(sent: OpenRelease, mark: Path) -> None:
    said = str(sent.plan())
    assert not mark.exists()
    assert "sent.py: not run" in said
    assert "--trust" in said


def test_a_plan_runs_the_file_once_it_is_trusted(sent: OpenRelease, mark: Path) -> None:
    actual = sent.plan(trust=True)
    assert "called" in mark.read_text()
    assert "not run" not in str(actual)


ASKED: dict[str, Callable[[OpenRelease, Path], Any]] = {
    "check": lambda sent, out: sent.check(),
    "run": lambda sent, out: sent.run(out, simulation="x"),
    "envelope": lambda sent, out: envelope(sent.spec, None, {}, out),
}


@pytest.mark.parametrize("command", ASKED)
def test_commands_that_read_records_run_the_file(sent: OpenRelease, mark: Path, tmp_path: Path, command: str) -> None:
    ASKED[command](sent, tmp_path / "out")
    assert "called" in mark.read_text()


@pytest.mark.parametrize("command", ASKED)
def test_what_fails_on_synthetic_numbers_fails_before_a_record_is_read(
    sent: OpenRelease, atlas: AtlasAgency, tmp_path: Path, command: str
) -> None:
    (atlas.folder / "sent.py").write_text("def middle(columns):\n    raise ValueError('mine')\n")
    for source in atlas.folder.glob("*.parquet"):
        source.unlink()
    with pytest.raises(ParameterError, match="synthetic observations: ValueError: mine"):
        ASKED[command](sent, tmp_path / "out")


def test_plan_on_the_command_line_runs_it_only_with_trust(sent: OpenRelease, atlas: AtlasAgency, mark: Path) -> None:
    (spec,) = atlas.folder.glob("*.yaml")
    place = ["--ledger", str(sent.ledger.store.place)]
    plain = CliRunner().invoke(app, ["plan", str(spec), *place])
    assert (plain.exit_code, "sent.py: not run" in plain.output, mark.exists()) == (0, True, False)
    told = CliRunner().invoke(app, ["plan", str(spec), *place, "--trust"])
    assert (told.exit_code, "sent.py: not run" in told.output, mark.exists()) == (0, False, True)


def test_other_statistics_have_no_such_note(atlas: AtlasAgency) -> None:
    assert "not run" not in str(atlas.open().plan())
