"""Public controls of the synthetic agency: sectors, hires between states, employment."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from discreet.synth import Graduates, graduates
from discreet.synth.draws import BITS, quantile_table, quantile_tables
from discreet.synth.education.economy import SMALL_HIRES, SMALL_JOBS, generate_economy
from discreet.synth.education.fields import FAMILIES
from discreet.synth.sectors import AFFINITY, SECTORS, affinities
from discreet.synth.states import STATES
from support.repository import SHARED

SECTOR_LABELS = SHARED / "lehd-schema" / "label_industry.csv"


@pytest.fixture(scope="module")
def agency(tmp_path_factory: pytest.TempPathFactory) -> Graduates:
    return graduates(tmp_path_factory.mktemp("agency"), 1000)


def rows(path: Path) -> list[tuple[str, ...]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [tuple(row) for row in csv.reader(file)][1:]


def codes(path: Path) -> list[str]:
    return [row[0] for row in rows(path)]


@pytest.mark.skipif(not SECTOR_LABELS.is_file(), reason=f"LEHD's label files are not at {SECTOR_LABELS}")
def test_sectors_are_written_as_lehd_writes_them() -> None:
    assert [sector.code for sector in SECTORS] == [code for code, _, level in rows(SECTOR_LABELS) if level == "S"]


def test_sectors_are_twenty_and_affinities_are_about_them_and_the_families() -> None:
    known = {sector.code for sector in SECTORS}
    assert len(known) == len(SECTORS) == 20
    assert set(AFFINITY) <= set(FAMILIES)
    assert all(set(leads_to) <= known for leads_to in AFFINITY.values())
    assert affinities().shape == (len(FAMILIES), 20)
    assert affinities()[FAMILIES.index("13"), 14] == AFFINITY["13"]["61"]


def test_hires_are_listed_for_all_pairs_of_a_home_and_a_state(agency: Graduates) -> None:
    homes = sorted({state for _, _, state in rows(agency.institutions)})
    pairs = [(home, to) for home, to, _ in rows(agency.job_flows)]
    assert pairs == [(home, to) for home in homes for to in codes(agency.states)]


def test_employment_is_listed_for_all_states_and_sectors(agency: Graduates) -> None:
    pairs = [(state, sector) for state, sector, _ in rows(agency.employment)]
    assert pairs == [(state, sector) for state in codes(agency.states) for sector in codes(agency.sectors)]


def test_files_say_what_the_economy_is(agency: Graduates) -> None:
    """Not transposed, and of the agency's own seed."""
    place = {state.code: number for number, state in enumerate(STATES)}
    sector = {row.code: number for number, row in enumerate(SECTORS)}
    economy = generate_economy(7)
    assert all(economy.hires[place[home], place[to]] == int(hires) for home, to, hires in rows(agency.job_flows))
    assert all(economy.employment[sector[k], place[s]] == int(jobs) for s, k, jobs in rows(agency.employment))


@pytest.mark.parametrize("seed", [0, 7, 8])
def test_most_hires_stay_and_more_go_next_door(seed: int) -> None:
    hires = generate_economy(seed).hires
    assert (hires >= 0).all()
    assert 0.6 < np.trace(hires) / hires.sum() < 0.8
    assert (np.argmax(hires, axis=1) == np.arange(len(STATES))).all()
    division = np.array([state.division for state in STATES])
    near = (division[:, None] == division) & ~np.eye(len(STATES), dtype=bool)
    far = division[:, None] != division
    to_near = hires[near].mean() / hires[far].mean()
    assert to_near > 2


@pytest.mark.parametrize("seed", [0, 7, 8])
def test_a_few_small_numbers_are_suppressed_and_large_ones_never(seed: int) -> None:
    actual = generate_economy(seed)
    for published, small in [(actual.hires, SMALL_HIRES), (actual.employment, SMALL_JOBS)]:
        assert 0.003 < (published == 0).mean() < 0.08
        assert ((published > 0) & (published < small)).any()
    assert 100e6 < actual.employment.sum() < 200e6
    assert (actual.employment[SECTORS.index(next(s for s in SECTORS if s.code == "62"))] > 0).all()


def test_suppression_hides_jobs_from_the_public_and_not_from_graduates() -> None:
    actual = generate_economy(7)
    gaps = np.argwhere(actual.employment == 0)
    assert len(gaps)
    assert all((actual.work[:, state] == sector).any() for sector, state in gaps)


def test_economies_differ_by_seed_alone() -> None:
    once, again, other = generate_economy(7), generate_economy(7), generate_economy(8)
    for name in ("employment", "hires", "work"):
        assert (getattr(once, name) == getattr(again, name)).all()
        assert (getattr(once, name) != getattr(other, name)).any()


def test_quantile_tables_are_those_made_one_by_one() -> None:
    shares = np.random.default_rng(3).random((4, 5, 7)) ** 3
    tables = quantile_tables(shares)
    assert tables.shape == (4, 5, 1 << BITS)
    single = np.stack([[quantile_table(row) for row in block] for block in shares])
    assert (tables != single).mean() < 0.001  # they may differ in where a half is rounded to


def test_quantile_tables_leave_out_what_has_no_share() -> None:
    assert set(quantile_tables(np.array([0.0, 1.0, 0.0, 3.0, 0.0]))) == {1, 3}
