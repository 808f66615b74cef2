"""Declaration of a table of protected estimates: any statistic of small cells (Chetty & Friedman 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from discreet.methods.sensitivity.statistic_spec import Bound, FunctionSpec, PredictionSpec, StatisticSpec
from discreet.privacy.exact import Positive, format_exact
from discreet.privacy.ledger.events import Name
from discreet.spec.base import ColumnName, Strict, TableSpec, unknown

if TYPE_CHECKING:
    from discreet.domain import Domain
    from discreet.spec.release import Release


class VariableSpec(Strict):
    """A number of each record, clamped to declared bounds; a 0/1 variable, by the codes that count as 1; or a rank
    among public thresholds. Bounds are never taken from the data."""

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
                raise ValueError("`equals` and `ranks` give numbers from 0 to 1: leave the other keys out")
        elif not all(given):
            raise ValueError(
                "has no bounds: declare low and high (not from these data), or `equals`, or `ranks` among public "
                "thresholds; without bounds the sensitivity of a statistic to one record is unlimited"
            )
        elif self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"low {format_exact(self.low)} is not below high {format_exact(self.high)}")
        return self

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The lowest and the highest value."""
        return (self.low if self.low is not None else Fraction(0), self.high if self.high is not None else Fraction(1))


class GridSearch(Strict):
    """Added records are tried on a grid: this number of values of each variable, from bound to bound."""

    grid: Annotated[int, Field(ge=2, le=10_001)]


class PublicSizes(Strict):
    """A public list of the number of records of each cell: columns of codes, and one of numbers."""

    public: str
    column: ColumnName
    provenance: Annotated[str, Field(min_length=1)]


def _plain(data: Any) -> Any:
    """YAML reads a bare true as a boolean."""
    return "true" if data is True else data


def _form(data: Any) -> str:
    return "keys" if isinstance(data, dict | Strict) else "word"


SearchSpec = Annotated[
    Annotated[Literal["exact", "corners", "removals"], Tag("word")] | Annotated[GridSearch, Tag("keys")],
    Discriminator(_form),
]
CellSize = Annotated[
    Annotated[Literal["bound", "true"], Tag("word")] | Annotated[PublicSizes, Tag("keys")],
    Discriminator(_form),
    BeforeValidator(_plain),
]


def _count(data: Any) -> Any:
    return {"count": data} if isinstance(data, int) and not isinstance(data, bool) else data


class SuppressBelow(Strict):
    """Cells with fewer records are suppressed: by the released count, or by the true one."""

    count: Annotated[int, Field(ge=1, le=10**9)]
    on: Annotated[Literal["released", "true"], BeforeValidator(_plain)] = "released"


_QUANTITIES = ("estimate", "error", "count")


class Sensitivity(TableSpec):
    """Protected estimates, their standard errors and counts: noise proportional to the maximum observed sensitivity."""

    renamed: ClassVar[Mapping[str, str]] = {
        "minimum": "suppress_below",
        "size": "cell_size",
        "numbers": "publish",
        "infinite": "infinite_influence",
    }
    method: Literal["sensitivity"] = "sensitivity"
    statistic: StatisticSpec
    variables: Annotated[dict[Name, VariableSpec], Field(min_length=1)]
    epsilon: Positive
    delta: Positive | None = None
    noise: Literal["laplace", "normal"] = "laplace"
    cell_size: CellSize = "bound"
    publish: Annotated[list[Literal["estimate", "error", "count"]], Field(min_length=1)] | None = None
    groups: list[str] = []
    search: SearchSpec | None = None
    decay: Positive = Fraction(1)
    suppress_below: Annotated[SuppressBelow, BeforeValidator(_count)] | None = None
    only: dict[Name, Annotated[list[str], Field(min_length=1)]] = {}
    infinite_influence: Literal["exclude", "refuse"] = "exclude"
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
                    f"statistic.at, {format_exact(self.statistic.at)}, lies outside the bounds of "
                    f"{self.statistic.x!r}, {format_exact(low)} … {format_exact(high)}"
                )
        self._coherent_size()
        if self.decay not in (Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(2)):
            raise ValueError(
                "decay is 1/2, 1, 3/2 or 2: the power of the number of records with which sensitivities fall"
            )
        if self.grid is not None and (self.grid.numerator != 1 or not _power_of_ten(self.grid.denominator)):
            raise ValueError('grid is a power of ten, at most 1, such as "0.0001"')
        if len(set(self.formats)) < len(self.formats):
            raise ValueError("formats names one twice")
        return self

    def _coherent_size(self) -> None:
        quantities = list[str](self.publish or _QUANTITIES)
        if len(set(quantities)) < len(quantities) or "estimate" not in quantities:
            raise ValueError("publish lists estimate and, optionally, error and count, each once")
        if not isinstance(self.cell_size, PublicSizes) and "count" not in quantities:
            raise ValueError(
                "without public cell sizes the scale of the noise follows from the released count: publish count"
            )
        if self.suppress_below is not None and self.suppress_below.on == "released" and "count" not in quantities:
            raise ValueError("suppression by the released count needs count in publish")
        if self.delta is None and (self.cell_size == "bound" or self.noise == "normal"):
            normal = self.noise == "normal"
            why = "normal noise has no pure epsilon" if normal else "the lower bound on a count can fail"
            raise ValueError(f"key 'delta' is missing: {why}; state the probability you accept, such as \"0.000001\"")
        if self.delta is not None and self.delta >= Fraction(1, 2):
            raise ValueError("delta is a small probability, below 1/2")
        if self.delta is not None and not self.claims:
            raise ValueError(
                "delta is for `cell_size: bound`, normal noise or suppression by released counts: leave it out"
            )

    @property
    def claims(self) -> list[str]:
        """The events among which δ is divided: the bound on a count fails; normal noise; a cell that was too small to
        count towards χ is published."""
        claims = ["bound"] if self.cell_size == "bound" else []
        claims += ["normal"] if self.noise == "normal" else []
        by_released_count = self.suppress_below is not None and self.suppress_below.on == "released"
        return [*claims, "small"] if by_released_count else claims

    @property
    def names(self) -> list[str]:
        """The table, and that of its noise scales χ."""
        return [self.name, f"{self.name}_chi"]

    def grouped(self, release: Release) -> Domain:
        """The groups of cells that share one χ."""
        return release.domain(self.groups, self.where, [f"{self.where}.groups[{i}]" for i in range(len(self.groups))])

    def domains(self, release: Release) -> dict[str, Domain]:
        return {self.name: self.cells(release), f"{self.name}~groups": self.grouped(release)}

    @property
    def files(self) -> list[str]:
        """The public files that determine what is published: thresholds, cell sizes, a function."""
        files = [variable.ranks for variable in self.variables.values() if variable.ranks is not None]
        files += [self.cell_size.public] if isinstance(self.cell_size, PublicSizes) else []
        return [*files, self.statistic.file] if isinstance(self.statistic, FunctionSpec) else files


def _power_of_ten(number: int) -> bool:
    while number % 10 == 0:
        number //= 10
    return number == 1
