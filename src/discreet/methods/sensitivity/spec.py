"""How a table of protected estimates is declared: any statistic of small cells (004)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from discreet.methods.sensitivity.statistic_spec import Bound, FunctionSpec, PredictionSpec, StatisticSpec
from discreet.privacy.exact import Positive, format_exact
from discreet.privacy.ledger.events import Name
from discreet.spec.base import ColumnName, Strict, TableSpec, unknown

if TYPE_CHECKING:
    from discreet.domain import Domain
    from discreet.spec.release import Release


class VariableSpec(Strict):
    """A number of each record, between declared bounds; a 0/1 variable by the codes that count as 1; or a rank among
    public thresholds. The bounds are never taken from the data."""

    column: ColumnName | None = None
    low: Bound | None = None
    high: Bound | None = None
    outside: Literal["clamp", "drop"] = "clamp"
    equals: Annotated[list[str], Field(min_length=1)] | None = None
    ranks: str | None = None

    @model_validator(mode="after")
    def _bounded(self) -> VariableSpec:
        given = (self.low is not None, self.high is not None)
        if self.equals is not None or self.ranks is not None:
            if any(given) or "outside" in self.model_fields_set or (self.equals and self.ranks):
                raise ValueError("`equals` and `ranks` make numbers from 0 to 1: leave the other keys out")
        elif not all(given):
            raise ValueError(
                "is not bounded: declare low and high (not from these data), or `equals`, or `ranks` among public "
                "thresholds; without bounds one record could move a statistic by any amount"
            )
        elif self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"low {format_exact(self.low)} is not below high {format_exact(self.high)}")
        return self

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """From where to where it goes."""
        return (self.low if self.low is not None else Fraction(0), self.high if self.high is not None else Fraction(1))


class GridSearch(Strict):
    """So many values of each variable, from bound to bound."""

    grid: Annotated[int, Field(ge=2, le=10_001)]


class PublicSizes(Strict):
    """A public list of how many records each cell has: columns of codes, and one of numbers."""

    public: str
    column: ColumnName
    provenance: Annotated[str, Field(min_length=1)]


def _plain(data: Any) -> Any:
    """YAML takes a bare true for a truth value."""
    return "true" if data is True else data


def _form(data: Any) -> str:
    return "keys" if isinstance(data, dict | Strict) else "word"


SearchSpec = Annotated[
    Annotated[Literal["exact", "corners", "removals"], Tag("word")] | Annotated[GridSearch, Tag("keys")],
    Discriminator(_form),
]
Size = Annotated[
    Annotated[Literal["bound", "true"], Tag("word")] | Annotated[PublicSizes, Tag("keys")],
    Discriminator(_form),
    BeforeValidator(_plain),
]


def _count(data: Any) -> Any:
    return {"count": data} if isinstance(data, int) and not isinstance(data, bool) else data


class Minimum(Strict):
    """Cells below so many records are not published: by the released count, or by the true one."""

    count: Annotated[int, Field(ge=1, le=10**9)]
    on: Annotated[Literal["released", "true"], BeforeValidator(_plain)] = "released"


_NUMBERS = ("estimate", "error", "count")


class Sensitivity(TableSpec):
    """Protected estimates, their standard errors and counts: noise in proportion to the largest observed influence."""

    method: Literal["sensitivity"] = "sensitivity"
    statistic: StatisticSpec
    variables: Annotated[dict[Name, VariableSpec], Field(min_length=1)]
    epsilon: Positive
    delta: Positive | None = None
    noise: Literal["laplace", "normal"] = "laplace"
    size: Size = "bound"
    numbers: Annotated[list[Literal["estimate", "error", "count"]], Field(min_length=1)] | None = None
    groups: list[str] = []
    search: SearchSpec | None = None
    decay: Positive = Fraction(1)
    minimum: Annotated[Minimum, BeforeValidator(_count)] | None = None
    only: dict[Name, Annotated[list[str], Field(min_length=1)]] = {}
    infinite: Literal["exclude", "refuse"] = "exclude"
    grid: Positive | None = None
    formats: Annotated[list[Literal["parquet", "csv", "dta"]], Field(min_length=1)] = ["parquet", "csv"]

    @property
    def code(self) -> list[str]:
        return [self.statistic.file] if isinstance(self.statistic, FunctionSpec) else []

    @model_validator(mode="after")
    def _coherent(self) -> Sensitivity:
        for name in self.statistic.reads:
            if name not in self.variables:
                raise ValueError(f"statistic: {unknown(name, list(self.variables), 'variable')}")
        if unused := next((name for name in self.variables if name not in self.statistic.reads), None):
            raise ValueError(f"variables: {unused!r} is not used by the statistic; leave it out")
        if isinstance(self.statistic, PredictionSpec):
            low, high = self.variables[self.statistic.x].bounds
            if not low <= self.statistic.at <= high:
                raise ValueError(
                    f"statistic.at, {format_exact(self.statistic.at)}, lies outside the bounds of {self.statistic.x!r}, "
                    f"{format_exact(low)} … {format_exact(high)}"
                )
        self._coherent_size()
        if self.decay not in (Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(2)):
            raise ValueError("decay is 1/2, 1, 3/2 or 2: how fast sensitivities fall with the number of records")
        if self.grid is not None and (self.grid.numerator != 1 or not _power_of_ten(self.grid.denominator)):
            raise ValueError('grid is a power of ten, at most 1: "0.0001", say')
        if len(set(self.formats)) < len(self.formats):
            raise ValueError("formats names one twice")
        return self

    def _coherent_size(self) -> None:
        numbers = list[str](self.numbers or _NUMBERS)
        if len(set(numbers)) < len(numbers) or "estimate" not in numbers:
            raise ValueError("numbers lists estimate, and perhaps error and count, each once")
        if not isinstance(self.size, PublicSizes) and "count" not in numbers:
            raise ValueError("without a public list of sizes the noise is known by the released count: publish count")
        if self.minimum is not None and self.minimum.on == "released" and "count" not in numbers:
            raise ValueError("a minimum on the released count needs count among the numbers")
        if self.delta is None and (self.size == "bound" or self.noise == "normal"):
            normal = self.noise == "normal"
            why = "normal noise has no pure epsilon" if normal else "the lower bound on a count may fail"
            raise ValueError(f"key 'delta' is missing: {why}; state the probability you accept, such as \"0.000001\"")
        if self.delta is not None and self.delta >= Fraction(1, 2):
            raise ValueError("delta is a small probability, below 1/2")
        if self.delta is not None and not self.claims:
            raise ValueError("delta is for `size: bound`, normal noise or a minimum on released counts: leave it out")

    @property
    def claims(self) -> list[str]:
        """What δ is divided among: a bound that fails, normal noise, a cell that is published though it is too small to
        have a say in the noise."""
        found = ["bound"] if self.size == "bound" else []
        found += ["normal"] if self.noise == "normal" else []
        return [*found, "small"] if self.minimum is not None and self.minimum.on == "released" else found

    @property
    def names(self) -> list[str]:
        """The table, and that of what scales its noise."""
        return [self.name, f"{self.name}_chi"]

    def grouped(self, release: Release) -> Domain:
        """The groups of cells that share the scale of their noise."""
        return release.domain(self.groups, self.where, [f"{self.where}.groups[{i}]" for i in range(len(self.groups))])

    def domains(self, release: Release) -> dict[str, Domain]:
        return {self.name: self.cells(release), f"{self.name}~groups": self.grouped(release)}

    @property
    def files(self) -> list[str]:
        """The files that decide what is published: thresholds, sizes, a function."""
        found = [variable.ranks for variable in self.variables.values() if variable.ranks is not None]
        found += [self.size.public] if isinstance(self.size, PublicSizes) else []
        return [*found, self.statistic.file] if isinstance(self.statistic, FunctionSpec) else found


def _power_of_ten(number: int) -> bool:
    while number % 10 == 0:
        number //= 10
    return number == 1
