"""Cached kernels are recompiled if any source file they depend on has changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

CALLED = (
    "from discreet.noise.jit import compiled\n\nSTEP = {step}\n\n@compiled\ndef called(x):\n    return x + {more}\n"
)
KERNEL = (
    "from discreet.noise.jit import compiled\nfrom discreet.noise.probe_called import STEP, called\n\n"
    "@compiled\ndef kernel(x):\n    return called(x) + STEP\n"
)


@pytest.mark.parametrize(("step", "more"), [(20, 1), (10, 2)], ids=["a constant", "a function"])
def test_a_change_of_a_dependency_recompiles_the_kernel(tmp_path: Path, step: int, more: int) -> None:
    package = tmp_path / "discreet"
    shutil.copytree(Path(discreet.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "noise/probe.py").write_text(KERNEL)

    def said(step: int, more: int) -> int:
        (package / "noise/probe_called.py").write_text(CALLED.format(step=step, more=more))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
        script = "from discreet.noise.probe import kernel; print(kernel(100))"
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**environment, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return int(done.stdout)

    assert said(10, 1) == 111
    assert list(package.glob("noise/__pycache__/probe.kernel*.nbc"))  # it was cached
    assert said(step, more) == 100 + step + more
