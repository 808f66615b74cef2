"""The synthetic agency's change of classification: crosswalk, history, overrides, new programmes."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from discreet.synth import Graduates, graduates
from discreet.synth.data_errors import UNDECLARED_FIELDS
from discreet.synth.education.recoding import DELETED, MOVED, MOVED_TO, NEW, UNCHANGED, UNOBSERVED, UNREPORTED_LEVEL
from discreet.synth.education.records import COHORTS


@pytest.fixture(scope="module")
def agency(tmp_path_factory: pytest.TempPathFactory) -> Graduates:
    return graduates(tmp_path_factory.mktemp("agency"), 10_000, data_errors=False)


def rows(path: Path) -> list[tuple[str, ...]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [tuple(row) for row in csv.reader(file)][1:]


def destinations(agency: Graduates, digits: int) -> dict[str, set[str]]:
    """The possible successors of codes of this length; none for deleted ones."""
    actual = defaultdict[str, set[str]](set)
    for old, new, _ in rows(agency.crosswalk):
        if old:
            actual[old[:digits]] |= {new[:digits]} - {""}
    return actual


def test_every_series_has_one_to_four_codes_and_the_agencys_own_among_them(agency: Graduates) -> None:
    old = [code for code, _, _ in rows(agency.crosswalk) if code]
    assert len(old) == len(set(old))
    assert all(re.fullmatch(r"\d\d\.\d{4}", code) for code in old)
    sizes = Counter(code[:5] for code in old)
    assert set(sizes) == {cip4 for _, cip4, _, _ in rows(agency.cip)}
    assert set(sizes.values()) == {1, 2, 3, 4}
    assert {cip6 for cip6, _, _, _ in rows(agency.cip)} <= set(old)
    assert not set(old) & set(UNDECLARED_FIELDS)


def test_crosswalk_is_one_to_one_and_actions_say_what_is_done(agency: Graduates) -> None:
    listed = rows(agency.crosswalk)
    new = [code for _, code, _ in listed if code]
    assert len(new) == len(set(new))
    for old, new6, action in listed:
        expected = NEW if not old else DELETED if not new6 else UNCHANGED if old == new6 else MOVED_TO
        assert action == expected
    actions = Counter(action for *_, action in listed)
    assert actions[DELETED] == 1
    assert actions[NEW] >= 2
    assert actions[UNCHANGED] > 5 * actions[MOVED_TO] > 0


def test_series_split_in_two_and_three_and_across_families(agency: Graduates) -> None:
    splits = {old: new for old, new in destinations(agency, 5).items() if len(new) > 1}
    assert len(splits) >= 3
    assert {2, 3} <= {len(new) for new in splits.values()}
    assert any(len({code[:2] for code in new}) > 1 for new in splits.values())
    assert any(new and new != {old} and len(new) == 1 for old, new in destinations(agency, 5).items())


def test_what_has_nowhere_to_go_is_overridden_in_full(agency: Graduates) -> None:
    lost = {old for old, new in destinations(agency, 5).items() if not new}
    overrides = rows(agency.overrides)
    assert {old for old, _, _ in overrides} == lost != set()
    for old in lost:
        assert sum(float(share) for source, _, share in overrides if source == old) == 1
    known = {new[:5] for _, new, _ in rows(agency.crosswalk)}
    assert {new for _, new, _ in overrides} <= known
    assert all(new for new in destinations(agency, 2).values())  # at two digits nothing is lost


@pytest.mark.parametrize("digits", [5, 2])
def test_new_programmes_are_all_that_the_old_may_become(agency: Graduates, digits: int) -> None:
    """At four digits and at two: no count can go to a programme that isn't listed, and none is listed in vain."""
    may_become = destinations(agency, digits)
    if digits == 5:
        for old, new, _ in rows(agency.overrides):
            may_become[old].add(new)
    expected = {
        (school, level, new, state)
        for school, level, cip6, _, _, state in rows(agency.programmes)
        for new in may_become[cip6[:digits]]
    }
    listed = rows(agency.programmes_new)
    assert {(school, level, cip6[:digits], state) for school, level, cip6, _, _, state in listed} == expected


def test_new_programmes_are_distinct_in_the_order_of_the_old_and_named(agency: Graduates) -> None:
    listed = rows(agency.programmes_new)
    assert len(listed) == len(set(listed))
    assert all((cip4, cip2) == (cip6[:5], cip6[:2]) for _, _, cip6, cip4, cip2, _ in listed)
    schools = [school for school, *_ in listed]
    assert schools == sorted(schools)
    labels = {row[0]: row[1] for row in rows(agency.cipcodes_new)}
    assert {code for row in listed for code in row[3:5]} <= set(labels)
    assert all(labels.values())


def test_records_recoded_at_six_digits_lie_within_the_new_programmes(agency: Graduates) -> None:
    """So the truth that a reallocation estimates can be tabulated in the new list."""
    becomes = {old: new for old, new, _ in rows(agency.crosswalk) if new}
    table = pq.read_table(agency.graduates, columns=["institution", "degree_level", "cipcode"])
    recoded = {
        (row["institution"], row["degree_level"], becomes[row["cipcode"]])
        for row in table.to_pylist()
        if row["cipcode"] in becomes
    }
    assert recoded < {row[:3] for row in rows(agency.programmes_new)}


def test_history_is_about_old_codes_of_listed_programmes(agency: Graduates) -> None:
    offered = {(school, level, cip4) for school, level, _, cip4, _, _ in rows(agency.programmes)}
    history = rows(agency.completions)
    keys = [row[:4] for row in history]
    assert len(keys) == len(set(keys))
    assert {(school, level, code[:5]) for school, level, _, code, _ in history} <= offered
    assert {code for *_, code, _ in history} <= {old for old, _, _ in rows(agency.crosswalk)}
    assert {cohort for _, _, cohort, _, _ in history} == set(COHORTS)
    assert all(int(awards) > 0 for *_, awards in history)


def test_history_has_gaps_of_every_kind(agency: Graduates) -> None:
    history = rows(agency.completions)
    schools = {school for school, *_ in rows(agency.institutions)}
    reporting = {school for school, *_ in history}
    assert schools > reporting
    assert len(schools - reporting) < 0.4 * len(schools)
    levels = {level for _, level, *_ in rows(agency.programmes)}
    assert levels - {level for _, level, *_ in history} == {UNREPORTED_LEVEL}
    assert set(UNOBSERVED) <= set(MOVED)
    assert not {code for *_, code, _ in history} & set(UNOBSERVED)
    cohorts = Counter((school, level, code) for school, level, _, code, _ in history)
    assert min(cohorts.values()) < len(COHORTS) == max(cohorts.values())


def test_history_knows_how_the_records_split(agency: Graduates) -> None:
    """Within a series the agency's own codes have about the shares of the records, at institutions with a history."""
    awards = Counter[str]()
    for *_, code, number in rows(agency.completions):
        awards[code] += int(number)
    table = pq.read_table(agency.graduates, columns=["institution", "cipcode"])
    reporting = pa.array(sorted({school for school, *_ in rows(agency.completions)}))
    records = Counter(table.filter(pc.is_in(table["institution"], reporting))["cipcode"].to_pylist())
    for first, second in [("11.0101", "11.0103"), ("51.3801", "51.3805"), ("52.0301", "52.0302")]:
        public = awards[first] / (awards[first] + awards[second])
        assert abs(public - records[first] / (records[first] + records[second])) < 0.1
