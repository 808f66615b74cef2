"""The private folder: private, gone afterwards, swept after a crash, never somebody else's."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.engine.workspace import home, sweep, workspace
from discreet.errors import SourceError

HOLD = (
    "import sys, time\nfrom discreet.engine.workspace import workspace\n"
    "with workspace() as folder:\n    (folder / 'x').write_text('SECRET')\n    print(folder, flush=True)\n"
    "    time.sleep(60)\n"
)


def test_private_and_gone(isolated: Path) -> None:
    with workspace() as folder:
        assert folder.stat().st_mode & 0o077 == 0
        assert home().stat().st_mode & 0o077 == 0
        assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 0
        (folder / "spill").write_text("x")
    assert not list(home().iterdir())


def test_gone_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), workspace():
        1 / 0  # noqa: B018
    assert not list(home().iterdir())


def test_a_living_process_keeps_its_folder_a_dead_one_is_swept() -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        with workspace() as mine:
            assert folder.exists()
            assert mine != folder
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert folder.exists()
    sweep()
    assert not folder.exists()


def test_a_folder_that_others_can_enter_is_refused(isolated: Path) -> None:
    (isolated / "tmp").mkdir(mode=0o755)
    with pytest.raises(SourceError, match="not a private folder"), workspace():
        pass


def test_a_link_is_refused(isolated: Path) -> None:
    (isolated / "elsewhere").mkdir(mode=0o700)
    (isolated / "tmp").symlink_to(isolated / "elsewhere")
    with pytest.raises(SourceError, match="not a private folder"), workspace():
        pass
