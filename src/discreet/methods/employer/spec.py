"""How a table of jobs is declared that hides workers and establishments (003)."""

from __future__ import annotations

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
        raise ValueError("is a probability, below 1")
    return number


class LaplaceParetoSpec(Strict):
    """Noise in proportion to the largest establishment, with a power tail: pure ε, the default."""

    name: Literal["laplace-pareto"] = "laplace-pareto"
    g: Positive | None = None


class SmoothGammaSpec(Strict):
    """003, Algorithm 2, with the printed constants or better ones; `gamma: best` chooses the exponent."""

    name: Literal["smooth-gamma"] = "smooth-gamma"
    constants: Literal["joint", "separate", "printed"] = "joint"
    gamma: Positive | Literal["best"] = Fraction(4)


class SmoothLaplaceSpec(Strict):
    """003, Algorithm 3: Laplace noise in proportion to the largest establishment; fails with probability δ."""

    name: Literal["smooth-laplace"] = "smooth-laplace"
    delta: Annotated[Positive, AfterValidator(_probability)]
    constants: Literal["exact", "printed"] = "exact"


class LogLaplaceSpec(Strict):
    """003, Algorithm 1: noise on the logarithm of the count."""

    name: Literal["log-laplace"] = "log-laplace"
    scale: Literal["tight", "printed"] = "tight"
    unbiased: bool = True


class TruncatedSpec(Strict):
    """003, §6: establishments with more than the unit's max_records jobs are left out, the rest is hidden entirely."""

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
            raise ValueError("geometric noise, which hides one job, is what `method: counts` adds, with `unit: record`")
        if not isinstance(data["name"], str) or data["name"] not in _MECHANISMS:
            raise ValueError(unknown(str(data["name"]), list(_MECHANISMS), "mechanism"))
        if data["name"] == "smooth-laplace" and "delta" not in data:
            raise ValueError('smooth-laplace fails with a probability: {name: smooth-laplace, delta: "0.00001"}')
    return data


MechanismSpec = Annotated[
    LaplaceParetoSpec | SmoothGammaSpec | SmoothLaplaceSpec | LogLaplaceSpec | TruncatedSpec,
    Discriminator("name"),
    BeforeValidator(_known_mechanism),
]


class Largest(Strict):
    """A private bound on each cell's largest establishment, with an ε of its own: what margins are made of."""

    epsilon: Positive


def _one_code(data: Any) -> Any:
    if isinstance(data, list):
        raise ValueError("names several codes: only one is counted; make a table of each, or list it under `workers`")
    return data


class Employer(TableSpec):
    """Protected counts of jobs by attributes of the workplace, and perhaps of the worker (003)."""

    all_or_none: ClassVar[bool] = True
    method: Literal["employer"] = "employer"
    workers: list[str] = []
    only: dict[Name, Annotated[str, BeforeValidator(_one_code), Field(min_length=1)]] = {}
    epsilon: Positive
    mechanism: MechanismSpec = LaplaceParetoSpec()
    largest: Largest | None = None
    nonnegative: bool = False

    @model_validator(mode="after")
    def _coherent(self) -> Employer:
        named = [*self.by, *self.workers, *self.only]
        if double := next((name for name in named if named.count(name) > 1), None):
            raise ValueError(f"names attribute {double!r} twice in by, workers and only")
        if self.largest is not None and isinstance(self.mechanism, LogLaplaceSpec | TruncatedSpec):
            raise ValueError(f"`largest` is for smooth mechanisms: {self.mechanism.name} has margins without it")
        return self

    @property
    def _by(self) -> list[str]:
        return [f"{self.where}.by[{i}]" for i in range(len(self.by))]

    def cells(self, release: Release) -> Domain:
        workers = [f"{self.where}.workers[{i}]" for i in range(len(self.workers))]
        return release.domain([*self.by, *self.workers], self.where, [*self._by, *workers])

    def workplaces(self, release: Release) -> Domain:
        """The cells of workplaces."""
        return release.domain(self.by, self.where, self._by)

    def chosen(self, release: Release) -> Domain:
        """The attributes that choose the workers."""
        return release.domain(list(self.only), self.where, [f"{self.where}.only.{name}" for name in self.only])

    def domains(self, release: Release) -> dict[str, Domain]:
        further = {f"{self.name}~by": self.workplaces(release), f"{self.name}~only": self.chosen(release)}
        return {self.name: self.cells(release), **further}
