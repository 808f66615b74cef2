"""The declaration of a release (release.yaml) as typed models: strict, without defaults for privacy parameters. Each
method declares its own tables."""

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
