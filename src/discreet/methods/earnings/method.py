"""Earnings percentiles and counts from protected histograms, at one or several levels: pure ε-DP.

Noisy measurements, then post-processing: workers add discrete Laplace noise to every bin of every cell of the measured
levels and write protected files. All else is post-processing of those: sums for derived levels, counts, percentiles,
their limits, suppression, LEHD's layout. A unit with at most k records changes a level's histograms by at most k in L1
norm, so noise of rate ε/k gives ε per measured level (PSEO Beta Appendix, §§1–2; PSEO Technical Appendices, A.2); the
measured levels compose sequentially.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from discreet.domain import Domain, coarsening
from discreet.domain.bins import Bins
from discreet.engine import Engine
from discreet.engine.derived_values import BinnedValue
from discreet.engine.spans import FingerprintedTable, Progress, Spans
from discreet.engine.tabulate import RecordReading, count_cells
from discreet.errors import DomainError, SpecError
from discreet.methods.earnings.columns import earnings_about, earnings_columns
from discreet.methods.earnings.levels import AnyLevel, DerivedLevel, MeasuredLevel, best_sum, resolve
from discreet.methods.earnings.spec import Earnings
from discreet.methods.earnings.tables import EarningsTables
from discreet.methods.histograms import HistogramKernel, histogram_domain, histogram_spans
from discreet.methods.noise_provenance import NoiseProvenance
from discreet.methods.protocol import Method, cost_of_disjoint_parts, refuse_clashes, refuse_size_units
from discreet.methods.writing import MethodOutput, OutputLocations, write_parts
from discreet.post.summary import margins
from discreet.privacy.confidential import Confidential, Grant, Reservation
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Guarantee, Unit, compose
from discreet.privacy.protected import Protected
from discreet.publish.description import Column, ExpectedError, Measurement, PublishedTable
from discreet.publish.lehd.layout import check_levels
from discreet.publish.lehd.pseoe import QUARTILES, Pseoe, lehd_level
from discreet.publish.lehd.schema import SMALLEST
from discreet.publish.lehd.sidecars import Sidecars
from discreet.publish.tables import WrittenTable
from discreet.spec import Release

if TYPE_CHECKING:
    import ibis

MOST_BINS = 1 << 34  # of a measured level
MOST_IN_MEMORY = 1 << 28  # of a level that is held in memory: 2 GiB


@dataclass(frozen=True)
class EarningsMethod(Method):
    """The method `earnings` for one declared table and its levels."""

    spec: Earnings
    cells: Mapping[str, Domain]
    unit: Unit
    families: tuple[Domain, ...] = ()  # for the estimator `shrunk`, the widest first
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # of codes, for LEHD's label files

    @classmethod
    def of(cls, release: Release, table: Earnings) -> EarningsMethod:
        families = tuple(table.families(release)[table.name])
        return cls(table, table.domains(release), release.unit, families, release.labels())

    def __post_init__(self) -> None:
        refuse_size_units(self.unit, self.spec.place)
        self._check_size(self.name, measured=True)
        for level in self.spec.levels:
            self._check_size(level.name, measured=level.epsilon is not None)
        for one in self.levels:
            self._check(one)
        self._check_families()
        _ = self.pseoe

    def _check_size(self, level: str, *, measured: bool) -> None:
        """Refuse before the reservation what would fail after it: sums, `shrunk` and layouts need memory."""
        in_memory = not measured or self.spec.estimator == "shrunk" or self.spec.layout is not None
        most = MOST_IN_MEMORY if in_memory else MOST_BINS
        if (bins := self.cells[level].cells * self.bins.count) > most:
            raise DomainError(
                f"has {bins:,} bins, more than the {most:,} that {'fit in memory' if in_memory else 'are possible'}",
                where=self._where(level),
                do="publish coarser attributes, fewer bins, or several tables",
            )

    def _check(self, level: AnyLevel) -> None:
        where = self._where(level.name)
        refuse_clashes((c.name for c in self.columns(level) if c.type != "code"), level.domain, where)
        for column, codes in level.shape.suppress_codes.items():
            if column not in level.domain.columns:
                raise SpecError(
                    f"suppresses codes of {column!r}, which it does not publish",
                    where=where,
                    do=f"name one of {', '.join(level.domain.columns)}",
                )
            known = {
                key[i]
                for a in level.domain.attributes
                for i, c in enumerate(a.columns)
                if c == column
                for key in a.published
            }
            if unknown := next((code for code in codes if code not in known), None):
                raise SpecError(
                    f"suppresses {column} {unknown!r}, which is no declared category",
                    where=where,
                    do="name declared codes",
                )

    def _where(self, level: str) -> str:
        return f"level {level}" if level != self.name else f"table {self.name}"

    def _check_families(self) -> None:
        chain = [*self.families, self.levels[0].domain]
        for i, (wide, narrow) in enumerate(pairwise(chain)):
            if coarsening(narrow, wide) is None:
                raise DomainError(
                    "does not consist of whole "
                    + ("families of the next one" if i + 1 < len(self.families) else "cells"),
                    where=f"tables.{self.name}.borrow_from[{i}]",
                    do="list attributes coarser than the table's, the widest family first",
                )

    # --- the declaration --------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.spec.name

    @cached_property
    def bins(self) -> Bins:
        return self.spec.bins.to_bins()

    @cached_property
    def levels(self) -> list[AnyLevel]:
        return resolve(self.spec, self.cells, self.unit.records)

    @property
    def measured(self) -> list[MeasuredLevel]:
        return [level for level in self.levels if isinstance(level, MeasuredLevel)]

    def as_derived(self, level: MeasuredLevel) -> DerivedLevel | None:
        """The level as a sum of another measured level; None if that is impossible."""
        return best_sum(level.shape, [other for other in self.measured if other is not level])

    @property
    def points(self) -> tuple[Fraction, ...]:
        return tuple(percentile / 100 for percentile in self.spec.percentiles)

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        column = self.binned[0].name
        return tuple(histogram_domain(level.domain, column, self.bins.count) for level in self.measured)

    @property
    def binned(self) -> tuple[BinnedValue, ...]:
        column = f"discreet_bin_{self.name.encode().hex()}"  # column names are case-insensitive in engines
        return (BinnedValue(column, self.spec.value, self.bins, tuple(rule.holds for rule in self.spec.sample)),)

    @property
    def spans(self) -> tuple[Spans, ...]:
        return tuple(histogram_spans(level.domain.cells, self.bins.count) for level in self.measured)

    def guarantee(self) -> Guarantee:
        return compose(self.level_guarantee(level) for level in self.measured)

    def level_guarantee(self, level: AnyLevel) -> Guarantee:
        """The guarantee of one level; that of a derived level is its source's."""
        source = level.source if isinstance(level, DerivedLevel) else level
        return Guarantee(unit=self.unit, epsilon=source.epsilon)

    def published_tables(self) -> list[PublishedTable]:
        return [
            PublishedTable(
                name=level.name,
                by=level.shape.by,
                domain=level.domain,
                guarantee=self.level_guarantee(level),
                composition=self._composes(level),
                noise=self._noise(level),
                error=self._error(level),
                columns=tuple(self.columns(level)),
                about=earnings_about(self.spec, self.bins, level.shape, _source(level)),
                sum_of=_source(level),
            )
            for level in self.levels
        ]

    def _composes(self, level: AnyLevel) -> str:
        if isinstance(level, DerivedLevel):
            least, most = int(level.summands.min()), int(level.summands.max())
            number = f"{most:,}" if least == most else f"{least:,} to {most:,}"
            cells = f"{number} protected {'cell' if most == 1 else 'cells'} of {level.source.name}"
            return f"each cell is a sum of {cells}: post-processing, no additional ε"
        return cost_of_disjoint_parts(level.epsilon, self.unit.records, "cells and bins", "level")

    def _noise(self, level: AnyLevel) -> str:
        rate = format_exact(level.distribution.rate)
        noise = f"discrete Laplace (two-sided geometric) in each of {self.bins.count} bins, P(k) ∝ exp(−{rate}·|k|)"
        return f"{noise}, summed over cells" if isinstance(level, DerivedLevel) else noise

    def _error(self, level: AnyLevel) -> ExpectedError:
        """Expected error of a count, the largest among the level's cells."""
        draws = int(level.summands.max(initial=1)) * self.bins.count
        deviation = (draws * level.distribution.variance()) ** 0.5
        margin = int(margins(level.distribution.rate, np.array([draws]))[0])
        return ExpectedError(margin, deviation, deviation * (2 / np.pi) ** 0.5)

    def notes(self) -> dict[str, tuple[str, ...]]:
        from discreet.methods.earnings.expected_error import notes

        return notes(self)

    # --- counting and noise -----------------------------------------------------------------------------------------

    def tabulate(self, reading: RecordReading) -> list[Confidential[ibis.Table]]:
        return [Confidential(count_cells(reading.engine, reading.bounded, domain)) for domain in self.domains]

    def measurements(self) -> list[Measurement]:
        about = {
            "value": self.spec.value,
            "borders": list(self.bins.edges),
            "sample": [rule.model_dump(mode="json") for rule in self.spec.sample],
        }
        return [
            Measurement(
                level.name, level.domain, self.bins.count, about, level.distribution.rate, self.level_guarantee(level)
            )
            for level in self.measured
        ]

    def protect(
        self,
        engine: Engine,
        cells: list[Confidential[FingerprintedTable]],
        reservation: Reservation,
        places: OutputLocations,
        progress: Progress,
    ) -> MethodOutput:
        steps = [*(len(spans) for spans in self.spans), self._steps]
        measured: dict[str, Protected[WrittenTable]] = {}
        for number, (level, bound) in enumerate(zip(self.measured, cells, strict=True)):

            def advance(done: int, total: int, before: int = sum(steps[:number])) -> None:
                progress(before + min(done, total), sum(steps))

            measured[level.name] = write_parts(
                engine,
                bound.open_confidential(),
                HistogramKernel(level.name, level.distribution.rate),
                reservation,
                name=level.name,
                purpose="earnings/histogram",
                guarantee=self.level_guarantee(level),
                place=places.measurements,
                progress=advance,
                intermediate=True,
            )

        def publishing(done: int, _: int) -> None:
            progress(sum(steps[:-1]) + done, sum(steps))

        return MethodOutput(self.make(measured, reservation, places, publishing, {}), measured)

    @property
    def _steps(self) -> int:
        return len(self.levels) + (self.pseoe is not None)

    def make(
        self,
        measured: Mapping[str, Protected[WrittenTable]],
        grant: Grant,
        places: OutputLocations,
        progress: Progress,
        provenances: Mapping[str, NoiseProvenance],
    ) -> dict[str, str]:
        """Every published file, from the noisy measurements alone."""
        files: dict[str, str] = {}
        for number, written in enumerate(EarningsTables(self, provenances).make(places, measured, grant), 1):
            files |= written
            progress(number, self._steps)
        return files

    def columns(self, level: AnyLevel) -> list[Column]:
        """The published columns of a level, with descriptions."""
        return earnings_columns(self.spec, self.unit, self.bins, level.shape)

    # --- LEHD's layout ----------------------------------------------------------------------------------------------

    @cached_property
    def pseoe(self) -> Pseoe | None:
        if self.spec.layout is None:
            return None
        where = self.spec.place
        if missing := next((q for q in QUARTILES if Fraction(q) not in self.spec.percentiles), None):
            raise SpecError(f"the layout lehd needs percentile {missing}", where=where, do="add it to `percentiles`")
        if self.bins.edges[0] < 1:
            raise SpecError("the layout lehd has positive earnings only", where=where, do="let the first edge be 1")
        if min(level.shape.suppress_below for level in self.levels) < SMALLEST:
            raise SpecError(
                f"the layout lehd has no cells below {SMALLEST}", where=where, do="leave `suppress_below` out"
            )
        levels = tuple(
            lehd_level(level.name, level.domain, self.spec.layout, level.shape.suppress_codes) for level in self.levels
        )
        check_levels(levels, self.spec.layout, where)
        return Pseoe(self.spec.layout, levels, self.labels)

    def layouts(self, simulated: bool) -> dict[str, str]:
        return {} if self.pseoe is None else self.pseoe.files(simulated)

    def shared_files(self) -> Sidecars | None:
        return None if self.pseoe is None else self.pseoe.sidecars()


def _source(level: AnyLevel) -> str:
    return level.source.name if isinstance(level, DerivedLevel) else ""
