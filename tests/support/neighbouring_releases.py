"""Releases of neighbouring data sets, with outcomes: published, refused, or stopped.

Noise of ε = 1000 is 0, so what a release publishes is what it counted; its key is the same test key each time, so the
records kept per person are the same, too. Two releases then differ only in their records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

import discreet
from discreet.api import set_budget
from discreet.errors import EngineError, SourceError
from discreet.noise.keystore import FileKeyStore

PERSON = {"person": "person_id", "max_records": 1}
SECTORS = {"sector": ["farm", "shop"]}
LOUD = "1000"  # noise is then 0
Cells = dict[tuple[str, ...], int]


@dataclass(frozen=True)
class Outcome:
    """One of three: cells, or the refusal of a source by its schema, or anything else that ended the release."""

    cells: Cells = field(default_factory=dict)
    refused: str = ""
    stopped: str = ""
    spent: int = 0  # entries in the ledger besides its beginning and its budget

    @property
    def complete(self) -> bool:
        return not self.refused and not self.stopped

    def occupied(self) -> Cells:
        return {codes: n for codes, n in self.cells.items() if n}


class ReleaseOffice:
    """A folder with sources. Every release has a ledger of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder, self._runs = folder, 0

    def run(
        self,
        source: Any = None,
        *,
        frame: Any = None,
        codes: Mapping[str, Sequence[str]] = SECTORS,
        unit: Any = PERSON,
        domains: Mapping[str, Any] | None = None,
        by: Sequence[str] | None = None,
        table: Mapping[str, Any] | None = None,
        epsilon: str = LOUD,
        delta: str = "0",
        key: str | None = "suite",
        session: Any = None,
        more: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """One table of a release: under a test key, or without one a real release under a secret key."""
        self._runs += 1
        out, place = self.folder / f"out{self._runs}", self.folder / f"ledger{self._runs}.sqlite"
        ledger, kind = discreet.ledger(place), "real" if key is None else "simulation"
        budget = unit if unit == "record" else {k: v for k, v in unit.items() if k != "max_records"}
        set_budget(ledger, "records", epsilon="1000000", delta="1/10", unit=budget, kind=kind)  # type: ignore[arg-type]
        declared = {name: {"values": list(values), "undeclared": "drop"} for name, values in codes.items()}
        actual = domains or declared
        made = {"name": "t", "method": "counts", "by": list(by or actual), "epsilon": epsilon, **(table or {})}
        made |= {"delta": delta} if delta != "0" else {}
        sources = source if isinstance(source, dict) and "table" not in source and "path" not in source else None
        spec = {
            "release": "r",
            "asset": "records",
            "source": sources or {"records": source if source is not None else "nowhere.parquet"},
            "unit": unit,
            "domains": dict(actual),
            "tables": [made],
            **(more or {}),
        }
        path = self.folder / f"release{self._runs}.yaml"
        path.write_text(yaml.safe_dump(spec, sort_keys=False))
        keys = FileKeyStore(self.folder / "keys")
        try:
            opened = discreet.release(path, frame=frame, ledger=ledger, keys=keys, session=session)
            opened.run(out, simulation=key)
        except EngineError as error:
            return Outcome(stopped=f"{type(error).__name__}: {error}", spent=len(ledger.chain().entries) - 2)
        except SourceError as error:
            return Outcome(refused=_nameless(str(error), source), spent=len(ledger.chain().entries) - 2)
        except Exception as error:
            return Outcome(stopped=f"{type(error).__name__}: {error}", spent=len(ledger.chain().entries) - 2)
        rows = pq.read_table(out / ("t.parquet" if key is None else "t.simulation.parquet")).to_pylist()
        names = list(made["by"])
        return Outcome({tuple(row[name] for name in names): row["count"] for row in rows}, spent=1)


def _nameless(refusal: str, source: Any) -> str:
    """A refusal without the name of the source, which two neighbours do not share."""
    if isinstance(source, str):
        refusal = refusal.replace(source, "SOURCE").replace(Path(source).name, "SOURCE")
    elif "table" in (source or ()):
        refusal = refusal.replace(f"table {source['table']}", "table SOURCE")
    return refusal


def changed_cells(before: Outcome, after: Outcome) -> Cells:
    """The change of each cell that differs."""
    cells = {*before.cells, *after.cells}
    both = {cell: after.cells.get(cell, 0) - before.cells.get(cell, 0) for cell in cells}
    return {cell: n for cell, n in both.items() if n}


def assert_own_cell_only(without: Outcome, within: Outcome, *own: tuple[str, ...]) -> None:
    """One more record may change nothing, or add one to its own cell. A refused schema is also refused without that
    record; nothing else stops a release."""
    assert not without.stopped, without.stopped
    assert not within.stopped, f"one record stops the release: {within.stopped}"
    assert within.refused == without.refused, "one record decides about a refusal"
    if without.refused:
        assert within.spent == without.spent == 0
        return
    assert changed_cells(without, within) in [{}, *({cell: 1} for cell in own)]
