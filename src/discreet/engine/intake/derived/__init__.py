"""Derived columns: what a release uses of a record's values, each a function of that record alone.

An engine never sees a raw value: only the category, bin, number, Boolean or identifier derived from it here, by the
same code on every engine. Names of derived columns contain digests, so they cannot collide with names in a source.
"""

from discreet.engine.intake.derived.attributes import Category, Cell, LookedUpCategory, ValueStatus
from discreet.engine.intake.derived.columns import (
    Bin,
    CodeText,
    DerivedColumn,
    Identifier,
    Indicator,
    KeyPart,
    Number,
    NumberStatus,
    SampleCondition,
    identifier,
)

__all__ = [
    "Bin",
    "Category",
    "Cell",
    "CodeText",
    "DerivedColumn",
    "Identifier",
    "Indicator",
    "KeyPart",
    "LookedUpCategory",
    "Number",
    "NumberStatus",
    "SampleCondition",
    "ValueStatus",
    "identifier",
]
