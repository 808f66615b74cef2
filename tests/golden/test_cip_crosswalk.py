"""NCES's crosswalk from CIP-2010 to CIP-2020, the input of PSEO Technical Appendices, B."""

from __future__ import annotations

import pytest

from discreet.methods.recode.crosswalk import Crosswalk, CrosswalkSummary, read_crosswalk
from discreet.methods.recode.rollup import Prefix, PublishedCrosswalk
from support.repository import SHARED

REAL = SHARED / "cip" / "Crosswalk2010to2020.csv"
pytestmark = pytest.mark.skipif(not REAL.is_file(), reason=f"the crosswalk of NCES is not at {REAL}")


@pytest.fixture(scope="module")
def cip() -> Crosswalk:
    return read_crosswalk(REAL, "CIPCode2010", "CIPCode2020", action="Action", deleted=["Deleted"], length=7)


def test_at_six_digits_nothing_splits(cip: Crosswalk) -> None:
    assert cip.summary() == CrosswalkSummary(unchanged=1568, moved=145, split=0, deleted=7, new=459)
    assert cip.deleted == {"60.0406", "60.0408", "60.0499", "60.0568", "60.0599", "60.0601", "60.0602"}


def test_at_four_digits_ten_codes_of_388_split(cip: Crosswalk) -> None:
    four = PublishedCrosswalk(cip, (Prefix(5),), (Prefix(5),))
    assert len(four.possible) + len(four.deleted) == 388
    assert four.deleted == {("60.06",)}
    split = ["01.03", "15.05", "36.01", "39.06", "43.01", "51.08", "51.11", "51.38", "60.04", "60.05"]
    assert [old for (old,) in four.ambiguous] == split
    assert four.ambiguous[("39.06",)] == (("38.02",), ("39.06",))
    assert [len(four.ambiguous[(old,)]) for old in ("60.04", "60.05")] == [24, 16]
    moved = {old[0]: new[0][0] for old, new in four.possible.items() if len(new) == 1 and new[0] != old}
    assert moved == {
        "19.00": "19.10",
        "45.14": "45.11",
        "51.19": "51.12",
        "51.21": "51.12",
        "51.24": "01.80",
        "51.25": "01.81",
    }


def test_at_two_digits_three_codes_split(cip: Crosswalk) -> None:
    two = PublishedCrosswalk(cip, (Prefix(2),), (Prefix(2),))
    assert two.ambiguous == {
        ("39",): (("38",), ("39",)),
        ("51",): (("01",), ("51",)),
        ("60",): (("60",), ("61",)),
    }
    assert len(two.possible) == 47
    assert not two.deleted


def test_four_and_two_digits_together_split_as_four_do(cip: Crosswalk) -> None:
    both = PublishedCrosswalk(cip, (Prefix(5), Prefix(2)), (Prefix(5), Prefix(2)))
    four = PublishedCrosswalk(cip, (Prefix(5),), (Prefix(5),))
    assert [old[:1] for old in both.ambiguous] == list(four.ambiguous)
    assert both.ambiguous[("51.08", "51")] == (("01.83", "01"), ("51.08", "51"))


def test_all_levels_in_one_would_count_the_coarse_ones_too(cip: Crosswalk) -> None:
    mixed = read_crosswalk(REAL, "CIPCode2010", "CIPCode2020", action="Action", deleted=["Deleted"])
    assert {len(code) for code in mixed.shares} == {2, 5, 7}
    assert {code for code in mixed.shares if len(code) == 7} == cip.shares.keys()


def test_deleted_codes_that_are_not_named_would_stay_where_they_are(cip: Crosswalk) -> None:
    careless = read_crosswalk(REAL, "CIPCode2010", "CIPCode2020", length=7)
    assert careless.summary().unchanged == 1568 + 7
    four = PublishedCrosswalk(careless, (Prefix(5),), (Prefix(5),))
    assert four.possible[("60.06",)] == (("60.06",),)
    assert ("60.04",) in four.ambiguous[("60.04",)]
