"""How a cube is declared: perturbed once, calibrated, the source of every table (002)."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from discreet.privacy.events import Name
from discreet.privacy.exact import Positive, written
from discreet.spec.strict import ColumnName, Strict, within

LARGEST = 2**31  # grid steps of a weight: two thousand million records of this weight still add up
Cap = Annotated[int, Field(ge=1, le=2**29)]
Weight = Annotated[Positive, AfterValidator(within(Fraction(1, 10**9), 10**12))]


class Average(Strict):
    """Noise of counts times an average weight, as published (002, §3.2): a public number, or what these records show,
    in all or by stratum."""

    weight: Weight | Literal["observed"] = "observed"
    strata: list[str] = []

    @model_validator(mode="after")
    def _strata_are_observed(self) -> Average:
        if self.strata and self.weight != "observed":
            raise ValueError("strata have averages of their own, which are observed: leave `weight` out")
        return self


def _average(data: Any) -> Any:
    """`noise: average` for {average: {}}."""
    if data == "average":
        return Average()
    if isinstance(data, dict) and set(data) == {"average"}:
        return Average.model_validate(data["average"])
    return data


class Weights(Strict):
    """How many each record stands for: multiples of `grid`, at most `max`. With `noise: largest` a weighted total costs
    `epsilon`; with `average` it takes the noise of the count, and nothing is promised."""

    column: ColumnName
    max: Weight
    grid: Weight = Fraction(1)
    above: Literal["clamp", "drop"] = "clamp"
    noise: Annotated[Literal["largest"] | Average, BeforeValidator(_average)] = "largest"
    epsilon: Positive | None = None
    cap: Weight | None = None

    @model_validator(mode="after")
    def _coherent(self) -> Weights:
        if not 1 <= self.max / self.grid <= LARGEST:
            raise ValueError(f"max {written(self.max)} is not between 1 and 2^31 steps of the grid")
        if (self.max / self.grid).denominator > 1:
            raise ValueError(f"max {written(self.max)} is no multiple of the grid {written(self.grid)}")
        if isinstance(self.noise, Average):
            if self.epsilon is not None or self.cap is not None:
                raise ValueError("with `noise: average` totals take the noise of the counts: leave epsilon and cap out")
        elif self.epsilon is None:
            raise ValueError(
                "key 'epsilon' is missing: what weighted totals cost; or write `noise: average`, which is not private"
            )
        if self.cap is not None and self.cap < self.max:
            raise ValueError("cap is below max: the noise could not hide one record")
        return self

    @property
    def largest(self) -> int:
        """The largest weight in steps of the grid."""
        return int(self.max / self.grid)


class Control(Strict):
    """A lower-dimensional table that the cube is made to add up to: measured with its own epsilon, taken from a public
    file, or exact, which is not private."""

    name: Name
    by: list[str]
    epsilon: Positive | None = None
    cap: Cap | None = None
    exact: bool = False
    file: str | None = None
    value: ColumnName = "total"
    provenance: str = ""

    @model_validator(mode="after")
    def _one_way(self) -> Control:
        ways = [self.epsilon is not None, self.exact, self.file is not None]
        if sum(ways) != 1:
            raise ValueError(
                "needs one of `epsilon` (measured, with noise of its own), `file` (public totals) or `exact: true` "
                "(the records' own totals, unprotected)"
            )
        if self.cap is not None and self.epsilon is None:
            raise ValueError("cap bounds the noise of a control that is measured, with `epsilon`")
        if self.file is None and {"value", "provenance"} & self.model_fields_set:
            raise ValueError("value and provenance belong to a `file`")
        return self


class Regression(Strict):
    """Least squares, every number weighed by its noise: always solvable, and no linear unbiased way has less error."""

    by: Literal["regression"] = "regression"


class Rake(Strict):
    """Raking, as in 002 §4: cycles through the controls until all are met to the tolerance. Where that fails, least
    squares take its place. Errors are simulated in so many `runs`; by default in fewer for large cubes."""

    by: Literal["rake"] = "rake"
    cycles: Annotated[int, Field(ge=1, le=100_000)] = 1000
    tolerance: Positive = Fraction(1, 10**6)
    runs: Annotated[int, Field(ge=2, le=1000)] | None = None


def _calibration(data: Any) -> Any:
    """`calibration: rake` for {by: rake}."""
    return {"by": data} if isinstance(data, str) else data


class Numbered(Strict):
    """Columns prefix1 … prefixN."""

    prefix: ColumnName
    count: Annotated[int, Field(ge=2, le=1000)]


class Replicates(Strict):
    """Replicate weights, of which sampling variances are made: factor/R · Σ (θ_r − θ)². What leaves is measured with
    an epsilon of its own: deviations of the cube itself, or of some small tables, through which a variance function is
    fitted."""

    columns: Annotated[list[ColumnName], Field(min_length=2, max_length=1000)] | Numbered
    epsilon: Positive
    bound: Weight
    factor: Positive = Fraction(4)
    tables: list[Annotated[list[str], Field(min_length=1)]] = []

    @property
    def names(self) -> list[str]:
        if isinstance(self.columns, Numbered):
            return [f"{self.columns.prefix}{number}" for number in range(1, self.columns.count + 1)]
        return self.columns


class Squares(Strict):
    """Sampling variances without replicates: sums of squared weights of some small tables, measured, times a design
    effect that is public. A variance function is fitted through them."""

    epsilon: Positive
    tables: Annotated[list[Annotated[list[str], Field(min_length=1)]], Field(min_length=1)]
    effect: Weight = Fraction(1)


class Hypercube(Strict):
    """The full cross-tabulation of all table variables, protected once (002)."""

    method: Literal["hypercube"] = "hypercube"
    name: Name
    by: Annotated[list[str], Field(min_length=1)]
    epsilon: Positive | None = None
    cap: Cap | None = None
    form: Literal["dense", "sparse"] = "dense"
    weights: Weights | None = None
    replicates: Replicates | None = None
    squares: Squares | None = None
    controls: Annotated[list[Control], Field(max_length=100)] = []
    calibration: Annotated[Annotated[Regression | Rake, Field(discriminator="by")], BeforeValidator(_calibration)] = (
        Regression()
    )
    whole: bool = False
    formats: Annotated[list[Literal["parquet", "csv"]], Field(min_length=1, max_length=2)] = ["parquet"]

    @model_validator(mode="after")
    def _costs(self) -> Hypercube:
        average = self._average
        if self.epsilon is None:
            if self.weights is None or average:
                raise ValueError("key 'epsilon' is missing: what the counts cost")
            if self.cap is not None:
                raise ValueError("cap bounds the noise of counts, which are published only with `epsilon`")
        if average and self.cap is None:
            raise ValueError("`noise: average` needs `cap`, the most by which a count may change")
        for control in self.controls if self.weights is not None else []:
            if control.epsilon is not None and (control.cap is None) is average:
                way = "needs `cap`, as the cube does" if average else "has noise of weighted totals, without a cap"
                raise ValueError(f"control {control.name!r} {way}")
        return self

    @model_validator(mode="after")
    def _form_fits(self) -> Hypercube:
        if self.form == "dense":
            return self
        if self.weights is not None and not self._average:
            raise ValueError(
                "in the sparse form most cells have no noise, but a weighted total needs much: publish counts, or "
                "fewer cells in the dense form"
            )
        if self.whole:
            raise ValueError("whole numbers are made of a dense cube: leave `whole` out")
        if self.replicates is not None and not self.replicates.tables:
            raise ValueError("replicates of a sparse cube would have noise in every cell: name small `tables`")
        return self

    @model_validator(mode="after")
    def _coherent(self) -> Hypercube:
        if self.replicates is not None and self.weights is None:
            raise ValueError("replicates are weights: declare `weights` as well")
        if self.squares is not None and (self.weights is None or self.replicates is not None):
            raise ValueError("squares are of `weights`, and take the place of `replicates`")
        if "calibration" in self.model_fields_set and not self.controls:
            raise ValueError("calibration needs `controls`: what the cube must add up to")
        names = [control.name for control in self.controls]
        if double := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two controls are called {double!r}")
        if len(set(self.formats)) < len(self.formats):
            raise ValueError("formats names one twice")
        return self

    @property
    def _average(self) -> bool:
        return self.weights is not None and isinstance(self.weights.noise, Average)

    @property
    def measure(self) -> Literal["count", "total"]:
        """What is calibrated, and what queries are about."""
        return "count" if self.weights is None else "total"

    @property
    def varied(self) -> Replicates | Squares | None:
        """What sampling variances are made of."""
        return self.replicates or self.squares

    def files(self) -> list[str]:
        """The public files that decide what is published."""
        return [control.file for control in self.controls if control.file is not None]
