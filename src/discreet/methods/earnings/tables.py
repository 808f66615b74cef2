"""Published tables of earnings: post-processing of the protected histograms, no additional ε."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from discreet.domain import Numbers, coarsening
from discreet.methods.earnings.levels import AnyLevel, DerivedLevel
from discreet.methods.earnings.shrinkage import estimate
from discreet.methods.histograms import Histograms, add_rows, measured
from discreet.methods.noise_provenance import Flags, NoiseProvenance
from discreet.methods.writing import OutputLocations
from discreet.post.percentiles import Floats
from discreet.post.summary import Summary, SummaryParameters, summarise
from discreet.privacy.confidential import Grant
from discreet.privacy.protected import Protected
from discreet.publish.lehd.pseoe import QUARTILES
from discreet.publish.storage import Storage
from discreet.publish.tables import WrittenTable, schema_of, write_table

if TYPE_CHECKING:
    from discreet.methods.earnings.method import EarningsMethod

ROWS = 1 << 17  # in memory at a time


@dataclass(frozen=True)
class EarningsTables:
    """Writes the published tables from the protected histograms."""

    method: EarningsMethod
    provenances: Mapping[str, NoiseProvenance]  # of the measured levels, where they were recoded

    def make(
        self, places: OutputLocations, drawn: Mapping[str, Protected[WrittenTable]], grant: Grant
    ) -> Iterator[dict[str, str]]:
        """Write every published file, level by level, then those of a layout."""
        method, place = self.method, places.published
        sums = self._sums(places.measured, drawn)
        summaries: dict[str, Protected[Summary]] = {}
        for level in method.levels:
            if isinstance(level, DerivedLevel):
                pieces: Iterator[tuple[int, Histograms]] = iter([(0, sums[level.name])])
            else:
                pieces = measured(places.measured, drawn[level.name], method.bins.count)
            guarantee, schema = method.level_guarantee(level), schema_of(method.columns(level))
            parts = list[Summary]()
            rows = (pa.RecordBatch.from_arrays(a, schema=schema) for a in self._rows(level, pieces, parts))
            batches = (grant.protect(batch, guarantee) for batch in rows)
            yield write_table(place, level.name, schema, batches, grant.simulated).files
            if method.pseoe is not None:
                summaries[level.name] = grant.protect(Summary.concatenate(parts), guarantee)
        if method.pseoe is not None:
            quartiles = [method.spec.percentiles.index(Fraction(q)) for q in QUARTILES]
            yield method.pseoe.write(place, summaries, (quartiles[0], quartiles[1], quartiles[2]))

    def _sums(self, place: Storage, drawn: Mapping[str, Protected[WrittenTable]]) -> dict[str, Histograms]:
        """The histograms of the derived levels, in one pass over each measured level."""
        derived = [level for level in self.method.levels if isinstance(level, DerivedLevel)]
        sums = {level.name: np.zeros((level.domain.cells, self.method.bins.count), np.int64) for level in derived}
        for name in dict.fromkeys(level.source.name for level in derived):
            for first, histograms in measured(place, drawn[name], self.method.bins.count):
                cells = np.arange(first, first + len(histograms))
                for level in derived:
                    if level.source.name == name:
                        add_rows(sums[level.name], level.cells.parents(cells), histograms)
        return sums

    def _rows(
        self, level: AnyLevel, pieces: Iterator[tuple[int, Histograms]], parts: list[Summary]
    ) -> Iterator[list[pa.Array]]:
        """The published rows of a level; appends their summaries to `parts` if a layout needs them."""
        parameters = SummaryParameters(
            self.method.bins, self.method.points, level.shape.suppress_below, level.distribution.rate
        )
        draws, divided = self._draws(level)
        estimates = None
        if self.method.spec.estimator == "shrunk":  # uses all cells of the level at once
            whole = np.concatenate([piece for _, piece in pieces])
            estimates, pieces = self._shrunk(level, whole, draws), iter([(0, whole)])
        for start, piece in pieces:
            for first in range(0, len(piece), ROWS):
                histograms = piece[first : first + ROWS]
                cells = np.arange(start + first, start + first + len(histograms))
                codes, guess = level.domain.describe(cells), None if estimates is None else estimates[cells]
                summary = summarise(histograms, parameters, draws[cells], self._suppressed_by_code(level, codes), guess)
                if self.method.pseoe is not None:
                    parts.append(summary)
                yield self._arrays(codes, histograms, summary, divided[cells])

    def _draws(self, level: AnyLevel) -> tuple[Numbers, Flags]:
        """For each cell, the number of draws in the noise of a bin, and whether a recoding divided it at random."""
        source = level.source if isinstance(level, DerivedLevel) else level
        provenance, cells = self.provenances.get(source.name), np.arange(source.domain.cells)
        if provenance is None:
            return level.summands, np.zeros(level.domain.cells, np.bool_)
        parents = level.cells.parents(cells) if isinstance(level, DerivedLevel) else cells
        draws, divided = provenance.draws(parents, level.domain.cells)
        return np.maximum(draws, 1), divided  # a group that no old group maps to is exactly 0, and suppressed

    def _shrunk(self, level: AnyLevel, histograms: Histograms, draws: Numbers) -> Floats:
        """Shrunk percentiles, with those families that consist of whole cells of this level."""
        cells, domain, families = np.arange(level.domain.cells), level.domain, list[Numbers]()
        for family in reversed(self.method.families):  # the wider family of a cell is that of its narrower one
            if (lookup := coarsening(domain, family)) is not None:
                cells, domain = lookup.parents(cells), family
                families.insert(0, cells)
        rate = float(level.distribution.rate)
        return estimate(histograms, families, rate, self.method.bins, self.method.points, draws)

    def _suppressed_by_code(
        self, level: AnyLevel, codes: list[pa.DictionaryArray]
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which cells the public rule `suppress_codes` suppresses, whatever their counts."""
        out = np.zeros(len(codes[0]) if codes else 1, np.bool_)
        for column, suppressed in level.shape.suppress_codes.items():
            shown = codes[level.domain.columns.index(column)]
            listed = np.isin(np.array(shown.dictionary.to_pylist(), object), suppressed)
            out |= listed[shown.indices.to_numpy()]
        return out

    def _arrays(
        self, codes: list[pa.Array], histograms: Histograms, summary: Summary, divided: Flags
    ) -> list[pa.Array]:
        suppressed = ~summary.published
        unknown = suppressed | divided  # the error is not known
        numbers = [(summary.counts, suppressed), (summary.margins, unknown)]
        for p in range(len(self.method.points)):
            numbers += [(summary.percentiles[:, p], suppressed)]
            numbers += [(table[:, p], unknown) for table in (summary.low, summary.high)]
            numbers += [(summary.widths[:, p], suppressed)]
        numbers += [(column, suppressed) for column in histograms.T]
        return [*codes, pa.array(summary.status), *(pa.array(n, mask=mask) for n, mask in numbers)]
