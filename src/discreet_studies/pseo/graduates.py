"""The cells of a synthetic agency of graduates, with their exact earnings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.domain.bins import PSEO
from discreet.post.percentiles import Int64s
from discreet.publish.parquet import table_of
from discreet.synth import graduates
from discreet_studies.pseo.earnings import GraduateCells, cells_of

CELL = ("institution", "degree_level", "cip4", "grad_cohort", "years_after")
FAMILIES = (("degree_level", "years_after"), ("degree_level", "years_after", "cip4"))
LEAST = 10_000  # yearly earnings of the sample


def synthetic_cells(folder: Path, rows: int, seed: int) -> tuple[GraduateCells, list[Int64s]]:
    """Invent an agency in `folder`; its cells in PSEO's bins, and the families that they lie in, the widest first."""
    graduates(folder, rows, seed)
    table = table_of(folder / "graduates.parquet")
    table = table.filter(pc.greater_equal(table["earnings"], LEAST))  # leaves out the nulls, too
    table = table.append_column("cip4", pc.utf8_slice_codeunits(table["cipcode"], 0, 5))
    table = table.select([*CELL, "earnings"]).drop_null()
    coded = {name: table[name].combine_chunks().dictionary_encode() for name in CELL}
    cell = _numbers(coded, CELL)
    count = int(cell.max()) + 1
    families = []
    for names in FAMILIES:
        found = np.zeros(count, np.int64)
        found[cell] = _numbers(coded, names)
        families.append(found)
    return cells_of(table["earnings"].to_numpy().astype(np.int64), cell, count, PSEO), families


def _numbers(coded: dict[str, pa.DictionaryArray], names: tuple[str, ...]) -> Int64s:
    """One number for each combination that occurs: these are invented records, nothing is published."""
    out = np.zeros(len(coded[names[0]]), np.int64)
    for name in names:
        out = out * len(coded[name].dictionary) + coded[name].indices.to_numpy().astype(np.int64)
    return np.unique(out, return_inverse=True)[1].astype(np.int64)
