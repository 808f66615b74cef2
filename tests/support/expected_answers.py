"""A table that is looked up rather than added up: small employers, with a label for each code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from fastapi import FastAPI

from discreet.serve.app import create_app
from discreet.serve.catalogue import TableCatalogue
from discreet.serve.config import Config, ServerContext
from discreet.serve.query_model import Measure, TableSummary, TableVariable
from discreet.serve.stored_table import StoredTable
from support.web_client import ROOMY

NOTES = ("Noise: a lot. Firms of one county each. Others are left out.",)
ABOUT = TableSummary("firms", "Firms", "survey1", "employers", "Nobody is seen.", (), "", NOTES, "2020-02-29", True)
COUNTIES = TableVariable("county", "County", ("01", "02", "03"), ("Ashland", "Bayfield", "Clark"))
SIZES = TableVariable("strength", "Strength", ("light", "heavy"), ("Light work", "Heavy work"))
ROWS = pa.table(
    {
        "county": ["01", "01", "02", "03"],
        "strength": ["light", "heavy", "light", "heavy"],
        "payroll": [100.0, 20.0, 30.0, 4.0],
        "payroll_se": [1.0, 2.0, 3.0, 4.0],
    }
)
MEASURES = (Measure("payroll", "Wages paid"), Measure("payroll_se", "Standard error", 1, "payroll"))


def with_stored(folder: Path, config: Config = ROOMY) -> FastAPI:
    """The release of a folder, and the table."""
    actual = TableCatalogue.of([folder])
    more = {**actual.tables, "firms": StoredTable(ABOUT, ROWS, (COUNTIES, SIZES), MEASURES)}
    return create_app(ServerContext(replace(actual, tables=more), config))
