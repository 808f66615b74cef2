"""A look at estimates on the confidential side: which cells scale the noise, which have no finite sensitivity."""

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

SHOWN = 20  # cells that a report names


@dataclass(frozen=True)
class Looked:
    """Every occupied cell: how many records, and how far one of them moves the statistic. Confidential."""

    cells: Int64s = field(repr=False)
    n: Int64s = field(repr=False)
    sensitivity: Floats = field(repr=False)


def look(engine: Engine, table: SensitivityMethod, rows: Observations) -> Looked:
    """The local sensitivities, brought here."""
    local = table.local(engine, rows)
    names = (CELL, "n", "sensitivity")
    batches = engine.batches(local.select(*names).order_by(CELL))
    found = pa.Table.from_batches(batches, pa.schema([LOCAL.field(name) for name in names]))
    return Looked(*(column.to_numpy() for column in found.columns))


def audit(engine: Engine, table: SensitivityMethod, rows: Observations) -> EstimateAudit:
    """What will scale the noise of a table, and where nothing does."""
    design, found = table.design, look(engine, table, rows)
    heard = found.n >= design.least
    scaled = found.n.astype(np.float64) ** float(design.spec.decay) * found.sensitivity
    finite = scaled * design.steps <= LARGEST
    without = found.cells[heard & ~finite]
    groups = design.groups.parents(found.cells)
    scales = []
    for group in np.unique(groups[heard & finite]).tolist():
        mine = np.flatnonzero((groups == group) & heard & finite)
        worst = mine[np.argmax(scaled[mine])]
        place, name = named(design.groups.coarse, group), named(design.domain, int(found.cells[worst]))
        scales.append(ScaleAudit(place, float(scaled[worst]), name, int(found.n[worst])))
    return EstimateAudit(
        table=table.name,
        cells=int(found.cells.size),
        small=int((~heard).sum()),
        infinite=int(without.size),
        examples=tuple(named(design.domain, int(cell)) for cell in without[:SHOWN]),
        scales=tuple(sorted(scales, key=lambda scale: -scale.chi)[:SHOWN]),
    )


def named(domain: Domain, cell: int) -> str:
    """A cell by its codes."""
    keys = (a.published[i] for a, i in zip(domain.attributes, domain.codes(cell), strict=True))
    pairs = zip(domain.columns, chain(*keys), strict=True)
    return ", ".join(f"{column} {value}" for column, value in pairs) or "all records"
