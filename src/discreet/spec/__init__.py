"""release.yaml ⇄ typed objects: strict, no defaults where privacy is concerned. Tables are declared by methods."""

from discreet.spec.base import Table, TableSpec, unknown
from discreet.spec.domains import CodesDomain, GroupsDomain, HierarchyDomain, ValuesDomain
from discreet.spec.recode import Recode
from discreet.spec.release import (
    DuckDBSource,
    EngineSpec,
    FileSource,
    PostgresSource,
    Release,
    Source,
    SparkEngineSpec,
    parse_budget_unit,
    parse_unit,
)

__all__ = [
    "CodesDomain",
    "DuckDBSource",
    "EngineSpec",
    "FileSource",
    "GroupsDomain",
    "HierarchyDomain",
    "PostgresSource",
    "Recode",
    "Release",
    "Source",
    "SparkEngineSpec",
    "Table",
    "TableSpec",
    "ValuesDomain",
    "parse_budget_unit",
    "parse_unit",
    "unknown",
]
