"""Reproductions of published papers on synthetic data, with their printed numbers next to ours."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from discreet.errors import ParameterError
from discreet.formatting import Observer

PAPERS = ("employer", "hypercube", "sensitivity")


def reproduce(paper: str, out: Path, size: int | None, seed: int, observe: Observer) -> list[Path]:
    """Run a paper's study and write its report into an empty folder; returns the files written, the report first."""
    if paper not in PAPERS:
        raise ParameterError(f"no paper {paper!r}", where="reproduce", do=f"choose one of {', '.join(PAPERS)}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ParameterError("not an empty folder", where=str(out), do="name one that is empty or does not exist")
    study = import_module(f"discreet_studies.{paper}.study").paper()
    written: list[Path] = study.reproduce(out, study.size.default if size is None else size, seed, observe)
    return written
