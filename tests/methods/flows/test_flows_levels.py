"""Sums of flows against pandas; which divisions are suppressed, and that suppressed numbers are nowhere."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from discreet.post.laplace_sum import count_margin
from discreet.post.summary import margins
from discreet.publish.lehd.check import check_layout
from support.flows import (
    BY,
    DIVISIONS,
    DOMAINS,
    GROUP,
    LEVELS,
    MISSING,
    SECTORS,
    STATES,
    SUPPRESS,
    YEARS,
    ZZ,
    CareersAgency,
    arrow,
    filled,
    graduates,
    published,
    read,
    read_csv,
    spec,
    table,
)

Files = dict[str, bytes]
RECORDS = graduates(150)  # enough that noise does not affect which shares exceed the threshold
CODES = {  # the columns of each level, as `cells` has them
    "total": GROUP,
    "divisions": [*GROUP, "division"],
    "sectors": [*GROUP, "industry"],
    "both": [*GROUP, "industry", "division"],
    "turned": ["institution", "degree_level", "cip2", "years_after", "division", "industry"],
    "schools": ["institution", "degree_level", "grad_cohort", "years_after", "division"],
    "places": ["home", "industry"],
    "everybody": [],
}
HIDING = [name for name, level in LEVELS.items() if "division" in level["to"]]
THRESHOLD = Fraction(SUPPRESS["threshold"])


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    """Nothing suppressed."""
    with published(tmp_path_factory.mktemp("shown"), RECORDS, spec(table(suppress=...))) as actual:
        yield actual


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    """With some divisions suppressed, in LEHD's layout as well."""
    levels = [{"name": name, **LEVELS[name]} for name in LEVELS if name not in ("places", "everybody", "turned")]
    declared = spec(table(layout="lehd", levels=[*levels, {"name": "turned", **LEVELS["turned"]}]))
    with published(tmp_path_factory.mktemp("hidden"), RECORDS, declared) as actual:
        yield actual


def flows(files: Files) -> pd.DataFrame:
    """Every cell with its corrected flow and its measurement."""
    actual = filled(files).drop(columns=["listed", "moe90"])
    actual["measured"] = filled(files, "flows_measured")["measured"]
    return actual.assign(one=1)


def level(files: Files, name: str) -> pd.DataFrame:
    """A published level by its codes; the home is called `home`, not `state`."""
    actual = read(files, name).rename(columns={"state": "home"})
    return actual.set_index(CODES[name]) if CODES[name] else actual


def summed(cells: pd.DataFrame, name: str, column: str) -> list[int]:
    """The sums of a level in its own order, with pandas: categories as they are declared."""
    if not CODES[name]:
        return [int(cells[column].sum())]
    return [int(n) for n in cells.groupby(CODES[name], sort=False)[column].sum()]


def ordered(cells: pd.DataFrame, name: str) -> pd.DataFrame:
    """Cells in the order in which a level lists its rows."""
    orders = {"industry": list(SECTORS), "division": list(DIVISIONS)}
    first = cells.reset_index()
    for column in reversed(CODES[name]):
        codes = orders.get(column) or list(dict.fromkeys(cells[column]))
        first = first.sort_values(column, key=lambda c, codes=codes: c.map(codes.index), kind="stable")
    return first


# --- sums -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEVELS)
def test_levels_are_sums_of_corrected_flows_and_of_measurements(shown: Files, name: str) -> None:
    cells = flows(shown)
    jobs = ordered(cells[cells["industry"] != ZZ], name)
    own = jobs.assign(**{c: jobs[c].where(jobs["state"] == jobs["home"], 0) for c in ("flow", "measured", "one")})
    actual = read(shown, name)
    assert len(actual) == len(summed(jobs, name, "flow"))
    kinds = [("employed", jobs), ("in_state", own)]
    if not LEVELS[name]["to"]:
        kinds.append(("marginal", cells[cells["industry"] == ZZ]))
    for what, frame in kinds:
        assert actual[what].tolist() == summed(frame, name, "flow")
        assert actual[f"{what}_measured"].tolist() == summed(frame, name, "measured")
        draws = np.array(summed(frame, name, "one"))
        assert actual[f"{what}_moe90"].tolist() == margins(Fraction(1), draws).tolist()
    names = [f"{what}{end}" for what, _ in kinds for end in ("", "_measured", "_moe90")]
    assert list(level(shown, name).columns) == names


@pytest.mark.parametrize("name", LEVELS)
def test_rows_are_all_declared_cells_in_their_order(shown: Files, name: str) -> None:
    cells = flows(shown)
    jobs = ordered(cells[cells["industry"] != ZZ], name)
    if CODES[name]:
        assert list(level(shown, name).index) == list(dict.fromkeys(jobs.set_index(CODES[name]).index))


def test_levels_agree_with_each_other(shown: Files) -> None:
    for column in ("employed", "employed_measured", "in_state", "in_state_measured"):
        assert len({int(read(shown, name)[column].sum()) for name in LEVELS}) == 1
    everybody = read(shown, "everybody")
    assert int(everybody["employed"].iloc[0] + everybody["marginal"].iloc[0]) == int(read(shown, "flows")["flow"].sum())


def test_a_home_state_that_is_not_a_destination_has_no_flows_in_state(shown: Files) -> None:
    places = level(shown, "places")
    assert (places.loc["66", ["in_state", "in_state_measured", "in_state_moe90"]] == 0).all(axis=None)
    assert (places.loc["44", "in_state"] > 0).any()
    assert (places.loc["66", "employed"] > 0).any()


def test_the_order_of_to_is_the_order_of_columns_alone(shown: Files) -> None:
    both = level(shown, "both").groupby(CODES["turned"]).sum()
    turned = level(shown, "turned")
    columns = [c for c in turned.columns if not c.endswith("moe90")]
    pd.testing.assert_frame_equal(both.loc[turned.index, columns].astype(int), turned[columns].astype(int))


def test_levels_without_a_home_say_nothing_about_one(tmp_path: Path) -> None:
    correction = {"employment": {"file": "employment.csv"}}
    files = CareersAgency(tmp_path / "office", RECORDS).published(
        spec(table(home_state=..., suppress=..., correction=correction))
    )
    assert list(level(files, "total").columns) == [
        *("employed", "employed_measured", "employed_moe90"),
        *("marginal", "marginal_measured", "marginal_moe90"),
    ]


def test_a_level_of_the_states_themselves(tmp_path: Path) -> None:
    """The finest destinations: every cell of the table but the marginal one, 0 or not."""
    finest = {"name": "finest", "by": BY, "to": ["state", "industry"]}
    files = CareersAgency(tmp_path / "office", RECORDS).published(spec(table(levels=[finest])))
    cells, actual = flows(files), read(files, "finest")
    merged = cells[cells["industry"] != ZZ].merge(actual, on=[*GROUP, "industry", "state"], validate="one_to_one")
    assert len(merged) == len(actual) == 16 * len(SECTORS) * len(STATES)
    assert merged["flow"].tolist() == merged["employed"].tolist()
    assert merged["measured"].tolist() == merged["employed_measured"].tolist()
    assert set(merged["employed_moe90"]) == {2}


# --- suppression ----------------------------------------------------------------------------------------------------


def missing_states() -> dict[tuple[str, str], set[str]]:
    actual: dict[tuple[str, str], set[str]] = {}
    for row in csv.DictReader(io.StringIO(MISSING)):
        actual.setdefault((row["grad_cohort"], row["years_after"]), set()).add(row["state"])
    return actual


@dataclass(frozen=True)
class Share:
    """The unobserved share of a division in a period, for one institution."""

    complete: int  # measured in complete periods
    margin: int
    lost: int  # of it, into states that are missing
    gone: int  # states

    @property
    def known(self) -> bool:
        return self.complete > self.margin

    @property
    def suppressed(self) -> bool:
        return Fraction(self.lost, self.complete) > THRESHOLD if self.known else self.gone > 0


def shares(files: Files) -> dict[tuple[str, ...], Share]:
    """By institution, period and division."""
    gaps, cells = missing_states(), flows(files)
    complete = cells[[(c, y) not in gaps for c, y in zip(cells["grad_cohort"], cells["years_after"], strict=True)]]
    actual = {}
    for keys in cells.dropna().groupby(["institution", "grad_cohort", "years_after", "division"]).groups:
        institution, cohort, years, division = keys
        there = complete[(complete["institution"] == institution) & (complete["division"] == division)]
        gone = {s for s in gaps.get((cohort, years), set()) if STATES[s] == division}
        measured, lost = (int(f["measured"].sum()) for f in (there, there[there["state"].isin(gone)]))
        margin = count_margin(Fraction(1), len(there))
        actual[keys] = Share(measured, margin, min(max(lost, 0), max(measured, 0)), len(gone))
    return actual


def test_shares_are_those_of_complete_periods(files: Files) -> None:
    expected, actual = shares(files), read(files, "flows_unobserved")
    assert len(actual) == len(expected)
    for row in actual.to_dict("records"):
        share = expected[row["institution"], row["grad_cohort"], row["years_after"], row["division"]]
        assert row["missing_states"] == share.gone
        assert (row["complete"], row["complete_moe90"]) == (share.complete, share.margin)
        if share.known:
            assert (row["unobserved"], row["share"]) == (share.lost, round(share.lost / share.complete, 6))
        else:
            assert pd.isna(row["unobserved"])
            assert pd.isna(row["share"])
        assert row["status"] == (5 if share.suppressed else 1)
    assert set(actual["status"]) == {1, 5}
    assert ((actual["share"] > 0) & (actual["status"] == 1)).any()


def test_what_does_not_exceed_its_margin_is_not_known(tmp_path: Path) -> None:
    """Empty source: most shares are unknown, and then a missing state suppresses, and a present one does not."""
    silent = CareersAgency(tmp_path / "office").published(spec())
    expected, actual = shares(silent), read(silent, "flows_unobserved")
    unknown = [not share.known for share in expected.values()]
    assert sum(unknown) > len(unknown) / 2
    assert actual["status"].tolist() == [5 if expected[key].suppressed else 1 for key in keys_of(actual)]
    assert actual.loc[actual["share"].isna(), "status"].nunique() == 2


def keys_of(actual: pd.DataFrame) -> list[tuple[str, ...]]:
    columns = ["institution", "grad_cohort", "years_after", "division"]
    return [tuple(key) for key in actual[columns].itertuples(index=False)]


@pytest.mark.parametrize("name", HIDING)
def test_a_sum_is_suppressed_if_any_part_of_it_is(files: Files, name: str) -> None:
    hidden = {key for key, share in shares(files).items() if share.suppressed}
    cells = flows(files)
    keys = cells[["institution", "grad_cohort", "years_after", "division"]].itertuples(index=False)
    cells = cells.assign(hidden=[tuple(key) in hidden for key in keys])
    expected = ordered(cells[cells["industry"] != ZZ], name).groupby(CODES[name], sort=False)["hidden"].any()
    actual = read(files, name)
    assert actual["status"].tolist() == [5 if h else 1 for h in expected]
    assert set(actual["status"]) == {1, 5}


def test_a_level_coarser_than_divisions_is_suppressed_with_any_of_them(tmp_path: Path) -> None:
    office = CareersAgency(tmp_path / "office", graduates())
    regions = {"1": "E", "2": "E", "9": "W"}
    lines = [f"{state},{division},{regions[division]}" for state, division in STATES.items()]
    (office.folder / "states.csv").write_text("\n".join(["state,division,region", *lines]) + "\n")
    declared = spec(table(levels=[{"name": n, "by": BY, "to": [n[:-1]]} for n in ("divisions", "regions")]))
    declared["domains"]["geography"]["levels"] = ["state", "division", "region"]
    files = office.published(declared)
    fine, coarse = read(files, "divisions"), read(files, "regions")
    fine["region"] = fine["division"].map(regions)
    expected = (fine["status"] == 5).groupby([fine[c] for c in (*GROUP, "region")], sort=False).any()
    actual = dict(zip(coarse[[*GROUP, "region"]].itertuples(index=False, name=None), coarse["status"], strict=True))
    assert {key: 5 if hidden else 1 for key, hidden in expected.items()} == actual
    assert set(actual.values()) == {1, 5}


def test_other_levels_have_no_status(files: Files) -> None:
    for name in ("total", "sectors"):
        assert "status" not in read(files, name).columns


@pytest.mark.parametrize("name", HIDING)
def test_suppressed_sums_have_no_numbers_and_the_others_are_as_they_were(files: Files, shown: Files, name: str) -> None:
    actual, text, every = read(files, name), read_csv(files, name), read(shown, name)
    numbers = [c for c in every.columns if c.startswith(("employed", "in_state"))]
    gone = (actual["status"] == 5).to_numpy()
    assert actual.loc[gone, numbers].isna().all(axis=None)
    assert (text.loc[gone, numbers] == "").all(axis=None)
    assert actual.loc[~gone, numbers].notna().all(axis=None)
    assert (text.loc[~gone, numbers] != "").all(axis=None)
    same = (actual.loc[~gone, c].tolist() == every.loc[~gone, c].tolist() for c in ("employed_moe90", "in_state_moe90"))
    assert all(same)  # the declaration differs, and with it the noise: margins do not


def test_a_suppressed_number_stands_in_no_file_of_a_level_by_division(tmp_path: Path) -> None:
    """7,654 graduates into a division that is suppressed: the number is in the table, and in no sum by division."""
    records = [(f"P{i}", "00100100", "05", "01.0101", "2013", "5", "11", "34") for i in range(7654)]
    levels = [{"name": name, **LEVELS[name]} for name in LEVELS if name not in ("places", "everybody")]
    declared = spec(table(epsilon="900", layout="lehd", levels=levels))
    files = CareersAgency(tmp_path / "office", records).published(declared)
    assert b"7654" in files["flows.simulation.csv"]
    for name in HIDING:
        assert b"7654" not in files[f"{name}.simulation.csv"]
        assert not (read(files, name) == 7654).any(axis=None)
        assert b"7654" in files["total.simulation.csv"]
    for row in [*read(files, "pseof_all").to_dict("records"), *lehd(files)]:
        assert row["geo_level"] == "N" or not {7654, "7654"} & set(row.values())


@pytest.mark.parametrize("threshold", ["0.25", "1/4", "10/41", "1"])
def test_a_share_that_meets_the_threshold_is_published(tmp_path: Path, threshold: str) -> None:
    """40 graduates of a complete period, 10 of them into a state that is missing later, and negligible noise."""
    office = CareersAgency(tmp_path / "office", quarter())
    (office.folder / "missing.csv").write_text("grad_cohort,years_after,state\n2013,1,34\n2013,1,44\n")
    actual = read(office.published(spec(certain(threshold))), "flows_unobserved")
    first = actual[actual["years_after"] == "1"].to_dict("records")
    rows = {(r["institution"], r["grad_cohort"], r["division"]): r for r in first}
    middle = rows["00100100", "2013", "2"]
    assert (middle["complete"], middle["unobserved"], middle["share"]) == (40, 10, 0.25)
    assert middle["status"] == (5 if threshold == "10/41" else 1)
    assert rows["00100100", "2010", "2"]["status"] == 1
    east = rows["00100100", "2013", "1"]  # nothing ever flowed there, and its only state is missing
    assert (east["complete"], east["missing_states"]) == (0, 1)
    assert pd.isna([east["unobserved"], east["share"]]).all()
    assert east["status"] == (1 if threshold == "1" else 5)
    west = rows["00100100", "2013", "9"]  # nothing either, but nothing is missing
    assert (west["complete"], west["missing_states"], west["status"]) == (0, 0, 1)


def quarter() -> list[tuple[str, ...]]:
    return [
        (f"P{i}", "00100100", "05", "01.0101", "2010", "1", "11", "34" if i < 10 else "36")
        for i in range(40)
    ]  # fmt: skip


def certain(threshold: str) -> dict[str, Any]:
    """With an ε that leaves the counts as they are."""
    return table(epsilon="900", suppress={**SUPPRESS, "threshold": threshold})


def test_institutions_have_separate_shares_unless_estimated_together(tmp_path: Path) -> None:
    office = CareersAgency(tmp_path / "office", quarter())
    (office.folder / "missing.csv").write_text("grad_cohort,years_after,state\n2013,1,34\n")
    for by, count in ((["college"], 3), ([], 1), (["home"], 3)):
        declared = table(epsilon="900", suppress={**SUPPRESS, "by": by, "periods": ["grad_cohort", "years_after"]})
        actual = read(office.published(spec(declared)), "flows_unobserved")
        assert len(actual) == count * 4 * len(DIVISIONS)
        middle = actual[
            (actual["grad_cohort"] == "2013") & (actual["years_after"] == "1") & (actual["division"] == "2")
        ]
        assert middle["complete"].tolist() == [40, 0, 0][:count]


def test_periods_of_one_attribute(tmp_path: Path) -> None:
    office = CareersAgency(tmp_path / "office", quarter())
    (office.folder / "missing.csv").write_text("years_after,state,why\n5,34,late\n5,36,late\n")
    actual = read(
        office.published(spec(table(epsilon="900", suppress={**SUPPRESS, "periods": ["years_after"]}))), "turned"
    )
    mine = actual[(actual["institution"] == "00100100") & (actual["cip2"] == "01") & (actual["years_after"] == "5")]
    assert mine.groupby("division", sort=False)["status"].unique().map(list).to_dict() == {"9": [1], "2": [5], "1": [1]}


# --- LEHD's layout --------------------------------------------------------------------------------------------------


def lehd(files: Files) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(files["pseof_all.simulation.csv"].decode())))


def test_the_layout_has_the_numbers_of_the_levels_and_flags_what_is_suppressed(files: Files) -> None:
    seen = dict.fromkeys([n for n in LEVELS if n not in ("places", "everybody")], 0)
    for row in lehd(files):
        name = level_name(row)
        mine = level(files, name)
        for year in YEARS:
            codes = {**row, "cip2": row["cipcode"], "division": row["geography"], "years_after": year}
            actual = mine.loc[tuple(codes[c] for c in CODES[name])]
            hidden = actual.get("status") == 5
            for what, column in (("emp", "employed"), ("emp_instate", "in_state"), ("nme", "marginal")):
                number, flag = row[f"y{year}_grads_{what}"], row[f"status_y{year}_grads_{what}"]
                if column not in actual:
                    assert (number, flag) == ("", "-1")
                else:
                    assert (number, flag) == (("", "5") if hidden else (str(actual[column]), "1"))
            seen[name] += 1
        assert {row[c] for c in row if c.startswith("status_y10_grads")} == {"-1"}
    assert seen == {name: len(read(files, name)) for name in seen}


def level_name(row: dict[str, str]) -> str:
    """The level that a row of the layout is of, from its own columns."""
    if row["cip_level"] == "A":
        return "schools"
    if row["grad_cohort"] == "0000":
        return "turned"
    return {("N", "A"): "total", ("D", "A"): "divisions", ("N", "S"): "sectors", ("D", "S"): "both"}[
        row["geo_level"], row["ind_level"]
    ]


def test_flows_and_earnings_together_follow_the_layout(tmp_path: Path) -> None:
    """One release, two tables of LEHD's, one version file with a line for each, labels for both."""
    paid = arrow(RECORDS)
    paid = paid.append_column("pay", pa.array(range(20_000, 20_000 + 7 * paid.num_rows, 7)))
    office = CareersAgency(tmp_path / "office", paid)
    earnings = {
        "name": "earnings",
        "method": "earnings",
        "by": ["programme4", "grad_cohort", "years_after"],
        "value": "pay",
        "epsilon": "3",
        "layout": "lehd",
    }
    coarser = {**DOMAINS["programme"]["coarser"], "programme4": ["institution", "degree_level", "cip4"]}
    domains = {**DOMAINS, "programme": {**DOMAINS["programme"], "coarser": coarser}}
    levels = [{"name": n, **LEVELS[n]} for n in ("total", "divisions", "both")]
    made = office.published(spec(table(layout="lehd", levels=levels), earnings, domains=domains))
    for kind in ("pseoe", "pseof"):
        for form in ("csv", "parquet"):
            path = tmp_path / f"{kind}_all.{form}"
            path.write_bytes(made[f"{kind}_all.simulation.{form}"])
            actual = check_layout(path)
            assert actual.layout.kind == kind
            assert actual.violations == ()
            assert actual.rows > 0
    assert made["version_pseo.simulation.txt"].decode().splitlines() == [
        f"{kind} US 00 2010-2013 V4.14.0 R2026Q1 discreet_r" for kind in ("PSEOE", "PSEOF")
    ]
    assert set(label(made, "industry")) == {"00", *SECTORS}
    assert set(label(made, "geography")) == {"00", *DIVISIONS}
    assert {"01", "52", "01.01", "01.09", "52.02"} == set(label(made, "cipcode"))


def label(files: Files, what: str) -> dict[str, str]:
    return dict(list(csv.reader(io.StringIO(files[f"label_{what}.simulation.csv"].decode())))[1:])
