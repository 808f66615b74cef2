"""The house's one-way streets, walked over the import graph; and that a wrong turn would be seen."""

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import discreet

SRC = Path(discreet.__file__).parent
ENTROPY = {
    "cryptography",
    "secrets",
    "random",
    "os.urandom",
    "os.getrandom",
    "uuid.uuid1",
    "uuid.uuid4",
    "numpy.random",
}
ENGINES = {"duckdb", "ibis", "pyspark", "sqlglot"}
CONFIDENTIAL = {
    "discreet.privacy.confidential",
    "discreet.privacy.reservation",
    "discreet.engine",
    "discreet.methods",
    "discreet.pipeline",
    "discreet.noise.key",
    "discreet.noise.keystore",
    "discreet.noise.stream",
}


def module_name(file: Path, root: Path) -> str:
    parts = [root.name, *file.relative_to(root).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Uses(ast.NodeVisitor):
    """What a module imports when it runs, inside functions too; annotations (`if TYPE_CHECKING`) cost nothing."""

    def __init__(self, package: str) -> None:
        self.package, self.names, self.dynamic = package, set[str](), set[str]()

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test) and "not" not in ast.unparse(node.test):
            for other in node.orelse:
                self.visit(other)
        else:
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.names |= {alias.name for alias in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            up = self.package.split(".")
            base = ".".join([*up[: len(up) - node.level + 1], *([base] if base else [])])
        self.names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}

    def visit_Attribute(self, node: ast.Attribute) -> None:
        text = ast.unparse(node)
        text = {"np": "numpy"}.get(text.split(".")[0], text.split(".")[0]) + text[len(text.split(".")[0]) :]
        if any(text == e or text.startswith(f"{e}.") for e in ENTROPY if "." in e):
            self.names.add(text)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = ast.unparse(node.func)
        if name.split(".")[-1] in {"import_module", "__import__", "exec", "eval", "spec_from_file_location"}:
            self.dynamic.add(name)
        self.generic_visit(node)


def uses(text: str, package: str) -> Uses:
    found = Uses(package)
    found.visit(ast.parse(text))
    return found


def read(root: Path) -> dict[str, Uses]:
    out = {}
    for file in root.rglob("*.py"):
        name = module_name(file, root)
        package = name if file.stem == "__init__" else name.rpartition(".")[0]
        out[name] = uses(file.read_text(encoding="utf-8"), package)
    return out


GRAPH = read(SRC)


def part(name: str) -> str:
    """`discreet.noise.key` is part of `noise`; `discreet.spec` of `spec`."""
    return name.split(".")[1] if "." in name else ""


def hits(names: Iterable[str], forbidden: set[str]) -> set[str]:
    return {n for n in names if any(n == f or n.startswith(f"{f}.") for f in forbidden)}


def reach(graph: dict[str, Uses], start: set[str]) -> dict[str, list[str]]:
    """Every module that importing `start` imports in the end (its packages too), with the way there."""
    ways: dict[str, list[str]] = {name: [name] for name in start}
    queue = list(ways)
    while queue:
        name = queue.pop()
        onward = set(graph[name].names) if name in graph else set()
        onward |= {name.rsplit(".", i)[0] for i in range(1, name.count(".") + 1)}
        for other in onward:
            if other not in ways:
                ways[other] = [*ways[name], other]
                queue.append(other)
    return ways


def behind_the_wall(graph: dict[str, Uses]) -> set[str]:
    return {name for name in graph if part(name) in {"post", "publish", "report", "serve"}}


def leaks(graph: dict[str, Uses]) -> list[str]:
    ways = reach(graph, behind_the_wall(graph))
    return [" → ".join(ways[name]) for name in sorted(hits(ways, CONFIDENTIAL))]


def test_the_graph_is_the_whole_house() -> None:
    assert {"post", "publish", "noise", "privacy", "engine", "methods", "spec", "cli"} <= {part(n) for n in GRAPH}
    assert "discreet.privacy.guarantee" in GRAPH["discreet.publish.codebook"].names
    assert len(GRAPH) == sum(1 for _ in SRC.rglob("*.py"))


def test_behind_the_wall_nothing_opens_confidential_data() -> None:
    assert leaks(GRAPH) == []


def test_behind_the_wall_nothing_is_imported_by_name_at_run_time() -> None:
    dynamic = {n: GRAPH[n].dynamic for n in behind_the_wall(GRAPH) if GRAPH[n].dynamic}
    assert dynamic == {}


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("discreet.post.rounding", "from discreet.privacy.confidential import Confidential"),
        ("discreet.post.rounding", "import discreet.engine.duckdb"),
        ("discreet.publish.tables", "def f():\n    from discreet.noise import key"),
        ("discreet.publish.tables", "from ..noise.keystore import FileKeyStore"),
        ("discreet.publish.tables", "from .. import pipeline"),
        ("discreet.publish.manifest", "from discreet import methods"),
        ("discreet.privacy.guarantee", "from discreet.privacy.reservation import Reservation"),  # indirectly
        ("discreet.domain", "import discreet.engine"),  # indirectly
    ],
)
def test_a_wrong_turn_would_be_seen(where: str, line: str) -> None:
    worse = dict(GRAPH)
    worse[where] = uses(line, where.rpartition(".")[0])
    assert leaks(worse)


def test_an_import_for_annotations_only_is_no_import() -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import duckdb\nelse:\n    import numpy"
    assert uses(text, "discreet").names == {"typing", "typing.TYPE_CHECKING", "numpy"}


def test_importing_the_public_side_really_opens_nothing() -> None:
    modules = sorted(behind_the_wall(GRAPH))
    code = f"import sys, importlib\nfor m in {modules!r}: importlib.import_module(m)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert set(modules) <= loaded
    assert hits(loaded, CONFIDENTIAL | {"duckdb", "ibis", "cryptography"}) == set()


def entropy_outside_noise(graph: dict[str, Uses]) -> dict[str, set[str]]:
    """`synth` may draw from NumPy's seeded generators: it invents agencies, it protects nobody."""
    found = {}
    for name, use in graph.items():
        allowed = {"numpy.random"} if part(name) == "synth" else set()
        if part(name) != "noise" and (bad := hits(use.names, ENTROPY - allowed)):
            found[name] = bad
    return found


def test_only_noise_touches_ciphers_and_entropy() -> None:
    assert entropy_outside_noise(GRAPH) == {}
    assert hits(GRAPH["discreet.noise.key"].names, ENTROPY) >= {"os.urandom"}


@pytest.mark.parametrize(
    "line",
    [
        "import secrets",
        "import os\nkey = os.urandom(32)",
        "from os import urandom",
        "import random",
        "import numpy as np\nnp.random.default_rng()",
        "import numpy\nnumpy.random.normal()",
        "from numpy.random import default_rng",
        "from numpy import random",
        "def f():\n    from cryptography.hazmat.primitives import hashes",
    ],
)
def test_entropy_elsewhere_would_be_seen(line: str) -> None:
    assert entropy_outside_noise({"discreet.methods.counts.method": uses(line, "discreet.methods")})


def test_synth_draws_only_from_seeded_generators() -> None:
    """No generator without a seed: `default_rng()` or `SeedSequence()` would ask the operating system."""
    for file in (SRC / "synth").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func).split(".")[-1]
                if called in {"default_rng", "SeedSequence", "PCG64", "Philox", "Generator"}:
                    assert node.args or node.keywords, f"{file.name}, line {node.lineno}"
                assert "np.random.seed" not in ast.unparse(node.func)


def engines_outside_engine(graph: dict[str, Uses]) -> dict[str, set[str]]:
    return {n: bad for n, u in graph.items() if part(n) != "engine" and (bad := hits(u.names, ENGINES))}


def test_only_engine_knows_an_engine() -> None:
    assert engines_outside_engine(GRAPH) == {}
    assert hits(GRAPH["discreet.engine.duckdb"].names, ENGINES)
    assert engines_outside_engine({"discreet.methods.x": uses("import duckdb", "discreet.methods")})
    assert engines_outside_engine({"discreet.methods.x": uses("from ibis import _", "discreet.methods")})


def test_domain_and_privacy_know_no_engine_and_no_method() -> None:
    start = {n for n in GRAPH if part(n) in {"domain", "privacy", "noise", "codelists", "spec", "specfile", "errors"}}
    assert hits(reach(GRAPH, start), ENGINES | {"discreet.engine", "discreet.methods", "discreet.pipeline"}) == set()


def trees() -> Iterable[tuple[str, ast.Module]]:
    for file in SRC.rglob("*.py"):
        yield file.relative_to(SRC).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def test_no_assert_and_no_print() -> None:
    """`python -O` drops assertions; a print may show what must not leave."""
    for name, tree in trees():
        for node in ast.walk(tree):
            assert not isinstance(node, ast.Assert), f"{name}, line {node.lineno}"
            printed = isinstance(node, ast.Call) and ast.unparse(node.func) in {"print", "pprint", "breakpoint"}
            assert not printed, f"{name}, line {getattr(node, 'lineno', 0)}"


def test_nothing_is_swallowed() -> None:
    """No bare `except`, and no `except Exception` that neither raises nor leaves."""
    for name, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler):
                assert node.type is not None, f"{name}, line {node.lineno}"
                if ast.unparse(node.type) in {"Exception", "BaseException"}:
                    body = ast.unparse(ast.Module(node.body, []))
                    assert "raise" in body or "sys.exit" in body, f"{name}, line {node.lineno}"


@pytest.mark.parametrize("file", sorted(SRC.rglob("*.py")), ids=lambda f: f.relative_to(SRC).as_posix())
def test_a_module_fits_in_a_head(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(lines) < 400
    assert not lines or lines[0].startswith(('"""', "#", "from __future__"))


def test_no_two_test_files_have_one_name() -> None:
    """pytest imports them by name: the second would not be collected, and a run of one folder does not show it."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
