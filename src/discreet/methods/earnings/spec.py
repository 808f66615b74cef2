"""Declaration of a table of earnings percentiles."""

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

MOST_STEPS = 50_000  # bins times the denominator of a percentile: the lattice on which its limits are computed
Integer = Annotated[int, Field(ge=-(2**40), le=2**40)]
Threshold = Annotated[int, Field(ge=1, le=10**9)]
Codes = dict[ColumnName, Annotated[list[str], Field(min_length=1)]]


class LognormalSpec(Strict):
    """Edges at percentiles of a lognormal distribution, above a floor."""

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
        """The declared bins."""
        if self.edges is not None:
            bins = Bins(tuple(self.edges))
        elif self.lognormal is not None:
            bins = lognormal(self.lognormal.mean, self.lognormal.deviation, self.lognormal.floor)
        else:
            bins = PSEO
        if self.price_index is None:
            return bins
        return bins.indexed(self.price_index, f"{bins.provenance}, times {format_exact(self.price_index)}")


class SampleRule(Strict):
    """One condition of the sample: a function of the single record, so it has no effect on the sensitivity."""

    column: ColumnName
    at_least: Integer | None = None
    at_most: Integer | None = None
    equals: Annotated[list[str], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _has_a_condition(self) -> SampleRule:
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
            raise ValueError("has both `epsilon` (own noise) and `sum_of` (a sum of another level): declare one")
        return self


class Reference(Strict):
    """Public assumptions for `plan`: the distribution of earnings, and the number of graduates in a cell."""

    mean: Annotated[Exact, AfterValidator(within(-100, 100))] = Fraction("11.003")
    deviation: Annotated[Positive, AfterValidator(within(Fraction(1, 1000), 10))] = Fraction("0.753")
    graduates: Annotated[int, Field(ge=1, le=10**9)] = 100


def _percentages(data: Any) -> Any:
    if isinstance(data, list):
        for item in data:
            if isinstance(item, float):
                raise ValueError('a percentile is an integer or a quoted decimal, such as 25 or "12.5"')
    return data


class Earnings(TableSpec):
    """Percentiles and counts from protected histograms (PSEO Beta Appendix, §2; PSEO Technical Appendices, A.2)."""

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
                raise ValueError("percentiles lie between 0 and 100, in ascending order")
        if any((10 * p).denominator != 1 for p in self.percentiles):
            raise ValueError("percentiles have at most one decimal")
        bins = self.bins.to_bins().count
        if self.estimator == "shrunk" and bins == 1:
            raise ValueError("the estimator shrunk needs two bins or more")
        if max((p / 100).denominator for p in self.percentiles) * bins > MOST_STEPS:
            raise ValueError(
                f"limits of such percentiles in {bins} bins would take hours: declare fewer bins or rounder percentiles"
            )
        if self.borrow_from and self.estimator == "pseo":
            raise ValueError("`borrow_from` is for the estimator shrunk; pseo uses one cell at a time")
        names = [self.name, *(level.name for level in self.levels)]
        if duplicate := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two levels are called {duplicate!r}")
        measured = [self.name, *(level.name for level in self.levels if level.epsilon is not None)]
        for level in self.levels:
            if level.sum_of is not None and level.sum_of not in measured:
                raise ValueError(
                    f"level {level.name!r} is the sum of {level.sum_of!r}, which is no level of this table with an "
                    f"epsilon; those are: {', '.join(measured)}"
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
