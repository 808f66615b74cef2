"""The house as it should be, beyond what import-linter and ruff check: methods are added by their folder and a line of
the registry, published code opens nothing confidential, and modules fit in a head."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet
from discreet import methods
from discreet.methods import METHODS
from discreet.noise.keystore import FileKeyStore
from discreet.pipeline.abandon import abandon
from discreet.pipeline.verify import verify_folder
from discreet.serve.catalogue import TableCatalogue
from support.agency import Agency

SRC = Path(discreet.__file__).parent
TREES = {file.relative_to(SRC).as_posix(): ast.parse(file.read_text("utf-8")) for file in SRC.rglob("*.py")}
PUBLIC = ("post", "publish", "report", "serve")
EXCEPTIONS = {  # each is explained in decision 0047
    "__init__.py": "the public API names declarations for those who type them",
    "pipeline/recode.py": "a recoding is a release of measurements, not a method of tables",
    "pipeline/stored_measurements.py": "likewise",
    "publish/lehd/rules.py": "a measure of LEHD's layout is called as one",
    "serve/pages/texts.py": "descriptions of methods for the pages of the query tool",
    "serve/query_model.py": "what the query tool may do with the tables of a method",
}


# --- no module outside a method's folder knows it ------------------------------------------------------------------


def outside() -> Iterator[tuple[str, ast.Module]]:
    """Every module but those of methods, and the registry."""
    for name, tree in TREES.items():
        inside = name.startswith("methods/") and name.count("/") > 1
        if not inside and name not in EXCEPTIONS and name != "methods/__init__.py":
            yield name, tree


def single_methods(tree: ast.Module) -> Iterator[str]:
    """Where a module imports a single method, or decides by the name of one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            names = [a.name for a in node.names] if modules == ["discreet.methods"] else []
            known = {f"discreet.methods.{name}" for name in (*METHODS, "recode")}
            for module in (*modules, *(f"discreet.methods.{name}" for name in names)):
                if any(module == k or module.startswith(f"{k}.") for k in known):
                    yield f"line {node.lineno} imports {module}"
        decided = []
        if isinstance(node, ast.Compare):
            decided = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            decided = [node.value]
        elif isinstance(node, ast.Dict):
            decided = [key for key in node.keys if key is not None]
        for part in decided:
            for constant in ast.walk(part):
                if isinstance(constant, ast.Constant) and constant.value in METHODS:
                    yield f"line {node.lineno} decides by {constant.value!r}"
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            classes = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
            if strange := classes & {*METHODS.values(), *(f"{name}Method" for name in METHODS.values())}:
                yield f"line {node.lineno} asks for {', '.join(strange)}"


def test_no_module_outside_its_folder_knows_a_single_method() -> None:
    assert [f"{name}: {what}" for name, tree in outside() for what in single_methods(tree)] == []


@pytest.mark.parametrize(
    "line",
    [
        "from discreet.methods.counts.spec import Counts",
        "def f():\n    from discreet.methods import flows",
        "import discreet.methods.recode.split",
        "if table.method == 'hypercube': pass",
        "if table.method in ('flows', 'earnings'): pass",
        "WORDS = {'employer': 'jobs'}",
        "isinstance(table, Sensitivity)",
        "isinstance(made, (str, CountsMethod))",
    ],
)
def test_one_that_does_would_be_seen(line: str) -> None:
    assert list(single_methods(ast.parse(line)))


def test_every_exception_is_one() -> None:
    needless = [name for name in EXCEPTIONS if not list(single_methods(TREES[name]))]
    assert needless == []


# --- a method is its folder and a line of the registry -------------------------------------------------------------


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A method that nobody has heard of: its folder, and its line."""
    monkeypatch.setattr(
        methods, "__path__", [*methods.__path__, str(Path(__file__).parent / "support" / "toy_methods")]
    )
    monkeypatch.setitem(METHODS, "tally", "Tally")
    yield
    for name in [name for name in sys.modules if name.startswith("discreet.methods.tally")]:
        del sys.modules[name]


def declared(agency: Agency, **changes: object) -> discreet.OpenRelease:
    return agency.release(tables=[{"name": "t", "method": "tally", "by": ["state"], "epsilon": "1", **changes}])


@pytest.mark.usefixtures("toy")
def test_a_new_method_is_planned_checked_run_and_served(agency: Agency) -> None:
    release = declared(agency)
    plan = release.plan()
    assert [(table.method, table.cells) for table in plan.tables] == [("tally", plan.tables[0].cells)]
    assert "two-sided geometric" in str(plan)
    assert release.check().records
    out = agency.folder / "out"
    made = release.run(out)
    assert [table.method for table in made.tables] == ["tally"]
    assert verify_folder(release.ledger, str(out)).release == made.release
    assert set(json.loads((out / "codebook.json").read_text())["tables"]) == {"t"}
    assert [table.summary.method for table in TableCatalogue.of([out]).tables.values()] == ["tally"]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("then", ["resume", "abandon"])
def test_a_new_method_can_be_interrupted(agency: Agency, isolated: Path, then: str) -> None:
    class Crash(BaseException):
        """Not an error: the end of the process."""

    def observe(step: str, done: int, total: int) -> None:
        if step == "write":
            raise Crash

    release, out = declared(agency), agency.folder / "out"
    with pytest.raises(Crash):
        release.run(out, observe=observe)
    keys = FileKeyStore(isolated / "keys")
    if then == "resume":
        assert release.resume().tables[0].method == "tally"
    else:
        abandon(release.ledger, keys, release.spec.release, "a test")
        assert not out.exists()
    assert not keys.names()


@pytest.mark.usefixtures("toy")
def test_what_a_new_method_refuses_is_named(agency: Agency) -> None:
    with pytest.raises(discreet.DiscreetError, match="epsilon"):
        declared(agency, epsilon="-1")


# --- what is published opens nothing -------------------------------------------------------------------------------

CONFIDENTIAL = ("discreet.privacy.confidential", "discreet.engine", "discreet.pipeline", "discreet.noise.key")
CONFIDENTIAL += ("discreet.noise.stream", "duckdb", "ibis", "cryptography")


def test_importing_the_public_side_really_opens_nothing() -> None:
    """In a process of its own, whatever linters make of it."""
    names = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in TREES]
    modules = sorted(f"discreet.{name}" for name in names if name.split(".")[0] in PUBLIC)
    code = f"import sys, importlib\nfor m in {modules!r}: importlib.import_module(m)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert set(modules) <= loaded
    assert [m for m in loaded if any(m == name or m.startswith(f"{name}.") for name in CONFIDENTIAL)] == []


def test_behind_the_wall_nothing_is_imported_by_name_at_run_time() -> None:
    """A linter does not see it."""
    for name, tree in TREES.items():
        if name.split("/")[0] in PUBLIC:
            called = {ast.unparse(node.func).split(".")[-1] for node in ast.walk(tree) if isinstance(node, ast.Call)}
            assert not called & {"import_module", "__import__", "exec", "eval", "spec_from_file_location"}, name


def test_synth_draws_only_from_seeded_generators() -> None:
    """No generator without a seed: `default_rng()` or `SeedSequence()` would ask the operating system."""
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if name.startswith("synth/") and isinstance(node, ast.Call):
                called = ast.unparse(node.func).split(".")[-1]
                if called in {"default_rng", "SeedSequence", "PCG64", "Philox", "Generator"}:
                    assert node.args or node.keywords, f"{name}, line {node.lineno}"
                assert "np.random.seed" not in ast.unparse(node.func)


# --- modules and folders -------------------------------------------------------------------------------------------


def test_modules_and_folders_fit_in_a_head() -> None:
    long = [name for name in TREES if len((SRC / name).read_text("utf-8").splitlines()) >= 400]
    wide = [folder for folder in SRC.rglob("*/") if len(list(folder.glob("*.py"))) > 16]
    assert (long, wide) == ([], [])


def test_no_two_test_files_have_one_name() -> None:
    """pytest imports them by name: the second would not be collected, and a run of one folder does not show it."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
