"""How a cube is declared: perturbed once, calibrated, the source of every table (002)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from discreet.privacy.exact import Positive, format_exact
from discreet.privacy.ledger.events import Name
from discreet.spec.base import ColumnName, Strict, TableSpec, unknown, within

if TYPE_CHECKING:
    from discreet.domain import Domain
    from discreet.spec.release import Release

LARGEST = 2**31  # grid steps of a weight: two thousand million records of this weight still add up
GRID_STEPS, SQUARED_GRID_STEPS = (
    10**4,
    10**6,
)  # steps of the largest weight, at least, where no grid is declared; and if it is squared
Cap = Annotated[int, Field(ge=1, le=2**29)]
Weight = Annotated[Positive, AfterValidator(within(Fraction(1, 10**9), 10**12))]


class AverageWeightNoise(Strict):
    """Noise of counts times an average weight, as published (002, §3.2): a public number, or what these records show,
    in all or by stratum."""

    weight: Weight | Literal["observed"] = "observed"
    strata: list[str] = []

    @model_validator(mode="after")
    def _strata_are_observed(self) -> AverageWeightNoise:
        if self.strata and self.weight != "observed":
            raise ValueError("strata have averages of their own, which are observed: leave `weight` out")
        return self


def _average(data: Any) -> Any:
    """`noise: average` for {average: {}}."""
    if data == "average":
        return AverageWeightNoise()
    if isinstance(data, dict) and set(data) == {"average"}:
        return AverageWeightNoise.model_validate(data["average"])
    return data


def default_grid(most: Fraction, steps: int = GRID_STEPS) -> Fraction:
    """The largest power of ten that is at most max/steps and of which max is a multiple, if there is one: a finer grid
    costs nothing, for noise has the scale of max.

    >>> format_exact(default_grid(Fraction(200))), format_exact(default_grid(Fraction(10**4))), format_exact(default_grid(Fraction("123.456")))
    ('0.01', '1', '0.001')
    """
    step = Fraction(10**12)
    while step > most / steps:
        step /= 10
    finer = step
    while (most / finer).denominator > 1 and most / finer <= LARGEST:
        finer /= 10
    return finer if most / finer <= LARGEST else step


class Weights(Strict):
    """How many each record stands for: rounded to multiples of `grid`, at most `max`. With `noise: largest` a weighted
    total costs `epsilon`; with `average` it takes the noise of the count, and nothing is promised."""

    needs: ClassVar = {
        "column": "the column of weights",
        "max": "the largest weight, a public number; noise is in proportion to it, and larger weights count as it",
    }
    column: ColumnName
    max: Weight
    grid: Annotated[Weight, Field(default_factory=lambda known: default_grid(known["max"]))]
    above: Literal["clamp", "drop"] = "clamp"
    noise: Annotated[Literal["largest"] | AverageWeightNoise, BeforeValidator(_average)] = "largest"
    epsilon: Positive | None = None
    cap: Weight | None = None

    @model_validator(mode="after")
    def _coherent(self) -> Weights:
        if not 1 <= self.max / self.grid <= LARGEST:
            raise ValueError(f"max {format_exact(self.max)} is not between 1 and 2^31 steps of the grid")
        if (self.max / self.grid).denominator > 1:
            raise ValueError(
                f"max {format_exact(self.max)} is no multiple of the grid {format_exact(self.grid)}: "
                "declare a `grid` that divides it"
            )
        if isinstance(self.noise, AverageWeightNoise):
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

    needs: ClassVar = {"by": "variables of the cube, or coarser ones; `[]` for the total of all"}
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
        if self.file is not None and not self.provenance.strip():
            raise ValueError("key 'provenance' is missing: where the totals of the `file` come from; it is published")
        return self


class RegressionCalibration(Strict):
    """Least squares, every number weighed by its noise: always solvable, and no linear unbiased way has less error."""

    by: Literal["regression"] = "regression"


class RakingCalibration(Strict):
    """Raking, as in 002 §4: cycles through the controls until all are met to the tolerance. Where that fails, least
    squares take its place. Errors are simulated in so many `runs`; by default in fewer for large cubes."""

    by: Literal["rake"] = "rake"
    cycles: Annotated[int, Field(ge=1, le=100_000)] = 1000
    tolerance: Positive = Fraction(1, 10**6)
    runs: Annotated[int, Field(ge=2, le=1000)] | None = None


def _calibration(data: Any) -> Any:
    """`calibration: rake` for {by: rake}."""
    if isinstance(data, str | dict):
        found = {"by": data} if isinstance(data, str) else data
        if "by" not in found:
            raise ValueError("key 'by' is missing: `regression` or `rake`")
        if found["by"] not in ("regression", "rake"):
            raise ValueError(unknown(str(found["by"]), ["regression", "rake"], "calibration"))
        return found
    if isinstance(data, RegressionCalibration | RakingCalibration):
        return data
    raise ValueError("expected `regression`, `rake`, or keys and values")


class NumberedColumns(Strict):
    """Columns prefix1 … prefixN."""

    needs: ClassVar = {"prefix": "`{prefix: rep_, count: 20}` is rep_1 … rep_20", "count": "how many columns there are"}
    prefix: ColumnName
    count: Annotated[int, Field(ge=2, le=1000)]


def _columns(data: Any) -> Any:
    """A list of 2 … 1,000 columns, each once; or a prefix and a count."""
    if isinstance(data, list):
        if not 2 <= len(data) <= 1000:
            raise ValueError(f"replicates are 2 to 1,000 columns, found {len(data)}")
        if double := next((name for name in data if data.count(name) > 1), None):
            raise ValueError(f"names column {double!r} twice")
        return data
    if isinstance(data, dict):
        return NumberedColumns.model_validate(data)
    if isinstance(data, NumberedColumns):
        return data
    raise ValueError("expected a list of columns, or `{prefix: rep_, count: 20}`")


class Replicates(Strict):
    """Replicate weights, of which sampling variances are made: factor/R · Σ (θ_r − θ)². What leaves is measured with
    an epsilon of its own: deviations of the cube itself, or of some small tables, through which a variance function is
    fitted."""

    needs: ClassVar = {
        "columns": "the replicate weights, a list of columns or `{prefix: rep_, count: 20}`",
        "epsilon": "what measuring sampling variances costs",
        "bound": "how far a replicate weight may lie from the weight, a public number; noise is in proportion to it",
    }
    columns: Annotated[list[ColumnName] | NumberedColumns, BeforeValidator(_columns)]
    epsilon: Positive
    bound: Weight
    factor: Positive = Fraction(4)
    tables: list[Annotated[list[str], Field(min_length=1)]] = []

    @property
    def names(self) -> list[str]:
        if isinstance(self.columns, NumberedColumns):
            return [f"{self.columns.prefix}{number}" for number in range(1, self.columns.count + 1)]
        return self.columns


class SquaredWeights(Strict):
    """Sampling variances without replicates: sums of squared weights of some small tables, measured, times a design
    effect that is public. A variance function is fitted through them."""

    needs: ClassVar = {
        "epsilon": "what measuring sampling variances costs",
        "tables": "small ones, `[[strength], [outdoors]]`; a variance function is fitted through their cells",
        "design_effect": "the design effect: 1 for a simple random sample; clustered surveys have more, 1.5 to 3 often",
    }
    renamed: ClassVar = {"effect": "design_effect"}
    epsilon: Positive
    tables: Annotated[list[Annotated[list[str], Field(min_length=1)]], Field(min_length=1)]
    design_effect: Weight


class Hypercube(TableSpec):
    """The full cross-tabulation of all table variables, protected once (002)."""

    renamed: ClassVar = {"whole": "integers", "squares": "squared_weights"}
    method: Literal["hypercube"] = "hypercube"
    by: Annotated[list[str], Field(min_length=1)]
    epsilon: Positive | None = None
    cap: Cap | None = None
    form: Literal["dense", "sparse"] = "dense"
    weights: Weights | None = None
    replicates: Replicates | None = None
    squared_weights: SquaredWeights | None = None
    controls: Annotated[list[Control], Field(max_length=100)] = []
    calibration: Annotated[
        Annotated[RegressionCalibration | RakingCalibration, Field(discriminator="by")], BeforeValidator(_calibration)
    ] = RegressionCalibration()
    integers: bool = False
    formats: Annotated[list[Literal["parquet", "csv"]], Field(min_length=1, max_length=2)] = ["parquet"]

    @model_validator(mode="after")
    def _grid_of_squared_weights(self) -> Hypercube:
        """w²/max, in steps, is little for weights far below max."""
        if (
            self.squared_weights is not None
            and self.weights is not None
            and "grid" not in self.weights.model_fields_set
        ):
            finer = self.weights.model_copy(update={"grid": default_grid(self.weights.max, SQUARED_GRID_STEPS)})
            object.__setattr__(self, "weights", finer)
        return self

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
        if self.integers:
            raise ValueError("whole numbers are made of a dense cube: leave `integers` out")
        if isinstance(self.calibration, RakingCalibration):
            raise ValueError(
                "raking multiplies, so the cells without a row stay 0: leave `calibration` out, least squares adds"
            )
        if self.replicates is not None and not self.replicates.tables:
            raise ValueError("replicates of a sparse cube would have noise in every cell: name small `tables`")
        return self

    @model_validator(mode="after")
    def _coherent(self) -> Hypercube:
        if self.replicates is not None and self.weights is None:
            raise ValueError("replicates are weights: declare `weights` as well")
        if self.replicates and self.weights and self.replicates.bound / self.weights.grid > LARGEST:
            raise ValueError("the `bound` of replicates is more than 2^31 steps of the grid: lower it")
        if self.squared_weights is not None and (self.weights is None or self.replicates is not None):
            raise ValueError("squared_weights are of `weights`, and take the place of `replicates`")
        if "calibration" in self.model_fields_set and not self.controls:
            raise ValueError("calibration needs `controls`: what the cube must add up to")
        names = [control.name for control in self.controls]
        if double := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two controls are called {double!r}")
        if len(set(self.formats)) < len(self.formats):
            raise ValueError("formats names one twice")
        if "parquet" not in self.formats:
            raise ValueError("parquet is needed to query the cube; csv comes beside: write `formats: [parquet, csv]`")
        return self

    @property
    def _average(self) -> bool:
        return self.weights is not None and isinstance(self.weights.noise, AverageWeightNoise)

    @property
    def measure(self) -> Literal["count", "total"]:
        """What is calibrated, and what queries are about."""
        return "count" if self.weights is None else "total"

    @property
    def variance_source(self) -> Replicates | SquaredWeights | None:
        """What sampling variances are made of."""
        return self.replicates or self.squared_weights

    @property
    def names(self) -> list[str]:
        """The cube, its controls, and the replicates that are published cell by cell."""
        replicates = self.replicates is not None and not self.replicates.tables
        controls = [f"{self.name}_{control.name}" for control in self.controls]
        return [self.name, *controls, *([f"{self.name}_replicates"] if replicates else [])]

    @property
    def _coarser(self) -> str:
        return f"name variables of the cube ({', '.join(self.by)}), or coarser levels of them"

    def control_domains(self, release: Release) -> dict[str, Domain]:
        """The cells of each control, by the name of its table."""
        return {
            f"{self.name}_{c.name}": release.domain(c.by, f"{self.where}.controls.{c.name}", do=self._coarser)
            for c in self.controls
        }

    def variance_tables(self, release: Release) -> list[Domain]:
        """The cells of the tables whose sampling variances are measured."""
        key = f"{self.where}.{'squared_weights' if self.replicates is None else 'replicates'}.tables"
        return [
            release.domain(by, self.where, [f"{key}[{i}][{j}]" for j in range(len(by))], self._coarser)
            for i, by in enumerate([] if self.variance_source is None else self.variance_source.tables)
        ]

    def strata(self, release: Release) -> Domain | None:
        """Where average weights are observed, each by itself."""
        if self.weights is None or not isinstance(average := self.weights.noise, AverageWeightNoise):
            return None
        places = [f"{self.where}.weights.noise.average.strata[{i}]" for i in range(len(average.strata))]
        return release.domain(average.strata, self.where, places, self._coarser)

    def domains(self, release: Release) -> dict[str, Domain]:
        strata = self.strata(release)
        varied = {f"{self.name}~varied{i}": domain for i, domain in enumerate(self.variance_tables(release))}
        found = {self.name: self.cells(release), **self.control_domains(release), **varied}
        return found if strata is None else {**found, f"{self.name}~strata": strata}

    @property
    def files(self) -> list[str]:
        """The public files that decide what is published."""
        return [control.file for control in self.controls if control.file is not None]
