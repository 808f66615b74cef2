"""LEHD's layout of earnings and flows, as a table declares it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from discreet.spec.base import ColumnName, Strict


class Lehd(Strict):
    """The Census Bureau's public-use layout: the published column of each of its identifiers."""

    kind: Literal["lehd"] = "lehd"
    area: Annotated[str, Field(pattern=r"^([a-z]{2}|all)$")] = "all"
    area_code: Annotated[str, Field(pattern=r"^[0-9]{2}$")] = "00"
    institution: ColumnName = "institution"
    state: ColumnName = "state"
    degree_level: ColumnName = "degree_level"
    cip4: ColumnName = "cip4"
    cip2: ColumnName = "cip2"
    grad_cohort: ColumnName = "grad_cohort"
    years_after: ColumnName = "years_after"
    industry: ColumnName = "industry"
    division: ColumnName = "division"

    @model_serializer(mode="wrap")
    def _as_before_flows(self, handler: SerializerFunctionWrapHandler) -> dict[str, str]:
        """Omit the destinations' columns where they have their default names, so that the digest of a declaration, and
        with it the noise of a resumed release, is the same as before flows were added."""
        dumped: dict[str, str] = handler(self)
        return {key: name for key, name in dumped.items() if key not in {"industry", "division"} or key != name}
