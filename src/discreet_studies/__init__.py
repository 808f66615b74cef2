"""Papers made again on invented data: `discreet reproduce PAPER --out DIR`, their numbers beside ours."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from discreet.errors import ParameterError

Observer = Callable[[str, int, int], None]

PAPERS = {  # name -> module with a `reproduce`
    "employer": "discreet_studies.employer.run",
    "hypercube": "discreet_studies.hypercube.run",
    "sensitivity": "discreet_studies.sensitivity.run",
}


def reproduce(paper: str, out: Path, size: int, seed: int, observe: Observer) -> list[Path]:
    """Run a paper's study and write its report into an empty folder; what was written, the report first."""
    if paper not in PAPERS:
        raise ParameterError(f"no paper {paper!r}", where="reproduce", do=f"choose one of {', '.join(PAPERS)}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ParameterError("not an empty folder", where=str(out), do="name one that is empty or does not exist")
    run: Callable[[Path, int, int, Observer], list[Path]] = import_module(PAPERS[paper]).reproduce
    return run(out, size, seed, observe)
