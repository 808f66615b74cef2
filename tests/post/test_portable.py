"""Published numbers are not computed by BLAS, whose summation order depends on the processor (ADR 0061)."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.post import elementwise
from discreet.post.portable import inner, norm

SOURCE = Path(discreet.__file__).parent
PACKAGES = ("engine", "methods", "noise", "pipeline", "post", "privacy", "publish")
BLAS = {"convolve", "corrcoef", "correlate", "cov", "dot", "einsum", "inner", "lstsq", "matmul", "matvec", "polyfit"}
BLAS |= {"linalg", "tensordot", "vdot", "vecdot", "vecmat"}
ALLOWED = {
    "methods/flows/division_suppression.py": "whole numbers",
    "methods/flows/sums.py": "whole numbers",
    "methods/sensitivity/utility/weighted.py": "of synthetic or published data, for a report",
    "post/cubes/margins.py": "einsum of one operand, which NumPy adds up itself",
}
TESTS = Path(__file__).parents[1]
REMADE = "import json; from golden_releases import remake; print(json.dumps(remake('hypercube'), sort_keys=True))"


def uses_blas(tree: ast.AST) -> bool:
    """`@`, or a function of NumPy that is made of such products."""
    return any(
        (isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult))
        or (isinstance(node, ast.Attribute) and node.attr in BLAS)
        or (isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("numpy.linalg", "scipy.linalg")))
        for node in ast.walk(tree)
    )


def test_only_listed_modules_multiply_matrices() -> None:
    files = [file for package in PACKAGES for file in (SOURCE / package).rglob("*.py")]
    actual = {str(f.relative_to(SOURCE)) for f in files if uses_blas(ast.parse(f.read_text(encoding="utf-8")))}
    assert actual == ALLOWED.keys()


@pytest.mark.parametrize("line", ["a @ b", "a @= b", "np.dot(a, b)", "a.dot(b)", "np.linalg.norm(a)"])
def test_what_is_found(line: str) -> None:
    assert uses_blas(ast.parse(line))
    assert not uses_blas(ast.parse("inner(a, b) + norm(a)"))


@pytest.mark.full
def test_a_cube_has_the_same_bytes_on_every_processor() -> None:
    """The cube of the golden releases, with kernels for processors with and without AVX-512."""
    processors = [
        {"OPENBLAS_CORETYPE": "SkylakeX"},
        {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL"},
    ]
    path = os.pathsep.join([str(TESTS), str(TESTS / "golden"), os.environ.get("PYTHONPATH", "")])
    actual = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", REMADE],
            env={**os.environ, **processor, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()[-1]
        for processor in processors
    }
    assert len(actual) == 1


def test_sums_and_functions() -> None:
    a, b = np.array([3.0, 4.0]), np.array([0.5, 2.0])
    assert (inner(a, b), norm(a)) == (9.5, 5.0)
    for mine, numpys in ((elementwise.log, np.log), (elementwise.exp, np.exp), (elementwise.sin, np.sin)):
        table = np.linspace(0.1, 9, 12).reshape(3, 4)
        assert mine(table[:, ::2]) == pytest.approx(numpys(table[:, ::2]), rel=1e-15)
