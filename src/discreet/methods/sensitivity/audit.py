"""Audit of estimates on the confidential side: which cells determine χ, which have infinite sensitivity."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import pyarrow as pa

from discreet.domain import Domain
from discreet.engine import Engine
from discreet.engine.audit import EstimateAudit, ScaleAudit
from discreet.engine.observations import Observations
from discreet.engine.spans import CELL, Int64s
from discreet.methods.sensitivity.kernel import LARGEST, LOCAL
from discreet.methods.sensitivity.method import SensitivityMethod
from discreet.methods.sensitivity.statistics import Floats

SHOWN = 20  # cells listed in a report


@dataclass(frozen=True)
class CellInfluences:
    """Number of records and local sensitivity of every occupied cell. Confidential."""

    cells: Int64s = field(repr=False)
    n: Int64s = field(repr=False)
    sensitivity: Floats = field(repr=False)


def cell_influences(engine: Engine, table: SensitivityMethod, rows: Observations) -> CellInfluences:
    """The local sensitivities of all occupied cells, in memory."""
    local = table.local(engine, rows)
    names = (CELL, "n", "sensitivity")
    batches = engine.batches(local.select(*names).order_by(CELL))
    table_of_cells = pa.Table.from_batches(batches, pa.schema([LOCAL.field(name) for name in names]))
    return CellInfluences(*(column.to_numpy() for column in table_of_cells.columns))


def audit(engine: Engine, table: SensitivityMethod, rows: Observations) -> EstimateAudit:
    """The cells that determine χ, by group, and those without a finite sensitivity."""
    design, influences = table.design, cell_influences(engine, table, rows)
    eligible = influences.n >= design.least
    scaled = influences.n.astype(np.float64) ** float(design.spec.decay) * influences.sensitivity
    finite = scaled * design.steps <= LARGEST
    without = influences.cells[eligible & ~finite]
    groups = design.groups.parents(influences.cells)
    scales = []
    for group in np.unique(groups[eligible & finite]).tolist():
        mine = np.flatnonzero((groups == group) & eligible & finite)
        worst = mine[np.argmax(scaled[mine])]
        place, name = cell_label(design.groups.coarse, group), cell_label(design.domain, int(influences.cells[worst]))
        scales.append(ScaleAudit(place, float(scaled[worst]), name, int(influences.n[worst])))
    return EstimateAudit(
        table=table.name,
        cells=int(influences.cells.size),
        small=int((~eligible).sum()),
        infinite=int(without.size),
        examples=tuple(cell_label(design.domain, int(cell)) for cell in without[:SHOWN]),
        scales=tuple(sorted(scales, key=lambda scale: -scale.chi)[:SHOWN]),
    )


def cell_label(domain: Domain, cell: int) -> str:
    """A cell's codes as text."""
    keys = (a.published[i] for a, i in zip(domain.attributes, domain.codes(cell), strict=True))
    pairs = zip(domain.columns, chain(*keys), strict=True)
    return ", ".join(f"{column} {value}" for column, value in pairs) or "all records"
