"""Synthetic employers: moments of the sample of Haney et al. 2017, jobs consistent with the frame, equal rows."""

from __future__ import annotations

import csv
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
from discreet.synth.__main__ import main
from discreet.synth.data_errors import INVALID
from discreet.synth.industries import INDUSTRIES, OWNERSHIP, SIZES
from discreet.synth.sectors import SECTORS
from discreet.synth.states import population
from discreet.synth.workplaces import data_errors, jobs, workforce
from discreet.synth.workplaces.employers import BLOCK, Employers, employers, establishment_count
from discreet.synth.workplaces.files import COLUMNS, FIRST_WORKPLACE, EmployerFiles, worker_ids, write_employers
from discreet.synth.workplaces.places import (
    BOUNDS,
    MOST_PLACES,
    REFERENCE_JOBS,
    STRATA,
    WHICH,
    place_count,
    state_count,
)
from discreet.synth.workplaces.workforce import CELLS, EDUCATIONS, SEXES, WORKFORCES, sex_by_education

JOBS = 250_000  # three blocks of establishments, the last one short
CONFIDENTIAL = tuple(COLUMNS)


@pytest.fixture(scope="module")
def frame() -> Employers:
    return employers(JOBS)


@pytest.fixture(scope="module", params=[7, 2026])
def reference(request: pytest.FixtureRequest) -> Employers:
    return employers(REFERENCE_JOBS, request.param)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> EmployerFiles:
    return write_employers(tmp_path_factory.mktemp("clean"), JOBS, data_errors=False)


@pytest.fixture(scope="module")
def with_errors(tmp_path_factory: pytest.TempPathFactory) -> EmployerFiles:
    return write_employers(tmp_path_factory.mktemp("with_errors"), JOBS)


def listed(path: Path, column: str) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return [row[column] for row in csv.DictReader(file)]


def positions(column: pa.ChunkedArray, codes: list[str]) -> np.ndarray:
    actual: np.ndarray = pc.index_in(column, pa.array(codes)).fill_null(-1).to_numpy()
    return actual


# --- moments at the scale of Haney et al. 2017, §10


def test_reference_establishments_haney_2017_section_10(reference: Employers) -> None:
    assert reference.jobs == 10_900_000
    assert len(reference) == 527_000
    assert 740 <= (reference.size > 1000).sum() <= 815
    assert 10_000 < reference.size.max() < 25_000
    assert 0.4 < (reference.size < 5).mean() < 0.6
    assert reference.size.min() == 1


def test_over_93_per_cent_of_occupied_counts_are_below_1000_haney_2017_section_6(reference: Employers) -> None:
    counts = np.bincount(reference.cell, reference.size, reference.cells)
    occupied = np.bincount(reference.cell, minlength=reference.cells) > 0
    assert reference.cells == 72_000
    assert 15_000 < occupied.sum() < 30_000
    assert 0.93 < (counts[occupied] < 1000).mean() < 0.96


def test_reference_places_fill_four_strata(reference: Employers) -> None:
    assert len({place.state for place in reference.places}) == 3
    strata = np.bincount(reference.stratum, minlength=len(STRATA))
    assert len(reference.places) == strata.sum() == 1_200
    assert strata[0] > 80
    assert strata[1] > 700
    assert strata[2] > 120
    assert 15 < strata[3] < 50
    by_stratum = np.bincount(reference.stratum[reference.place], reference.size)
    assert (by_stratum > 1_000).all()


def test_jobs_follow_people_but_not_exactly(reference: Employers) -> None:
    people = np.array([place.population for place in reference.places])
    work = np.bincount(reference.place, reference.size, len(people))
    towns = people >= 1_000
    correlation = np.corrcoef(np.log(people[towns]), np.log(work[towns]))[0, 1]
    assert 0.85 < correlation < 0.99
    assert (work[towns] / people[towns]).max() > 1.5  # a place where more people work than live


def test_no_establishment_is_too_large_for_its_place(reference: Employers) -> None:
    people = np.array([place.population for place in reference.places])[reference.place]
    assert (2 * reference.size <= np.maximum(people, 2)).all()


def test_sectors_have_their_shares_and_public_ones_their_owners(reference: Employers) -> None:
    share = np.bincount(reference.sector, reference.size) / reference.jobs
    expected = np.array([sector.jobs for sector in SECTORS]) / sum(sector.jobs for sector in SECTORS)
    assert np.allclose(share, expected, rtol=0.2, atol=0.003)
    for number, sector in enumerate(SECTORS):
        rows = reference.sector == number
        jobs_of = np.bincount(reference.ownership[rows], reference.size[rows], len(OWNERSHIP))
        sizes = SIZES[sector.code]
        public = (sizes.state_local + sizes.federal) / 100
        assert abs(1 - jobs_of[0] / jobs_of.sum() - public) < 0.06, sector.code
    assert not (reference.ownership[reference.sector == len(SECTORS) - 1] == 0).any()  # nobody owns an office of 92
    assert (reference.size[reference.ownership > 0] > 1000).sum() > 50


def test_shapes_follow_the_sector_and_differ_between_establishments(reference: Employers) -> None:
    n = 20 * BLOCK
    counts = reference.workers(0, n)
    sector = reference.sector[:n]
    for number, expected in enumerate(sex_by_education()):
        actual = counts[sector == number].sum(axis=0)
        assert np.abs(actual / actual.sum() - expected).max() < 0.07
    large = (counts.sum(axis=1) >= 200) & (sector == [sector.code for sector in SECTORS].index("62"))
    women = counts[large, 4:].sum(axis=1) / counts[large].sum(axis=1)
    binomial = np.sqrt(0.78 * 0.22 / 200)
    assert women.std() > 2.5 * binomial


# --- the frame at any scale


@pytest.mark.parametrize("jobs", [1, 2, 41, 10_000, 123_457, 2_000_000])
def test_sizes_total_the_jobs_exactly(jobs: int) -> None:
    actual = employers(jobs, 3)
    assert actual.jobs == jobs
    assert len(actual) == establishment_count(jobs)
    assert actual.size.min() >= 1
    assert actual.cell.max() < actual.cells
    assert set(actual.stratum) == set(range(len(STRATA)))


def test_places_and_states_grow_with_the_jobs() -> None:
    scales = [10**4, 10**5, 10**6, REFERENCE_JOBS, 130_000_000, 10**9]
    assert [place_count(jobs) for jobs in scales] == [36, 115, 363, 1200, 18338, MOST_PLACES]
    assert [state_count(jobs) for jobs in scales] == [3, 3, 3, 3, 51, 51]
    names = len(WHICH) * 20 * 16
    assert population().max() * MOST_PLACES < 0.9 * names  # every place of a state has a name of its own


def test_places_have_codes_labels_and_strata_of_their_own(frame: Employers) -> None:
    codes = [place.code for place in frame.places]
    assert codes == sorted(set(codes))
    assert all(len(code) == 7 and code.isdigit() and code[2] == "9" for code in codes)
    assert len({(place.state, place.label) for place in frame.places}) == len(codes)
    for place in frame.places:
        low, high = (0, *BOUNDS)[place.stratum], (*BOUNDS, 10**9)[place.stratum]
        assert low <= place.population < high


def test_tables_are_complete() -> None:
    assert set(SIZES) == set(WORKFORCES) == {sector.code for sector in SECTORS}
    assert all(kind.tail > 1 and kind.mean > 1 and kind.jobs > 0 for kind in INDUSTRIES)
    assert np.allclose(sex_by_education().sum(axis=1), 1)
    assert len(SEXES) * len(EDUCATIONS) == CELLS == 8
    assert all(sum(workforce.educations) == 100 for workforce in WORKFORCES.values())


def test_same_seed_same_frame_other_seed_another(frame: Employers) -> None:
    again, other = employers(JOBS), employers(JOBS, 8)
    assert again.places == frame.places != other.places
    for name in ("place", "sector", "ownership", "size"):
        assert np.array_equal(getattr(again, name), getattr(frame, name))
        assert not np.array_equal(getattr(other, name), getattr(frame, name))


def test_workers_are_the_same_however_they_are_asked_for(frame: Employers) -> None:
    n = len(frame)
    whole = frame.workers(0, n)
    assert whole.dtype == np.int32
    assert np.array_equal(whole.sum(axis=1), frame.size)
    assert (whole >= 0).all()
    for step in (BLOCK - 1, 5_000):
        parts = [frame.workers(first, min(step, n - first)) for first in range(0, n, step)]
        assert np.array_equal(np.concatenate(parts), whole)
    assert frame.workers(n, 0).shape == (0, CELLS)


@pytest.mark.parametrize(("first", "n"), [(-1, 2), (0, 10**9), (5, -1)])
def test_establishments_outside_the_frame_are_refused(frame: Employers, first: int, n: int) -> None:
    with pytest.raises(ParameterError, match="Stay within"):
        frame.workers(first, n)


# --- files


def test_clean_files_agree_with_the_frame(frame: Employers, clean: EmployerFiles) -> None:
    full = pq.read_table(clean.worker_full)
    assert full.num_rows == JOBS
    number = full["workplace_id"].to_numpy() - FIRST_WORKPLACE
    sex = positions(full["sex"], [entry.code for entry in SEXES])
    education = positions(full["education"], [entry.code for entry in EDUCATIONS])
    counts = np.bincount((number * 2 + sex) * 4 + education, minlength=len(frame) * CELLS).reshape(-1, CELLS)
    assert np.array_equal(counts, frame.workers(0, len(frame)))
    workplaces = pq.read_table(clean.workplaces)
    assert np.array_equal(workplaces["workplace_id"].to_numpy(), FIRST_WORKPLACE + np.arange(len(frame)))
    for name, path in (("place", clean.places), ("sector", clean.sectors), ("ownership", clean.ownership)):
        codes = listed(path, name)
        assert np.array_equal(positions(workplaces[name], codes), getattr(frame, name))
        assert np.array_equal(positions(full[name], codes), getattr(frame, name)[number])


def test_clean_full_file_is_the_join(clean: EmployerFiles) -> None:
    joined = (
        pq.read_table(clean.jobs)
        .append_column("row", pa.array(np.arange(JOBS)))
        .join(pq.read_table(clean.workers), "worker_id", join_type="inner")
        .join(pq.read_table(clean.workplaces), "workplace_id", join_type="inner")
        .sort_by("row")
    )
    full = pq.read_table(clean.worker_full)
    assert joined.select(full.column_names).combine_chunks().equals(full.combine_chunks())


def test_a_few_per_cent_of_workers_have_a_second_job_elsewhere(clean: EmployerFiles) -> None:
    table = pq.read_table(clean.jobs)
    held = table.group_by("worker_id").aggregate([("workplace_id", "count"), ("workplace_id", "count_distinct")])
    assert held["workplace_id_count"].equals(held["workplace_id_count_distinct"])
    counts = np.bincount(held["workplace_id_count"].to_numpy())
    assert len(counts) == 3
    assert 0.03 < counts[2] / counts[1] < 0.07
    workers = pq.read_table(clean.workers)["worker_id"].to_numpy()
    assert np.array_equal(np.sort(workers), np.sort(held["worker_id"].to_numpy()))


def test_jobs_of_an_establishment_lie_near_but_not_together(frame: Employers, clean: EmployerFiles) -> None:
    number = pq.read_table(clean.jobs)["workplace_id"].to_numpy() - FIRST_WORKPLACE
    ends = np.cumsum([frame.size[start : start + BLOCK].sum() for start in range(0, len(frame), BLOCK)])
    assert np.array_equal(number // BLOCK, np.searchsorted(ends, np.arange(JOBS), side="right"))
    assert (np.diff(number) == 0).mean() < 0.05
    assert (np.diff(number) < 0).mean() > 0.4


def test_columns_are_plain_and_codes_are_declared(clean: EmployerFiles) -> None:
    lists = {
        "place": clean.places,
        "sector": clean.sectors,
        "ownership": clean.ownership,
        "sex": clean.sexes,
        "education": clean.educations,
        "age": clean.ages,
        "race": clean.races,
        "ethnicity": clean.ethnicities,
    }
    for name in CONFIDENTIAL:
        table = pq.read_table(getattr(clean, name))
        assert tuple(table.column_names) == COLUMNS[name]
        for column in table.schema:
            assert column.type == (pa.string() if column.name in lists else pa.int64())
            assert table[column.name].null_count == 0
            if column.name in lists:
                codes = listed(lists[column.name], column.name)
                assert len(codes) == len(set(codes))
                assert set(pc.unique(table[column.name]).to_pylist()) <= set(codes)
    assert set(pc.unique(pq.read_table(clean.workers)["race"]).to_pylist()) == set(listed(clean.races, "race"))
    assert set(listed(clean.places, "stratum")) == set(STRATA)


def test_the_young_work_in_restaurants(clean: EmployerFiles) -> None:
    joined = pq.read_table(clean.jobs).join(pq.read_table(clean.workers), "worker_id")
    joined = joined.join(pq.read_table(clean.workplaces), "workplace_id")
    young = pc.equal(joined["age"], "CA01").to_numpy()
    restaurants, offices = (pc.equal(joined["sector"], code).to_numpy() for code in ("72", "92"))
    assert young[restaurants].mean() > 0.4
    assert young[offices].mean() < 0.2


@pytest.mark.parametrize("data_errors", [True, False])
def test_batch_size_changes_row_groups_but_no_row(
    tmp_path: Path, clean: EmployerFiles, with_errors: EmployerFiles, data_errors: bool
) -> None:
    pieces = write_employers(tmp_path, JOBS, data_errors=data_errors, batch_rows=1)
    for name in CONFIDENTIAL:
        whole = getattr(with_errors if data_errors else clean, name)
        assert pq.ParquetFile(whole).num_row_groups == 1
        assert pq.ParquetFile(getattr(pieces, name)).num_row_groups == 3
        assert pq.read_table(whole).equals(pq.read_table(getattr(pieces, name)))


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    once, again, other = (
        write_employers(tmp_path / name, 10_000, seed) for name, seed in [("once", 7), ("again", 7), ("other", 8)]
    )
    for path, same in zip(vars(once).values(), vars(again).values(), strict=True):
        assert path.read_bytes() == same.read_bytes()
    for name in (*CONFIDENTIAL, "places"):
        assert getattr(once, name).read_bytes() != getattr(other, name).read_bytes()
    assert not list(tmp_path.rglob("*.part"))


def test_ages_have_a_stream_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = write_employers(tmp_path / "usual", 10_000)
    monkeypatch.setattr(workforce, "MIX_ALIKE", 4.0)
    other = write_employers(tmp_path / "other", 10_000)
    assert pq.read_table(usual.jobs).equals(pq.read_table(other.jobs))
    assert pq.read_table(usual.worker_full).equals(pq.read_table(other.worker_full))
    assert not pq.read_table(usual.workers).equals(pq.read_table(other.workers))


def test_nobody_has_two_jobs_if_there_are_no_second_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "SECOND", 0.0)
    written = write_employers(tmp_path, 10_000, data_errors=False)
    assert pq.read_table(written.workers).num_rows == 10_000


# --- data errors


@pytest.mark.parametrize("size", [10_000, JOBS])
def test_every_kind_of_data_error_occurs(tmp_path: Path, size: int) -> None:
    written = write_employers(tmp_path, size)
    table = {name: pq.read_table(getattr(written, name)) for name in CONFIDENTIAL}
    for name in ("sex", "education", "age", "race", "ethnicity"):
        column = table["workers"][name]
        assert column.null_count > 0
        assert set(pc.unique(column).to_pylist()) & set(data_errors.invalid_codes(name)), name
    for name in ("place", "sector"):
        assert table["workplaces"][name].null_count > 0
        assert set(pc.unique(table["workplaces"][name]).to_pylist()) & set(data_errors.invalid_codes(name)), name
    known, held = (set(table[name]["worker_id"].to_pylist()) for name in ("workers", "jobs"))
    assert known < held
    assert len(known) < table["workers"].num_rows
    assert set(table["jobs"]["workplace_id"].to_pylist()) - set(table["workplaces"]["workplace_id"].to_pylist())


def test_full_file_with_errors_is_the_join_with_the_first_listing(with_errors: EmployerFiles) -> None:
    workers = pq.read_table(with_errors.workers)
    workers = workers.append_column("row", pa.array(np.arange(workers.num_rows)))
    first = workers.group_by("worker_id").aggregate([("row", "min")])["row_min"]
    joined = (
        pq.read_table(with_errors.jobs)
        .append_column("at", pa.array(np.arange(JOBS)))
        .join(workers.take(first), "worker_id")
        .join(pq.read_table(with_errors.workplaces), "workplace_id")
        .sort_by("at")
    )
    full = pq.read_table(with_errors.worker_full)
    assert joined.select(full.column_names).combine_chunks().equals(full.combine_chunks())
    twice = workers.group_by("worker_id").aggregate([("education", "count_distinct"), ([], "count_all")])
    assert set(pc.unique(twice["count_all"]).to_pylist()) == {1, 2}
    assert pc.max(twice["education_count_distinct"]).as_py() == 2  # the two listings disagree


def test_data_errors_leave_most_rows_and_public_lists_unchanged(
    clean: EmployerFiles, with_errors: EmployerFiles
) -> None:
    before, after = pq.read_table(clean.worker_full), pq.read_table(with_errors.worker_full)
    changed = np.zeros(JOBS, dtype=bool)
    for name in before.column_names:
        changed |= ~pc.equal(before[name], after[name]).fill_null(False).to_numpy()
    assert 0.003 < changed.mean() < 0.03
    assert pq.read_table(clean.jobs)["worker_id"].equals(pq.read_table(with_errors.jobs)["worker_id"])
    for name in set(vars(clean)) - set(CONFIDENTIAL):
        assert getattr(clean, name).read_bytes() == getattr(with_errors, name).read_bytes()
        assert not any(code in getattr(with_errors, name).read_text().replace("\n", ",").split(",") for code in INVALID)


# --- arguments and the command line


@given(st.lists(st.integers(0, 2**44 - 1), min_size=1, unique=True))
def test_worker_ids_never_collide(numbers: list[int]) -> None:
    ids = worker_ids(np.array(numbers, dtype=np.int64))
    assert len(set(ids.tolist())) == len(numbers)
    assert (ids >= 0).all()


def test_tiny_agencies_work(tmp_path: Path) -> None:
    for size in (1, 2, 50):
        written = write_employers(tmp_path / str(size), size)
        assert pq.read_table(written.jobs).num_rows == pq.read_table(written.worker_full).num_rows == size


def test_progress_ends_at_the_total(tmp_path: Path, frame: Employers) -> None:
    seen: list[tuple[int, int]] = []
    write_employers(tmp_path, JOBS, progress=lambda done, total: seen.append((done, total)), batch_rows=1)
    assert [total for _, total in seen] == [JOBS] * 3
    assert seen[-1] == (JOBS, JOBS)
    assert seen[0][0] == frame.size[:BLOCK].sum()


@pytest.mark.parametrize(
    ("argument", "value"),
    [("jobs", 0), ("jobs", -5), ("jobs", True), ("jobs", 1e6), ("seed", -1), ("seed", "7"), ("batch_rows", 0)],
)
def test_bad_arguments_are_refused_by_name(tmp_path: Path, argument: str, value: object) -> None:
    with pytest.raises(ParameterError, match=argument) as refusal:
        write_employers(tmp_path, **{"jobs": 10, argument: value})  # type: ignore[arg-type]
    assert refusal.value.do
    assert not list(tmp_path.iterdir())


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(ParameterError, match="Give a folder"):
        write_employers(tmp_path / "taken", 10)


def test_command_line_writes_what_the_function_writes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "discreet.synth", "employers", "--jobs", "1000", "--seed", "3", "--clean"]
    done = subprocess.run([*command, "--out", str(tmp_path / "cli")], check=True, capture_output=True, text=True)
    assert "1,000 of 1,000" in done.stderr
    written = write_employers(tmp_path / "function", 1000, 3, data_errors=False)
    for line, path in zip(done.stdout.split(), vars(written).values(), strict=True):
        assert Path(line) == tmp_path / "cli" / path.relative_to(tmp_path / "function")
        assert Path(line).read_bytes() == path.read_bytes()


def test_command_line_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["employers", "--jobs", "0", "--out", str(tmp_path), "--quiet"]) == 2
    assert "jobs is 0" in capsys.readouterr().err
