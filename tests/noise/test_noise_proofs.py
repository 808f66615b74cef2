"""Every sampler has a proof beside it, and the computations in proofs are executed."""

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

from discreet.noise import samplers

FOLDER = Path(samplers.__file__).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
PROOFS = sorted(FOLDER.glob("*.md"))


def draws(name: str) -> bool:
    """Whether a module defines a distribution that can be drawn from."""
    module = importlib.import_module(f"{samplers.__name__}.{name}")
    distributions = [c for c in vars(module).values() if inspect.isclass(c) and c.__module__ == module.__name__]
    return name == "sparse" or any(hasattr(c, "draw") and not inspect.isabstract(c) for c in distributions)


SAMPLERS = [name for name in MODULES if draws(name)]


def test_the_list_of_samplers_is_complete() -> None:
    assert {"discrete", "sparse", "rounded", "laplace", "normal", "power", "laplace_pareto", "log_laplace"} == set(
        SAMPLERS
    )


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_has_its_proof(name: str) -> None:
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    for heading in ("What goes in", "What comes out", "Why it is exact", "Reference"):
        assert f"## {heading}" in text, f"{name}.md lacks '{heading}'"


@pytest.mark.parametrize("path", PROOFS, ids=lambda p: p.stem)
def test_computations_in_proofs_are_correct(path: Path) -> None:
    result = doctest.testfile(str(path), module_relative=False, encoding="utf-8")
    assert result.attempted > 0
    assert result.failed == 0
