"""Recoding end to end: totals are preserved exactly; no record, no key, no additional ε."""

from __future__ import annotations

import copy
import itertools
import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import discreet
from discreet.errors import SpecError
from discreet.noise.key import ReleaseKey
from discreet.noise.keystore import FileKeyStore
from discreet.post.summary import margins
from discreet.publish.manifest import read
from support.recoding import (
    ASTER,
    BIRCH,
    COHORTS,
    COLUMNS,
    CROSSWALK,
    EARNINGS,
    FAMILIES,
    FLOWS,
    OFFERED,
    RECODE,
    YEARS,
    MeasurementFolder,
    RecodingOffice,
    contents,
    domains,
    new_programmes,
    read_rows,
    without_head,
    write_csv,
)

MEASURED = ("earnings", "families", "flows", "family_flows")
FOUR = ("earnings", "flows")
WHEN = tuple(itertools.product(COHORTS, YEARS))
SCHOOLS_ALONE = {**EARNINGS, "name": "schools", "by": ["school", "grad_cohort", "years_after"], "levels": []}
SCHOOLS = {(institution, degree) for institution, degree, *_ in OFFERED}


@pytest.fixture(scope="module")
def old(recoded_office: RecodingOffice) -> MeasurementFolder:
    return recoded_office.kept("old")


@pytest.fixture(scope="module")
def new(recoded_office: RecodingOffice) -> MeasurementFolder:
    return recoded_office.kept("new")


def cells(
    kept: MeasurementFolder, table: str, institution: str, degree: str, code: str
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The numbers of a code at a school: (cohort and year, width)."""
    groups = kept.groups(table)
    return np.stack([groups[institution, degree, code, *when] for when in WHEN])


def margin(rate: str, draws: int) -> int:
    return int(margins(Fraction(rate), np.array([draws]))[0])


# --- totals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", MEASURED)
def test_totals_stay_to_the_unit(old: MeasurementFolder, new: MeasurementFolder, table: str) -> None:
    """Institution × degree × cohort × year, for every bin and every destination, suppressed or not."""
    before, after = old.sums(table), new.sums(table)
    assert before.keys() == after.keys() == {(*school, *when) for school in SCHOOLS for when in WHEN}
    assert {key: row.tolist() for key, row in before.items()} == {key: row.tolist() for key, row in after.items()}
    assert old.groups(table).keys() != new.groups(table).keys()


@pytest.mark.parametrize("table", MEASURED)
def test_there_are_negative_numbers_and_they_stay_negative(
    old: MeasurementFolder, new: MeasurementFolder, table: str
) -> None:
    assert (old.counts[table] < 0).any()
    assert (new.counts[table] < 0).any()


SPLIT = [
    (table, institution, degree, code, pieces)
    for table in FOUR
    for institution, degree, code, pieces in (
        (ASTER, "05", "01.09", ("01.09", "02.01")),
        (BIRCH, "05", "01.09", ("01.09", "02.01")),
        (ASTER, "05", "52.02", ("52.02", "52.10")),
        (ASTER, "18", "52.02", ("52.02", "52.10")),
        (BIRCH, "05", "52.02", ("52.02", "52.10")),
        (ASTER, "05", "22.03", ("22.00", "22.01")),
        (BIRCH, "18", "22.03", ("22.00", "22.01")),
    )
]


@pytest.mark.parametrize(("table", "institution", "degree", "code", "pieces"), SPLIT)
def test_pieces_add_up_and_have_the_sign_of_the_count(
    old: MeasurementFolder,
    new: MeasurementFolder,
    table: str,
    institution: str,
    degree: str,
    code: str,
    pieces: tuple[str, str],
) -> None:
    whole = cells(old, table, institution, degree, code)
    parts = [cells(new, table, institution, degree, piece) for piece in pieces]
    assert (parts[0] + parts[1] == whole).all()
    assert all((part * np.sign(whole) >= 0).all() for part in parts)


def test_a_family_splits_and_adds_up(old: MeasurementFolder, new: MeasurementFolder) -> None:
    for institution, degree in ((ASTER, "05"), (BIRCH, "05"), (BIRCH, "18")):
        whole = cells(old, "families", institution, degree, "01")
        parts = [cells(new, "families", institution, degree, piece) for piece in ("01", "02")]
        assert (parts[0] + parts[1] == whole).all()


def test_shares_are_those_of_the_finest_level_with_completions(new: MeasurementFolder) -> None:
    """Aster's completions of 2010 say 30 : 10; those of 2013 say 20 : 0, which leaves a thousandth of one."""
    groups = new.groups("earnings")
    stayed, moved = (
        {cohort: sum(int(groups[ASTER, "05", code, cohort, y].sum()) for y in YEARS) for cohort in COHORTS}
        for code in ("01.09", "02.01")
    )
    assert moved["2013"] == 0
    total = stayed["2010"] + moved["2010"]
    assert abs(moved["2010"] - total / 4) < 4 * (total * 3 / 16) ** 0.5
    assert moved["2010"] > 0


def test_direct_groups_do_not_change(
    recoded_office: RecodingOffice, old: MeasurementFolder, new: MeasurementFolder
) -> None:
    for table in FOUR:
        for institution, degree in ((ASTER, "05"), (BIRCH, "18")):
            before, after = (cells(kept, table, institution, degree, "01.01") for kept in (old, new))
            assert (before == after).all()
    before_, after_ = (
        [row for row in read_rows(recoded_office.folder / f"out-{release}", "earnings") if row["cip4"] == "01.01"]
        for release in ("old", "new")
    )
    assert [row for row in after_ if row["institution"] != BIRCH or row["degree_level"] != "05"] == before_
    assert len(before_) == 8


def test_merged_groups_are_sums(old: MeasurementFolder, new: MeasurementFolder) -> None:
    for table in FOUR:
        merged = cells(new, table, ASTER, "05", "03.02")
        assert (merged == cells(old, table, ASTER, "05", "03.01") + cells(old, table, ASTER, "05", "03.02")).all()
        assert (cells(new, table, BIRCH, "05", "03.02") == cells(old, table, BIRCH, "05", "03.02")).all()


def test_what_nothing_becomes_is_zero(new: MeasurementFolder) -> None:
    """Families need Birch's 02 at degree 18; no four-digit code becomes 02.01 there."""
    assert not cells(new, "earnings", BIRCH, "18", "02.01").any()
    assert not cells(new, "flows", BIRCH, "18", "02.01").any()


# --- margins --------------------------------------------------------------------------------------------------------


def published(
    office: RecodingOffice, name: str, release: str = "new"
) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """The rows of a table by institution, degree and code."""
    actual: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in read_rows(office.folder / f"out-{release}", name):
        code = row.get("cip4") or row.get("cip2") or ""
        actual.setdefault((row["institution"], row["degree_level"], code), []).append(row)
    return actual


def test_draws_are_counted(new: MeasurementFolder) -> None:
    draws = {key[:3]: number for key, number in new.draws("earnings").items()}
    assert draws[ASTER, "05", "01.01"] == draws[BIRCH, "05", "03.02"] == 1
    assert draws[ASTER, "05", "03.02"] == 2
    assert {draws[ASTER, "05", code] for code in ("01.09", "02.01", "52.02", "52.10", "22.00", "22.01")} == {-1}
    assert new.draws("flows") == new.draws("earnings")


def test_margins_of_measured_earnings(recoded_office: RecodingOffice) -> None:
    rows = published(recoded_office, "earnings")
    bins = 4

    def seen(key: tuple[str, str, str]) -> set[Any]:
        return {row["count_moe90"] for row in rows[key] if row["status"] == 1}

    assert seen((ASTER, "05", "01.01")) == seen((BIRCH, "05", "03.02")) == {margin("1", bins)}
    assert seen((ASTER, "05", "03.02")) == {margin("1", 2 * bins)}
    assert margin("1", 2 * bins) > margin("1", bins)
    split = [row for key in rows for row in rows[key] if key[2] in ("52.02", "52.10", "01.09", "22.01")]
    shown = [row for row in split if row["status"] == 1]
    assert len(shown) > 10
    for row in shown:
        assert row["count"] is not None
        assert row["p50"] is not None
        assert [row[c] for c in ("count_moe90", "p50_low90", "p50_high90")] == [None] * 3
    whole = [row for row in rows[ASTER, "05", "03.02"] if row["status"] == 1]
    assert all(row["p50_low90"] <= row["p50"] <= row["p50_high90"] for row in whole)


def test_a_sum_in_which_the_pieces_come_together_has_a_margin(recoded_office: RecodingOffice) -> None:
    rows, bins = published(recoded_office, "earnings_family"), 4

    def seen(*key: str) -> set[Any]:
        return {row["count_moe90"] for row in rows[key[0], key[1], key[2]] if row["status"] == 1}

    assert seen(ASTER, "05", "52") == seen(ASTER, "05", "22") == {margin("1", bins)}
    assert seen(ASTER, "05", "03") == {margin("1", 2 * bins)}
    assert seen(ASTER, "05", "01") == seen(BIRCH, "05", "01") == {None}  # 02 has a part of it
    assert published(recoded_office, "earnings_school") == published(recoded_office, "earnings_school", "old")


def test_margins_of_flows(recoded_office: RecodingOffice) -> None:
    for name in ("flows", "flows_measured"):
        rows = published(recoded_office, name)

        def seen(*key: str, rows: Any = rows) -> set[Any]:
            return {row["moe90"] for row in rows[key]}

        assert seen(ASTER, "05", "01.01") == {margin("1/2", 1)}
        assert seen(ASTER, "05", "03.02") == {margin("1/2", 2)}
        assert seen(ASTER, "05", "52.02") == seen(ASTER, "05", "02.01") == {None}
    assert margin("1/2", 2) > margin("1/2", 1)


def test_margins_of_sums_of_flows(recoded_office: RecodingOffice) -> None:
    families = published(recoded_office, "flows_family")
    columns = [c for c in next(iter(families.values()))[0] if c.endswith("moe90")]
    assert columns
    for column in columns:
        seen = {key: {row[column] for row in rows if row["industry"] != "ZZ"} for key, rows in families.items()}
        assert seen[ASTER, "05", "01"] == seen[ASTER, "05", "02"] == {None}
        assert None not in seen[ASTER, "05", "52"] | seen[ASTER, "05", "22"] | seen[ASTER, "05", "03"]
    before, after = (published(recoded_office, "flows_school", release) for release in ("old", "new"))
    kept = [c for c in next(iter(before.values()))[0] if c.endswith("moe90") or c.endswith("measured")]
    assert len(kept) > 1
    for key, rows in before.items():
        assert [[row[c] for c in kept] for row in rows] == [[row[c] for c in kept] for row in after[key]]


# --- flows are corrected after recoding -----------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["flows", "family_flows"])
def test_flows_are_corrected_after_recoding(recoded_office: RecodingOffice, new: MeasurementFolder, table: str) -> None:
    code, out = "cip4" if table == "flows" else "cip2", recoded_office.folder / "out-new"
    totals = dict.fromkeys(new.groups(table), 0)
    for row in read_rows(out, table):
        assert row["flow"] > 0
        totals[row["institution"], row["degree_level"], row[code], row["grad_cohort"], row["years_after"]] += row[
            "flow"
        ]
    assert totals == {key: max(int(row.sum()), 0) for key, row in new.groups(table).items()}


def test_published_measurements_are_the_recoded_ones(recoded_office: RecodingOffice, new: MeasurementFolder) -> None:
    actual = dict.fromkeys(new.groups("flows"), 0)
    count = 0
    for row in read_rows(recoded_office.folder / "out-new", "flows_measured"):
        assert row["measured"] != 0
        key = row["institution"], row["degree_level"], row["cip4"], row["grad_cohort"], row["years_after"]
        actual[key] += row["measured"]
        count += 1
    assert actual == {key: int(row.sum()) for key, row in new.groups("flows").items()}
    assert count == np.count_nonzero(new.counts["flows"])


def test_published_bins_are_the_recoded_ones(recoded_office: RecodingOffice, new: MeasurementFolder) -> None:
    groups = new.groups("earnings")
    rows = [row for row in read_rows(recoded_office.folder / "out-new", "earnings") if row["status"] == 1]
    assert len(rows) > 20
    for row in rows:
        key = row["institution"], row["degree_level"], row["cip4"], row["grad_cohort"], row["years_after"]
        assert [row[f"bin_{i}"] for i in range(1, 5)] == groups[key].tolist()
        assert row["count"] == groups[key].sum()


# --- nothing confidential is used -----------------------------------------------------------------------------------


class NoKeys(FileKeyStore):
    """A key store whose keys must not be asked for."""

    def create(self, name: str, key: ReleaseKey) -> NoReturn:
        raise AssertionError("a key was asked for")

    def load(self, name: str) -> NoReturn:
        raise AssertionError("a key was asked for")

    def destroy(self, name: str) -> NoReturn:
        raise AssertionError("a key was asked for")


def test_no_record_and_no_key_is_needed(
    office: RecodingOffice, recoded_office: RecodingOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    (office.folder / "graduates.parquet").unlink()
    shutil.rmtree(office.folder / "out-old")

    def opened(*_: Any) -> NoReturn:
        raise AssertionError("an engine was opened")

    for place in ("discreet.pipeline.tabulation.open_engine", "discreet.engine.open_engine"):
        monkeypatch.setattr(place, opened)
    office.open(office.recoding())
    release = discreet.release(office.folder / "new.yaml", ledger=office.ledger, keys=NoKeys(office.folder / "keys"))
    release.run(office.folder / "out-new")
    assert without_head(office.folder / "out-new") == without_head(recoded_office.folder / "out-new")
    assert contents(office.folder / "kept/new") == contents(recoded_office.folder / "kept/new")


def test_batches_of_words_do_not_change_the_result(
    measured_office: RecodingOffice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    actual = []
    for words in (1 << 21, 7):
        monkeypatch.setattr("discreet.methods.recode.recoding.WORDS", words)
        office = measured_office.copied(tmp_path / f"office-{words}")
        office.recode(EARNINGS, FLOWS)
        actual.append(office.kept("new").counts)
    assert all(np.array_equal(actual[0][name], actual[1][name]) for name in ("earnings", "flows"))


def test_the_same_bytes_from_measurements_that_lie_elsewhere(
    office: RecodingOffice, recoded_office: RecodingOffice, tmp_path: Path
) -> None:
    shutil.move(office.folder / "kept/old", tmp_path / "archive")
    out = office.recode(recode={"measurements": str(tmp_path / "archive")}, keep_measurements=...)
    expected = contents(recoded_office.folder / "out-new")
    actual = contents(out)
    assert {**actual, "manifest.json": b""} == {**expected, "manifest.json": b""}
    assert not (office.folder / "kept/new").exists()
    assert office.ledger.chain().kept("new") == {}


def test_many_files_give_the_same_numbers(
    office: RecodingOffice, recoded_office: RecodingOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.methods.histograms.PART", 40)
    office.recode()
    actual, expected = office.kept("new"), recoded_office.kept("new")
    assert max(len(table.files) for table in actual.about.tables) > 5
    for table in MEASURED:
        assert (actual.counts[table] == expected.counts[table]).all()
    same = {"measurements": "kept/new", "crosswalk": SAME, "history": ..., "overrides": ...}
    office.recode(recode=same, release="same", keep_measurements="kept/same")
    for table in MEASURED:
        assert (office.kept("same").counts[table] == expected.counts[table]).all()


def test_some_tables_of_a_release_can_be_recoded_alone(office: RecodingOffice, recoded_office: RecodingOffice) -> None:
    office.recode({**FLOWS, "levels": []}, {**FAMILIES, "percentiles": ["50"]})
    actual, expected = office.kept("new"), recoded_office.kept("new")
    assert [table.name for table in actual.about.tables] == ["flows", "families"]
    for table in ("flows", "families"):
        assert (actual.counts[table] == expected.counts[table]).all()


def test_another_release_draws_otherwise(office: RecodingOffice, recoded_office: RecodingOffice) -> None:
    office.recode(EARNINGS, release="other", keep_measurements="kept/other")
    actual, expected = office.kept("other"), recoded_office.kept("new")
    assert (actual.counts["earnings"] != expected.counts["earnings"]).any()
    assert (cells(actual, "earnings", ASTER, "05", "01.01") == cells(expected, "earnings", ASTER, "05", "01.01")).all()


def test_what_a_recoding_says_about_itself(recoded_office: RecodingOffice) -> None:
    made = read(recoded_office.folder / "out-new")
    assert made.derived_from == "old"
    assert made.simulation
    assert (
        made.composition
        == "no additional privacy loss: post-processing of the measurements of old, which cost epsilon 7.5"
    )
    assert made.guarantee == read(recoded_office.folder / "out-old").guarantee
    assert made.guarantee.epsilon == Fraction(15, 2)
    assert recoded_office.spent == Fraction(15, 2)
    assert read(recoded_office.folder / "out-old").derived_from == ""
    text = json.dumps(contents(recoded_office.folder / "out-new")["manifest.json"].decode())
    assert str(recoded_office.folder) not in text


# --- chains ---------------------------------------------------------------------------------------------------------

SAME = {"file": "programmes_new.csv", "old": "cipcode", "new": "cipcode"}


def backwards(office: RecodingOffice) -> dict[str, Any]:
    """The crosswalk the other way round, and the list of all that the new groups can become."""
    pairs = [(new, old) for old, new, _ in CROSSWALK if old and new]
    pairs += [("22.0001", "22.0301"), ("22.0101", "22.0301")]
    write_csv(office.folder / "back.csv", ("old", "new"), pairs)
    rows = dict.fromkeys(
        (i, d, o, o[:5], o[:2], home) for i, d, c, *_, home in new_programmes() for n, o in pairs if n[:2] == c[:2]
    )
    write_csv(office.folder / "programmes_back.csv", COLUMNS, list(rows))
    write_csv(office.folder / "even.csv", ("cipcode", "awards"), [(new, 10) for new in dict(pairs)])
    return {
        "measurements": "kept/new",
        "crosswalk": {"file": "back.csv", "old": "old", "new": "new"},
        "history": {"file": "even.csv", "old": "cipcode", "number": "awards"},
        "shares": [[]],
        "overrides": ...,
    }


def test_there_and_back(recoded_office: RecodingOffice, old: MeasurementFolder, tmp_path: Path) -> None:
    office = recoded_office.copied(tmp_path / "office")
    asked = backwards(office)
    spec = office.recoding(
        recode=asked, release="back", keep_measurements="kept/back", domains=domains("programmes_back.csv")
    )
    office.open(spec).run(office.folder / "out-back")
    back = office.kept("back")
    for table in MEASURED:
        before, after = old.sums(table), back.sums(table)
        assert all((before[key] == after[key]).all() for key in before)
        assert not any(row.any() for key, row in after.items() if key not in before)
    groups = back.groups("earnings")
    for key, row in old.groups("earnings").items():
        if not key[2].startswith("03"):  # merged for good
            assert (groups[key] == row).all()
    chain = office.ledger.chain()
    assert chain.derived()["back"][0].of == "new"
    assert chain.origin("back").reserve.release == "old"
    assert read(office.folder / "out-back").derived_from == "new"
    assert office.spent == Fraction(15, 2)


def test_draws_are_known_through_a_chain(recoded_office: RecodingOffice, tmp_path: Path) -> None:
    """Of 03.01 and 03.02, merged and divided again, only the family's margin is known: two draws."""
    office = recoded_office.copied(tmp_path / "office")
    asked = backwards(office)
    spec = office.recoding(
        recode=asked, release="back", keep_measurements="kept/back", domains=domains("programmes_back.csv")
    )
    office.open(spec).run(office.folder / "out-back")
    draws = {key[:3]: number for key, number in office.kept("back").draws("earnings").items()}
    assert draws[ASTER, "05", "01.01"] == 1
    assert draws[ASTER, "05", "03.01"] == draws[ASTER, "05", "03.02"] == draws[ASTER, "05", "52.02"] == -1
    rows = published(office, "earnings_family", "back")
    assert {row["count_moe90"] for row in rows[ASTER, "05", "03"] if row["status"] == 1} == {margin("1", 8)}
    assert {row["count_moe90"] for row in rows[ASTER, "05", "52"] if row["status"] == 1} == {None}


# --- rules ----------------------------------------------------------------------------------------------------------


def test_balanced_pieces_are_within_one_of_their_share(office: RecodingOffice) -> None:
    office.recode(EARNINGS, recode={"rule": "balanced"}, release="even", keep_measurements="kept/even")
    office.recode(EARNINGS)
    deviations = {}
    for release in ("even", "new"):
        kept = office.kept(release)
        assert all((office.kept("old").sums("earnings")[k] == v).all() for k, v in kept.sums("earnings").items())
        quarter, rest = (cells(kept, "earnings", ASTER, "05", code) for code in ("22.00", "22.01"))
        deviations[release] = np.abs(quarter - (quarter + rest) / 4)
    assert deviations["even"].max() < 1
    assert deviations["new"].max() >= 1


@pytest.mark.parametrize("shared", [False, True])
def test_overrides_with_and_without_shares(office: RecodingOffice, shared: bool) -> None:
    """Without a column of shares they are equal, to the unit if balanced."""
    rows = [("22.03", "22.00", "1/2"), ("22.03", "22.01", "1/2"), ("22", "22", "1")]
    header = ("from", "to", "share") if shared else ("from", "to")
    write_csv(office.folder / "overrides.csv", header, [row[: len(header)] for row in rows])
    office.recode(EARNINGS, recode={"rule": "balanced"})
    one, other = (cells(office.kept("new"), "earnings", ASTER, "05", code) for code in ("22.00", "22.01"))
    assert np.abs(one - other).max() <= 1
    assert one.sum() > 0


def test_an_override_to_one_code_is_no_blur(office: RecodingOffice) -> None:
    write_csv(office.folder / "overrides.csv", ("from", "to"), [("22.03", "22.00"), ("22", "22")])
    office.recode(EARNINGS)
    old, new = office.kept("old"), office.kept("new")
    assert (cells(new, "earnings", ASTER, "05", "22.00") == cells(old, "earnings", ASTER, "05", "22.03")).all()
    assert {new.draws("earnings")[ASTER, "05", "22.00", *when] for when in WHEN} == {1}


def test_two_columns_of_the_classification_in_one_table(office: RecodingOffice, recoded_office: RecodingOffice) -> None:
    """The two-digit code follows the four-digit one, in overrides as well."""
    both = copy.deepcopy(domains("programmes.csv"))
    both["programme"]["coarser"]["programme4"] = ["institution", "degree_level", "cip4", "cip2"]
    table = {**EARNINGS, "levels": []}
    office.measure(table, release="both", keep_measurements="kept/both", domains=both)
    new = copy.deepcopy(both)
    new["programme"]["groups"] = "programmes_new.csv"
    office.recode(table, recode={"measurements": "kept/both"}, domains=new)
    before, after = office.kept("both").groups("earnings"), office.kept("new").groups("earnings")
    assert all(key[2][:2] == key[3] for key in after)
    assert [(*key[:3], *key[4:]) for key in after] == list(recoded_office.kept("new").groups("earnings"))
    for when in WHEN:
        whole = before[ASTER, "05", "22.03", "22", *when]
        assert (after[ASTER, "05", "22.00", "22", *when] + after[ASTER, "05", "22.01", "22", *when] == whole).all()
        whole = before[ASTER, "05", "01.09", "01", *when]
        assert (after[ASTER, "05", "01.09", "01", *when] + after[ASTER, "05", "02.01", "02", *when] == whole).all()


def test_a_table_without_the_columns_stays_as_it_is(office: RecodingOffice) -> None:
    office.measure(FAMILIES, SCHOOLS_ALONE, release="more", keep_measurements="kept/more")
    out = office.recode(FAMILIES, SCHOOLS_ALONE, recode={"measurements": "kept/more"})
    assert (office.kept("new").counts["schools"] == office.kept("more").counts["schools"]).all()
    assert read_rows(out, "schools") == read_rows(office.folder / "out-more", "schools")


# --- plan -----------------------------------------------------------------------------------------------------------


def test_a_plan_counts_the_rules_and_costs_nothing(office: RecodingOffice) -> None:
    before, head = contents(office.folder), office.ledger.chain().head
    plan = office.open(office.recoding()).plan()
    after = contents(office.folder)
    assert {name for name in after if after[name] != before.get(name)} == {"new.yaml"}
    assert office.ledger.chain().head == head
    notes = {table.name: table.notes for table in plan.tables}
    assert (
        set(notes["earnings"])
        == set(notes["flows"])
        == {
            "10 codes of groups: direct",
            "4 codes of groups: override",
            "4 codes of groups: probabilistic, by the shares of institution × degree_level × grad_cohort",
            "2 codes of groups: probabilistic, by the shares of institution × degree_level",
            "4 codes of groups: probabilistic, by the shares of degree_level",
            "56 of 84 cells are divided at random and have no margin of error",
        }
    )
    assert "2 codes of groups: probabilistic, by the shares of all records" in notes["families"]
    assert plan.balance is None
    assert not plan.problem
    text = str(plan)
    assert (
        "Total: no additional privacy loss: post-processing of the measurements of old, which cost epsilon 7.5" in text
    )
    assert text.count("recoded, no additional epsilon") == len(plan.tables)
    assert "Budget" not in text


def test_a_plan_names_idle_overrides(office: RecodingOffice) -> None:
    with (office.folder / "overrides.csv").open("a") as file:
        file.write("03.01,03.02,1\n")
    notes = {table.name: table.notes for table in office.open(office.recoding()).plan().tables}
    unused_overrides = "overrides without effect, because the crosswalk has one destination: 03.01"
    assert unused_overrides in notes["earnings"]
    assert unused_overrides in notes["flows"]
    assert unused_overrides not in notes["families"]


def test_a_plan_says_if_the_name_is_used(recoded_office: RecodingOffice) -> None:
    path = recoded_office.folder / "new.yaml"
    plan = discreet.release(path, ledger=recoded_office.ledger).plan()
    assert "release 'new' is in the ledger already (derived)" in plan.problem
    assert "Would be refused" in str(plan)


def test_a_plan_of_a_table_without_the_columns_says_so(office: RecodingOffice) -> None:
    office.measure(FAMILIES, SCHOOLS_ALONE, release="more", keep_measurements="kept/more")
    plan = office.open(office.recoding(FAMILIES, SCHOOLS_ALONE, recode={"measurements": "kept/more"})).plan()
    assert plan.tables[1].notes == ("has none of the recoded columns: its measurements are unchanged",)


def test_columns_that_no_table_has_are_refused(office: RecodingOffice) -> None:
    office.measure(SCHOOLS_ALONE, release="more", keep_measurements="kept/more")
    with pytest.raises(SpecError, match="unknown column 'cip4'"):
        office.recode(SCHOOLS_ALONE, recode={"measurements": "kept/more", "columns": {"cip4": 5}})
    assert "new" not in office.ledger.chain().names()


def test_the_world_is_as_its_description_says() -> None:
    """Or the tests here would show less than they seem to."""
    becomes: dict[str, set[str]] = {}
    for old, new, _ in CROSSWALK:
        if old and new:
            becomes.setdefault(old[:5], set()).add(new[:5])
    assert becomes == {
        "01.01": {"01.01"},
        "01.09": {"01.09", "02.01"},
        "03.01": {"03.02"},
        "03.02": {"03.02"},
        "52.02": {"52.02", "52.10"},
    }
    assert RECODE["columns"] == {"cip4": 5, "cip2": 2}
