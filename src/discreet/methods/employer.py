"""Counts of jobs that hide workers and establishments (003): every cell of workplace and worker attributes.

Noise in proportion to a cell's largest establishment hides its size within a factor 1+α; that the proportion differs
between neighbouring data is part of the mechanisms' loss. Workplace attributes are public and an establishment has
one cell of them, so these compose in parallel; worker attributes do not (003, Theorem 7.5, claims it; see employer.md).
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
    counted_with_sizes,
    counted_without_large,
)
from discreet.engine.fingerprint import Bound
from discreet.engine.spans import Progress, Span, Spans
from discreet.engine.values import Binned
from discreet.errors import DomainError, GuaranteeError, ParameterError, SpecError
from discreet.mechanisms import Mechanism
from discreet.mechanisms.discrete import Truncated
from discreet.mechanisms.log_laplace import LogLaplace
from discreet.mechanisms.smooth import Smooth
from discreet.methods import Column, ExpectedError, Measurement, Published, code_columns
from discreet.methods.employer_kernel import LEVEL, EmployerKernel
from discreet.methods.employer_mechanism import made, own_share
from discreet.methods.employer_words import FIRMS, LEFT_OUT, PUBLIC, SAME, SHAPE, promises, whole_promises
from discreet.methods.writing import Made, Places, write_parts
from discreet.noise.key import public_stream
from discreet.privacy.confidential import Confidential
from discreet.privacy.exact import written
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.reservation import Reservation
from discreet.privacy.unit import Establishment, Unit, WholeEstablishment
from discreet.publish.lehd.sidecars import Sidecars
from discreet.spec import Employer, Release
from discreet.words import plural

if TYPE_CHECKING:
    import ibis

PART = 1 << 22  # rows in a file
MOST_CELLS = 1 << 34


@dataclass(frozen=True)
class EmployerMethod:
    """One table of jobs."""

    spec: Employer
    what: Workforce
    unit: Unit
    listed: bool  # workplace attributes come from a table of workplaces, one entry an establishment
    per_establishment = True

    @classmethod
    def of(cls, release: Release, table: Employer) -> EmployerMethod:
        found = release.domains_of(table)
        both, by, only = (found[f"{table.name}{part}"] for part in ("", "~by", "~only"))
        workers = Domain(both.attributes[len(by.attributes) :])
        chosen = tuple(_category(only, i, table) for i in range(len(only.attributes)))
        listed = release.unit.entity in release.join.values()
        return cls(table, Workforce(by, workers, only, chosen), release.unit, listed)

    def __post_init__(self) -> None:
        if self.domain.cells > MOST_CELLS:
            raise GuaranteeError(
                f"{self.domain.cells:,} cells are too many to visit one by one", where=self._where, do="publish fewer"
            )
        if taken := set(self._numbers) & set(self.domain.columns):
            raise DomainError(
                f"a published column is called {taken.pop()!r} already",
                where=self._where,
                do="name the attribute differently and point it to the data with `column:`",
            )

    @property
    def _where(self) -> str:
        return f"table {self.spec.name}"

    @property
    def name(self) -> str:
        return self.spec.name

    @cached_property
    def domain(self) -> Domain:
        """Workplace cells, each with its worker cells side by side."""
        return Domain((*self.what.by.attributes, *self.what.workers.attributes))

    @property
    def domains(self) -> tuple[Domain, ...]:
        # Attributes of `only` are read and audited like the others, though no cell is made of them.
        return (self.what.attributes,) if self.what.chosen else (self.domain,)

    @property
    def binned(self) -> tuple[Binned, ...]:
        return ()

    @property
    def cells(self) -> int:
        """d: how many cells the workers of one establishment are in."""
        return self.what.workers.cells

    @property
    def by_worker(self) -> bool:
        """Whether what is counted depends on who the workers are."""
        return bool(self.what.workers.attributes or self.what.chosen)

    @property
    def strong(self) -> bool:
        """Whether sensitivities come from establishments with all their workers."""
        return isinstance(self.unit, Establishment) and self.unit.adversary == "strong"

    @property
    def spans(self) -> tuple[Spans, ...]:
        return (Spans(self.domain.cells, max(PART // self.cells, 1) * self.cells),)

    @cached_property
    def mechanism(self) -> Mechanism:
        return made(self.spec, self.unit, self.cells, self.by_worker)

    @cached_property
    def bound(self) -> LogLaplace | None:
        """The mechanism that bounds largest establishments: one for each workplace cell, or under weak privacy one for
        each cell, which cost d times as much."""
        if self.spec.largest is None or not isinstance(self.unit, Establishment):
            return None
        epsilon = self.spec.largest.epsilon / (1 if self.strong else self.cells)
        try:
            return LogLaplace(self.unit.alpha, epsilon, unbiased=False)
        except ParameterError as error:
            raise ParameterError(error.what, where=f"{self._where}, largest.epsilon", do=error.do) from None

    @cached_property
    def kernel(self) -> EmployerKernel:
        shared = self.cells if self.strong else 1
        return EmployerKernel(self.name, self.domain, self.mechanism, self.bound, shared, self.spec.nonnegative)

    @property
    def _numbers(self) -> tuple[str, ...]:
        return self.kernel.numbers

    def guarantee(self) -> Guarantee:
        caveats = [FIRMS]
        if isinstance(self.unit, WholeEstablishment):
            caveats.append(LEFT_OUT.format(most=self.unit.records))
            return Guarantee(unit=self.unit, epsilon=self.spec.epsilon, caveats=tuple(caveats))
        weak = not self.strong and self.by_worker
        caveats += [PUBLIC, *([] if self.listed else [SAME]), *([SHAPE] if weak else [])]
        paid = self.spec.epsilon + (self.spec.largest.epsilon if self.spec.largest is not None else 0)
        # What depends on no worker is hidden from a strong adversary as well.
        unit = self.unit.model_copy(update={"adversary": "weak" if weak else "strong"})
        delta = self.mechanism.delta / own_share(self.unit, self.cells)
        return Guarantee(unit=unit, epsilon=paid, delta=delta, caveats=tuple(caveats))

    def composes(self) -> str:
        epsilon, parts = written(self.spec.epsilon), "cells share no establishment: parallel"
        if self.cells == 1:
            text = f"{parts}, ε = {epsilon} for the whole table"
        elif isinstance(self.unit, WholeEstablishment):
            text = f"all jobs of an establishment, in whichever of its {self.cells} cells: ε = {epsilon} together"
        elif self.strong:
            text = (
                f"workplace {parts}; an establishment's {self.cells} worker cells share the change of its size, and "
                f"each pays for the change of its noise: ε = {epsilon} together"
            )
        else:
            text = (
                f"workplace {parts}; its {self.cells} worker cells are sequential: {self.cells} × "
                f"{written(self.spec.epsilon / self.cells)} = {epsilon}"
            )
        if self.spec.largest is not None:
            text += f"; bounds of largest establishments: ε = {written(self.spec.largest.epsilon)} more"
        return text

    def published(self) -> list[Published]:
        return [
            Published(
                name=self.name,
                by=(*self.spec.by, *self.spec.workers),
                domain=self.domain,
                guarantee=self.guarantee(),
                composes=self.composes(),
                noise=self._noise(),
                error=self._error(),
                columns=tuple(self.columns()),
                about=self._about(),
                parts=len(self.spans[0]),
            )
        ]

    def _noise(self) -> str:
        """The noise in words, and the error that it makes for a largest establishment x."""
        text = self.mechanism.in_words()
        if isinstance(self.mechanism, Smooth):
            text += f"; mean |error| {self.mechanism.per_unit:.3g}·S"
        if self.strong and self.by_worker:
            text += "; x counts all workers of an establishment, whoever is published"
        return text

    def _error(self) -> ExpectedError | None:
        """Known only where no confidential size decides it."""
        if not isinstance(self.mechanism, Truncated):
            return None
        law = self.mechanism.law
        return ExpectedError(law.margin(LEVEL), law.variance() ** 0.5, law.mean_abs())

    def _about(self) -> str:
        chosen = ", ".join(f"{name} {value}" for name, value in self.spec.only.items())
        return f"Jobs of workers with {chosen}." if chosen else ""

    def layouts(self, simulated: bool) -> dict[str, str]:  # noqa: ARG002 - one signature for all
        return {}

    def sidecars(self) -> Sidecars:
        return Sidecars()

    def outlook(self) -> dict[str, tuple[str, ...]]:
        guarantee = self.guarantee()
        if isinstance(guarantee.unit, Establishment):
            lines = promises(guarantee.unit, guarantee.epsilon, guarantee.delta, self.by_worker)
        else:
            lines = whole_promises(guarantee.epsilon, self.unit.records)
        return {self.name: lines}

    def measurements(self) -> list[Measurement]:
        return []

    def tabulate(self, engine: Engine, rows: Establishments) -> list[Confidential[ibis.Table]]:
        self._rehearse()
        if isinstance(self.unit, WholeEstablishment):
            jobs = rows.workforce(engine, self.what)
            found = counted_without_large(engine, jobs, self.cells, self.unit.records)
        elif self.strong and self.by_worker:
            found = counted_with_sizes(engine, rows.workforce(engine, self.what), self.cells)
        else:
            found = rows.counted(engine, self.what)
        return [Confidential(engine.store(found))]

    def _rehearse(self) -> None:
        """Protect nothing once, with noise that anybody may know: parameters that cannot be drawn with must show before
        anything is spent."""
        nothing = Span(0, 0, min(self.cells, self.domain.cells))
        for _ in self.kernel(nothing, iter(()), public_stream("employer", "rehearsal")):
            pass

    def protect(
        self,
        engine: Engine,
        cells: list[Confidential[Bound]],
        reservation: Reservation,
        places: Places,
        progress: Progress,
    ) -> Made:
        written_parts = write_parts(
            engine,
            cells[0].open_inside(),
            self.kernel,
            reservation,
            name=self.name,
            purpose=f"employer/{self.mechanism.name}",
            guarantee=self.guarantee(),
            place=places.published,
            progress=progress,
        )
        return Made(written_parts.value.files, {})

    def columns(self) -> list[Column]:
        return [*code_columns(self.domain), *(Column(name, "integer", self._meaning(name)) for name in self._numbers)]

    def _meaning(self, name: str) -> str:
        margin = "with a probability of at least 90% the noise is within ± this"
        if name == "moe90" and isinstance(self.unit, WholeEstablishment):
            margin += "; it says nothing about establishments that are left out"
        elif name == "moe90":
            margin += ", made of `largest95`, which holds as often as it claims"
        return {
            "count": "protected number of jobs: those with declared codes, plus noise; may be negative",
            "low90": "with a probability of at least 90% the number of jobs is not below this and not above `high90`",
            "high90": "see `low90`",
            "moe90": f"margin of error of `count` at 90%: {margin}",
            "largest95": f"a protected bound: {self._bounded()} has at most so many jobs, with a probability of 95%",
            "count_nonnegative": "max(count, 0); biased upwards in small cells",
        }[name]

    def _bounded(self) -> str:
        own = "counting all its workers" if self.strong and self.by_worker else "counting those of the cell"
        return f"the largest establishment of the cell, {own},"


def _category(only: Domain, place: int, table: Employer) -> int:
    """The code of the one category that counts."""
    attribute = only.attributes[place]
    name = list(table.only)[place]
    if len(attribute.columns) > 1 or (table.only[name],) not in attribute.published:
        raise SpecError(
            f"{table.only[name]!r} is no category of {name!r} (it has {plural(attribute.size, 'code')})",
            where=f"tables.{table.name}.only.{name}",
            do="name one of the declared codes",
        )
    return attribute.published.index((table.only[name],))
