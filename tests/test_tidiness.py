"""A test that writes outside its own folder fails the run, in one process and in several."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import tidiness

TIDY = "def test_tidy(tmp_path):\n    (tmp_path / 'x').write_text('x')\n"
OFFENDERS = {
    "a ledger in the repository": "open('discreet-ledger.sqlite', 'w').close()",
    "a file in a folder": "import pathlib; (pathlib.Path(__file__).parent / 'left.csv').write_text('x')",
    "a key at home": "import pathlib; (pathlib.Path.home() / '.discreet/keys').mkdir(parents=True); "
    "(pathlib.Path.home() / '.discreet/keys/a.key').write_text('x')",
    "more in a ledger that was there": "open('old.sqlite', 'a').write('more')",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout without .git: hooks, a tidy test and somebody's ledger."""
    folder = tmp_path / "repository"
    (folder / "tests").mkdir(parents=True)
    shutil.copy(tidiness.__file__, folder / "tests/tidiness.py")
    hooks = "pytest_sessionfinish, pytest_sessionstart, pytest_terminal_summary"
    (folder / "tests/conftest.py").write_text(f"from tidiness import {hooks}  # noqa: F401\n")
    (folder / "tests/test_tidy.py").write_text(TIDY)
    (folder / "old.sqlite").write_text("begun")
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(folder.with_name("home")), "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-m", "pytest", "-q", *options, "tests"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_tidy_tests_pass(repository: Path, options: tuple[str, ...]) -> None:
    done = run(repository, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OUTSIDE" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-n", "2")])
@pytest.mark.parametrize("deed", OFFENDERS)
def test_an_offender_fails_the_run(repository: Path, deed: str, options: tuple[str, ...]) -> None:
    (repository / "tests/test_offender.py").write_text(f"def test_offender():\n    {OFFENDERS[deed]}\n")
    done = run(repository, *options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert done.stdout.count("OUTSIDE its own folder a test wrote") == 1


@pytest.mark.parametrize("name", ["pytest_sessionstart", "pytest_sessionfinish", "pytest_terminal_summary"])
def test_this_suite_has_the_hooks(request: pytest.FixtureRequest, name: str) -> None:
    actual = [getattr(plugin, name, None) for plugin in request.config.pluginmanager.get_plugins()]
    assert getattr(tidiness, name) in actual
