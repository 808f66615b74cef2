"""release.yaml ⇄ typed objects: strict, one tagged union of methods, no defaults where privacy is concerned."""

from discreet.spec.domains import CodesDomain, GroupsDomain, HierarchyDomain, ValuesDomain
from discreet.spec.employer import Employer, MechanismSpec
from discreet.spec.engines import EngineSpec, SparkEngineSpec
from discreet.spec.recode import Recode
from discreet.spec.release import Release
from discreet.spec.sources import DuckDBSource, FileSource, PostgresSource, Source
from discreet.spec.strict import unknown
from discreet.spec.tables import Counts, Earnings, FlowLevel, Flows, Hypercube, Level, Sensitivity, Table
from discreet.spec.units import parse_budget_unit, parse_unit

__all__ = [
    "CodesDomain",
    "Counts",
    "DuckDBSource",
    "Earnings",
    "Employer",
    "EngineSpec",
    "FileSource",
    "FlowLevel",
    "Flows",
    "GroupsDomain",
    "HierarchyDomain",
    "Hypercube",
    "Level",
    "MechanismSpec",
    "PostgresSource",
    "Recode",
    "Release",
    "Sensitivity",
    "Source",
    "SparkEngineSpec",
    "Table",
    "ValuesDomain",
    "parse_budget_unit",
    "parse_unit",
    "unknown",
]
