"""Synthetic data for tests of LEHD's layout of flows: groups of graduates, and where they may work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.domain import Attribute, Domain
from discreet.publish.lehd.pseof import LehdFlows, lehd_flows
from discreet.publish.lehd.spec import Lehd


def attribute(columns: str, *keys: str, **more: Any) -> Attribute:
    """Columns and keys are written with slashes: `institution/degree_level`, `00100100/05`."""
    names, categories = tuple(columns.split("/")), tuple(tuple(key.split("/")) for key in keys)
    lookup = {category: i for i, category in enumerate(categories)}
    return Attribute("_".join(names), names, names, categories, lookup, **more)


SCHOOL = attribute("institution/degree_level", "00100100/05", "00100200/18", "00100200/05")
FAMILY = attribute("institution/degree_level/cip2", "00100100/05/01", "00100100/05/52", "00100200/18/52")
STATE = attribute("state/degree_level", "44/05", "06/17")
STATE_FAMILY = attribute("state/degree_level/cip2", "44/05/01", "06/17/52")
COHORT = attribute("grad_cohort", "2010", "2013")
YEARS = attribute("years_after", "5", "1", "10")
SECTOR = attribute("industry", "92", "31-33", "11")
DIVISION = attribute("division", "8", "9")
LAYOUT = Lehd()


def level(name: str, groups: Sequence[Attribute], to: Sequence[Attribute] = (), layout: Lehd = LAYOUT) -> LehdFlows:
    return lehd_flows(name, Domain(tuple(groups)), Domain(tuple(to)), layout)
