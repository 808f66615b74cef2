"""Releases that use every option of every method, of one agency: for tests of engines and of published bytes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from copy import deepcopy
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support.agency import graduates
from support.engines import Bureau
from support.workplaces import STRONG, WEAK, WHOLE, Register, workers

CASES: dict[str, dict[str, Any]] = {
    "dense": {"method": "counts", "by": ["state", "degree"], "epsilon": "1.5"},
    "sparse": {"method": "counts", "by": ["code", "state"], "epsilon": "2", "form": "sparse"},
    "total": {"method": "counts", "by": [], "epsilon": "1/3"},
    "rounded": {"method": "counts", "by": ["sector", "degree"], "epsilon": "1", "round_to": 5, "nonnegative": True},
    "groups": {"method": "counts", "by": ["pairs"], "epsilon": "1"},
    "earnings": {
        "method": "earnings",
        "by": ["state", "degree"],
        "value": "pay",
        "sample": [{"column": "pay", "at_least": 5000}, {"column": "industry", "equals": ["11", "12", "99"]}],
        "epsilon": "2",
        "suppress_below": 3,
        "levels": [{"name": "pay_by_state", "by": ["state"]}, {"name": "pay", "by": [], "epsilon": "1/2"}],
    },
    "shrunk": {
        "method": "earnings",
        "by": ["state", "degree"],
        "value": "pay",
        "epsilon": "3",
        "suppress_below": 5,
        "estimator": "shrunk",
        "borrow_from": [["degree"]],
    },
    "decimals": {  # the last borders do not fit into the column
        "method": "earnings",
        "by": ["degree"],
        "value": "exact_pay",
        "sample": [{"column": "exact_pay", "at_most": 10**9}, {"column": "small", "at_least": -1}],
        "epsilon": "1",
        "suppress_below": 1,
        "bins": {"edges": [-50, 0, 100, 5000, 10**7, 10**8, 10**9]},
    },
    "wages": {  # written as text
        "method": "earnings",
        "by": ["pairs", "sector"],
        "value": "wage",
        "epsilon": "1",
        "bins": {"edges": [-5, 0, 10, 1000]},
        "percentiles": ["12.5", "50"],
        "suppress_below": 1,
    },
    "flows": {
        "method": "flows",
        "by": ["state", "degree"],
        "industry": "trade",
        "state": "place",
        "home_state": "state",
        "epsilon": "2",
        "marginal": {"industry": "99", "state": "0", "missing": True},
        "correction": {
            "job_flows": {"file": "moves.csv"},
            "employment": {"file": "jobs.csv"},
            "industry_flows": ["state"],
            "marginal_weight": "1/3",
        },
        "levels": [
            {"name": "flows_by_area", "by": ["state"], "to": ["area", "trade"]},
            {"name": "flows_by_state", "by": ["state"]},
            {"name": "flows_by_degree", "by": ["degree"], "to": ["area"]},
        ],
        "suppress": {
            "division": "area",
            "missing": "gaps.csv",
            "periods": ["degree"],
            "by": ["state"],
            "threshold": "0.3",
        },
    },
    "moves": {
        "method": "flows",
        "by": ["pairs"],
        "industry": "trade",
        "state": "place",
        "epsilon": "1",
        "marginal": {"undeclared": True},
        "formats": ["parquet"],
        "levels": [{"name": "moves_by_trade", "by": [], "to": ["trade"]}],
    },
}
JOBS: dict[str, dict[str, Any]] = {  # of establishments, by privacy unit
    "strong": {
        "places": {"by": ["place", "sector"]},
        "queries": {"by": ["place"], "only": {"sex": "2"}, "largest_establishment": {"epsilon": "1"}},
        "workforce": {
            "by": ["sector", "place"],
            "worker_attributes": ["education", "sex"],
            "epsilon": "5",
            "nonnegative": True,
        },
        "gamma": {"by": [], "worker_attributes": ["sex"], "mechanism": {"name": "smooth-gamma", "gamma": "7/2"}},
        "logs": {"by": ["sector"], "mechanism": "log-laplace"},
    },
    "weak": {
        "workforce": {"by": ["place"], "worker_attributes": ["sex"], "largest_establishment": {"epsilon": "3"}},
        "laplace": {"by": [], "worker_attributes": ["sex"], "mechanism": {"name": "smooth-laplace", "delta": "0.01"}},
        "logs": {"by": [], "worker_attributes": ["education"], "mechanism": {"name": "log-laplace", "unbiased": False}},
    },
    "whole": {"small": {"by": ["place"], "worker_attributes": ["sex"], "mechanism": "truncated"}},
}
PAID = {"epsilon": "2", "delta": "0.01"}
PAY = {"low": "-100", "high": "50000"}
EXACT = {"column": "exact_pay", "low": "0", "high": "5000", "outside": "drop"}
ESTIMATES: dict[str, dict[str, Any]] = {  # of small cells: floats must be summed in one order
    "predicted": {
        "by": ["state", "degree"],
        "statistic": {"name": "prediction", "x": "small", "y": "pay", "at": "12.5"},
        "variables": {"small": {"low": "0", "high": "200"}, "pay": PAY},
        "groups": ["degree"],
        "suppress_below": {"count": 3},
    },
    "winsorised": {
        "by": ["sector"],
        "statistic": {"name": "slope", "x": "pay", "y": "exact", "winsorise": "0.1"},
        "variables": {"pay": {**PAY}, "exact": {**EXACT}},
        "noise": "normal",
        "formats": ["parquet", "csv", "dta"],
    },
    "wages_mean": {
        "by": ["pairs"],
        "statistic": {"name": "mean", "of": "wage"},
        "variables": {"wage": {"low": "-5", "high": "9.5"}},
        "cell_size": "true",
        "delta": None,
        "search": "corners",
    },
    "in_trade": {
        "by": ["degree"],
        "statistic": {"name": "share", "of": "trading"},
        "variables": {"trading": {"column": "industry", "equals": ["11", "99"]}},
        "only": {"degree": ["02", "other"]},
    },
    "apart": {
        "by": [],
        "statistic": {"name": "difference", "of": "pay", "arm": "trading"},
        "variables": {"trading": {"column": "industry", "equals": ["11", "99"]}, "pay": PAY},
        "decay": "1/2",
    },
    "median": {
        "by": ["state"],
        "statistic": {"name": "quantile", "of": "rank", "p": "1/2"},
        "variables": {"rank": {"column": "pay", "ranks": "thresholds.csv"}},
        "cell_size": {"public": "sizes.csv", "column": "people", "provenance": "made up"},
        "delta": None,
    },
    "several": {
        "by": ["state"],
        "statistic": {"name": "coefficient", "y": "pay", "on": ["small", "exact"], "of": "exact"},
        "variables": {"pay": PAY, "small": {"low": "0", "high": "200"}, "exact": EXACT},
        "search": {"grid": 3},
    },
    "spread": {
        "by": ["state"],
        "statistic": {"name": "function", "file": "spread.py", "function": "spread", "of": ["pay"], "scale": "100"},
        "variables": {"pay": PAY},
        "search": "corners",
        "grid": "0.1",
    },
}
WEIGHTED = {"column": "pay", "max": "20000", "grid": "0.5", "epsilon": "3"}
AVERAGED = {"column": "pay", "max": "20000", "grid": "0.5", "noise": {"average": {"strata": ["sector"]}}}
REPLICATED = {"columns": ["small", "exact_pay", "wage"], "epsilon": "5", "bound": "300"}
SPREAD = [{"name": "s", "by": ["sector"], "epsilon": "1"}, {"name": "d", "by": ["degree", "state"], "epsilon": "2"}]
CUBES: dict[str, dict[str, Any]] = {  # of counts and weights; calibrated by the driver, from what workers measured
    "counted": {"by": ["state", "degree"], "epsilon": "1.5", "cap": 4, "formats": ["parquet", "csv"]},
    "weighted": {
        "by": ["state", "degree", "industry"],
        "epsilon": "2",
        "weights": WEIGHTED,
        "controls": [*SPREAD, {"name": "e", "by": ["state"], "exact": True}],
        "replicates": {**REPLICATED, "tables": [["sector"], ["degree"]]},
    },
    "deviated": {"by": ["pairs", "sector"], "weights": {**WEIGHTED, "above": "drop"}, "replicates": REPLICATED},
    "squared": {
        "by": ["degree", "sector"],
        "weights": {**WEIGHTED, "column": "wage", "max": "10"},
        "squared_weights": {"epsilon": "1", "tables": [["degree"]], "design_effect": "1.5"},
    },
    "raked": {
        "by": ["state", "degree", "industry"],
        "epsilon": "1",
        "controls": SPREAD,
        "calibration": {"by": "rake", "runs": 3},
        "integers": True,
    },
    "scattered": {"by": ["code", "state"], "epsilon": "2", "form": "sparse", "controls": [{**SPREAD[1], "by": []}]},
    "averaged": {
        "by": ["degree", "industry"],
        "epsilon": "1",
        "cap": 6,
        "weights": AVERAGED,
        "controls": [{"name": "d", "by": ["degree"], "epsilon": "1", "cap": 9}],
    },
}
UNITS: dict[str, Any] = {"record": "record", "person": {"person": "person_id", "max_records": 2}}
DOMAINS: dict[str, Any] = {
    "state": {"values": ["01", "02", "03", "04", "05"]},
    "degree": {"values": ["1", "2", "3"], "width": 2, "undeclared": "other"},
    "code": {"values": [str(i) for i in range(200)]},
    "industry": {"hierarchy": "industry.csv", "levels": ["industry", "sector"], "undeclared": "other"},
    "pairs": {"groups": "pairs.csv", "columns": ["state", "degree"], "width": {"degree": 2}, "provenance": "made up"},
    "trade": {"values": ["11", "12", "21", "31"], "column": "industry"},
    "where": {"hierarchy": "places.csv", "levels": ["place", "area"], "width": 2},
}
PLACES = ("01", "02", "03", "07")


def agency_bureau(folder: Path) -> Bureau:
    """A bureau with the public files that these releases name, and its records."""
    actual = Bureau(folder)
    (folder / "industry.csv").write_text("industry,sector\n11,A\n12,A\n21,B\n31,C\n")
    (folder / "pairs.csv").write_text("state,degree\n01,01\n02,03\n03,02\n")
    (folder / "places.csv").write_text("place,area\n01,N\n02,N\n03,S\n07,S\n")
    controls = {"moves": ("state", "from_state,to_state,hires"), "jobs": ("trade", "industry,state,employment")}
    for name, (domain, header) in controls.items():
        pairs = enumerate(itertools.product(DOMAINS[domain]["values"], PLACES))
        lines = [f"{code},{place},{i * 13 % 7}" for i, (code, place) in pairs]
        (folder / f"{name}.csv").write_text("\n".join([header, *lines]) + "\n")
    (folder / "gaps.csv").write_text("degree,place\n02,03\nother,01\n")
    (folder / "thresholds.csv").write_text("threshold\n-1\n5000\n9999\n17403\n200000\n")
    (folder / "sizes.csv").write_text("state,people\n01,90\n02,80\n03,7\n05,0\n")
    (folder / "spread.py").write_text("def spread(columns):\n    return columns[0].max() - columns[0].min()\n")
    return actual


def records() -> pa.Table:
    """The agency's records, with numbers for codes."""
    table = graduates(120)
    rows = np.arange(table.num_rows)
    table = table.append_column("code", pa.array(rows * 37 % 211, pa.int32()))
    industries = pa.array(np.array([11.0, 12.0, 21.0, 99.0, np.nan])[rows % 5], from_pandas=False)
    table = table.append_column("industry", industries)
    places = [1, 2, 0, 3, 7, 2, None, 0, 55]  # 0 is nowhere, 55 is not declared
    table = table.append_column("place", pa.array([places[row // 5 % len(places)] for row in rows], pa.int16()))
    pay = [10000.0, 17402.99, 17403.0, 9999.0, -1.0, math.inf, -math.inf, math.nan, 262475.0, 5000.0, 1e300, 45678.9]
    table = table.append_column("pay", pa.array(np.array(pay)[rows % len(pay)], from_pandas=False))
    exact = [Decimal("0.00"), Decimal("99.99"), Decimal("100.00"), Decimal("4999.99"), Decimal("-0.01"), None]
    exact += [Decimal("999999.99"), Decimal("5000.00"), Decimal("-999999.99")]
    column = pa.array([exact[row % len(exact)] for row in rows], pa.decimal128(8, 2))
    table = table.append_column("exact_pay", column)
    table = table.append_column("small", pa.array(rows % 200, pa.uint16()))
    wages = [
        "5",
        "-5",
        "10",
        "9.99999999999999999999",
        "1e1",
        "1_0",
        " 7",
        "",
        None,
        "0x9",
        "+10.0",
        "NaN",
        "10 ",
        "٣",
        "10\n",
        "5\u0085",
    ]
    return table.append_column("wage", pa.array([wages[row % len(wages)] for row in rows]))


def spec(unit: str, source: Path) -> dict[str, Any]:
    domains = {**DOMAINS, "degree": {**DOMAINS["degree"], "values": ["01", "02", "03"]}}
    tables = [{"name": name, **case} for name, case in CASES.items()]
    return {"source": {"records": str(source)}, "unit": UNITS[unit], "domains": domains, "tables": tables}


def with_zeros(table: pa.Table) -> pa.Table:
    """With negative zeros among the small numbers."""
    zeros = pa.array(np.array([-0.0, 0.0, 3.5, 200.0, 17.25])[np.arange(table.num_rows) % 5])
    return table.set_column(table.column_names.index("small"), "small", zeros)


def estimates(unit: str, source: Path, names: Iterable[str] = ESTIMATES) -> dict[str, Any]:
    """A release of estimates of small cells."""
    tables = [{"name": name, "method": "sensitivity", **PAID, **deepcopy(ESTIMATES[name])} for name in names]
    return {
        **spec("record", source),
        "unit": "record" if unit == "record" else {"person": "person_id", "max_records": 1},
        "tables": [{key: value for key, value in table.items() if value is not None} for table in tables],
    }


def cubes(unit: str, source: Path) -> dict[str, Any]:
    """A release of cubes."""
    return {
        **spec("record", source),
        "unit": "record" if unit == "record" else {"establishment": "person_id", "whole": True, "max_records": 2},
        "tables": [{"name": name, "method": "hypercube", **deepcopy(case)} for name, case in CUBES.items()],
    }


def register_with_doubles(folder: Path) -> Register:
    """A register in which two workers are listed twice."""
    register = Register(folder)
    again = pa.table({"worker": [6, 40], "sex": ["1", None], "education": ["1", "1"]})
    register.write(workers=pa.concat_tables([workers(425), again]))
    return register


def jobs_by_unit(register: Register, *, one_file: bool) -> Mapping[str, dict[str, Any]]:
    """A release of jobs for every unit that establishments have."""
    actual = {}
    for name, unit in (("strong", STRONG), ("weak", WEAK), ("whole", WHOLE)):
        tables = [{"name": table, "method": "employer", "epsilon": "3", **case} for table, case in JOBS[name].items()]
        actual[name] = {**register.spec(unit, one_file=one_file), "tables": tables}
    return actual


ONE_OF_EACH: dict[str, dict[str, Any]] = {
    "counts": CASES["sparse"],
    "earnings": {**CASES["earnings"], "levels": CASES["earnings"]["levels"][:1]},
    "flows": CASES["moves"],
    "employer": JOBS["weak"]["workforce"],
    "sensitivity": {**PAID, **ESTIMATES["predicted"]},
    "hypercube": CUBES["raked"],
}


def one_of_each(folder: Path, method: str) -> tuple[Bureau, dict[str, Any]]:
    """A release with one table of a method, and who releases it."""
    table = {"name": method, "method": method, "epsilon": "3", **deepcopy(ONE_OF_EACH[method])}
    if method == "employer":
        register = register_with_doubles(folder / "register")
        return register, {**register.spec(WEAK, one_file=False), "tables": [table]}
    bureau = agency_bureau(folder / "one")
    return bureau, {**spec("record", write_records(bureau, records())), "tables": [table]}


def write_records(bureau: Bureau, table: pa.Table) -> Path:
    path = bureau.folder / "records.parquet"
    pq.write_table(table, path)
    return path
