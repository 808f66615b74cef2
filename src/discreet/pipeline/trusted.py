"""Code that a declaration names: it runs for who checks or runs the release, or says that it is trusted. A plan, which
somebody may make of a file that they were sent, reads it as text."""

from __future__ import annotations

from discreet.methods.protocol import Method
from discreet.methods.registry import methods
from discreet.methods.sensitivity.method import SensitivityMethod
from discreet.methods.sensitivity.spec import FunctionSpec, Sensitivity
from discreet.methods.sensitivity.statistics.function import Function
from discreet.spec import Release


def trusted(release: Release) -> list[Method]:
    """The tables of a release, their own functions tried on invented numbers: from here on they may be called."""
    found = methods(release)
    for table in found:
        if isinstance(table, SensitivityMethod) and isinstance(table.design.statistic, Function):
            table.design.statistic.rehearse()
    return found


def named(release: Release) -> list[str]:
    """The Python files of a declaration."""
    statistics = [table.statistic for table in release.tables if isinstance(table, Sensitivity)]
    return list(dict.fromkeys(spec.file for spec in statistics if isinstance(spec, FunctionSpec)))
