"""What is published: one class a method, told apart by `method`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field

from discreet.privacy.events import Name
from discreet.privacy.exact import Positive
from discreet.spec.earnings import Earnings, Level
from discreet.spec.employer import Employer
from discreet.spec.flows import FlowLevel, Flows
from discreet.spec.hypercube import Hypercube
from discreet.spec.sensitivity import Sensitivity
from discreet.spec.strict import Strict, unknown

__all__ = ["Counts", "Earnings", "Employer", "FlowLevel", "Flows", "Hypercube", "Level", "Sensitivity", "Table"]


class Counts(Strict):
    """Protected counts by some attributes (000 §1, 001 A.1)."""

    method: Literal["counts"] = "counts"
    name: Name
    by: list[str]
    epsilon: Positive
    form: Literal["dense", "sparse"] = "dense"
    nonnegative: bool = False
    round_to: Annotated[int, Field(ge=2, le=10**9)] | None = None


_METHODS = {
    "counts": Counts,
    "earnings": Earnings,
    "employer": Employer,
    "flows": Flows,
    "hypercube": Hypercube,
    "sensitivity": Sensitivity,
}


def _known_method(data: Any) -> Any:
    if isinstance(data, dict):
        if "method" not in data:
            raise ValueError(f"key 'method' is missing; known methods: {', '.join(_METHODS)}")
        if not isinstance(data["method"], str) or data["method"] not in _METHODS:
            raise ValueError(unknown(str(data["method"]), list(_METHODS), "method"))
    return data


AnyTable = Counts | Earnings | Employer | Flows | Hypercube | Sensitivity
Table = Annotated[AnyTable, Discriminator("method"), BeforeValidator(_known_method)]


def table_names(table: AnyTable) -> list[str]:
    """The names under which a table and its levels are published; estimates with the table of what scales their
    noise, a cube with its controls."""
    further = [f"{table.name}_chi"] if isinstance(table, Sensitivity) else []
    if isinstance(table, Hypercube):
        further += [f"{table.name}_{control.name}" for control in table.controls]
        further += [] if table.replicates is None or table.replicates.tables else [f"{table.name}_replicates"]
    return [table.name, *further, *(level.name for level in levels_of(table))]


def levels_of(table: AnyTable) -> Sequence[Level | FlowLevel]:
    """The further levels of a table; not all have any."""
    return table.levels if isinstance(table, Earnings | Flows) else ()
