"""release.yaml ⇄ typed objects: strict, no defaults where privacy is concerned. Tables are declared by methods."""

from discreet.spec.domains import CodesDomain, GroupsDomain, HierarchyDomain, ValuesDomain
from discreet.spec.engines import EngineSpec, SparkEngineSpec
from discreet.spec.recode import Recode
from discreet.spec.release import Release
from discreet.spec.sources import DuckDBSource, FileSource, PostgresSource, Source
from discreet.spec.strict import unknown
from discreet.spec.tables import Table, TableSpec
from discreet.spec.units import parse_budget_unit, parse_unit

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
