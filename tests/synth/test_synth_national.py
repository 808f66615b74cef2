"""National flows for benchmarks: the same counts however they are asked for, and plausible ones."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.synth.sectors import SECTORS
from discreet.synth.states import STATES
from discreet_studies.pseo import national as source
from discreet_studies.pseo.national import BLOCK, CELLS, LARGEST, MARGINAL, SCHOOL, National, national

GROUPS = 3 * SCHOOL + 17  # the last institution's list is cut, and so is the last block


@pytest.fixture(scope="module")
def country() -> National:
    return national(GROUPS, 7)


@pytest.fixture(scope="module")
def flows(country: National) -> np.ndarray:
    return country.counts(0, GROUPS)


def sector(code: str) -> int:
    return next(number for number, row in enumerate(SECTORS) if row.code == code)


def test_groups_are_a_public_list_of_distinct_keys(country: National) -> None:
    assert country.keys.shape == (GROUPS, 5)
    assert len(np.unique(country.keys, axis=0)) == GROUPS
    assert (np.lexsort(country.keys.T[::-1]) == np.arange(GROUPS)).all()
    assert list(country.codes) == ["institution", "degree_level", "cip2", "grad_cohort", "years_after"]
    for column, codes in zip(country.keys.T, country.codes.values(), strict=True):
        assert len(set(codes)) == len(codes)
        assert set(column) == set(range(len(codes)))
    assert len(country.home) == len(country.codes["institution"]) == 4


def test_controls_have_a_value_for_every_cell(country: National) -> None:
    assert CELLS == 20 * 51 + 1 == 1021
    assert country.economy.hires.shape == (51, 51)
    assert country.economy.employment.shape == (20, 51)
    assert country.home.max() < len(country.economy.hires)


@pytest.mark.parametrize(
    ("first", "n"), [(0, 1), (BLOCK - 1, 2), (5, 3 * BLOCK), (GROUPS - 3, 3), (BLOCK, BLOCK), (9, 0)]
)
def test_any_stretch_can_be_made_alone(country: National, flows: np.ndarray, first: int, n: int) -> None:
    alone = national(GROUPS, 7).counts(first, n)
    assert alone.dtype == np.int64
    assert alone.shape == (n, CELLS)
    assert (alone == flows[first : first + n]).all()


def test_blocks_and_seeds_differ(country: National, flows: np.ndarray) -> None:
    totals = flows.sum(axis=1)
    assert (totals[:BLOCK] != totals[BLOCK : 2 * BLOCK]).any()
    other = national(GROUPS, 8)
    assert (other.counts(0, BLOCK).sum(axis=1) != totals[:BLOCK]).any()
    assert (other.economy.hires != country.economy.hires).any()


def test_group_sizes_are_lognormal_with_a_few_empty_ones(flows: np.ndarray) -> None:
    totals = flows.sum(axis=1)
    assert (flows >= 0).all()
    assert 50 < np.median(totals) < 70
    assert 1000 < totals.max() <= LARGEST
    assert 0.01 < (totals == 0).mean() < 0.06
    assert (flows > 0).mean() < 0.06


def test_no_group_is_larger_than_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "SPREAD", 3.0)
    assert national(BLOCK, 7).counts(0, BLOCK).sum(axis=1).max() == LARGEST


def test_most_work_at_home_and_some_not_at_all(country: National, flows: np.ndarray) -> None:
    working = flows[:, :-1].reshape(GROUPS, len(SECTORS), len(STATES)).sum(axis=1)
    home = working[np.arange(GROUPS), country.home[country.keys[:, 0]]].sum()
    assert 0.6 < home / working.sum() < 0.85
    assert flows[:, -1].sum() / flows.sum() == pytest.approx(MARGINAL, abs=0.01)


@pytest.mark.parametrize(("family", "code"), [("13", "61"), ("51", "62"), ("14", "31-33")])
def test_sectors_follow_the_family(country: National, flows: np.ndarray, family: str, code: str) -> None:
    working = flows[:, :-1].reshape(GROUPS, len(SECTORS), len(STATES)).sum(axis=2)
    studied = country.keys[:, 2] == country.codes["cip2"].index(family)
    shares = [working[which, sector(code)].sum() / working[which].sum() for which in (studied, ~studied)]
    assert shares[0] > 2 * shares[1]


@pytest.mark.parametrize(("groups", "seed"), [(0, 7), (-1, 7), (True, 7), (1.0, 7), (10, -1), (10, "7")])
def test_bad_arguments_are_refused(groups: object, seed: object) -> None:
    with pytest.raises(ParameterError, match="an integer") as refusal:
        national(groups, seed)  # type: ignore[arg-type]
    assert refusal.value.where == "synth national"


@pytest.mark.parametrize(("first", "n"), [(-1, 1), (0, GROUPS + 1), (GROUPS, 1), (5, -1)])
def test_groups_that_are_not_there_are_refused(country: National, first: int, n: int) -> None:
    with pytest.raises(ParameterError, match=f"0 to {GROUPS}"):
        country.counts(first, n)
