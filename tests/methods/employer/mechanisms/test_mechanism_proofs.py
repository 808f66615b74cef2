"""Each mechanism has its proof next to it, and the computations in the proofs are executed."""

import doctest
import re
from pathlib import Path

import pytest

import discreet.methods.employer.mechanisms

FOLDER = Path(discreet.methods.employer.mechanisms.__file__).parent
PROOFS = sorted(FOLDER.glob("*.md"))
PROVED = {"smooth", "laplace_pareto", "smooth_gamma", "smooth_laplace", "log_laplace", "discrete", "exact_audit"}


def test_every_mechanism_has_its_proof() -> None:
    assert {path.stem for path in PROOFS} == PROVED
    for path in PROOFS:
        text = path.read_text(encoding="utf-8")
        for heading in ("What goes in", "hat comes out", "Reference"):
            assert re.search(rf"^## .*{heading}", text, re.MULTILINE), f"{path.name} lacks '{heading}'"
        assert re.search(r"^## (Why it is private|Method and accuracy)", text, re.MULTILINE), path.name


@pytest.mark.parametrize("path", PROOFS, ids=lambda p: p.stem)
def test_what_a_proof_computes_is_so(path: Path) -> None:
    result = doctest.testfile(str(path), module_relative=False, encoding="utf-8")
    assert result.attempted > 0
    assert result.failed == 0
