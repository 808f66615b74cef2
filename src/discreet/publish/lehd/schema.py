"""The LEHD public-use layout of PSEO files as data: columns, code lists, aggregation levels, the version line.

Two kinds of file: `pseoe` (earnings of graduates) and `pseof` (where they work). Identifiers come first, then
indicators, then status flags. Source: LEHD Public Use Data Schema, V4.14.0.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal

from discreet.errors import PublishError

VERSION = "V4.14.0"
Kind = Literal["pseoe", "pseof"]
IDENTIFIERS = (
    "agg_level_pseo",
    "inst_level",
    "institution",
    "degree_level",
    "cip_level",
    "cipcode",
    "grad_cohort",
    "grad_cohort_years",
    "geo_level",
    "geography",
    "ind_level",
    "industry",
)
YEARS = ("y1", "y5", "y10")  # after graduation
ALL_COHORTS = "0000"
SMALLEST = 30  # earnings of fewer graduates are not published

# Code lists, with short labels ------------------------------------------------------------------------------------


def _code_lists() -> dict[str, dict[str, str]]:
    """The lists in `codes.csv`: labels by code, in order."""
    lists: dict[str, dict[str, str]] = {}
    with Path(__file__).with_name("codes.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            lists.setdefault(row["list"], {})[row["code"]] = row["label"]
    return lists


CODE_LISTS = _code_lists()
LABELS: Mapping[str, Mapping[str, str]] = {  # of columns
    column: CODE_LISTS[column] for column in ("inst_level", "degree_level", "cip_level", "geo_level", "ind_level")
}
FLAGS, IPEDS_FLAGS = CODE_LISTS["flag"], CODE_LISTS["ipeds_flag"]
DIVISIONS, SECTORS = CODE_LISTS["division"], CODE_LISTS["sector"]  # of the Census Bureau, of NAICS
STATES = (*(f"{n:02}" for n in range(1, 57) if n not in {3, 7, 14, 43, 52}), "72", "78")  # FIPS
RESTRICTED = frozenset({"07", "17"})  # degree levels whose earnings stop at two digits of the CIP

# The form of a code depends on the level in another column. CIP NN.XX is a whole family, consolidated.
FORMS: Mapping[str, tuple[str, Mapping[str, re.Pattern[str]]]] = {
    column: (level, {code: re.compile(form, re.ASCII) for code, form in forms.items()})
    for column, level, forms in (
        ("institution", "inst_level", {"I": r"\d{7}[\dA-Z]", "S": "|".join(STATES), "D": "[1-9]", "N": ".+"}),
        (
            *("cipcode", "cip_level"),
            {"A": "00", "2": r"(?!00)\d\d", "4": r"(?!00)\d\d\.(\d\d|XX)", "6": r"(?!00)\d\d\.\d{4}"},
        ),
        ("geography", "geo_level", {"N": "00", "D": "|".join(DIVISIONS)}),
        ("industry", "ind_level", {"A": "00", "S": "|".join(SECTORS)}),
    )
}
COHORT = re.compile(r"0000|(19|20)\d\d", re.ASCII)


def cohort_years(degree_level: str) -> int:
    """Years in a cohort: three for bachelors, five for all others."""
    return 3 if degree_level == "05" else 5


# Columns ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IndicatorGroup:
    """The indicators that one status flag describes."""

    flag: str
    values: tuple[str, ...]
    measure: Literal["earnings", "grads_earn", "employed", "marginal", "ipeds"]


@dataclass(frozen=True)
class Layout:
    """One kind of file; its groups determine the order of indicators and flags."""

    kind: Kind
    version: str
    groups: tuple[IndicatorGroup, ...]

    @property
    def indicators(self) -> tuple[str, ...]:
        return tuple(value for group in self.groups for value in group.values)

    @property
    def flags(self) -> tuple[str, ...]:
        return tuple(group.flag for group in self.groups)

    @property
    def columns(self) -> tuple[str, ...]:
        return IDENTIFIERS + self.indicators + self.flags

    def __str__(self) -> str:
        return f"{self.kind} {self.version}"


_EARNINGS = tuple(
    group
    for y in YEARS
    for group in (
        IndicatorGroup(f"status_{y}_earnings", tuple(f"{y}_p{p}_earnings" for p in (25, 50, 75)), "earnings"),
        IndicatorGroup(f"status_{y}_grads_earn", (f"{y}_grads_earn",), "grads_earn"),
    )
)
_IPEDS = tuple(f"{y}_ipeds_count" for y in YEARS)
_FLOWS = (
    *(
        IndicatorGroup(f"status_{y}_{what}", (f"{y}_{what}",), "employed")
        for y in YEARS
        for what in ("grads_emp", "grads_emp_instate")
    ),
    *(IndicatorGroup(f"status_{y}_grads_nme", (f"{y}_grads_nme",), "marginal") for y in YEARS),
)

PSEOE = Layout(
    "pseoe", VERSION, (*_EARNINGS, *(IndicatorGroup(f"status_{count}", (count,), "ipeds") for count in _IPEDS))
)
PSEOE_2019 = Layout("pseoe", "of 2019", (*_EARNINGS, IndicatorGroup("status_ipeds_count", _IPEDS, "ipeds")))
PSEOF = Layout("pseof", VERSION, _FLOWS)
LAYOUTS = (PSEOE, PSEOE_2019, PSEOF)

# Aggregation levels -----------------------------------------------------------------------------------------------

_INST = {"S": 0, "I": 12}
_CIP = {"A": 0, "2": 2, "4": 4}
_COHORT = {False: 0, True: 6}
_IND = {"A": 0, "S": 48}
_GEO = {"N": 0, "D": 96}
_INST_WORDS = {"S": "State of Institution", "I": "Institution ID"}


@dataclass(frozen=True)
class AggLevel:
    """An aggregation level. Every level is by degree."""

    inst_level: str
    cip_level: str
    by_cohort: bool
    geo_level: str = "N"
    ind_level: str = "A"

    @property
    def number(self) -> int:
        """agg_level_pseo = 26 + 2·cip + 6·cohort + 12·institution + 48·sector + 96·division."""
        graduates = _CIP[self.cip_level] + _COHORT[self.by_cohort] + _INST[self.inst_level]
        return 26 + graduates + _IND[self.ind_level] + _GEO[self.geo_level]

    @property
    def grad_char(self) -> str:
        """LEHD's label of the graduates' characteristics."""
        cip = [] if self.cip_level == "A" else [f"CIP {self.cip_level}-digit"]
        cohort = ["Start Year for Graduation Cohort"] if self.by_cohort else []
        return " * ".join(["Degree Level", *cip, *cohort, _INST_WORDS[self.inst_level]])

    @property
    def of_all_employers(self) -> bool:
        """Whether rows cover every place and industry; only these have numbers of nonemployed graduates."""
        return (self.geo_level, self.ind_level) == ("N", "A")

    def occurs_in(self, kind: Kind) -> bool:
        """Earnings are not split by employers; flows stop at two digits of the CIP."""
        return self.of_all_employers if kind == "pseoe" else self.cip_level != "4"


AGG_LEVELS: Mapping[int, AggLevel] = {
    level.number: level
    for level in sorted((AggLevel(*p) for p in product(_INST, _CIP, _COHORT, _GEO, _IND)), key=lambda a: a.number)
}


# The version file -------------------------------------------------------------------------------------------------


def version_line(product: str, geo: str, geonum: str, start: int, end: int, release: str, internal: str) -> str:
    """One line of version_pseo.txt; the years are the first years of the first and the last cohort.

    >>> version_line("pseoe", "CO", "08", 2001, 2015, "R2026Q4", "discreet_1")
    'PSEOE CO 08 2001-2015 V4.14.0 R2026Q4 discreet_1'
    """
    line = f"{product.upper()} {geo} {geonum} {start}-{end} {VERSION} {release} {internal}"
    form = rf"PSEO[EF] [A-Z]{{2}} \d\d \d{{4}}-\d{{4}} {re.escape(VERSION)} R\d{{4}}Q[1-4] \S+"
    if not re.fullmatch(form, line, re.ASCII) or start > end:
        raise PublishError(
            f"{line!r} is not a version line", do="write it like PSEOE CO 08 2001-2015 V4.14.0 R2026Q4 name"
        )
    return line
