"""Whom a mechanism can hide."""

from __future__ import annotations

from discreet.errors import GuaranteeError
from discreet.privacy.unit import Establishment, Unit


def refuse_unless_records(unit: Unit, where: str) -> None:
    """Geometric noise hides the records of a unit, however many are used; not a size within a factor."""
    if isinstance(unit, Establishment):
        raise GuaranteeError(
            "geometric noise hides records, not the size of an establishment within a factor 1+α",
            where=where,
            do="use `method: employer`, or state the unit as record, person, job, or {establishment: COLUMN, "
            "whole: true, max_records: N}",
        )
