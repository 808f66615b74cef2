"""Declaration of a table of jobs that protects workers and establishments (Haney et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, model_validator

from discreet.privacy.exact import Positive
from discreet.privacy.ledger.events import Name
from discreet.spec.base import Strict, TableSpec, unknown

if TYPE_CHECKING:
    from discreet.domain import Domain
    from discreet.spec.release import Release


def _probability(number: Fraction) -> Fraction:
    if number >= 1:
        raise ValueError("must be a probability below 1")
    return number


class LaplaceParetoSpec(Strict):
    """Noise proportional to the largest establishment, with a power tail: pure ε-DP, the default."""

    name: Literal["laplace-pareto"] = "laplace-pareto"
    g: Positive | None = None


class SmoothGammaSpec(Strict):
    """Haney et al. 2017, Algorithm 2, with the printed constants or tighter ones; `gamma: best` picks the exponent."""

    name: Literal["smooth-gamma"] = "smooth-gamma"
    constants: Literal["joint", "separate", "printed"] = "joint"
    gamma: Positive | Literal["best"] = Fraction(4)


class SmoothLaplaceSpec(Strict):
    """Haney et al. 2017, Algorithm 3: Laplace noise proportional to the largest establishment; (ε, δ)."""

    name: Literal["smooth-laplace"] = "smooth-laplace"
    delta: Annotated[Positive, AfterValidator(_probability)]
    constants: Literal["exact", "printed"] = "exact"


class LogLaplaceSpec(Strict):
    """Haney et al. 2017, Algorithm 1: Laplace noise on the logarithm of the count."""

    name: Literal["log-laplace"] = "log-laplace"
    scale: Literal["tight", "printed"] = "tight"
    unbiased: bool = True


class TruncatedSpec(Strict):
    """Haney et al. 2017, §6: establishments with more than the unit's max_records jobs are excluded; the others are
    protected entirely."""

    name: Literal["truncated"] = "truncated"
    noise: Literal["tight", "printed"] = "tight"


_MECHANISMS = {
    "laplace-pareto": LaplaceParetoSpec,
    "smooth-gamma": SmoothGammaSpec,
    "smooth-laplace": SmoothLaplaceSpec,
    "log-laplace": LogLaplaceSpec,
    "truncated": TruncatedSpec,
}


def _known_mechanism(data: Any) -> Any:
    """`mechanism: log-laplace`, or {name: log-laplace, scale: printed}."""
    data = {"name": data} if isinstance(data, str) else data
    if isinstance(data, dict):
        if "name" not in data:
            raise ValueError(f"key 'name' is missing; known mechanisms: {', '.join(_MECHANISMS)}")
        if data["name"] == "geometric":
            raise ValueError(
                "geometric noise, which protects one job, is what `method: counts` adds, with `unit: record`"
            )
        if not isinstance(data["name"], str) or data["name"] not in _MECHANISMS:
            raise ValueError(unknown(str(data["name"]), list(_MECHANISMS), "mechanism"))
        if data["name"] == "smooth-laplace" and "delta" not in data:
            raise ValueError('smooth-laplace needs a delta: {name: smooth-laplace, delta: "0.00001"}')
    return data


MechanismSpec = Annotated[
    LaplaceParetoSpec | SmoothGammaSpec | SmoothLaplaceSpec | LogLaplaceSpec | TruncatedSpec,
    Discriminator("name"),
    BeforeValidator(_known_mechanism),
]


class LargestEstablishmentSpec(Strict):
    """A protected upper bound on each cell's largest establishment, with its own ε: margins of error follow from it."""

    epsilon: Positive


def _one_code(data: Any) -> Any:
    if isinstance(data, list):
        raise ValueError(
            "names several codes: only one is counted; declare one table for each, or list it under `worker_attributes`"
        )
    return data


class Employer(TableSpec):
    """Protected counts of jobs by attributes of the workplace and, optionally, of the worker (Haney et al. 2017)."""

    all_or_none: ClassVar[bool] = True
    renamed: ClassVar[Mapping[str, str]] = {"workers": "worker_attributes", "largest": "largest_establishment"}
    method: Literal["employer"] = "employer"
    worker_attributes: list[str] = []
    only: dict[Name, Annotated[str, BeforeValidator(_one_code), Field(min_length=1)]] = {}
    epsilon: Positive
    mechanism: MechanismSpec = LaplaceParetoSpec()
    largest_establishment: LargestEstablishmentSpec | None = None
    nonnegative: bool = False

    @model_validator(mode="after")
    def _coherent(self) -> Employer:
        names = [*self.by, *self.worker_attributes, *self.only]
        if duplicate := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"names attribute {duplicate!r} twice in by, worker_attributes and only")
        if self.largest_establishment is not None and isinstance(self.mechanism, LogLaplaceSpec | TruncatedSpec):
            raise ValueError(
                f"`largest_establishment` is for smooth mechanisms: {self.mechanism.name} has margins without it"
            )
        return self

    @property
    def _by(self) -> list[str]:
        return [f"{self.where}.by[{i}]" for i in range(len(self.by))]

    def cells(self, release: Release) -> Domain:
        workers = [f"{self.where}.worker_attributes[{i}]" for i in range(len(self.worker_attributes))]
        return release.domain([*self.by, *self.worker_attributes], self.where, [*self._by, *workers])

    def workplaces(self, release: Release) -> Domain:
        """The workplace cells."""
        return release.domain(self.by, self.where, self._by)

    def chosen(self, release: Release) -> Domain:
        """The attributes in `only`, which select the workers that are counted."""
        return release.domain(list(self.only), self.where, [f"{self.where}.only.{name}" for name in self.only])

    def domains(self, release: Release) -> dict[str, Domain]:
        more = {f"{self.name}~by": self.workplaces(release), f"{self.name}~only": self.chosen(release)}
        return {self.name: self.cells(release), **more}
