"""The code that a reservation is bound to is what determines published bytes, no more; and what an upgrade does."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import grimp
import pytest

import discreet
from discreet.methods import METHODS
from discreet.version import ASIDE, SOURCES, code_version, determines_bytes, package_version
from support.agency import Agency

PACKAGE = Path(discreet.__file__).parent
FILES = sorted(
    path.relative_to(PACKAGE) for path in PACKAGE.rglob("*") if path.is_file() and path.parent.name != "__pycache__"
)
COVERED = [path for path in FILES if determines_bytes(PurePosixPath(path))]
POWER_CUT = 9
INTERRUPTED = f"""
import os, sys, discreet
def power_cut(step, done, total):
    if step == "reserve":
        os._exit({POWER_CUT})
discreet.release(sys.argv[1]).run(sys.argv[2], observe=power_cut)
"""


def is_covered(module: str) -> bool:
    return determines_bytes(PurePosixPath(*module.split(".")[1:], "__init__.py"))


# --- what is covered ------------------------------------------------------------------------------------------------


def test_what_is_covered_imports_nothing_else() -> None:
    """Inside functions too; annotations (`if TYPE_CHECKING`) cost nothing."""
    graph = grimp.build_graph("discreet", exclude_type_checking_imports=True, cache_dir=None)
    covered = {module for module in graph.modules if is_covered(module)}
    wrong = {(one, other) for one in covered for other in graph.find_modules_directly_imported_by(one) - covered}
    assert not wrong
    assert {"discreet.pipeline.run", "discreet.pipeline.recode", "discreet.engine.spark.worker"} <= covered


@pytest.mark.slow
def test_releases_of_every_method_run_nothing_else(tmp_path: Path) -> None:
    """In a fresh process, because what is loaded by name is in no import graph."""
    driver = Path(__file__).with_name("every_method.py")
    path = os.pathsep.join(sys.path)
    ran = subprocess.run(
        [sys.executable, str(driver), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    modules = set(ran.stdout.split())
    methods = set(METHODS)
    assert {f"discreet.methods.{name}.method" for name in methods} < modules
    assert {"discreet.pipeline.recode", "discreet.publish.lehd.pseoe", "discreet.publish.lehd.pseof"} < modules
    assert sorted(module for module in modules if not is_covered(module)) == []


def test_every_kind_of_file_is_known() -> None:
    """What is neither a source nor known to be read by nobody would be missed."""
    assert {path.suffix for path in FILES if ASIDE.isdisjoint(path.parts)} - SOURCES <= {".md", ".typed"}


def test_every_name_is_one_that_there_is() -> None:
    assert {name for path in FILES for name in path.with_suffix("").parts} > ASIDE


# --- what changes it ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another installation of the package, to be edited."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(PACKAGE, folder / "discreet")
    return folder


def versions(site: Path) -> tuple[str, str]:
    """What this copy says of itself."""
    spec = importlib.util.spec_from_file_location("copied", site / "discreet/version.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.code_version(), module.package_version()


class Edited:
    """A file of a copy with a line more, until it is left."""

    def __init__(self, path: Path) -> None:
        self._path, self._before = path, path.read_bytes() if path.exists() else None

    def __enter__(self) -> None:
        status = self._path.stat() if self._before is not None else None
        self._path.write_bytes((self._before or b"") + b"\n# edited\n")
        self._times = (status.st_atime_ns, status.st_mtime_ns) if status else None

    def __exit__(self, *_: object) -> None:
        if self._before is None or self._times is None:
            self._path.unlink()
        else:
            self._path.write_bytes(self._before)
            os.utime(self._path, ns=self._times)


def test_a_copy_is_the_same_code(site: Path) -> None:
    assert versions(site) == (code_version(), package_version())


def test_an_edit_of_what_is_covered_changes_it_and_no_other(site: Path) -> None:
    before = versions(site)
    for path in FILES[:: max(len(FILES) // 60, 1)]:
        with Edited(site / "discreet" / path):
            code, package = versions(site)
        assert (code != before[0]) == (path in COVERED), path
        assert (package != before[1]) == (path.suffix in SOURCES), path
    assert versions(site) == before


@pytest.mark.parametrize(
    ("path", "covered"),
    [
        ("pipeline/run.py", True),
        ("methods/counts/method.py", True),
        ("noise/new_sampler.py", True),
        ("publish/lehd/labels.csv", True),
        ("synth/atlas.py", False),
        ("synth/new.csv", False),
        ("cli/demo.py", False),
        ("serve/api.py", False),
        ("report/plots.py", False),
        ("methods/recode/commands.py", False),
        ("noise/samplers/notes.md", False),
    ],
)
def test_by_name(site: Path, path: str, covered: bool) -> None:
    before = versions(site)[0]
    with Edited(site / "discreet" / path):
        assert (versions(site)[0] != before) == covered


# --- an upgrade while a release is reserved -------------------------------------------------------------------------


def typed(site: Path, agency: Agency, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process of Python with this copy of the package, in the agency's folder."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=agency.folder,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def reserved(site: Path, agency: Agency) -> Agency:
    """An agency with a release that was interrupted right after its reservation."""
    interrupted = typed(site, agency, "-c", INTERRUPTED, agency.spec().name, "out")
    assert interrupted.returncode == POWER_CUT, interrupted.stderr
    return agency


@pytest.mark.slow
def test_an_edit_elsewhere_strands_no_reservation(site: Path, reserved: Agency) -> None:
    with Edited(site / "discreet/synth/atlas.py"), Edited(site / "discreet/report/plots.py"):
        resumed = typed(site, reserved, "-m", "discreet", "resume", "release.yaml")
    assert resumed.returncode == 0, resumed.stderr
    assert (reserved.folder / "out/manifest.json").exists()


@pytest.mark.slow
def test_other_code_is_refused_until_it_is_restored(site: Path, reserved: Agency) -> None:
    resume = ("-m", "discreet", "resume", "release.yaml")
    before = versions(site)[0]
    with Edited(site / "discreet/noise/kernels.py"):
        after = versions(site)[0]
        refused = typed(site, reserved, *resume)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        f"discreet: the code of release 'r1' changed since its reservation ({before} → {after}): the same noise on "
        f"anything else could be differenced away. Resume it with the discreet that is {before}, or `discreet ledger "
        "abandon r1`: its cost stays spent."
    )
    assert "Traceback" not in refused.stderr
    assert not (reserved.folder / "out").exists()
    assert typed(site, reserved, *resume).returncode == 0


@pytest.mark.slow
def test_other_code_can_abandon_it_and_its_cost_stays_spent(site: Path, reserved: Agency, isolated: Path) -> None:
    assert list((isolated / "keys").glob("*.key"))
    with Edited(site / "discreet/noise/kernels.py"):
        abandoned = typed(site, reserved, "-m", "discreet", "ledger", "abandon", "r1", "--reason", "upgraded")
        again = typed(site, reserved, "-m", "discreet", "resume", "release.yaml")
    assert abandoned.returncode == 0, abandoned.stderr
    assert "the cost stays spent" in abandoned.stdout
    assert "was abandoned" in again.stderr
    assert not list((isolated / "keys").glob("*.key"))
    chain = discreet.ledger(reserved.ledger_path).verify()
    assert chain.releases()["r1"].status == "abandoned"
    assert chain.balance("graduates", discreet.ledger(reserved.ledger_path).clock().date()).epsilon == 2
