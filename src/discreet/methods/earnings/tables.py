"""The published tables of earnings, made from protected histograms alone: nothing here costs anything."""

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
    """What becomes of the measured histograms."""

    method: EarningsMethod
    origins: Mapping[str, NoiseProvenance]  # of the measured levels, where they were recoded

    def make(
        self, places: OutputLocations, drawn: Mapping[str, Protected[WrittenTable]], grant: Grant
    ) -> Iterator[dict[str, str]]:
        """Every published file, level by level, then those of a layout."""
        method, place = self.method, places.published
        sums = self._sums(places.measured, drawn)
        summaries: dict[str, Protected[Summary]] = {}
        for level in method.levels:
            if isinstance(level, DerivedLevel):
                pieces: Iterator[tuple[int, Histograms]] = iter([(0, sums[level.name])])
            else:
                pieces = measured(places.measured, drawn[level.name], method.bins.count)
            promise, schema, found = method.level_guarantee(level), schema_of(method.columns(level)), list[Summary]()
            rows = (pa.RecordBatch.from_arrays(a, schema=schema) for a in self._rows(level, pieces, found))
            batches = (grant.protect(batch, promise) for batch in rows)
            yield write_table(place, level.name, schema, batches, grant.simulated).files
            if method.pseoe is not None:
                summaries[level.name] = grant.protect(Summary.concatenate(found), promise)
        if method.pseoe is not None:
            quartiles = [method.spec.percentiles.index(Fraction(q)) for q in QUARTILES]
            yield method.pseoe.write(place, summaries, (quartiles[0], quartiles[1], quartiles[2]))

    def _sums(self, place: Storage, drawn: Mapping[str, Protected[WrittenTable]]) -> dict[str, Histograms]:
        """The histograms of the derived levels, in one pass over each measured one."""
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
        self, level: AnyLevel, pieces: Iterator[tuple[int, Histograms]], found: list[Summary]
    ) -> Iterator[list[pa.Array]]:
        """The published rows of a level; their summaries are kept if a layout needs them."""
        asked = SummaryParameters(
            self.method.bins, self.method.points, level.shape.suppress_below, level.distribution.rate
        )
        draws, blurred = self._draws(level)
        estimates = None
        if self.method.spec.estimator == "shrunk":  # it looks at all cells together
            whole = np.concatenate([piece for _, piece in pieces])
            estimates, pieces = self._shrunk(level, whole, draws), iter([(0, whole)])
        for start, piece in pieces:
            for first in range(0, len(piece), ROWS):
                histograms = piece[first : first + ROWS]
                cells = np.arange(start + first, start + first + len(histograms))
                codes, guess = level.domain.describe(cells), None if estimates is None else estimates[cells]
                summary = summarise(histograms, asked, draws[cells], self._withheld(level, codes), guess)
                if self.method.pseoe is not None:
                    found.append(summary)
                yield self._arrays(codes, histograms, summary, blurred[cells])

    def _draws(self, level: AnyLevel) -> tuple[Numbers, Flags]:
        """How many draws the noise of a bin is the sum of, for each cell, and where a recoding divided at random."""
        source = level.source if isinstance(level, DerivedLevel) else level
        origin, cells = self.origins.get(source.name), np.arange(source.domain.cells)
        if origin is None:
            return level.summands, np.zeros(level.domain.cells, np.bool_)
        parents = level.cells.parents(cells) if isinstance(level, DerivedLevel) else cells
        draws, blurred = origin.draws(parents, level.domain.cells)
        return np.maximum(draws, 1), blurred  # a group that nothing became is 0 for certain, and too small anyway

    def _shrunk(self, level: AnyLevel, histograms: Histograms, draws: Numbers) -> Floats:
        """Percentiles that borrow from the families which this level has whole cells of."""
        cells, domain, families = np.arange(level.domain.cells), level.domain, list[Numbers]()
        for family in reversed(self.method.families):  # the wider family of a cell is that of its narrower one
            if (found := coarsening(domain, family)) is not None:
                cells, domain = found.parents(cells), family
                families.insert(0, cells)
        rate = float(level.distribution.rate)
        return estimate(histograms, families, rate, self.method.bins, self.method.points, draws)

    def _withheld(self, level: AnyLevel, codes: list[pa.DictionaryArray]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """The cells that a public rule keeps back, whatever is in them."""
        out = np.zeros(len(codes[0]) if codes else 1, np.bool_)
        for column, withheld in level.shape.suppress_codes.items():
            shown = codes[level.domain.columns.index(column)]
            listed = np.isin(np.array(shown.dictionary.to_pylist(), object), withheld)
            out |= listed[shown.indices.to_numpy()]
        return out

    def _arrays(
        self, codes: list[pa.Array], histograms: Histograms, summary: Summary, blurred: Flags
    ) -> list[pa.Array]:
        hidden = ~summary.published
        unknown = hidden | blurred  # the error is not known
        numbers = [(summary.counts, hidden), (summary.margins, unknown)]
        for p in range(len(self.method.points)):
            numbers += [(summary.percentiles[:, p], hidden)]
            numbers += [(table[:, p], unknown) for table in (summary.low, summary.high)]
            numbers += [(summary.widths[:, p], hidden)]
        numbers += [(column, hidden) for column in histograms.T]
        return [*codes, pa.array(summary.status), *(pa.array(n, mask=mask) for n, mask in numbers)]
