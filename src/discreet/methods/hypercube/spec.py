"""The declaration of a hypercube: a cross-tabulation perturbed once and calibrated, from which every table is added up
(Li and Krenzke 2020)."""

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

LARGEST = 2**31  # grid steps of a weight: 2^31 records of this weight still add up in int64
GRID_STEPS, SQUARED_GRID_STEPS = 10**4, 10**6  # of the largest weight, by default at least; with squared weights
Cap = Annotated[int, Field(ge=1, le=2**29)]
Weight = Annotated[Positive, AfterValidator(within(Fraction(1, 10**9), 10**12))]


class AverageWeightNoise(Strict):
    """The noise of the count times an average weight (Li & Krenzke 2020, §3.2): a public number, or the average
    observed in these records, overall or by stratum."""

    weight: Weight | Literal["observed"] = "observed"
    strata: list[str] = []

    @model_validator(mode="after")
    def _strata_are_observed(self) -> AverageWeightNoise:
        if self.strata and self.weight != "observed":
            raise ValueError("with `strata` the average weights are observed by stratum: leave `weight` out")
        return self


def _average(data: Any) -> Any:
    """Short form: `noise: average` for {average: {}}."""
    if data == "average":
        return AverageWeightNoise()
    if isinstance(data, dict) and set(data) == {"average"}:
        return AverageWeightNoise.model_validate(data["average"])
    return data


def default_grid(most: Fraction, steps: int = GRID_STEPS) -> Fraction:
    """The default grid: the largest power of ten that is at most max/steps and divides max, if there is one. A finer
    grid has no privacy cost, since the noise is scaled to max.

    >>> [format_exact(default_grid(most)) for most in (Fraction(200), Fraction(10**4), Fraction("123.456"))]
    ['0.01', '1', '0.001']
    """
    step = Fraction(10**12)
    while step > most / steps:
        step /= 10
    finer = step
    while (most / finer).denominator > 1 and most / finer <= LARGEST:
        finer /= 10
    return finer if most / finer <= LARGEST else step


class Weights(Strict):
    """Survey weights: rounded to multiples of `grid` and bounded by `max`. With `noise: largest` weighted totals have
    their own `epsilon`; with `noise: average` they carry the scaled noise of the count and have no guarantee."""

    needs: ClassVar = {
        "column": "the column of weights",
        "max": "the largest weight, a public number: larger weights are clamped or dropped, and the noise is "
        "proportional to it",
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
                f"max {format_exact(self.max)} is not a multiple of the grid {format_exact(self.grid)}: "
                "declare a `grid` that divides it"
            )
        if isinstance(self.noise, AverageWeightNoise):
            if self.epsilon is not None or self.cap is not None:
                raise ValueError(
                    "with `noise: average` weighted totals carry the noise of the counts: leave `epsilon` and `cap` out"
                )
        elif self.epsilon is None:
            raise ValueError(
                "key 'epsilon' is missing: the privacy loss of weighted totals; or write `noise: average`, which has "
                "no privacy guarantee"
            )
        if self.cap is not None and self.cap < self.max:
            raise ValueError("cap is below max: the noise could not protect one record")
        return self

    @property
    def largest(self) -> int:
        """The largest weight in steps of the grid."""
        return int(self.max / self.grid)


class Control(Strict):
    """A lower-dimensional table that the cube is calibrated to: a noisy measurement with its own epsilon, public totals
    from a file, or the exact confidential totals, which have no privacy guarantee."""

    needs: ClassVar = {"by": "variables of the cube, or coarser levels of them; `[]` for the grand total"}
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
                "needs one of `epsilon` (a noisy measurement), `file` (public totals) or `exact: true` (the exact "
                "totals of the records, without protection)"
            )
        if self.cap is not None and self.epsilon is None:
            raise ValueError("cap bounds the noise of a measured control: declare its `epsilon`, or leave `cap` out")
        if self.file is None and {"value", "provenance"} & self.model_fields_set:
            raise ValueError("`value` and `provenance` describe a `file`: declare one, or leave them out")
        if self.file is not None and not self.provenance.strip():
            raise ValueError("key 'provenance' is missing: the source of the totals in `file`; it is published")
        return self


class RegressionCalibration(Strict):
    """Generalised least squares, weighted by the noise variances: always solvable, and the best linear unbiased
    estimator for those variances (Aitken 1935)."""

    by: Literal["regression"] = "regression"


class RakingCalibration(Strict):
    """Raking (Li & Krenzke 2020, §4): cycles through the controls until all are met to the `tolerance`. If it does not
    converge, generalised least squares replace it. Its errors are estimated by simulation with `runs` replications,
    fewer by default for large cubes."""

    by: Literal["rake"] = "rake"
    cycles: Annotated[int, Field(ge=1, le=100_000)] = 1000
    tolerance: Positive = Fraction(1, 10**6)
    runs: Annotated[int, Field(ge=2, le=1000)] | None = None


def _calibration(data: Any) -> Any:
    """Short form: `calibration: rake` for {by: rake}."""
    if isinstance(data, str | dict):
        keys = {"by": data} if isinstance(data, str) else data
        if "by" not in keys:
            raise ValueError("key 'by' is missing: `regression` or `rake`")
        if keys["by"] not in ("regression", "rake"):
            raise ValueError(unknown(str(keys["by"]), ["regression", "rake"], "calibration"))
        return keys
    if isinstance(data, RegressionCalibration | RakingCalibration):
        return data
    raise ValueError("expected `regression`, `rake`, or keys and values")


class NumberedColumns(Strict):
    """Numbered columns: prefix1 … prefixN."""

    needs: ClassVar = {"prefix": "`{prefix: rep_, count: 20}` is rep_1 … rep_20", "count": "the number of columns"}
    prefix: ColumnName
    count: Annotated[int, Field(ge=2, le=1000)]


def _columns(data: Any) -> Any:
    """A list of 2 to 1,000 distinct columns, or a prefix and a count."""
    if isinstance(data, list):
        if not 2 <= len(data) <= 1000:
            raise ValueError(f"expected 2 to 1,000 replicate columns, got {len(data)}")
        if double := next((name for name in data if data.count(name) > 1), None):
            raise ValueError(f"duplicate column {double!r}")
        return data
    if isinstance(data, dict):
        return NumberedColumns.model_validate(data)
    if isinstance(data, NumberedColumns):
        return data
    raise ValueError("expected a list of columns, or `{prefix: rep_, count: 20}`")


class Replicates(Strict):
    """Replicate weights for sampling variances, factor/R · Σ (θ_r − θ)². Only noisy measurements of the deviations are
    published or used, with their own epsilon: of every cell of the cube, or of some small `tables` through which a
    generalised variance function is fitted."""

    needs: ClassVar = {
        "columns": "the replicate weights, a list of columns or `{prefix: rep_, count: 20}`",
        "epsilon": "the privacy loss of measuring sampling variances",
        "bound": "the largest difference between a replicate weight and the weight, a public number; deviations are "
        "clamped to it, and the noise is proportional to it",
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
    """Sampling variances without replicates: noisy sums of squared weights of some small tables, times a public design
    effect. A generalised variance function is fitted through them."""

    needs: ClassVar = {
        "epsilon": "the privacy loss of measuring sampling variances",
        "tables": "small tables, `[[strength], [outdoors]]`; a variance function is fitted through their cells",
        "design_effect": "a public design effect: 1 for a simple random sample, often 1.5 to 3 for clustered samples",
    }
    renamed: ClassVar = {"effect": "design_effect"}
    epsilon: Positive
    tables: Annotated[list[Annotated[list[str], Field(min_length=1)]], Field(min_length=1)]
    design_effect: Weight


class Hypercube(TableSpec):
    """The full cross-tabulation of all table variables, protected once (Li & Krenzke 2020)."""

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
        """Weights far below max have a small w²/max: squared weights need a finer grid."""
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
                raise ValueError("key 'epsilon' is missing: the privacy loss of the counts")
            if self.cap is not None:
                raise ValueError(
                    "cap bounds the noise of counts, which are published only with `epsilon`: declare it, or leave "
                    "`cap` out"
                )
        if average and self.cap is None:
            raise ValueError("`noise: average` needs `cap`, the bound on the noise of a count")
        for control in self.controls if self.weights is not None else []:
            if control.epsilon is not None and (control.cap is None) is average:
                way = (
                    "needs `cap`, as the cube does"
                    if average
                    else "measures weighted totals, whose noise has no cap here: leave `cap` out"
                )
                raise ValueError(f"control {control.name!r} {way}")
        return self

    @model_validator(mode="after")
    def _form_fits(self) -> Hypercube:
        if self.form == "dense":
            return self
        if self.weights is not None and not self._average:
            raise ValueError(
                "`form: sparse` is for counts: the noise of weighted totals is non-zero in nearly every cell. Leave "
                "`weights` out, or write `form: dense` with fewer cells"
            )
        if self.integers:
            raise ValueError("`integers` needs a dense cube: leave it out, or write `form: dense`")
        if isinstance(self.calibration, RakingCalibration):
            raise ValueError(
                "raking multiplies, so cells without a row would stay 0: leave `calibration` out, for least squares"
            )
        if self.replicates is not None and not self.replicates.tables:
            raise ValueError("replicates of a sparse cube would need noise in every cell: name small `tables`")
        return self

    @model_validator(mode="after")
    def _coherent(self) -> Hypercube:
        if self.replicates is not None and self.weights is None:
            raise ValueError("`replicates` are replicate weights: declare `weights` as well")
        if self.replicates and self.weights and self.replicates.bound / self.weights.grid > LARGEST:
            raise ValueError(
                "the `bound` of replicates is more than 2^31 steps of the grid: lower it, or declare a coarser `grid`"
            )
        if self.squared_weights is not None and (self.weights is None or self.replicates is not None):
            raise ValueError("`squared_weights` need `weights`, and cannot be combined with `replicates`")
        if "calibration" in self.model_fields_set and not self.controls:
            raise ValueError("`calibration` needs `controls`: the totals that the cube is calibrated to")
        names = [control.name for control in self.controls]
        if double := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"duplicate control {double!r}")
        if len(set(self.formats)) < len(self.formats):
            raise ValueError("duplicate entry in `formats`")
        if "parquet" not in self.formats:
            raise ValueError("queries of the cube need Parquet: write `formats: [parquet, csv]`")
        return self

    @property
    def _average(self) -> bool:
        return self.weights is not None and isinstance(self.weights.noise, AverageWeightNoise)

    @property
    def measure(self) -> Literal["count", "total"]:
        """The column that is calibrated and queried."""
        return "count" if self.weights is None else "total"

    @property
    def variance_source(self) -> Replicates | SquaredWeights | None:
        """The declared source of sampling variances."""
        return self.replicates or self.squared_weights

    @property
    def names(self) -> list[str]:
        """The published tables: the cube, its controls, and replicate deviations where they are published by cell."""
        replicates = self.replicates is not None and not self.replicates.tables
        controls = [f"{self.name}_{control.name}" for control in self.controls]
        return [self.name, *controls, *([f"{self.name}_replicates"] if replicates else [])]

    @property
    def _coarser(self) -> str:
        return f"name variables of the cube ({', '.join(self.by)}), or coarser levels of them"

    def control_domains(self, release: Release) -> dict[str, Domain]:
        """The domain of each control, by the name of its table."""
        return {
            f"{self.name}_{c.name}": release.domain(c.by, f"{self.where}.controls.{c.name}", do=self._coarser)
            for c in self.controls
        }

    def variance_tables(self, release: Release) -> list[Domain]:
        """The domains of the tables whose sampling variances are measured."""
        key = f"{self.where}.{'squared_weights' if self.replicates is None else 'replicates'}.tables"
        return [
            release.domain(by, self.where, [f"{key}[{i}][{j}]" for j in range(len(by))], self._coarser)
            for i, by in enumerate([] if self.variance_source is None else self.variance_source.tables)
        ]

    def strata(self, release: Release) -> Domain | None:
        """The strata of observed average weights."""
        if self.weights is None or not isinstance(average := self.weights.noise, AverageWeightNoise):
            return None
        places = [f"{self.where}.weights.noise.average.strata[{i}]" for i in range(len(average.strata))]
        return release.domain(average.strata, self.where, places, self._coarser)

    def domains(self, release: Release) -> dict[str, Domain]:
        strata = self.strata(release)
        varied = {f"{self.name}~varied{i}": domain for i, domain in enumerate(self.variance_tables(release))}
        domains = {self.name: self.cells(release), **self.control_domains(release), **varied}
        return domains if strata is None else {**domains, f"{self.name}~strata": strata}

    @property
    def files(self) -> list[str]:
        """Public files that determine what is published."""
        return [control.file for control in self.controls if control.file is not None]
