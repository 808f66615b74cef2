"""Flows in LEHD's layout: every number is in its row, suppressed ones are absent, and check-layout accepts the file."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from discreet.domain import Attribute
from discreet.errors import DiscreetError, DomainError, PublishError, SpecError
from discreet.privacy.guarantee import Guarantee, Record
from discreet.privacy.protected import Protected
from discreet.publish.lehd import pseof
from discreet.publish.lehd.check import check_layout
from discreet.publish.lehd.pseof import FlowNumbers, LehdFlows, Pseof
from discreet.publish.lehd.schema import AGG_LEVELS, IDENTIFIERS, PSEOF, SECTORS
from discreet.publish.lehd.spec import Lehd
from discreet.publish.storage import LocalFolder
from support.flow_levels import (
    COHORT,
    DIVISION,
    FAMILY,
    LAYOUT,
    SCHOOL,
    SECTOR,
    STATE,
    STATE_FAMILY,
    YEARS,
    attribute,
    level,
)

Row = dict[str, str]
COSTS = Guarantee(unit=Record(), epsilon=Fraction(1))


def everything() -> tuple[LehdFlows, ...]:
    """Every aggregation level that flows have, the years before, between and after the other attributes."""
    actual: list[LehdFlows] = []
    for group, cohort, to in itertools.product(
        (SCHOOL, FAMILY, STATE, STATE_FAMILY), ((), (COHORT,)), ((), (SECTOR,), (DIVISION,), (DIVISION, SECTOR))
    ):
        groups = [group, *cohort]
        groups.insert(len(actual) % (2 + len(cohort)), YEARS)
        actual.append(level(f"level{len(actual)}", groups, to))
    return tuple(actual)


def drawn(of: LehdFlows, seed: int = 1) -> FlowNumbers:
    """Distinct numbers, a fifth of them suppressed."""
    random, groups, pairs = np.random.default_rng(seed), of.groups.domain.cells, of.destinations.cells
    employed = 1000 + random.permutation(groups * pairs).reshape(groups, pairs)
    in_state = random.integers(0, employed + 1)
    status = np.where(random.random((groups, pairs)) < 0.2, 5, 1)
    return FlowNumbers(employed, in_state, random.permutation(groups) + 10**6, status)


def protected(numbers: FlowNumbers, simulated: bool = False) -> Protected[FlowNumbers]:
    return Protected(numbers, COSTS, simulated)


def written(folder: Path, made: Pseof, numbers: dict[str, FlowNumbers], simulated: bool = False) -> dict[str, str]:
    for name in ("out", "parts"):
        (folder / name).mkdir(parents=True)
    flows = {name: protected(one, simulated) for name, one in numbers.items()}
    return made.write(LocalFolder(folder / "out", folder / "parts"), flows)


def rows_of(path: Path) -> list[Row]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


def by_hand(of: LehdFlows, numbers: FlowNumbers) -> list[Row]:
    """The rows of a level, one number at a time."""
    groups, to = of.groups.domain, of.destinations
    kinds = {"institution": "institution", "state": "institution", "cip2": "cipcode"}
    kinds |= {"division": "geography", "industry": "industry"}
    actual: dict[tuple[str, ...], Row] = {}
    for g, d in itertools.product(range(groups.cells), range(to.cells)):
        codes: Row = {}
        for domain, cell in ((groups, g), (to, d)):
            for one, code in zip(domain.attributes, domain.codes(cell), strict=True):
                codes |= dict(zip(one.columns, one.published[code], strict=True))
        row = dict.fromkeys(PSEOF.columns, "") | dict.fromkeys(PSEOF.flags, "-1")
        row |= {"cipcode": "00", "grad_cohort": "0000", "geography": "00", "industry": "00"}
        row |= {kinds.get(column, column): code for column, code in codes.items() if column != "years_after"}
        row |= {"inst_level": "I" if "institution" in codes else "S", "cip_level": "2" if "cip2" in codes else "A"}
        row |= {"geo_level": "D" if "division" in codes else "N", "ind_level": "S" if "industry" in codes else "A"}
        row["grad_cohort_years"] = "3" if codes["degree_level"] == "05" else "5"
        number = 26 + 2 * (row["cip_level"] == "2") + 6 * ("grad_cohort" in codes) + 12 * (row["inst_level"] == "I")
        row["agg_level_pseo"] = str(number + 48 * ("industry" in codes) + 96 * ("division" in codes))
        year, status = f"y{codes['years_after']}_grads", int(numbers.status[g, d])
        shown = {"emp": int(numbers.employed[g, d]), "emp_instate": int(numbers.in_state[g, d])}
        shown |= {"nme": int(numbers.marginal[g])} if not to.attributes else {}
        key = tuple(row[name] for name in IDENTIFIERS)
        kept = actual.setdefault(key, row)
        kept |= {f"status_{year}_{what}": str(status) for what in shown}
        kept |= {f"{year}_{what}": str(value) if status == 1 else "" for what, value in shown.items()}
    return list(actual.values())


def identified(rows: Sequence[Row]) -> dict[tuple[str, ...], Row]:
    return {tuple(row[name] for name in IDENTIFIERS): row for row in rows}


# --- what is written ------------------------------------------------------------------------------------------------


def test_every_number_is_in_its_row_and_the_file_passes(tmp_path: Path) -> None:
    made = Pseof(LAYOUT, everything(), {})
    numbers = {one.name: drawn(one, seed) for seed, one in enumerate(made.levels)}
    files = written(tmp_path, made, numbers)
    assert set(files) == {"pseof_all.parquet", "pseof_all.csv"} == set(made.files(False))
    rows = rows_of(tmp_path / "out" / "pseof_all.csv")
    expected = [row for one in made.levels for row in by_hand(one, numbers[one.name])]
    assert identified(rows) == identified(expected)
    assert len(rows) == len(expected) == sum(one.rows for one in made.levels)
    numbered = [int(row["agg_level_pseo"]) for row in rows]
    assert numbered == sorted(numbered)
    assert set(numbered) == {n for n, agg in AGG_LEVELS.items() if agg.occurs_in("pseof")}
    assert {row["status_y1_grads_emp"] for row in rows} == {"1", "5"}
    for name in files:
        checked = check_layout(tmp_path / "out" / name)
        assert (checked.violations, checked.layout, checked.rows) == ((), PSEOF, len(rows))


def test_parquet_has_the_same_numbers(tmp_path: Path) -> None:
    one = level("sectors", [SCHOOL, COHORT, YEARS], [SECTOR])
    written(tmp_path, Pseof(LAYOUT, (one,), {}), {"sectors": drawn(one)})
    table = pq.read_table(tmp_path / "out" / "pseof_all.parquet")
    assert table.column_names == list(PSEOF.columns)
    texts = [{c: "" if v is None else str(v) for c, v in row.items()} for row in table.to_pylist()]
    assert texts == rows_of(tmp_path / "out" / "pseof_all.csv")


def test_rows_go_by_group_then_by_destination(tmp_path: Path) -> None:
    one = level("both", [YEARS, COHORT, SCHOOL], [SECTOR, DIVISION])
    written(tmp_path, Pseof(LAYOUT, (one,), {}), {"both": drawn(one)})
    rows = rows_of(tmp_path / "out" / "pseof_all.csv")
    actual = [(r["grad_cohort"], r["institution"], r["degree_level"], r["industry"], r["geography"]) for r in rows]
    assert actual == [
        (cohort, *school, sector, division)
        for cohort, school, sector, division in itertools.product(
            ("2010", "2013"), SCHOOL.categories, ("92", "31-33", "11"), ("8", "9")
        )
    ]


def test_nonemployment_is_only_in_rows_of_all_employers(tmp_path: Path) -> None:
    made = Pseof(LAYOUT, everything(), {})
    written(tmp_path, made, {one.name: drawn(one) for one in made.levels})
    for row in rows_of(tmp_path / "out" / "pseof_all.csv"):
        flags = {row[f"status_y{y}_grads_nme"] for y in ("1", "5", "10")}
        if (row["geo_level"], row["ind_level"]) == ("N", "A"):
            assert flags <= {"1", "5"}
            assert all(row[f"status_y{y}_grads_nme"] == row[f"status_y{y}_grads_emp"] for y in ("1", "5", "10"))
        else:
            assert flags == {"-1"}
            assert {row[f"y{y}_grads_nme"] for y in ("1", "5", "10")} == {""}


@pytest.mark.parametrize("to", [(), (SECTOR,), (DIVISION, SECTOR)], ids=["all", "sectors", "both"])
def test_suppressed_numbers_are_absent(tmp_path: Path, to: tuple[Attribute, ...]) -> None:
    one = level("x", [SCHOOL, COHORT, YEARS], to)
    numbers = drawn(one)
    suppressed = replace(numbers, status=np.full_like(numbers.status, 5))
    written(tmp_path / "a", Pseof(LAYOUT, (one,), {}), {"x": suppressed})
    for row in rows_of(tmp_path / "a" / "out" / "pseof_all.csv"):
        assert {row[c] for c in PSEOF.indicators} == {""}
        assert {row[c] for c in PSEOF.flags if c.endswith(("emp", "instate"))} == {"5"}
    other = FlowNumbers(suppressed.employed * 3, suppressed.in_state // 2, suppressed.marginal + 1, suppressed.status)
    written(tmp_path / "b", Pseof(LAYOUT, (one,), {}), {"x": other})
    for name in ("pseof_all.csv", "pseof_all.parquet"):  # not one byte depends on it
        assert (tmp_path / "a" / "out" / name).read_bytes() == (tmp_path / "b" / "out" / name).read_bytes()


@pytest.mark.parametrize("year", ["1", "5", "10"])
def test_years_that_are_not_declared_are_not_available(tmp_path: Path, year: str) -> None:
    one = level("x", [attribute("years_after", year), SCHOOL, COHORT])
    numbers = replace(drawn(one), status=np.ones((one.groups.domain.cells, 1), np.int64))
    written(tmp_path, Pseof(LAYOUT, (one,), {}), {"x": numbers})
    path = tmp_path / "out" / "pseof_all.csv"
    for row in rows_of(path):
        for other in {"1", "5", "10"} - {year}:
            assert {row[c] for c in PSEOF.flags if c.startswith(f"status_y{other}_")} == {"-1"}
            assert {row[c] for c in PSEOF.indicators if c.startswith(f"y{other}_")} == {""}
        assert {row[c] for c in PSEOF.flags if c.startswith(f"status_y{year}_")} == {"1"}
    assert check_layout(path).violations == ()


def test_batches_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = level("x", [SCHOOL, YEARS, COHORT], [DIVISION, SECTOR])
    assert one.rows == 36
    for size in (1, 5, 35, 36, 1 << 16):
        monkeypatch.setattr(pseof, "BATCH", size)
        assert [batch.num_rows for batch in one.batches(drawn(one))] == [
            min(size, 36 - first) for first in range(0, 36, size)
        ]
        written(tmp_path / str(size), Pseof(LAYOUT, (one,), {}), {"x": drawn(one)})
    texts = {path.read_bytes() for path in tmp_path.glob("*/out/pseof_all.csv")}
    assert len(texts) == 1


def test_file_names_have_simulation_and_area(tmp_path: Path) -> None:
    layout = Lehd(area="co", area_code="08")
    one = level("x", [SCHOOL, YEARS, COHORT], layout=layout)
    made = Pseof(layout, (one,), {})
    files = written(tmp_path, made, {"x": drawn(one)}, simulated=True)
    assert list(files) == ["pseof_co.simulation.parquet", "pseof_co.simulation.csv"] == list(made.files(True))
    assert set(made.files(False)) == {"pseof_co.parquet", "pseof_co.csv"}


def test_simulated_and_real_levels_cannot_be_mixed(tmp_path: Path) -> None:
    levels = (level("x", [SCHOOL, YEARS, COHORT]), level("y", [SCHOOL, YEARS]))
    flows = {one.name: protected(drawn(one), simulated=one.name == "x") for one in levels}
    with pytest.raises(PublishError, match="cannot be mixed"):
        Pseof(LAYOUT, levels, {}).write(LocalFolder(tmp_path, tmp_path), flows)


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    layout = Lehd(institution="opeid", industry="naics", division="region", years_after="after")
    groups = [attribute("opeid/degree_level", "00100100/05"), COHORT, attribute("after", "1")]
    one = level("x", groups, [attribute("naics", "51"), attribute("region", "Z")], layout)
    written(tmp_path, Pseof(layout, (one,), {}), {"x": drawn(one)})
    path = tmp_path / "out" / "pseof_all.csv"
    assert check_layout(path).violations == ()
    assert {(row["industry"], row["geography"]) for row in rows_of(path)} == {("51", "Z")}


def test_destinations_may_be_listed_together(tmp_path: Path) -> None:
    """A public list of the sectors of each division; not all pairs need exist."""
    pairs = attribute("division/industry", "1/11", "1/92", "9/92")
    one = level("x", [SCHOOL, COHORT, YEARS], [pairs])
    assert one.groups.agg.number == 26 + 6 + 12 + 48 + 96
    written(tmp_path, Pseof(LAYOUT, (one,), {}), {"x": drawn(one)})
    path = tmp_path / "out" / "pseof_all.csv"
    assert check_layout(path).violations == ()
    assert {(r["geography"], r["industry"]) for r in rows_of(path)} == {("1", "11"), ("1", "92"), ("9", "92")}


# --- what is refused ------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[type[DiscreetError], list[Attribute], list[Attribute], str]] = {
    "four digits": (
        SpecError, [attribute("institution/degree_level/cip4", "00100100/05/01.01"), YEARS], [],
        "is by 4-digit field; flows are by 2-digit field",
    ),
    "a column of groups without a place": (
        SpecError, [SCHOOL, attribute("sex", "f"), YEARS], [], "column 'sex' has no place in the layout",
    ),
    "a column of destinations without a place": (
        SpecError, [SCHOOL, YEARS], [attribute("county", "08001")], "column 'county' has no place in the layout",
    ),
    "destinations by state": (SpecError, [SCHOOL, YEARS], [attribute("state", "08")], "column 'state' has no place"),
    "an industry of groups": (SpecError, [SCHOOL, SECTOR, YEARS], [], "column 'industry' has no place"),
    "a division of groups": (SpecError, [SCHOOL, DIVISION, YEARS], [SECTOR], "column 'division' has no place"),
    "institution and state": (
        SpecError, [SCHOOL, attribute("state", "44"), YEARS], [], "has both institution and state",
    ),
    "no institution": (SpecError, [attribute("degree_level", "05"), YEARS], [], "has no institution"),
    "no degree": (SpecError, [attribute("institution", "00100100"), YEARS], [SECTOR], "has no degree_level"),
    "no years": (SpecError, [SCHOOL, COHORT], [SECTOR], "has no years_after"),
    "years in a group": (
        SpecError, [attribute("institution/degree_level/years_after", "00100100/05/1")], [], "part of a group",
    ),
    "another year": (DomainError, [SCHOOL, attribute("years_after", "2")], [], "has the category '2'"),
    "half a sector": (
        DomainError, [SCHOOL, YEARS], [attribute("industry", "92", "31")],
        "'31' is not a code of industry",
    ),
    "all sectors": (DomainError, [SCHOOL, YEARS], [attribute("industry", "00")], "'00' is not a code of industry"),
    "a sector of three digits": (
        DomainError, [SCHOOL, YEARS], [attribute("industry", "111")],
        "'111' is not a code of industry",
    ),
    "no division": (
        DomainError, [SCHOOL, YEARS], [SECTOR, attribute("division", "0")],
        "'0' is not a code of geography",
    ),
    "all divisions": (DomainError, [SCHOOL, YEARS], [attribute("division", "00")], "'00' is not a code of geography"),
    "other sectors": (
        DomainError, [SCHOOL, YEARS], [attribute("industry", *SECTORS, other="other")],
        "'other' is not a code of industry",
    ),
    "the marginal cell": (
        DomainError, [SCHOOL, YEARS], [attribute("industry", "92", "ZZ")],
        "'ZZ' is not a code of industry",
    ),
    "an institution without zeros": (
        DomainError, [attribute("institution/degree_level", "100100/05"), YEARS], [],
        "'100100' is not a code of institution",
    ),
    "all fields as a field": (
        DomainError, [attribute("institution/degree_level/cip2", "00100100/05/00"), YEARS], [],
        "'00' is not a code of cipcode",
    ),
    "all cohorts as a cohort": (
        DomainError, [SCHOOL, attribute("grad_cohort", "0000"), YEARS], [],
        "'0000' is not a code of grad_cohort",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_layout_cannot_represent_is_refused(case: str) -> None:
    error, groups, to, what = REFUSED[case]
    with pytest.raises(error) as refusal:
        level("flows", groups, to)
    assert what in refusal.value.what
    assert refusal.value.where.startswith("level flows, layout lehd")
    assert refusal.value.do


def test_repeated_levels_and_missing_cohorts_are_refused() -> None:
    twice = (level("x", [SCHOOL, YEARS, COHORT], [SECTOR]), level("y", [COHORT, SCHOOL, YEARS], [SECTOR]))
    with pytest.raises(SpecError, match="two levels are LEHD's aggregation level 92"):
        Pseof(LAYOUT, twice, {})
    with pytest.raises(SpecError, match="no level is by one"):
        Pseof(LAYOUT, (level("x", [SCHOOL, YEARS]),), {})
    apart = (twice[0], level("y", [COHORT, SCHOOL, YEARS], [DIVISION]))
    assert [one.groups.agg.number for one in Pseof(LAYOUT, apart, {}).levels] == [92, 140]


def changed(numbers: FlowNumbers, name: str, value: int) -> FlowNumbers:
    one: np.ndarray[Any, np.dtype[np.int64]] = getattr(numbers, name).copy()
    one[(-1,) * one.ndim] = value
    return replace(numbers, **{name: one})


@pytest.mark.parametrize(
    ("name", "value"),
    [("employed", -1), ("in_state", -1), ("in_state", 10**9), ("marginal", -1), ("status", -1), ("status", 0)],
)
def test_impossible_numbers_are_refused(name: str, value: int) -> None:
    one = level("x", [SCHOOL, YEARS, COHORT], [SECTOR])
    assert list(one.batches(drawn(one)))
    with pytest.raises(PublishError, match="has inconsistent numbers") as refusal:
        list(one.batches(changed(drawn(one), name, value)))
    assert refusal.value.where == "level x, layout lehd"


@pytest.mark.parametrize("name", ["employed", "in_state", "marginal", "status"])
def test_numbers_of_another_level_are_refused(name: str) -> None:
    one, other = level("x", [SCHOOL, YEARS, COHORT], [SECTOR]), level("y", [SCHOOL, YEARS], [DIVISION])
    with pytest.raises(PublishError, match="has inconsistent numbers"):
        list(one.batches(replace(drawn(one), **{name: getattr(drawn(other), name)})))
