"""Employment flows: counts of groups by industry × state, and of those not or marginally employed: pure ε-DP.

Noisy measurements, then post-processing: workers add discrete Laplace noise to every cell of every group and write
protected files. All else is post-processing of those: corrected flows that are never negative and preserve the group's
noisy total, sums, suppression, LEHD's layout. A unit with at most k records changes all flows by at most k in L1 norm,
so noise of rate ε/k gives ε (PSEO Technical Appendices, A.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import pi
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.domain import Coarsening, Domain, coarsening
from discreet.engine import Engine
from discreet.engine.spans import FingerprintedTable, Progress, Spans
from discreet.engine.tabulate import RecordReading, count_cells
from discreet.errors import DomainError, ParameterError, SpecError
from discreet.methods.flows.columns import REPORT, REPORT_COLUMNS, flow_columns, flows_about
from discreet.methods.flows.destinations import Destinations
from discreet.methods.flows.division_suppression import StateCoverage, state_coverage
from discreet.methods.flows.division_suppression import columns as coverage_columns
from discreet.methods.flows.spec import Flows
from discreet.methods.flows.sums import SumShape
from discreet.methods.flows.tables import FlowTables
from discreet.methods.flows.weights import FlowWeights
from discreet.methods.histograms import HistogramKernel, histogram_spans
from discreet.methods.noise_provenance import NoiseProvenance
from discreet.methods.protocol import Method, cost_of_disjoint_parts, distribution_of, refuse_clashes, refuse_size_units
from discreet.methods.writing import MethodOutput, OutputLocations, write_parts
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.summary import LEVEL, margins
from discreet.privacy.confidential import Confidential, Grant, Reservation
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Guarantee, Unit
from discreet.privacy.protected import Protected
from discreet.publish.description import FORMATS, Column, ExpectedError, FileFormats, Measurement, PublishedTable
from discreet.publish.lehd.pseof import Pseof, lehd_flows
from discreet.publish.lehd.sidecars import Sidecars
from discreet.publish.tables import WrittenTable
from discreet.spec import Release

if TYPE_CHECKING:
    import ibis

MOST_CELLS = 1 << 34
MOST_IN_MEMORY = 1 << 28  # integers of all sums: 2 GiB
MOST_SUBTRACTED = 1 << 18  # units that the correction subtracts in a group, on average: each is drawn
_KEYS = {  # of the declaration, by an attribute's role
    "home": "home_state", "industry_flows": "correction.industry_flows", "suppress": "suppress.by",
    "periods": "suppress.periods",
}  # fmt: skip


@dataclass(frozen=True)
class FlowsMethod(Method):
    """The method `flows` for one declared table and its sums."""

    spec: Flows
    groups: Domain
    unit: Unit
    destinations: Destinations
    roles: Mapping[str, Domain] = field(default_factory=dict)  # further attributes, by role
    summed: Mapping[str, tuple[Domain, Domain]] = field(default_factory=dict)  # groups and destinations of levels
    base: Path = Path()
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, release: Release, table: Flows) -> FlowsMethod:
        destinations = Destinations(table.name, *table.destinations(release), table.marginal)
        roles, summed = table.roles(release), table.summed(release)
        groups, labels = table.cells(release), release.labels()
        return cls(table, groups, release.unit, destinations, roles, summed, release.base, labels)

    def __post_init__(self) -> None:
        where = self.spec.place
        refuse_size_units(self.unit, where)
        _ = self.distribution
        if shared := {c for a in self.groups.attributes for c in a.source} & set(self.destinations.attribute.source):
            raise SpecError(
                f"column {sorted(shared)[0]!r} is read for both the group and the destination",
                where=where,
                do="define groups by attributes that do not depend on the destination",
            )
        if self.domain.cells > MOST_CELLS:
            raise DomainError(
                f"has {self.domain.cells:,} cells, more than the {MOST_CELLS:,} that are possible",
                where=where,
                do="publish coarser groups or destinations, or several tables",
            )
        if self.units_subtracted > MOST_SUBTRACTED:
            raise ParameterError(
                f"noise of rate {format_exact(self.distribution.rate)} leaves about {self.units_subtracted:,.0f} units "
                "to correct in each group",
                where=where,
                do="use a larger epsilon, a smaller max_records, or fewer destinations",
            )
        if (size := self.numbers_in_memory) > MOST_IN_MEMORY:
            raise DomainError(
                f"its sums take {size:,} numbers, more than the {MOST_IN_MEMORY:,} that fit in memory",
                where=where,
                do="publish fewer or coarser sums",
            )
        for table in self.published_tables():
            numbers = (c.name for c in table.columns if c.type != "code")
            refuse_clashes(numbers, table.domain, f"table {table.name}")
        _ = self.weights.home_states, self.pseof
        self.weights.check()

    # --- the declaration --------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def measured_name(self) -> str:
        return f"{self.name}_measured"

    @property
    def unobserved_name(self) -> str:
        return f"{self.name}_unobserved"

    @property
    def report_name(self) -> str:
        return f"{self.name}_correction"

    @cached_property
    def domain(self) -> Domain:
        """The cells that noise is added to, the destinations of a group contiguous."""
        return Domain((*self.groups.attributes, self.destinations.attribute))

    @property
    def domains(self) -> tuple[Domain, ...]:
        return (self.domain,)

    @property
    def spans(self) -> tuple[Spans, ...]:
        return (histogram_spans(self.groups.cells, self.destinations.cells),)

    @cached_property
    def distribution(self) -> DiscreteLaplace:
        return distribution_of(self.spec.epsilon / self.unit.records, self.spec.place)

    @property
    def numbers_in_memory(self) -> int:
        """About how many integers are in memory at once: of sums, of shares, of the weights."""
        levels = sum(shape.numbers_in_memory(self.destinations.states) for shape in self.sums)
        families = 0 if self.weights.family is None else self.weights.family.coarse.cells * self.destinations.industries
        return levels + 3 * families + (0 if self.coverage is None else self.coverage.numbers_in_memory)

    @property
    def units_subtracted(self) -> float:
        """The expected number of units that the correction subtracts in a group: half its mean absolute noise."""
        return self.destinations.cells * self.distribution.mean_abs() / 2

    def guarantee(self) -> Guarantee:
        return Guarantee(unit=self.unit, epsilon=self.spec.epsilon)

    @cached_property
    def home(self) -> Coarsening | None:
        return None if self.spec.home_state is None else self._coarser("home")

    @cached_property
    def weights(self) -> FlowWeights:
        family = None if self.spec.correction.industry_flows is None else self._coarser("industry_flows")
        return FlowWeights(self.name, self.spec.correction, self.base, self.destinations, self.home, family)

    @cached_property
    def sums(self) -> tuple[SumShape, ...]:
        return tuple(self._sum(level.name, tuple(level.by), tuple(level.to)) for level in self.spec.levels)

    def _sum(self, name: str, by: tuple[str, ...], to: tuple[str, ...]) -> SumShape:
        where = f"tables.{self.name}.levels.{name}"
        groups, into = self.summed[name]
        cells = self._whole(groups, where)
        return SumShape(name, (*by, *to), groups, into, cells, self.destinations.categories(into.attributes, where))

    def _coarser(self, role: str) -> Coarsening:
        return self._whole(self.roles[role], f"tables.{self.name}.{_KEYS[role]}")

    def _whole(self, coarse: Domain, where: str) -> Coarsening:
        whole = coarsening(self.groups, coarse)
        if whole is None:
            raise DomainError(
                "does not consist of whole groups",
                where=where,
                do="name attributes of the table, or coarser ones (levels of one hierarchy, `coarser` of one list of "
                "groups)",
            )
        return whole

    @cached_property
    def coverage(self) -> StateCoverage | None:
        if self.spec.suppress is None:
            return None
        division = self.roles["division"].attributes[0]
        by, periods = self._coarser("suppress"), self._coarser("periods")
        return state_coverage(self.spec.suppress, by, periods, division, self.destinations, self.base, self.name)

    # --- what is published ------------------------------------------------------------------------------------------

    def published_tables(self) -> list[PublishedTable]:
        tables = [
            self._published(self.name, self.spec.by, self.domain, flows_about(self.spec, self.destinations), "sparse")
        ]
        if self.spec.measurements:
            about = (
                "Noisy measurements, on which ε was spent: counts plus noise. Cells without a row have measurement 0."
            )
            tables.append(self._published(self.measured_name, self.spec.by, self.domain, about, "sparse"))
        tables += [
            self._published(
                shape.name, shape.by, shape.domain, f"Sums of the flows in {self.name}.", source=self.name, shape=shape
            )
            for shape in self.sums
        ]
        if self.coverage is not None:
            about = (
                "Unobserved share of each division where states have no data, estimated from complete periods "
                "(PSEO Technical Appendices, A.3.3)."
            )
            by = tuple(a.name for a in self.coverage.domain.attributes)
            tables.append(self._published(self.unobserved_name, by, self.coverage.domain, about, source=self.name))
        about = "Report of the correction: components of weights that were zero or negative and count as 1, and so on."
        tables.append(self._published(self.report_name, ("fact",), REPORT, about, source=self.name))
        return tables

    def _published(
        self,
        name: str,
        by: tuple[str, ...] | list[str],
        domain: Domain,
        about: str,
        form: str = "dense",
        source: str = "",
        shape: SumShape | None = None,
    ) -> PublishedTable:
        own: dict[str, FileFormats] = {self.name: tuple(self.spec.formats), self.measured_name: ("parquet",)}
        to = f"{self.destinations.industry.name} and {self.destinations.state.name}"
        return PublishedTable(
            name=name,
            by=(*by, to) if name in own else tuple(by),
            domain=domain,
            guarantee=self.guarantee(),
            composition=cost_of_disjoint_parts(self.spec.epsilon, self.unit.records) if name == self.name else "",
            noise="" if source and shape is None else self._noise(source),
            error=self._error(name, shape),
            columns=tuple(self.table_columns(name)),
            about=about,
            form=form,
            sum_of=source or ("" if name == self.name else self.name),
            parts=len(self.spans[0]) if name in own else 1,
            formats=own.get(name, FORMATS),
        )

    def _noise(self, source: str) -> str:
        rate = format_exact(self.distribution.rate)
        noise = f"discrete Laplace (two-sided geometric) in every cell, P(k) ∝ exp(−{rate}·|k|)"
        return f"{noise}, summed" if source else noise

    def _error(self, name: str, shape: SumShape | None) -> ExpectedError | None:
        """Expected error of a flow; for sums the largest among those of employment."""
        if name in (self.name, self.measured_name):
            return ExpectedError(
                self.distribution.margin(LEVEL), self.distribution.variance() ** 0.5, self.distribution.mean_abs()
            )
        if shape is None:
            return None
        draws = int(shape.cells.children().max() * np.bincount(shape.categories).max())
        deviation = (draws * self.distribution.variance()) ** 0.5
        return ExpectedError(
            int(margins(self.distribution.rate, np.array([draws]))[0]), deviation, deviation * (2 / pi) ** 0.5
        )

    def table_columns(self, name: str) -> list[Column]:
        """The published columns of a table, with descriptions."""
        if name in (self.name, self.measured_name):
            return flow_columns(self.unit, self.groups, self.destinations, corrected=name == self.name)
        if name == self.unobserved_name and self.coverage is not None:
            return coverage_columns(self.coverage)
        if name == self.report_name:
            return list(REPORT_COLUMNS)
        shape = next(shape for shape in self.sums if shape.name == name)
        suppresses = self.coverage is not None and self.coverage.within(shape) is not None
        return shape.columns(self.home is not None, suppresses)

    def notes(self) -> dict[str, tuple[str, ...]]:
        """Zeros in control files, and the effect of noise on small groups."""
        spec, weights, lines = self.spec.correction, self.weights, list[str]()
        controls = {"job_flows": (spec.job_flows, weights.jobs), "employment": (spec.employment, weights.employment)}
        for name, (declared, component) in controls.items():
            if declared is not None:
                zeros = int((component <= 0).sum())
                lines.append(f"{name}: {zeros:,} of {component.size:,} values are 0 and count as 1 in the weights")
        cells = self.destinations.cells
        margin = int(margins(self.distribution.rate, np.array([cells]))[0])
        # E max(0, noise of the total), the noise approximately normal
        excess = (cells * self.distribution.variance() / (2 * pi)) ** 0.5
        lines += [
            f"in a group of {cells:,} cells the correction subtracts about {self.units_subtracted:,.0f} units; the "
            f"noise of its total is within ±{margin:,} with probability 90%",
            f"a nearly empty group becomes 0 or too large: expected excess {excess:,.0f}. So sums of corrected flows "
            "over many small groups are biased upwards; sums of noisy measurements are unbiased",
        ]
        return {self.name: tuple(lines)}

    # --- counting, noise, tables ------------------------------------------------------------------------------------

    def tabulate(self, reading: RecordReading) -> list[Confidential[ibis.Table]]:
        return [Confidential(count_cells(reading.engine, reading.bounded, self.domain))]

    def measurements(self) -> list[Measurement]:
        marginal = self.destinations.marginal
        about = {
            "industry": [list(key) for key in self.destinations.industry.categories],
            "state": [list(key) for key in self.destinations.state.categories],
            "columns": list(self.destinations.attribute.columns),
            "marginal": [marginal.industry, marginal.state],
        }
        width = self.destinations.cells
        return [Measurement(self.name, self.groups, width, about, self.distribution.rate, self.guarantee())]

    def protect(
        self,
        engine: Engine,
        cells: list[Confidential[FingerprintedTable]],
        reservation: Reservation,
        places: OutputLocations,
        progress: Progress,
    ) -> MethodOutput:
        steps = len(self.spans[0])
        measured = {
            self.name: write_parts(
                engine,
                cells[0].open_confidential(),
                HistogramKernel(self.name, self.distribution.rate),
                reservation,
                name=self.name,
                purpose="flows/cells",
                guarantee=self.guarantee(),
                place=places.measurements,
                progress=lambda done, _: progress(done, 3 * steps),
                intermediate=True,
            )
        }
        files = self.make(measured, reservation, places, lambda done, _: progress(steps + done, 3 * steps), {})
        return MethodOutput(files, measured)

    def make(
        self,
        measured: Mapping[str, Protected[WrittenTable]],
        grant: Grant,
        places: OutputLocations,
        progress: Progress,
        provenances: Mapping[str, NoiseProvenance],
    ) -> dict[str, str]:
        """Every published file, from the noisy measurements alone."""
        provenance = provenances.get(self.name, NoiseProvenance())
        tables = FlowTables(self, provenance, places.measurements, measured[self.name], grant)
        files: dict[str, str] = {}
        for written in tables.make(places.published, progress):
            files |= written
        return files

    # --- LEHD's layout ----------------------------------------------------------------------------------------------

    @cached_property
    def pseof(self) -> Pseof | None:
        if self.spec.layout is None:
            return None
        names = {level.name for level in self.spec.levels if level.layout}
        if not names:
            raise SpecError(
                "has no level to write", where=f"table {self.name}, layout lehd", do="declare one with `layout: true`"
            )
        levels = (
            lehd_flows(shape.name, shape.groups, shape.to, self.spec.layout)
            for shape in self.sums
            if shape.name in names
        )
        return Pseof(self.spec.layout, tuple(levels), self.labels)

    def layouts(self, simulated: bool) -> dict[str, str]:
        return {} if self.pseof is None else self.pseof.files(simulated)

    def shared_files(self) -> Sidecars | None:
        return None if self.pseof is None else self.pseof.sidecars()
