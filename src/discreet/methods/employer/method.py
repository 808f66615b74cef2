"""Counts of jobs that protect workers and establishments (Haney et al. 2017): every cell of workplace and worker
attributes.

Noise proportional to a cell's largest establishment protects its size within a factor 1+α; the privacy loss of a
mechanism includes that this scale differs between neighbouring data sets. Workplace attributes are public and an
establishment is in one cell of them, so these cells compose in parallel; worker cells do not (Theorem 7.5 claims that
they do: see docs/methods/employer.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from discreet.domain import Domain
from discreet.engine import Engine
from discreet.engine.establishments import (
    Establishments,
    Workforce,
    count_jobs_with_sizes,
    count_jobs_without_large,
)
from discreet.engine.lookups import Records
from discreet.engine.spans import FingerprintedTable, Progress, Spans
from discreet.engine.tabulate import RecordReading
from discreet.errors import GuaranteeError, ParameterError, SourceError, SpecError
from discreet.methods.employer import wording
from discreet.methods.employer.kernel import LEVEL, EmployerKernel
from discreet.methods.employer.mechanism import build_mechanism, share_per_cell
from discreet.methods.employer.mechanisms import Mechanism
from discreet.methods.employer.mechanisms.discrete import Truncated
from discreet.methods.employer.mechanisms.log_laplace import LogLaplace
from discreet.methods.employer.spec import Employer
from discreet.methods.protocol import Method, refuse_clashes
from discreet.methods.writing import MethodOutput, OutputLocations, dry_run, write_parts
from discreet.privacy.confidential import Confidential, Reservation
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Establishment, Guarantee, Unit, WholeEstablishment
from discreet.publish.description import Column, ExpectedError, PublishedTable, code_columns
from discreet.spec import Release

if TYPE_CHECKING:
    import ibis

PART = 1 << 22  # rows in a file
MOST_CELLS = 1 << 34
SHOWN = 10  # codes that an error message lists


@dataclass(frozen=True)
class EmployerMethod(Method):
    """One table of jobs."""

    spec: Employer
    what: Workforce
    unit: Unit
    listed: bool  # workplace attributes come from a table of workplaces, one entry per establishment

    @classmethod
    def of(cls, release: Release, table: Employer) -> EmployerMethod:
        both, by, only = table.cells(release), table.workplaces(release), table.chosen(release)
        workers = Domain(both.attributes[len(by.attributes) :])
        chosen = tuple(_selected_code(only, i, table) for i in range(len(only.attributes)))
        listed = release.unit.entity in release.join.values()
        return cls(table, Workforce(by, workers, only, chosen), release.unit, listed)

    def __post_init__(self) -> None:
        if self.domain.cells > MOST_CELLS:
            raise GuaranteeError(
                f"{self.domain.cells:,} cells are too many to visit one by one",
                where=self.spec.place,
                do="publish fewer",
            )
        refuse_clashes(self._numbers, self.domain, self.spec.place)

    @property
    def name(self) -> str:
        return self.spec.name

    @cached_property
    def domain(self) -> Domain:
        """Workplace cells, each with its worker cells adjacent."""
        return Domain((*self.what.by.attributes, *self.what.workers.attributes))

    @property
    def domains(self) -> tuple[Domain, ...]:
        # Attributes of `only` are read and audited like the others, though they define no cells.
        return (self.what.attributes,) if self.what.chosen else (self.domain,)

    @property
    def cells(self) -> int:
        """d: how many cells the workers of one establishment are in."""
        return self.what.workers.cells

    @property
    def by_worker(self) -> bool:
        """Whether worker attributes determine what is counted."""
        return bool(self.what.workers.attributes or self.what.chosen)

    @property
    def strong(self) -> bool:
        """Whether sensitivities come from the total size of establishments."""
        return isinstance(self.unit, Establishment) and self.unit.adversary == "strong"

    @property
    def spans(self) -> tuple[Spans, ...]:
        return (Spans(self.domain.cells, max(PART // self.cells, 1) * self.cells),)

    @cached_property
    def mechanism(self) -> Mechanism:
        return build_mechanism(self.spec, self.unit, self.cells, self.by_worker)

    @cached_property
    def bound(self) -> LogLaplace | None:
        """The mechanism of bounds on largest establishments: one per workplace cell, or under weak privacy one per
        cell, each with 1/d of ε."""
        if self.spec.largest_establishment is None or not isinstance(self.unit, Establishment):
            return None
        epsilon = self.spec.largest_establishment.epsilon / (1 if self.strong else self.cells)
        try:
            return LogLaplace(self.unit.alpha, epsilon, unbiased=False)
        except ParameterError as error:
            raise ParameterError(
                error.what, where=f"{self.spec.place}, largest_establishment.epsilon", do=error.do
            ) from None

    @cached_property
    def kernel(self) -> EmployerKernel:
        shared = self.cells if self.strong else 1
        return EmployerKernel(self.name, self.domain, self.mechanism, self.bound, shared, self.spec.nonnegative)

    @property
    def _numbers(self) -> tuple[str, ...]:
        return self.kernel.numbers

    @property
    def weak(self) -> bool:
        """Whether worker cells are protected one by one, against a weak adversary."""
        return isinstance(self.unit, Establishment) and not self.strong and self.by_worker

    def guarantee(self) -> Guarantee:
        if isinstance(self.unit, WholeEstablishment):
            # Establishments above max_records are excluded entirely: it does not select among their records.
            whole = self.unit.model_copy(update={"max_records": None})
            caveats_whole = (wording.FIRM_CAVEAT, wording.left_out(self.unit.records))
            return Guarantee(unit=whole, epsilon=self.spec.epsilon, caveats=caveats_whole)
        caveats = [wording.FIRM_CAVEAT, wording.public(self.spec.by)]
        caveats += [] if self.listed or not self.spec.by else [wording.as_recorded(self.spec.by)]
        caveats += [wording.SHAPE_CAVEAT] if self.weak else []
        bound = self.spec.largest_establishment
        total = self.spec.epsilon + (0 if bound is None else bound.epsilon)
        # What depends on no worker attribute is protected against a strong adversary as well.
        unit = self.unit.model_copy(update={"adversary": "weak" if self.weak else "strong"})
        delta = self.mechanism.delta / share_per_cell(self.unit, self.cells)
        return Guarantee(unit=unit, epsilon=total, delta=delta, caveats=tuple(caveats))

    def composes(self) -> str:
        epsilon, parts = format_exact(self.spec.epsilon), "cells share no establishment: parallel"
        if self.cells == 1:
            text = f"{parts}, ε = {epsilon} for the whole table"
        elif isinstance(self.unit, WholeEstablishment):
            text = f"all jobs of an establishment, in any of its {self.cells} cells: ε = {epsilon} in total"
        elif self.strong:
            text = (
                f"workplace {parts}; an establishment's {self.cells} worker cells share the change of its size, and "
                f"the change of the noise scale counts in each of them: ε = {epsilon} in total"
            )
        else:
            text = (
                f"workplace {parts}; the {self.cells} worker cells are sequential: {self.cells} × "
                f"{format_exact(self.spec.epsilon / self.cells)} = {epsilon}"
            )
        if self.spec.largest_establishment is not None:
            more = format_exact(self.spec.largest_establishment.epsilon)
            text += f"; bounds on largest establishments: an additional ε = {more}"
        return text

    def published_tables(self) -> list[PublishedTable]:
        return [
            PublishedTable(
                name=self.name,
                by=(*self.spec.by, *self.spec.worker_attributes),
                domain=self.domain,
                guarantee=self.guarantee(),
                composition=self.composes(),
                noise=self._noise(),
                error=self._error(),
                columns=tuple(self.columns()),
                further=self.what.only.attributes,
                about=self._about(),
                parts=len(self.spans[0]),
            )
        ]

    def _noise(self) -> str:
        return wording.noise(self.mechanism, getattr(self.unit, "alpha", None), self._bounded())

    def _error(self) -> ExpectedError | None:
        """Known only where it depends on no confidential size."""
        if not isinstance(self.mechanism, Truncated):
            return None
        distribution = self.mechanism.distribution
        return ExpectedError(distribution.margin(LEVEL), distribution.variance() ** 0.5, distribution.mean_abs())

    def _about(self) -> str:
        chosen = ", ".join(f"{name} {value}" for name, value in self.spec.only.items())
        parts = [f"Jobs of workers with {chosen}."] if chosen else []
        if self.mechanism.protects == "size" and "moe90" not in self._numbers and "low90" not in self._numbers:
            parts.append("No margin of error is published: it would reveal the size of the largest establishment.")
        return " ".join(parts)

    def notes(self) -> dict[str, tuple[str, ...]]:
        guarantee = self.guarantee()
        if isinstance(guarantee.unit, Establishment):
            return {
                self.name: wording.odds_bounds(
                    guarantee.unit, guarantee.epsilon, guarantee.delta, self.weak, self.cells
                )
            }
        return {self.name: wording.whole_odds_bounds(guarantee.epsilon)}

    @property
    def counts_records(self) -> bool:
        return False  # the unit is the establishment

    def intake_domains(self) -> tuple[tuple[Domain, ...], tuple[Domain, ...]]:
        return (self.what.by, self.what.workers), (self.what.only,)

    def unit_constants(self) -> Domain | None:
        return None if self.listed or not self.what.by.attributes else self.what.by

    def tabulate(self, reading: RecordReading) -> list[Confidential[ibis.Table]]:
        dry_run(self.kernel, min(self.cells, self.domain.cells), "employer")
        engine, rows = reading.engine, Establishments(reading.records, self.unit.entity or "")
        if isinstance(self.unit, WholeEstablishment):
            jobs = rows.workforce(engine, self.what)
            counts = count_jobs_without_large(engine, jobs, self.cells, self.unit.records)
        elif self.strong and self.by_worker:
            counts = count_jobs_with_sizes(engine, rows.workforce(engine, self.what), self.cells)
        else:
            counts = rows.job_counts(engine, self.what)
        return [Confidential(engine.store(counts))]

    def refuse_sources(self, records: Records) -> None:
        """Where a table of workplaces describes establishments, attributes in `by` must come from it: only they are the
        same for all jobs of an establishment. Worker attributes must not."""
        listed = {c for lookup in records.lookups if lookup.key.column == self.unit.entity for c in lookup.source}
        for attribute in self.what.only.attributes:
            if len({column in listed for column in attribute.source}) > 1:
                raise SourceError(
                    f"{attribute.name!r} combines columns of workplaces and of workers",
                    where=f"tables.{self.name}.only",
                    do="declare two attributes",
                )
        if not self.listed:
            return
        for kind, domain, fits in (("by", self.what.by, True), ("worker_attributes", self.what.workers, False)):
            for attribute in domain.attributes:
                if all((column in listed) == fits for column in attribute.source):
                    continue
                raise SourceError(
                    f"{attribute.name!r} is {'not ' if fits else ''}a workplace attribute: "
                    f"{'no' if fits else 'a'} column of the table that {self.unit.entity!r} is looked up in",
                    where=f"tables.{self.name}.{kind}",
                    do=f"list it under `{'worker_attributes' if fits else 'by'}`",
                )

    def protect(
        self,
        engine: Engine,
        cells: list[Confidential[FingerprintedTable]],
        reservation: Reservation,
        places: OutputLocations,
        progress: Progress,
    ) -> MethodOutput:
        written_parts = write_parts(
            engine,
            cells[0].open_confidential(),
            self.kernel,
            reservation,
            name=self.name,
            purpose=f"employer/{self.mechanism.name}",
            guarantee=self.guarantee(),
            place=places.published,
            progress=progress,
        )
        return MethodOutput(written_parts.value.files, {})

    def columns(self) -> list[Column]:
        return [*code_columns(self.domain), *(Column(name, "integer", self._meaning(name)) for name in self._numbers)]

    def _meaning(self, name: str) -> str:
        truncated = isinstance(self.unit, WholeEstablishment)
        cut = f", of establishments with at most {self.unit.records:,}" if truncated else ""
        why = (
            "it does not cover establishments that are excluded"
            if truncated
            else "it follows from `largest95`; the 90% allow for the failure of that bound"
        )
        return {
            "count": f"noisy number of jobs with declared codes{cut}; may be negative",
            "low90": "lower limit: with a probability of at least 90% the number of jobs lies between this and "
            "`high90`, inclusive",
            "high90": "upper limit, see `low90`",
            "moe90": f"margin of error: with a probability of at least 90% the noise (alone) is within ± this; {why}",
            "largest95": f"protected upper bound: with a probability of at least 95%, {self._bounded()} has at most "
            "this number of jobs",
            "count_nonnegative": "max(count, 0); biased upwards in small cells",
        }[name]

    def _bounded(self) -> str:
        """Whose jobs determine the noise scale of a cell."""
        if not self.by_worker:
            return "the largest establishment of the cell"
        place = "workplace cell" if self.spec.by else "table"
        if self.strong:
            return f"the largest establishment of the {place} (all its workers)"
        return "the establishment with most jobs in the cell"


def _selected_code(only: Domain, place: int, table: Employer) -> int:
    """The code of the selected category."""
    attribute = only.attributes[place]
    name = list(table.only)[place]
    if len(attribute.columns) > 1 or (table.only[name],) not in attribute.published:
        known = [code for (code, *_) in attribute.published[:SHOWN]] if len(attribute.columns) == 1 else []
        more = ", …" if attribute.size > SHOWN else ""
        raise SpecError(
            f"{table.only[name]!r} is not a category of {name!r}",
            where=f"tables.{table.name}.only.{name}",
            do=f"write one of {', '.join(known)}{more}" if known else "use an attribute of one column",
        )
    return attribute.published.index((table.only[name],))
