"""How a table of earnings percentiles is declared (000; 001 A.2)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from discreet.domain import Domain
from discreet.domain.bins import PSEO, Bins, lognormal
from discreet.engine.intake.derived import SampleCondition
from discreet.errors import ParameterError
from discreet.privacy.exact import Exact, Positive, format_exact
from discreet.privacy.ledger.events import Name
from discreet.publish.lehd.spec import Lehd
from discreet.spec.base import ColumnName, Strict, TableSpec, short, within

if TYPE_CHECKING:
    from discreet.spec.release import Release

MOST_STEPS = 50_000  # bins times parts of a percentile: what the distributions of its limits are computed on
Integer = Annotated[int, Field(ge=-(2**40), le=2**40)]
Threshold = Annotated[int, Field(ge=1, le=10**9)]
Codes = dict[ColumnName, Annotated[list[str], Field(min_length=1)]]


class LognormalSpec(Strict):
    """Borders at percentiles of a lognormal distribution, above a floor."""

    mean: Annotated[Exact, AfterValidator(within(-100, 100))]
    deviation: Annotated[Positive, AfterValidator(within(Fraction(1, 1000), 10))]
    floor: Integer


class BinsSpec(Strict):
    """Bins of a histogram: PSEO's 21, from lognormal parameters, or listed edges; `price_index` rescales them."""

    renamed: ClassVar = {"borders": "edges", "index": "price_index"}

    standard: Literal["pseo"] | None = None
    edges: list[Integer] | None = None
    lognormal: LognormalSpec | None = None
    price_index: Positive | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> BinsSpec:
        if sum(kind is not None for kind in (self.standard, self.edges, self.lognormal)) != 1:
            raise ValueError("needs one of standard, edges or lognormal")
        try:
            self.to_bins()
        except ParameterError as error:
            raise ValueError(f"{error.what}; {error.do}") from None
        return self

    def to_bins(self) -> Bins:
        """The bins that this declares."""
        if self.edges is not None:
            made = Bins(tuple(self.edges))
        elif self.lognormal is not None:
            made = lognormal(self.lognormal.mean, self.lognormal.deviation, self.lognormal.floor)
        else:
            made = PSEO
        if self.price_index is None:
            return made
        return made.indexed(self.price_index, f"{made.provenance}, times {format_exact(self.price_index)}")


class SampleRule(Strict):
    """Part of a sample rule: a record is in the sample if this holds for it. It looks at nothing but the record."""

    column: ColumnName
    at_least: Integer | None = None
    at_most: Integer | None = None
    equals: Annotated[list[str], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> SampleRule:
        if self.at_least is None and self.at_most is None and self.equals is None:
            raise ValueError("needs at_least, at_most or equals")
        return self

    @property
    def holds(self) -> SampleCondition:
        """Whether a record is in the sample."""
        return SampleCondition(
            self.column, self.at_least, self.at_most, None if self.equals is None else tuple(self.equals)
        )


class Level(Strict):
    """A further table of the same earnings by coarser attributes: measured with its own ε, or, without one, the sum of
    a finer level's protected histograms, at no additional ε."""

    renamed: ClassVar = {"minimum": "suppress_below", "withhold": "suppress_codes"}

    name: Name
    by: list[str]
    epsilon: Positive | None = None
    sum_of: Name | None = None
    suppress_below: Threshold | None = None
    suppress_codes: Codes = {}

    @model_validator(mode="after")
    def _one_way(self) -> Level:
        if self.epsilon is not None and self.sum_of is not None:
            raise ValueError("is either measured, with `epsilon`, or the `sum_of` another level")
        return self


class Reference(Strict):
    """A public guess for `plan`: how earnings are distributed, and how many graduates a cell of the table has."""

    mean: Annotated[Exact, AfterValidator(within(-100, 100))] = Fraction("11.003")
    deviation: Annotated[Positive, AfterValidator(within(Fraction(1, 1000), 10))] = Fraction("0.753")
    graduates: Annotated[int, Field(ge=1, le=10**9)] = 100


def _percentages(data: Any) -> Any:
    if isinstance(data, list):
        for item in data:
            if isinstance(item, float):
                raise ValueError('a percentile is a whole number or a quoted decimal, such as 25 or "12.5"')
    return data


class Earnings(TableSpec):
    """Protected percentiles and counts from protected histograms (000; 001 A.2)."""

    method: Literal["earnings"] = "earnings"
    recodable: ClassVar[bool] = True
    renamed: ClassVar = {"minimum": "suppress_below", "withhold": "suppress_codes", "similar": "borrow_from"}
    value: ColumnName
    epsilon: Positive
    bins: Annotated[BinsSpec, short("standard", "pseo")] = BinsSpec(standard="pseo")
    sample: list[SampleRule] = []
    percentiles: Annotated[list[Positive], BeforeValidator(_percentages), Field(min_length=1, max_length=99)] = [
        Fraction(25),
        Fraction(50),
        Fraction(75),
    ]
    estimator: Literal["pseo", "shrunk"] = "pseo"
    borrow_from: list[Annotated[list[str], Field(min_length=1)]] = []
    suppress_below: Threshold = 30
    suppress_codes: Codes = {}
    levels: list[Level] = []
    reference: Reference = Reference()
    layout: Annotated[Lehd, short("kind", "lehd")] | None = None

    @model_validator(mode="after")
    def _coherent(self) -> Earnings:
        for before, after in zip([Fraction(0), *self.percentiles], [*self.percentiles, Fraction(100)], strict=True):
            if before >= after:
                raise ValueError("percentiles lie between 0 and 100, each above the one before")
        if any((10 * p).denominator != 1 for p in self.percentiles):
            raise ValueError("percentiles have at most one decimal")
        bins = self.bins.to_bins().count
        if self.estimator == "shrunk" and bins == 1:
            raise ValueError("the estimator shrunk needs two bins or more; with one bin there is nothing to borrow")
        if max((p / 100).denominator for p in self.percentiles) * bins > MOST_STEPS:
            raise ValueError(f"limits of such fine percentiles in {bins} bins take hours; declare fewer bins")
        if self.borrow_from and self.estimator == "pseo":
            raise ValueError("`borrow_from` is for the estimator shrunk; pseo looks at one cell at a time")
        names = [self.name, *(level.name for level in self.levels)]
        if double := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two levels are called {double!r}")
        measured = [self.name, *(level.name for level in self.levels if level.epsilon is not None)]
        for level in self.levels:
            if level.sum_of is not None and level.sum_of not in measured:
                raise ValueError(
                    f"level {level.name!r} is the sum of {level.sum_of!r}, which is no measured level of this table; "
                    f"measured are {', '.join(measured)}"
                )
        return self

    @property
    def names(self) -> list[str]:
        return [self.name, *(level.name for level in self.levels)]

    @property
    def labelled(self) -> bool:
        return self.layout is not None

    def domains(self, release: Release) -> dict[str, Domain]:
        """The cells of the table and of its levels, by name."""
        levels = {v.name: release.domain(v.by, f"{self.where}.levels.{v.name}") for v in self.levels}
        return {self.name: self.cells(release), **levels}

    def families(self, release: Release) -> dict[str, list[Domain]]:
        return {
            self.name: [release.domain(by, f"{self.where}.borrow_from[{i}]") for i, by in enumerate(self.borrow_from)]
        }
