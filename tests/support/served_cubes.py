"""Tables on pages, for tests: a simulated cube with groups, and one whose cells do not add up; a server for both."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uvicorn
from fastapi import FastAPI

from discreet.serve.catalogue import TableCatalogue
from discreet.serve.query_model import Measure, QueryableTable, TableSummary, TableVariable
from discreet.serve.stored_table import StoredTable
from support.survey import CONTROLS, WEIGHTS, SurveyAgency

COUNTS: dict[str, Any] = {"name": "counts", "method": "counts", "by": ["strength", "outdoors"], "epsilon": "1"}
MIDDLE, HIGH = ("Middle", "High & dry"), "<b>North</b>"  # labels that would show if they were not escaped


def cubes(home: Path) -> Path:
    """The folder of a simulation: a cube with occupations in groups, its control totals, and counts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_KEYS", str(home / "keys"))
        patch.setenv("DISCREET_TMP", str(home / "tmp"))
        survey = SurveyAgency(home / "survey")
        survey.more["tables"] = [survey.spec(weights=WEIGHTS, controls=CONTROLS)["tables"][0], COUNTS]
        return survey.run()


def pay(home: Path, *, simulation: bool = False) -> StoredTable:
    """Medians by school, degree and year: one suppressed, one missing."""
    schools, degrees, years = ("a", "b", "c"), ("1", "2"), ("2020", "2021")
    rows = [(s, d, y) for s in schools for d in degrees for y in years if (s, d, y) != ("c", "2", "2021")]
    count = [100 + 10 * i for i in range(len(rows))]
    median: list[int | None] = [30_000 - 1_000 * i for i in range(len(rows))]
    status = [1] * len(rows)
    status[1], median[1] = 5, None
    path = home / "pay.parquet"
    pq.write_table(
        pa.table(
            {
                "school": [row[0] for row in rows],
                "degree": [row[1] for row in rows],
                "year": [row[2] for row in rows],
                "count": count,
                "count_moe90": [10 + 20 * (i % 4) for i in range(len(rows))],
                "p50": pa.array(median, pa.int64()),
                "p50_low90": pa.array([m and m - 500 for m in median], pa.int64()),
                "p50_high90": pa.array([m and m + 2_500 for m in median], pa.int64()),
                "status": status,
            }
        ),
        path,
    )
    about = TableSummary(
        id="pay",
        title="Pay",
        release="pay-2021",
        method="earnings",
        guarantee="Satisfies (1.5, 0)-differential privacy for one record, under adding or removing it: the "
        "probability of any set of published outputs changes by a factor of at most e^1.5.",
        caveats=("Schools are public.",),
        noise="two-sided geometric",
        notes=("Cells below 30 are suppressed. Noise: two-sided geometric.",),
        updated="2021-12-01",
        simulation=simulation,
    )
    variables = (
        TableVariable("school", "School", schools, (HIGH, *MIDDLE)),
        TableVariable("degree", "Degree", degrees, degrees),
        TableVariable("year", "Year", years, years),
    )
    measures = (
        Measure("count", "Count"),
        Measure("count_moe90", "Count moe90", error_of="count"),
        Measure("p50", "Median"),
        Measure("p50_low90", "Median low90", error_of="p50"),
        Measure("p50_high90", "Median high90", error_of="p50"),
    )
    return StoredTable(about, pq.read_table(path), variables, measures)


def cubes_and_pay(home: Path) -> TableCatalogue:
    """Cubes and pay in one catalogue."""
    actual = TableCatalogue.of([cubes(home)])
    tables: dict[str, QueryableTable] = {**actual.tables, "pay": pay(home)}
    return replace(actual, tables=tables)


class PageTable(HTMLParser):
    """The first table of a page, as rows of texts; all ids, links and headings."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.scopes: list[str | None] = []
        self._in = self._done = self._hidden = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = dict(attrs)
        self._hidden = "vh" in (has.get("class") or "").split()
        if has.get("id"):
            self.ids.append(str(has["id"]))
        if tag == "a" and has.get("href"):
            self.links.append(str(has["href"]))
        if self._done:
            return
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self._in = True
            if tag == "th":
                self.scopes.append(has.get("scope"))

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False
        self._in = self._in and tag not in ("td", "th")
        self._done = self._done or tag == "table"

    def handle_data(self, data: str) -> None:
        if self._in and not self._hidden:
            self.rows[-1][-1] = f"{self.rows[-1][-1]} {data.strip()}".strip()


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """The address of a real server in a thread."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
