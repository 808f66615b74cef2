"""The harness of every study: numbers are computed once; tables, claims, figures and the report are derived from
them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from discreet.errors import ParameterError
from discreet.formatting import Observer
from discreet.report.blocks import as_csv, write_report
from discreet_studies.claims import Claim
from discreet_studies.texts import blocks, table

Numbers = TypeVar("Numbers")


@dataclass(frozen=True)
class Size:
    """Default and minimum size of a study, in children, jobs or runs."""

    what: str
    default: int
    least: int
    unless: str  # what a smaller size does not suffice for
    do: str = "give"


@dataclass(frozen=True)
class Drawing:
    """A chart and the rows that it shows, with column names; none where the data are written elsewhere."""

    chart: Any
    columns: Sequence[str] = ()
    rows: Iterable[Sequence[object]] = ()

    @classmethod
    def of(cls, chart: Any, points: Sequence[Mapping[str, object]]) -> Drawing:
        """From points that have the same fields."""
        return cls(chart, tuple(points[0]) if points else (), [tuple(point.values()) for point in points])


@dataclass(frozen=True)
class Paper(Generic[Numbers]):
    """A study of one paper. `facts` are the values for the report's template; `further` returns or writes more
    files."""

    name: str
    title: str
    size: Size
    measure: Callable[[int, int, Observer], Numbers]
    tables: Callable[[Numbers], Mapping[str, Iterable[object]]]
    figures: Callable[[Numbers], Mapping[str, Drawing]]
    facts: Callable[[Numbers], Mapping[str, object]]
    claims: Callable[[Numbers], Sequence[Claim]] = lambda _: ()
    further: Callable[[Numbers, Path], Mapping[str, str]] = lambda _, __: {}

    def reproduce(self, out: Path, size: int, seed: int, observe: Observer) -> list[Path]:
        """Write everything into an empty folder; returns the files written, the report first."""
        if size < self.size.least:
            do = f"{self.size.do} {self.size.least:,} or more, as in {self.size.default:,}"
            raise ParameterError(f"too few {self.size.what} for {self.size.unless}", where=self.size.what, do=do)
        return self.write(self.measure(size, seed, observe), out, observe)

    def write(self, numbers: Numbers, out: Path, observe: Observer) -> list[Path]:
        """Write the study's files."""
        out.mkdir(parents=True, exist_ok=True)
        drawings = self.figures(numbers)
        for done, (name, drawing) in enumerate(drawings.items(), 1):
            drawing.chart.config.aria = False  # a description of every point would be most of the file
            drawing.chart.save(str(out / f"{name}.svg"))
            observe("figures", done, len(drawings))
        files = {f"data/{name}.csv": as_csv(one.columns, one.rows) for name, one in drawings.items() if one.columns}
        claims = self.claims(numbers)
        rows = {**self.tables(numbers), **({"verdicts": claims} if claims else {})}
        tables = {name: table(self.name, name, entries) for name, entries in rows.items()}
        facts = {"title": self.title, "study": numbers, "claims": claims, **self.facts(numbers)}
        written = write_report(
            out, self.title, blocks(self.name, tables, facts), files | dict(self.further(numbers, out))
        )
        observe("report", 1, 1)
        return written
