"""The statistics that a table of estimates may declare: their variables and descriptions."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, model_validator

from discreet.privacy.exact import Exact, Positive, format_exact
from discreet.privacy.ledger.events import Name
from discreet.spec.base import Strict, unknown, within

LARGEST = 2**40
Bound = Annotated[Exact, AfterValidator(within(-LARGEST, LARGEST))]


class _DeclaredStatistic(Strict):
    variable_keys: ClassVar[tuple[str, ...]] = ("of",)  # the keys that name variables, in the statistic's order

    @property
    def reads(self) -> list[str]:
        """The variables, in the statistic's order."""
        given = [getattr(self, key) for key in self.variable_keys]
        return [name for one in given for name in ([one] if isinstance(one, str) else one)]

    @abstractmethod
    def describe(self) -> str:
        """The estimand, as text."""


class SummarySpec(_DeclaredStatistic):
    """The mean of a variable; the share of records for which a 0/1 variable is 1; or the variance, with n − 1."""

    name: Literal["mean", "share", "variance"]
    of: Name

    def describe(self) -> str:
        return f"the share of records with {self.of}" if self.name == "share" else f"the {self.name} of {self.of}"


class QuantileSpec(_DeclaredStatistic):
    """A quantile of a variable; p = 1/2 is the median."""

    name: Literal["quantile"] = "quantile"
    of: Name
    p: Positive

    @model_validator(mode="after")
    def _inside(self) -> QuantileSpec:
        if self.p >= 1:
            raise ValueError("p must lie between 0 and 1")
        return self

    def describe(self) -> str:
        return f"the {format_exact(self.p)} quantile of {self.of}"


class DifferenceSpec(_DeclaredStatistic):
    """The mean of a variable where a 0/1 variable is 1, less its mean where that is 0."""

    variable_keys = ("of", "arm")
    name: Literal["difference"] = "difference"
    of: Name
    arm: Name

    def describe(self) -> str:
        return f"the mean of {self.of} where {self.arm} is 1, less that where it is 0"


class _LeastSquaresSpec(_DeclaredStatistic):
    """Least squares of y on x in each cell, after winsorising the share `winsorise` of both at each end, within the
    cell."""

    variable_keys = ("x", "y")
    x: Name
    y: Name
    winsorise: Positive | None = None

    @model_validator(mode="after")
    def _two(self) -> _LeastSquaresSpec:
        if self.x == self.y:
            raise ValueError("x and y are the same variable")
        if self.winsorise is not None and self.winsorise >= Fraction(1, 2):
            raise ValueError("winsorise, the share at each end, must be below 1/2")
        return self

    @property
    def _winsorised(self) -> str:
        share = self.winsorise
        return "" if share is None else f", both winsorised within the cell at {format_exact(100 * share)}% at each end"


class LineSpec(_LeastSquaresSpec):
    """The slope of y on x, or the intercept: the prediction at x = 0."""

    name: Literal["slope", "intercept"]

    def describe(self) -> str:
        return f"the {self.name} of the least-squares line of {self.y} on {self.x}{self._winsorised}"


class PredictionSpec(_LeastSquaresSpec):
    """The prediction of y at a given x (Chetty & Friedman 2019: at the 25th percentile)."""

    name: Literal["prediction"] = "prediction"
    at: Bound

    def describe(self) -> str:
        at = f"{self.x} = {format_exact(self.at)}"
        line = f"{self.y} predicted at {at} by the least-squares line of {self.y} on {self.x}"
        return line + self._winsorised


class CoefficientSpec(_DeclaredStatistic):
    """One coefficient of y on several variables and a constant, by least squares."""

    variable_keys = ("on", "y")
    name: Literal["coefficient"] = "coefficient"
    y: Name
    on: Annotated[list[Name], Field(min_length=1, max_length=12)]
    of: Name

    @model_validator(mode="after")
    def _listed(self) -> CoefficientSpec:
        if self.of not in self.on:
            raise ValueError(f"`of` is {self.of!r}, which is not among `on`: {', '.join(self.on)}")
        if len({*self.on, self.y}) <= len(self.on):
            raise ValueError("duplicate variable")
        return self

    def describe(self) -> str:
        return f"the coefficient of {self.of} when {self.y} is regressed on {', '.join(self.on)} and a constant"


class FunctionSpec(_DeclaredStatistic):
    """A Python function of a cell's columns, from a file."""

    name: Literal["function"] = "function"
    file: str
    function: Name
    of: Annotated[list[Name], Field(min_length=1, max_length=12)]
    scale: Positive
    empty: Bound = Fraction(0)
    error: Name | None = None

    def describe(self) -> str:
        return f"the function {self.function} of {self.file} of {', '.join(self.of)}"


_NAMES = ["mean", "share", "variance", "quantile", "difference", "slope", "intercept", "prediction"]
_NAMES += ["coefficient", "function"]


def _known_statistic(data: Any) -> Any:
    if isinstance(data, dict):
        if "name" not in data:
            raise ValueError(f"key 'name' is missing; known statistics: {', '.join(_NAMES)}")
        if not isinstance(data["name"], str) or data["name"] not in _NAMES:
            raise ValueError(unknown(str(data["name"]), _NAMES, "statistic"))
    elif isinstance(data, str):
        raise ValueError(f"expected keys and values, such as {{name: {data}, …}}")
    return data


StatisticSpec = Annotated[
    SummarySpec | QuantileSpec | DifferenceSpec | LineSpec | PredictionSpec | CoefficientSpec | FunctionSpec,
    Discriminator("name"),
    BeforeValidator(_known_statistic),
]
