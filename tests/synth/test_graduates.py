"""The synthetic graduates agency: its shapes, its public lists, and the same rows every time."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.synth import Graduates, graduates
from discreet.synth.__main__ import main
from discreet.synth.arrow import person_ids
from discreet.synth.data_errors import INVALID, UNDECLARED_FIELDS, UNDECLARED_SECTORS
from discreet.synth.education import records
from discreet.synth.education.catalogue import FEWEST, MOST, institution_count
from discreet.synth.education.records import BLOCK, COHORTS, LAST_YEAR, YEARS_AFTER, career_table

ROWS = 2 * BLOCK + 1234  # more than two blocks, the last one short

SCHEMA = {
    "person_id": pa.string(),
    "institution": pa.string(),
    "degree_level": pa.string(),
    "cipcode": pa.string(),
    "grad_cohort": pa.string(),
    "years_after": pa.string(),
    "state": pa.string(),
    "employed": pa.bool_(),
    "earnings": pa.int64(),
    "industry": pa.string(),
}
FORMATS = {
    "person_id": r"P[0-9A-F]{11}",
    "institution": r"0\d{7}",
    "degree_level": r"0[1-8]|1[78]",
    "cipcode": r"\d\d\.\d{4}",
    "grad_cohort": r"20\d\d",
    "years_after": r"1|5|10",
    "state": r"\d\d",
}
BEFORE_INDUSTRY = {  # some rows as they were before the file had industries
    0: ("P9E3779B97F5", "09004600", "05", "24.0101", "2022", "1", "48", True, 182529),
    40_000: ("P9892C24E83F", "09000600", "05", "11.0701", "2010", "5", "27", True, 86132),
    65_535: ("PE348956B22B", "09000100", "05", "13.1202", "2013", "5", "44", False, None),
    65_536: ("P17F0F9097F5", "09002300", "01", "51.0904", "2010", "1", "21", False, None),
    132_305: ("PCD00265097C", "09000200", "02", "51.0701", "2013", "1", "36", True, 58597),
}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Graduates:
    return graduates(tmp_path_factory.mktemp("clean"), ROWS, data_errors=False)


@pytest.fixture(scope="module")
def with_errors(tmp_path_factory: pytest.TempPathFactory) -> Graduates:
    return graduates(tmp_path_factory.mktemp("with_errors"), ROWS)


def listed(path: Path, *columns: str) -> list[tuple[str, ...]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [tuple(row[column] for column in columns) for row in csv.DictReader(file)]


def triples(table: pa.Table) -> set[tuple[str, ...]]:
    names = ["institution", "degree_level", "cipcode"]
    actual = table.select(names).group_by(names).aggregate([])
    return set(zip(*(actual[name].to_pylist() for name in names), strict=True))


def records_per_person(table: pa.Table) -> pa.ChunkedArray:
    return table.group_by("person_id").aggregate([([], "count_all")])["count_all"]


def test_schema_is_plain_and_rows_are_exact(clean: Graduates, with_errors: Graduates) -> None:
    for written in (clean, with_errors):
        table = pq.read_table(written.graduates)
        assert {field.name: field.type for field in table.schema} == SCHEMA
        assert table.num_rows == ROWS


@pytest.mark.parametrize("data_errors", [True, False])
@pytest.mark.parametrize("batch_rows", [1, BLOCK, BLOCK + 1])
def test_batch_size_changes_row_groups_but_no_row(tmp_path: Path, data_errors: bool, batch_rows: int) -> None:
    whole = graduates(tmp_path / "whole", ROWS, data_errors=data_errors)
    pieces = graduates(tmp_path / "pieces", ROWS, data_errors=data_errors, batch_rows=batch_rows)
    assert pq.read_table(whole.graduates).equals(pq.read_table(pieces.graduates))
    groups = [pq.ParquetFile(written.graduates).num_row_groups for written in (whole, pieces)]
    assert groups[0] == 1 < groups[1]


def test_same_seed_same_bytes_other_seed_other_agency(tmp_path: Path) -> None:
    once, again, other = (
        graduates(tmp_path / name, 10_000, seed) for name, seed in [("once", 7), ("again", 7), ("other", 8)]
    )
    for path, same in zip(vars(once).values(), vars(again).values(), strict=True):
        assert path.read_bytes() == same.read_bytes()
    assert once.graduates.read_bytes() != other.graduates.read_bytes()
    assert once.programmes.read_bytes() != other.programmes.read_bytes()


def test_clean_codes_have_their_formats_and_no_nulls(clean: Graduates) -> None:
    table = pq.read_table(clean.graduates)
    for name, pattern in FORMATS.items():
        values = pc.unique(table[name]).to_pylist()
        assert all(value is not None and re.fullmatch(pattern, value) for value in values), name


def test_clean_records_lie_within_the_public_lists(clean: Graduates) -> None:
    table = pq.read_table(clean.graduates)
    offered = set(listed(clean.programmes, "institution", "degree_level", "cipcode"))
    assert triples(table) < offered  # some programmes have no graduate
    for column, path, key in [
        ("institution", clean.institutions, "institution"),
        ("degree_level", clean.degree_levels, "degree_level"),
        ("cipcode", clean.cip, "cip6"),
        ("state", clean.states, "state"),
        ("industry", clean.sectors, "industry"),
    ]:
        assert {(value,) for value in pc.unique(table[column].drop_null()).to_pylist()} <= set(listed(path, key))
    assert set(pc.unique(table["grad_cohort"]).to_pylist()) == set(COHORTS)
    assert set(pc.unique(table["years_after"]).to_pylist()) == set(YEARS_AFTER)


def test_public_lists_have_unique_keys_and_refer_to_each_other(clean: Graduates) -> None:
    programmes = listed(clean.programmes, "institution", "degree_level", "cipcode")
    assert len(programmes) == len(set(programmes))
    for path, key in [
        (clean.institutions, "institution"),
        (clean.institutions, "label"),
        (clean.cip, "cip6"),
        (clean.degree_levels, "degree_level"),
        (clean.states, "state"),
    ]:
        keys = listed(path, key)
        assert len(keys) == len(set(keys)), path
    schools, levels, fields = map(set, zip(*programmes, strict=True))
    assert {(code,) for code in schools} == set(listed(clean.institutions, "institution"))
    assert {(code,) for code in levels} <= set(listed(clean.degree_levels, "degree_level"))
    assert {(code,) for code in fields} <= set(listed(clean.cip, "cip6"))
    assert set(listed(clean.institutions, "state")) <= set(listed(clean.states, "state"))


def test_cip_hierarchy_is_functional(clean: Graduates) -> None:
    rows = listed(clean.cip, "cip6", "cip4", "cip2")
    assert len({cip6 for cip6, _, _ in rows}) == len(rows)
    assert len({cip4 for _, cip4, _ in rows}) == len({(cip4, cip2) for _, cip4, cip2 in rows})
    assert all(cip6.startswith(cip4) and cip4.startswith(cip2) for cip6, cip4, cip2 in rows)


def test_states_cover_nine_divisions(clean: Graduates) -> None:
    assert {division for (division,) in listed(clean.states, "division")} == set("123456789")
    assert len(listed(clean.states, "state")) == 51


def test_clean_people_have_one_to_eight_distinct_records(clean: Graduates) -> None:
    table = pq.read_table(clean.graduates)
    counts = records_per_person(table)
    assert pc.min(counts).as_py() == 1
    assert pc.max(counts).as_py() == 8
    two_degrees = table.group_by("person_id").aggregate([("cipcode", "count_distinct")])
    assert pc.any(pc.greater(two_degrees["cipcode_count_distinct"], 1)).as_py()


def test_no_earnings_from_the_future(clean: Graduates) -> None:
    table = pq.read_table(clean.graduates)
    seen = pc.add(table["grad_cohort"].cast(pa.int64()), table["years_after"].cast(pa.int64()))
    assert pc.max(seen).as_py() + 2 <= LAST_YEAR
    assert career_table().length.max() == 8


def test_earnings_are_null_exactly_without_employment(clean: Graduates) -> None:
    table = pq.read_table(clean.graduates)
    assert table["earnings"].is_null().equals(pc.invert(table["employed"]))
    assert pc.min(table["earnings"]).as_py() > 0


def test_earnings_are_lognormal_rise_with_years_and_pile_up_on_thousands(clean: Graduates) -> None:
    table = pq.read_table(clean.graduates).filter(pc.field("employed"))
    earnings = table["earnings"].to_numpy()
    assert 10.6 < np.log(earnings).mean() < 11.2
    assert 0.7 < np.log(earnings).std() < 0.95
    assert 0.12 < (earnings % 1000 == 0).mean() < 0.20
    years = table["years_after"].to_numpy()
    medians = [np.median(earnings[years == after]) for after in YEARS_AFTER]
    assert medians == sorted(medians)


def test_rows_are_those_from_before_there_were_industries(clean: Graduates, with_errors: Graduates) -> None:
    for written in (clean, with_errors):
        table = pq.read_table(written.graduates)
        for row, (*codes, employed, earnings) in BEFORE_INDUSTRY.items():
            *found_codes, found_employed, found_earnings, _ = table.slice(row, 1).to_pylist()[0].values()
            assert (found_codes, found_employed) == (codes, employed)
            assert found_earnings == (earnings and pytest.approx(earnings, rel=1e-4))


@pytest.mark.parametrize("data_errors", [True, False])
def test_industry_has_a_stream_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_errors: bool) -> None:
    usual = pq.read_table(graduates(tmp_path / "usual", 10_000, data_errors=data_errors).graduates)
    monkeypatch.setattr(records, "NEW_LINE", 1.0)
    other = pq.read_table(graduates(tmp_path / "other", 10_000, data_errors=data_errors).graduates)
    assert usual["industry"] != other["industry"]
    assert usual.drop_columns("industry").equals(other.drop_columns("industry"))


def test_industry_is_null_exactly_without_employment(clean: Graduates) -> None:
    table = pq.read_table(clean.graduates)
    assert table["industry"].is_null().equals(pc.invert(table["employed"]))
    assert len(pc.unique(table["industry"])) == 20 + 1


def test_nobody_without_employment_has_an_industry_in_a_file_with_errors_either(with_errors: Graduates) -> None:
    table = pq.read_table(with_errors.graduates)
    idle = table.filter(pc.invert(table["employed"]))
    assert idle["industry"].null_count == idle.num_rows
    unstated = table.num_rows - idle.num_rows - pc.count(table["industry"]).as_py()
    assert 0 < unstated < 0.002 * table.num_rows


@pytest.mark.parametrize(
    ("family", "sector", "least"),
    [("13", "61", 0.5), ("14", "31-33", 0.2), ("14", "54", 0.15), ("51", "62", 0.5), ("43", "92", 0.3)],
)
def test_sectors_follow_the_field_of_study(clean: Graduates, family: str, sector: str, least: float) -> None:
    table = pq.read_table(clean.graduates).filter(pc.field("employed"))
    studied = pc.starts_with(table["cipcode"], family).to_numpy()
    works = pc.equal(table["industry"], sector).to_numpy()
    assert works[studied].mean() > least
    assert works[studied].mean() > 1.5 * works[~studied].mean()


def test_sectors_follow_the_employment_of_the_state(clean: Graduates) -> None:
    """Among those who studied nothing in particular, sectors have the shares of the state's published jobs."""
    table = pq.read_table(clean.graduates).filter(pc.field("employed") & pc.starts_with(pc.field("cipcode"), "24."))
    state = pc.value_counts(table["state"]).to_pylist()
    largest = max(state, key=lambda entry: entry["counts"])["values"]
    jobs = {k: int(n) for s, k, n in listed(clean.employment, "state", "industry", "employment") if s == largest}
    works = table.filter(pc.equal(table["state"], largest))["industry"]
    actual = {entry["values"]: entry["counts"] for entry in pc.value_counts(works).to_pylist()}
    assert len(works) > 500
    for sector, employed in jobs.items():
        expected = employed / sum(jobs.values())
        if employed:
            assert abs(actual.get(sector, 0) / len(works) - expected) < 5 * (expected / len(works)) ** 0.5


def test_a_few_institutions_hold_most_graduates(clean: Graduates) -> None:
    sizes = pc.value_counts(pq.read_table(clean.graduates)["institution"]).field("counts").to_numpy()
    assert np.sort(sizes)[::-1][:5].sum() > 0.35 * ROWS
    assert sizes.min() < 0.02 * ROWS


@pytest.mark.parametrize("rows", [10_000, ROWS])
def test_every_kind_of_data_error_occurs(tmp_path: Path, rows: int) -> None:
    table = pq.read_table(graduates(tmp_path, rows).graduates)
    assert table["person_id"].null_count > 0
    assert table["institution"].null_count > 0
    assert pc.min(table["earnings"]).as_py() < 0
    assert set(pc.unique(table["cipcode"]).to_pylist()) & set(UNDECLARED_FIELDS)
    for name in ("institution", "degree_level", "cipcode", "grad_cohort", "years_after", "state"):
        assert set(pc.unique(table[name]).to_pylist()) & set(INVALID), name
    industries = set(pc.unique(table["industry"]).to_pylist())
    assert industries & set(INVALID)
    assert industries & set(UNDECLARED_SECTORS)
    counts = records_per_person(table.filter(pc.not_equal(table["person_id"], "0" * 12)))
    assert pc.max(counts).as_py() >= 20
    assert pc.any(pc.equal(table["person_id"], "0" * 12)).as_py()


def test_data_errors_leave_most_rows_and_public_lists_unchanged(clean: Graduates, with_errors: Graduates) -> None:
    before, after = pq.read_table(clean.graduates), pq.read_table(with_errors.graduates)
    changed = np.zeros(ROWS, dtype=bool)
    for name in SCHEMA:
        same = pc.equal(before[name], after[name]).fill_null(False)
        both_null = pc.and_(before[name].is_null(), after[name].is_null())
        changed |= ~pc.or_(same, both_null).to_numpy()
    assert 0.002 < changed.mean() < 0.02
    assert with_errors.programmes.read_bytes() == clean.programmes.read_bytes()
    assert not set(INVALID) & {code for row in listed(with_errors.cip, "cip6") for code in row}


def test_institutions_grow_slowly_with_the_agency() -> None:
    counts = [institution_count(10**power) for power in range(10)]
    assert counts == sorted(counts)
    assert counts[4] == FEWEST
    assert counts[9] == MOST


@given(st.lists(st.integers(0, 2**44 - 1), min_size=1, unique=True))
def test_person_ids_are_twelve_characters_and_never_collide(numbers: list[int]) -> None:
    ids = person_ids(np.array(numbers, dtype=np.int64)).to_pylist()
    assert len(set(ids)) == len(numbers)
    assert all(re.fullmatch(FORMATS["person_id"], text) for text in ids)


@pytest.mark.parametrize("rows", [1, 2, 199])
def test_tiny_agencies_work(tmp_path: Path, rows: int) -> None:
    assert pq.read_table(graduates(tmp_path, rows).graduates).num_rows == rows


def test_progress_ends_at_the_total(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    graduates(tmp_path, ROWS, progress=lambda done, total: seen.append((done, total)), batch_rows=BLOCK)
    assert seen == [(BLOCK, ROWS), (2 * BLOCK, ROWS), (ROWS, ROWS)]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("rows", 0),
        ("rows", -5),
        ("rows", True),
        ("rows", 1e6),
        ("seed", -1),
        ("seed", "7"),
        ("batch_rows", 0),
    ],
)
def test_bad_arguments_are_refused_by_name(tmp_path: Path, argument: str, value: object) -> None:
    with pytest.raises(ParameterError, match=argument) as refusal:
        graduates(tmp_path, **{"rows": 10, argument: value})  # type: ignore[arg-type]
    assert refusal.value.do
    assert not list(tmp_path.iterdir())


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(ParameterError, match="Give a folder"):
        graduates(tmp_path / "taken", 10)


def test_command_line_writes_what_the_function_writes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "discreet.synth", "graduates", "--rows", "1000", "--seed", "3"]
    done = subprocess.run([*command, "--out", str(tmp_path / "cli")], check=True, capture_output=True, text=True)
    assert "1,000 of 1,000" in done.stderr
    written = graduates(tmp_path / "function", 1000, 3)
    assert done.stdout.split() == [
        str(tmp_path / "cli" / path.relative_to(tmp_path / "function")) for path in vars(written).values()
    ]
    assert (tmp_path / "cli" / "graduates.parquet").read_bytes() == written.graduates.read_bytes()


def test_command_line_clean_and_refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graduates", "--rows", "500", "--out", str(tmp_path), "--clean", "--quiet"]) == 0
    assert pq.read_table(tmp_path / "graduates.parquet")["person_id"].null_count == 0
    assert main(["graduates", "--rows", "0", "--out", str(tmp_path)]) == 2
    assert "rows is 0" in capsys.readouterr().err


def test_a_list_that_nobody_reads_to_its_end_is_no_error(tmp_path: Path) -> None:
    """As with `| head`: the reader has gone before the first line."""
    read, write = os.pipe()
    os.close(read)
    try:
        command = [
            sys.executable,
            "-m",
            "discreet.synth",
            "graduates",
            "--rows",
            "1000",
            "--out",
            str(tmp_path / "out"),
            "--quiet",
        ]
        ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(write)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert (tmp_path / "out/graduates.parquet").is_file()
