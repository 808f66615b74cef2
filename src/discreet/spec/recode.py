"""Declaration of a recoding: how noisy measurements are moved to another classification (PSEO Technical Appendices,
B)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from discreet.privacy.exact import Positive
from discreet.spec.base import ColumnName, Strict


class CrosswalkFile(Strict):
    """A public file of old and new finest codes. NCES's has codes of three lengths: 7 characters are the finest."""

    file: str
    old: ColumnName
    new: ColumnName
    weight: ColumnName | None = None
    action: ColumnName | None = None
    deleted: list[str] = []
    length: Annotated[int, Field(ge=1, le=100)] | None = None


class HistoryFile(Strict):
    """A public file of counts by finest code, such as IPEDS completions; `new` if it has both codes."""

    file: str
    old: ColumnName
    new: ColumnName | None = None
    number: ColumnName


class RollUpFile(Strict):
    """A public file that maps each finest code to its coarser code."""

    file: str
    code: ColumnName
    parent: ColumnName


Characters = Annotated[int, Field(ge=1, le=100)]


class Recode(Strict):
    """Which measurements are recoded, which of their columns have the codes, and how shares are estimated."""

    renamed: ClassVar[Mapping[str, str]] = {"smallest": "smallest_weight"}

    measurements: str
    columns: Annotated[dict[ColumnName, Characters | RollUpFile], Field(min_length=1)]
    crosswalk: CrosswalkFile
    history: HistoryFile | None = None
    shares: list[list[ColumnName]] = [[]]
    smallest_weight: Positive
    overrides: str | None = None
    rule: Literal["multinomial", "balanced"] = "multinomial"
