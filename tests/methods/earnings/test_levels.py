"""Levels: measured ones, sources of derived ones, and the number of draws in each bin."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.domain import Attribute, Domain
from discreet.domain.codelists import from_hierarchy
from discreet.errors import DomainError
from discreet.methods.earnings.levels import AnyLevel, DerivedLevel, MeasuredLevel, best_sum, resolve
from discreet.methods.earnings.spec import Earnings
from discreet.noise.samplers.discrete import DiscreteLaplace

GEOGRAPHY = "block,tract,county\n1a,1,X\n1b,1,X\n1c,1,X\n2a,2,X\n3a,3,Y\n3b,3,Y\n"


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Attribute]:
    """Six blocks in three tracts in two counties; two years."""
    path = tmp_path / "geo.csv"
    path.write_text(GEOGRAPHY)
    actual = from_hierarchy(path, ["block", "tract", "county"], "block", None, "", "geo")
    return {a.name: a for a in (*actual, Attribute.flat("year", ["1", "5"], None, "year", None, ""))}


def resolved(places: dict[str, Attribute], *more: dict[str, Any], records: int = 1, **base: Any) -> list[AnyLevel]:
    """Blocks by year, with these levels besides."""
    declared = {"name": "blocks", "by": ["block", "year"], "value": "v", "epsilon": "1", "levels": list(more), **base}
    spec = Earnings.model_validate(declared)
    domains = {spec.name: Domain(tuple(places[name] for name in spec.by))}
    domains |= {level.name: Domain(tuple(places[name] for name in level.by)) for level in spec.levels}
    return resolve(spec, domains, records)


def level(name: str, *by: str, **said: Any) -> dict[str, Any]:
    return {"name": name, "by": list(by), **said}


def test_the_table_itself_is_measured_and_comes_first(places: dict[str, Attribute]) -> None:
    actual = resolved(places, level("tracts", "tract"), level("years", "year", epsilon="2"))
    assert [one.name for one in actual] == ["blocks", "tracts", "years"]
    assert [type(one) for one in actual] == [MeasuredLevel, DerivedLevel, MeasuredLevel]
    assert actual[0].summands.tolist() == [1] * 12
    assert actual[2].distribution.rate == 2


def test_the_rate_is_epsilon_over_max_records(places: dict[str, Attribute]) -> None:
    actual = resolved(places, level("years", "year", epsilon="2"), level("tracts", "tract"), records=5)
    assert [one.distribution for one in actual] == [DiscreteLaplace(Fraction(n, 5)) for n in (1, 2, 1)]


def test_summands_are_the_cells_that_are_added(places: dict[str, Attribute]) -> None:
    actual = resolved(places, level("tracts", "tract"), level("both", "year", "county"), level("all"))
    assert {one.name: one.summands.tolist() for one in actual[1:]} == {
        "tracts": [6, 2, 4],  # three blocks times two years, …
        "both": [4, 2, 4, 2],
        "all": [12],
    }


@pytest.mark.parametrize(
    ("epsilon", "source"),
    [
        ("1", "tracts"),  # as much noise in a cell, and fewer cells: 3 instead of 6 to a county
        ("4/5", "tracts"),  # 3 times a variance of 2.96 is still below 6 times 1.84
        ("1/2", "blocks"),  # 3 times 7.8 is above it
        ("9", "tracts"),
    ],
)
def test_the_source_with_the_least_noise_is_taken(places: dict[str, Attribute], epsilon: str, source: str) -> None:
    tracts, counties = level("tracts", "tract", "year", epsilon=epsilon), level("counties", "county")
    for order in ((tracts, counties), (counties, tracts)):  # whichever is declared first
        actual = {one.name: one for one in resolved(places, *order)}
        taken = actual["counties"]
        assert isinstance(taken, DerivedLevel)
        assert taken.source.name == source
        sums = {name: best_sum(taken.shape, [one]) for name, one in actual.items() if isinstance(one, MeasuredLevel)}
        noise = {name: float(np.mean(one.summands)) * one.distribution.variance() for name, one in sums.items() if one}
        assert noise[source] == min(noise.values())
        assert taken.distribution == actual[source].distribution


def test_sum_of_is_obeyed(places: dict[str, Attribute]) -> None:
    tracts = level("tracts", "tract", "year", epsilon="9")
    for source, summands in (("blocks", [8, 4]), ("tracts", [4, 2])):
        taken = resolved(places, tracts, level("counties", "county", sum_of=source))[2]
        assert isinstance(taken, DerivedLevel)
        assert taken.source.name == source
        assert taken.summands.tolist() == summands


def test_a_sum_goes_to_measured_levels_alone(places: dict[str, Attribute]) -> None:
    """A derived level is no source: counties add up blocks, not the tracts that add up blocks."""
    actual = resolved(places, level("tracts", "tract", "year"), level("counties", "county"))
    assert [one.source.name for one in actual[1:] if isinstance(one, DerivedLevel)] == ["blocks", "blocks"]


def test_a_level_may_add_up_a_measured_one_that_is_not_the_table(places: dict[str, Attribute]) -> None:
    """The table has no year, so only the other measured level can be added up."""
    base = {"by": ["block"]}
    actual = resolved(places, level("x", "tract", "year", epsilon="1"), level("y", "county", "year"), **base)
    assert isinstance(actual[2], DerivedLevel)
    assert actual[2].source.name == "x"
    with pytest.raises(DomainError, match="not consist of whole cells of 'blocks'"):
        resolved(places, level("y", "county", "year", sum_of="blocks"), **base)


def test_withheld_codes_stay_with_their_level(places: dict[str, Attribute]) -> None:
    actual = resolved(places, level("tracts", "tract", suppress_codes={"tract": ["1"]}), suppress_codes={"year": ["5"]})
    assert [one.shape.suppress_codes for one in actual] == [{"year": ["5"]}, {"tract": ["1"]}]


def test_nothing_to_add_up(places: dict[str, Attribute]) -> None:
    assert best_sum(resolved(places)[0].shape, []) is None


def test_cells_that_nothing_adds_up_to_are_no_sum(places: dict[str, Attribute], tmp_path: Path) -> None:
    """Two lists that read the same column: most of their cells cannot occur, and have no noise to speak of."""
    path = tmp_path / "side.csv"
    path.write_text("block,side\n1a,west\n1b,west\n1c,west\n2a,west\n3a,east\n3b,east\n")
    side = from_hierarchy(path, ["block", "side"], "block", None, "", "sides")[1]
    with pytest.raises(DomainError, match="does not consist of whole cells of 'blocks'"):
        resolved({**places, "side": side}, level("odd", "county", "side"))
    (_, alone) = resolved({**places, "side": side}, level("sides", "side"))
    assert alone.summands.tolist() == [8, 4]
