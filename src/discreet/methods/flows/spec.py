"""Declaration of a table of employment flows (PSEO Technical Appendices, A.3)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from discreet.domain import Attribute, Domain
from discreet.privacy.exact import Positive
from discreet.privacy.ledger.events import Name
from discreet.publish.lehd.spec import Lehd
from discreet.spec.base import ColumnName, Strict, TableSpec, short, within

if TYPE_CHECKING:
    from discreet.spec.release import Release

Rule = Literal["published", "projection", "quantiles"]
Kinds = Annotated[list[Literal["parquet", "csv"]], Field(min_length=1, max_length=2)]


_file = BeforeValidator(lambda data: {"file": data} if isinstance(data, str) else data)  # `job_flows: FILE`


class Marginal(Strict):
    """The cell for not or marginally employed: its codes in the records. `missing` also counts records without an
    industry or a state there, `undeclared` also those with an undeclared code."""

    industry: Annotated[str, Field(min_length=1)] = "ZZ"
    state: Annotated[str, Field(min_length=1)] = "Z"
    missing: bool = False
    undeclared: bool = False


class JobFlows(Strict):
    """A public file of moves between states, such as J2J: hires by state of origin and destination."""

    file: str
    origin: ColumnName = "from_state"
    destination: ColumnName = "to_state"
    value: ColumnName = "hires"
    provenance: str = ""


class Employment(Strict):
    """A public file of employment by state and industry, such as QCEW."""

    file: str
    state: ColumnName = "state"
    industry: ColumnName = "industry"
    value: ColumnName = "employment"
    provenance: str = ""


class Correction(Strict):
    """Correction of negative flows that preserves totals: the rule, and the controls of its weights."""

    rule: Rule = "published"
    job_flows: Annotated[JobFlows, _file] | None = None
    employment: Annotated[Employment, _file] | None = None
    industry_flows: Annotated[list[str], Field(min_length=1)] | None = None
    marginal_weight: Annotated[Positive, AfterValidator(within(Fraction(1, 10**9), 10**9))] = Fraction(1)


class FlowLevel(Strict):
    """Sums of flows over coarser groups and destinations: post-processing, no additional ε. `layout: false` leaves a
    level out of the table's layout."""

    name: Name
    by: list[str]
    to: Annotated[list[str], Field(max_length=2)] = []
    layout: bool = True


def _share(number: Fraction) -> Fraction:
    if number > 1:
        raise ValueError('is a share, not above 1: write "0.1" for 10%')
    return number


class DivisionSuppression(Strict):
    """Suppression of divisions with much unobserved employment (PSEO Technical Appendices, A.3.3): a file of periods
    and states without data, and the unobserved share above which a division is suppressed, estimated `by` (say)
    institution from the periods with all states."""

    division: Name
    missing: str
    periods: Annotated[list[str], Field(min_length=1)]
    by: list[str]
    threshold: Annotated[Positive, AfterValidator(_share)]


class Flows(TableSpec):
    """Noisy flows into industry × state and one cell for not or marginally employed."""

    method: Literal["flows"] = "flows"
    recodable: ClassVar[bool] = True
    renamed: ClassVar = {"home": "home_state"}
    industry: Name
    state: Name
    home_state: Name | None = None
    epsilon: Positive
    marginal: Marginal = Marginal()
    correction: Correction = Correction()
    levels: list[FlowLevel] = []
    suppress: DivisionSuppression | None = None
    measurements: bool = True
    formats: Kinds = ["parquet", "csv"]
    layout: Annotated[Lehd, short("kind", "lehd")] | None = None

    @model_validator(mode="after")
    def _coherent(self) -> Flows:
        if self.industry == self.state:
            raise ValueError("industry and state are the same attribute")
        if self.correction.job_flows is not None and self.home_state is None:
            raise ValueError("job_flows need `home_state`: the attribute with each group's own state")
        if self.layout is not None and (self.home_state is None or not self.levels):
            raise ValueError("the layout lehd needs `home_state`, for flows in the state, and `levels`, which it lists")
        if len(set(self.formats)) < len(self.formats):
            raise ValueError("duplicate entry in formats")
        return self

    @property
    def names(self) -> list[str]:
        return [self.name, *(level.name for level in self.levels)]

    @property
    def labelled(self) -> bool:
        return self.layout is not None

    @property
    def files(self) -> list[str]:
        controls = (self.correction.job_flows, self.correction.employment)
        files = [control.file for control in controls if control is not None]
        return files if self.suppress is None else [*files, self.suppress.missing]

    def _listed(self, release: Release, names: Sequence[str], key: str) -> Domain:
        return release.domain(names, self.where, [f"{self.where}.{key}[{i}]" for i in range(len(names))])

    def _one(self, release: Release, name: str, key: str) -> Domain:
        return release.domain([name], self.where, [f"{self.where}.{key}"])

    def roles(self, release: Release) -> dict[str, Domain]:
        """Further attributes by their role: homes, families, divisions, periods."""
        roles = dict[str, Domain]()
        if self.home_state is not None:
            roles["home"] = self._one(release, self.home_state, "home_state")
        if (families := self.correction.industry_flows) is not None:
            roles["industry_flows"] = self._listed(release, families, "correction.industry_flows")
        if (rule := self.suppress) is not None:
            roles["division"] = self._one(release, rule.division, "suppress.division")
            roles["suppress"] = self._listed(release, rule.by, "suppress.by")
            roles["periods"] = self._listed(release, rule.periods, "suppress.periods")
        return roles

    def destinations(self, release: Release) -> tuple[Attribute, Attribute]:
        """Industries and states."""
        places = [f"{self.where}.industry", f"{self.where}.state"]
        industry, state = release.domain([self.industry, self.state], self.where, places).attributes
        return industry, state

    def summed(self, release: Release) -> dict[str, tuple[Domain, Domain]]:
        """The groups and the destinations of each level."""
        return {
            v.name: (
                release.domain(v.by, f"{self.where}.levels.{v.name}"),
                self._listed(release, v.to, f"levels.{v.name}.to"),
            )
            for v in self.levels
        }

    def domains(self, release: Release) -> dict[str, Domain]:
        """All domains by name; no level's name can contain the ~ of the further ones."""
        levels = self.summed(release)
        domains = {self.name: self.cells(release), **{name: groups for name, (groups, _) in levels.items()}}
        domains[f"{self.name}~to"] = Domain(self.destinations(release))
        domains |= {f"{self.name}~{role}": domain for role, domain in self.roles(release).items()}
        return domains | {f"{name}~to": into for name, (_, into) in levels.items()}
