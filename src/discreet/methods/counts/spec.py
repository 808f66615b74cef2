"""Declaration of a table of counts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from discreet.privacy.exact import Positive
from discreet.spec.base import TableSpec


class Counts(TableSpec):
    """Noisy counts of records by declared attributes (PSEO Beta Appendix, §1; PSEO Technical Appendices, A.1)."""

    method: Literal["counts"] = "counts"
    epsilon: Positive
    form: Literal["dense", "sparse"] = "dense"
    nonnegative: bool = False
    round_to: Annotated[int, Field(ge=2, le=10**9)] | None = None
