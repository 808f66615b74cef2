"""From the declaration of a statistic to the statistic, and from its variables to what is read of each record."""

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
    """What is made of each record, in the statistic's order."""
    found = []
    for name in table.statistic.reads:
        spec = table.variables[name]
        low, high = spec.bounds
        equals = None if spec.equals is None else tuple(spec.equals)
        found.append(
            ObservedValue(
                name, spec.column or name, float(low), float(high), spec.outside, equals, ranked=spec.ranks is not None
            )
        )
    return tuple(found)


def thresholds(table: Sensitivity, base: Path) -> tuple[tuple[float, ...], ...]:
    """Of each variable, the public thresholds that it is ranked among; none if it is no rank."""
    where = f"tables.{table.name}.variables"
    files = {name: table.variables[name].ranks for name in table.statistic.reads}
    return tuple(read_thresholds(base / f, f"{where}.{name}.ranks") if f else () for name, f in files.items())


def statistic(table: Sensitivity, base: Path) -> Statistic:
    """The statistic that a table declares. Runs nothing of a Python file."""
    spec, where = table.statistic, f"tables.{table.name}.statistic"
    made = [variable(table, name) for name in table.statistic.reads]
    one, two = made[0], made[-1]
    found: Statistic
    match spec:
        case SummarySpec():
            if spec.name == "share":
                _binary(table, spec.of, f"{where}.of")
            found = {"mean": Mean, "share": Share, "variance": Variance}[spec.name](one)
        case QuantileSpec():
            found = Quantile(one, spec.p)
        case DifferenceSpec():
            _binary(table, spec.arm, f"{where}.arm")
            found = Difference(one, two)
        case LineSpec() | PredictionSpec():
            at = float(spec.at) if isinstance(spec, PredictionSpec) else 0.0
            share = spec.winsorise
            found = Line(one, two, spec.name, at) if share is None else WinsorisedLine(one, two, spec.name, at, share)
        case CoefficientSpec():
            found = Regression(two, tuple(made[:-1]), spec.on.index(spec.of) + 1)
        case FunctionSpec():
            scale, empty = float(spec.scale), float(spec.empty)
            found = Function.of_file(base / spec.file, spec.function, tuple(made), scale, empty, spec.error)
    return found


def _binary(table: Sensitivity, name: str, where: str) -> None:
    if table.variables[name].equals is None:
        raise SpecError(
            f"{name!r} is not 0 or 1",
            where=where,
            do=f"declare it by its codes: variables: {{{name}: {{column: COLUMN, equals: [CODE]}}}}",
        )


def search(table: Sensitivity, found: Statistic) -> Search:
    """The declared search for the worst observation, or the statistic's own."""
    asked = table.search
    kind = found.searches()[0] if asked is None else "grid" if isinstance(asked, GridSearch) else asked
    if kind not in found.searches():
        raise SpecError(
            f"{found.name} knows no search {kind!r}",
            where=f"tables.{table.name}.search",
            do=f"choose {', '.join(found.searches())} (grid: {{grid: 21}})",
        )
    return Search(cast(Any, kind), asked.grid if isinstance(asked, GridSearch) else 2)
