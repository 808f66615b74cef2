"""From the declaration to the statistic, its variables and its search for the worst record."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from discreet.domain.codelists import read_thresholds
from discreet.engine.derived_values import ObservedValue
from discreet.errors import SpecError
from discreet.methods.sensitivity.spec import GridSearch, Sensitivity
from discreet.methods.sensitivity.statistic_spec import (
    CoefficientSpec,
    DifferenceSpec,
    FunctionSpec,
    LineSpec,
    PredictionSpec,
    QuantileSpec,
    SummarySpec,
)
from discreet.methods.sensitivity.statistics import Search, Statistic, Variable
from discreet.methods.sensitivity.statistics.difference import Difference
from discreet.methods.sensitivity.statistics.function import Function
from discreet.methods.sensitivity.statistics.line import Line
from discreet.methods.sensitivity.statistics.moments import Mean, Share, Variance
from discreet.methods.sensitivity.statistics.quantiles import Quantile
from discreet.methods.sensitivity.statistics.regression import Regression
from discreet.methods.sensitivity.statistics.winsorised import WinsorisedLine


def variable(table: Sensitivity, name: str) -> Variable:
    """A declared variable with its bounds."""
    low, high = table.variables[name].bounds
    return Variable(name, float(low), float(high))


def observed(table: Sensitivity) -> tuple[ObservedValue, ...]:
    """The values derived from each record, in the statistic's order."""
    columns = []
    for name in table.statistic.reads:
        spec = table.variables[name]
        low, high = spec.bounds
        equals = None if spec.equals is None else tuple(spec.equals)
        columns.append(
            ObservedValue(
                name, spec.column or name, float(low), float(high), spec.outside, equals, ranked=spec.ranks is not None
            )
        )
    return tuple(columns)


def thresholds(table: Sensitivity, base: Path) -> tuple[tuple[float, ...], ...]:
    """By variable, the public thresholds among which it is ranked; empty if it is not a rank."""
    where = f"tables.{table.name}.variables"
    files = {name: table.variables[name].ranks for name in table.statistic.reads}
    return tuple(read_thresholds(base / f, f"{where}.{name}.ranks") if f else () for name, f in files.items())


def statistic(table: Sensitivity, base: Path) -> Statistic:
    """The declared statistic. Does not execute a Python file."""
    spec, where = table.statistic, f"tables.{table.name}.statistic"
    variables = [variable(table, name) for name in table.statistic.reads]
    one, two = variables[0], variables[-1]
    result: Statistic
    match spec:
        case SummarySpec():
            if spec.name == "share":
                _binary(table, spec.of, f"{where}.of")
            result = {"mean": Mean, "share": Share, "variance": Variance}[spec.name](one)
        case QuantileSpec():
            result = Quantile(one, spec.p)
        case DifferenceSpec():
            _binary(table, spec.arm, f"{where}.arm")
            result = Difference(one, two)
        case LineSpec() | PredictionSpec():
            at = float(spec.at) if isinstance(spec, PredictionSpec) else 0.0
            share = spec.winsorise
            result = Line(one, two, spec.name, at) if share is None else WinsorisedLine(one, two, spec.name, at, share)
        case CoefficientSpec():
            result = Regression(two, tuple(variables[:-1]), spec.on.index(spec.of) + 1)
        case FunctionSpec():
            scale, empty = float(spec.scale), float(spec.empty)
            result = Function.of_file(base / spec.file, spec.function, tuple(variables), scale, empty, spec.error)
    return result


def _binary(table: Sensitivity, name: str, where: str) -> None:
    if table.variables[name].equals is None:
        raise SpecError(
            f"{name!r} is not a 0/1 variable",
            where=where,
            do=f"declare it by the codes that count as 1: variables: {{{name}: {{column: COLUMN, equals: [CODE]}}}}",
        )


def search(table: Sensitivity, target: Statistic) -> Search:
    """The declared search for the worst record, or the statistic's default."""
    declared = table.search
    kind = target.searches()[0] if declared is None else "grid" if isinstance(declared, GridSearch) else declared
    if kind not in target.searches():
        raise SpecError(
            f"{target.name} does not support the search {kind!r}",
            where=f"tables.{table.name}.search",
            do=f"choose {', '.join(target.searches())} (grid: {{grid: 21}})",
        )
    return Search(cast(Any, kind), declared.grid if isinstance(declared, GridSearch) else 2)
