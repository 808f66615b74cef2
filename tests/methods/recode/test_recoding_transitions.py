"""The rule and shares of each code (PSEO Technical Appendices, B.2), and refusals where no rule applies."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.domain import Key
from discreet.errors import DomainError, ParameterError
from discreet.methods.recode.crosswalk import Crosswalk, proportional
from discreet.methods.recode.history import History, read_history
from discreet.methods.recode.rollup import Prefix, PublishedCrosswalk
from discreet.methods.recode.transitions import Overrides, Transition, Transitions, new_groups, transitions
from support.hypothesis_profile import examples

F = Fraction
properties = examples(60)
LEVELS = (("degree", "inst", "cohort"), ("degree", "inst"), ("degree",), ())
SMALL = F(1, 1000)

# 10 may become 10, 20 or 30; 11 moves to 20; 12 stays; 13 is deleted.
CROSSWALK = Crosswalk(
    {
        "10.1": (("10.1", F(1)),),
        "10.2": (("20.2", F(1)),),
        "10.3": (("30.3", F(1)),),
        "11.1": (("20.1", F(1)),),
        "12.1": (("12.1", F(1)),),
    },
    frozenset({"12.2", "13.1"}),
)
PUBLISHED = PublishedCrosswalk(CROSSWALK, (Prefix(2),), (Prefix(2),))
TEN, TWENTY, THIRTY = ("10",), ("20",), ("30",)
KEY = ("05", "001", "2010")


@pytest.fixture
def completions(tmp_path: Path) -> Callable[[str], History]:
    def read(lines: str, published: PublishedCrosswalk = PUBLISHED) -> History:
        path = tmp_path / "completions.csv"
        path.write_text("degree,inst,cohort,old,n\n" + lines, encoding="utf-8")
        return read_history(path, published, LEVELS, old="old", number="n")

    return read


def one(old: str, history: History | None, overrides: Overrides | None = None, key: Key = KEY) -> Transition:
    group = ((old,), key)
    return transitions([group], PUBLISHED, overrides or {}, history, SMALL).of[group]


def test_one_destination_is_direct_whatever_the_overrides(completions: Any) -> None:
    history = completions("05,001,2010,11.1,9\n")
    overrides: Overrides = {("11",): ((THIRTY, F(1)),), TEN: ((THIRTY, F(1)),)}
    actual = transitions([(("11",), KEY), (("12",), KEY)], PUBLISHED, overrides, history, SMALL)
    assert actual.of[(("11",), KEY)] == Transition(("11",), ((TWENTY, F(1)),), "direct")
    assert actual.of[(("12",), KEY)] == Transition(
        ("12",), ((("12",), F(1)),), "direct"
    )  # its deleted part is left out
    assert actual.unused_overrides == (("11",),)
    assert actual.rules() == {("direct", None): 2}


def test_overrides_come_before_the_history(completions: Any) -> None:
    history = completions("05,001,2010,10.1,9\n")
    all_overrides = ((TWENTY, F(1, 3)), (("99",), F(2, 3)))
    overrides: Overrides = {TEN: all_overrides, ("13",): ((THIRTY, F(1)),), ("88",): ((THIRTY, F(1)),)}
    for old, destinations in overrides.items():
        assert one(old[0], history, overrides) == Transition(old, destinations, "override")
        assert one(old[0], None, overrides).rule == "override"
    assert one("10", history).rule == "probabilistic"


@pytest.mark.parametrize(
    ("key", "level", "shares"),
    [
        (("05", "001", "2010"), 0, (F(3), F(1), SMALL)),
        (("05", "001", "1999"), 1, (F(3), F(1), F(4))),  # this institution, all cohorts
        (("05", "777", "2010"), 2, (F(5), F(1), F(4))),  # this degree, all institutions
        (("99", "001", "2010"), 3, (F(5), F(11), F(4))),  # everything
        (("99", "001", "1999"), 3, (F(5), F(11), F(4))),
        (("07", "003", "2010"), 0, (SMALL, F(10), SMALL)),
        (("05", "002", "2013"), 1, (F(2), SMALL, SMALL)),  # zero that year: the institution's other cohorts
    ],
)
def test_the_finest_level_with_support_decides(
    completions: Any, key: Key, level: int, shares: tuple[Fraction, ...]
) -> None:
    history = completions(
        "05,001,2010,10.1,3\n05,001,2010,10.2,1\n05,001,2013,10.3,4\n"
        "05,002,2010,10.1,2\n05,002,2013,10.1,0\n07,003,2010,10.2,10\n05,777,2010,11.1,50\n99,001,2010,12.1,50\n"
    )
    actual = one("10", history, key=key)
    assert (actual.rule, actual.level) == ("probabilistic", level)
    assert actual.destinations == proportional(dict(zip((TEN, TWENTY, THIRTY), shares, strict=True)))
    assert sum(share for _, share in actual.destinations) == 1


def test_the_smallest_weight_is_a_number_of_completions(completions: Any) -> None:
    history = completions("05,001,2010,10.1,3\n")
    for smallest_weight in (F(1), F(1, 7), F(1, 10**30)):
        actual = transitions([(TEN, KEY)], PUBLISHED, {}, history, smallest_weight).of[(TEN, KEY)]
        total = 3 + 2 * smallest_weight
        assert actual.destinations == (
            (TEN, 3 / total),
            (TWENTY, smallest_weight / total),
            (THIRTY, smallest_weight / total),
        )


@pytest.mark.parametrize("smallest_weight", [F(0), F(-1), 0.001, 1, "1/1000"])
def test_a_smallest_weight_is_positive_and_exact(smallest_weight: Any) -> None:
    with pytest.raises(ParameterError, match="not a positive fraction"):
        transitions([], PUBLISHED, {}, None, smallest_weight)


def test_a_code_without_support_is_refused(completions: Any) -> None:
    for history in (completions("05,001,2010,11.1,3\n05,001,2010,10.1,0\n"), None):
        with pytest.raises(DomainError, match="'10' is without completions at any level") as caught:
            one("10", history)
        assert caught.value.do == "list each in the overrides, or give more history"


def test_deleted_and_unknown_codes_are_refused_unless_overridden(completions: Any) -> None:
    history = completions("05,001,2010,10.1,3\n")
    for call in (
        lambda groups: transitions(groups, PUBLISHED, {}, history, SMALL),
        lambda groups: new_groups(groups, PUBLISHED, {}),
    ):
        with pytest.raises(DomainError, match="'13' is deleted in the crosswalk, and no override"):
            call([(TEN, KEY), (("13",), KEY)])
        with pytest.raises(DomainError, match="'88' and '89' are unknown to the crosswalk, and no override") as caught:
            call([(TEN, KEY), (("88",), KEY), (("89",), KEY)])
        assert caught.value.do == "list each in the overrides"
        with pytest.raises(DomainError, match=r"'a0', 'a1', 'a2', 'a3', 'a4' and 2 more are unknown"):
            call([((f"a{i}",), KEY) for i in range(7)])


def test_a_key_has_a_value_for_each_column(completions: Any) -> None:
    with pytest.raises(DomainError, match="a key of 2 values for degree, inst, cohort"):
        one("10", completions("05,001,2010,10.1,3\n"), key=("05", "001"))


def test_groups_with_the_same_evidence_share_a_transition(completions: Any) -> None:
    history = completions("05,001,2010,10.1,3\n")
    groups = [(TEN, ("05", "001", str(year))) for year in range(2000, 2020)] + [(("12",), ("05", "001", "2010"))] * 2
    actual = transitions(groups, PUBLISHED, {}, history, SMALL)
    assert len(actual.of) == 21
    assert len({id(transition) for transition in actual.of.values()}) == 3
    assert actual.rules() == {("probabilistic", 0): 1, ("probabilistic", 1): 19, ("direct", None): 1}


def test_codes_may_be_tuples_of_roll_ups(completions: Any) -> None:
    both = PublishedCrosswalk(CROSSWALK, (Prefix(4), Prefix(2), Prefix(1)), (Prefix(4), Prefix(2), Prefix(1)))
    assert both.possible[("10.2", "10", "1")] == (("20.2", "20", "2"),)
    coarse = PublishedCrosswalk(CROSSWALK, (Prefix(2), Prefix(1)), (Prefix(2), Prefix(1)))
    old = ("10", "1")
    history = completions("05,001,2010,10.2,3\n05,001,2010,10.1,1\n", coarse)
    actual = transitions([(old, KEY)], coarse, {}, history, F(1)).of[(old, KEY)]
    assert actual.destinations == ((("10", "1"), F(1, 5)), (("20", "2"), F(3, 5)), (("30", "3"), F(1, 5)))


def test_the_groups_that_old_groups_can_become() -> None:
    overrides: Overrides = {("13",): ((THIRTY, F(1)),), ("11",): ((THIRTY, F(1)),)}
    groups = [(TEN, ("001",)), (("11",), ("001",)), (("12",), ("002",)), (("13",), ("002",)), (TEN, ("001",))]
    assert new_groups(groups, PUBLISHED, overrides) == [
        (TEN, ("001",)),
        (TWENTY, ("001",)),  # from 10 and, directly, from 11: listed once
        (THIRTY, ("001",)),
        (("12",), ("002",)),
        (THIRTY, ("002",)),
    ]
    all_overrides: Overrides = {TEN: ((TWENTY, F(1)),)}
    assert new_groups([(TEN, ("001",))], PUBLISHED, all_overrides) == [(TWENTY, ("001",))]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    path = tmp_path_factory.mktemp("history") / "completions.csv"
    path.write_text("degree,inst,cohort,old,n\n05,001,2010,10.1,3\n07,2,2013,10.2,5\n", encoding="utf-8")
    return read_history(path, PUBLISHED, LEVELS, old="old", number="n")


@properties
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["10", "11", "12", "13"]), st.sampled_from(["05", "07"]), st.sampled_from(["001", "2"])
        ),
        max_size=12,
    ),
    st.booleans(),
)
def test_every_destination_is_in_the_list_of_new_groups(
    history: History, lines: list[tuple[str, str, str]], all_overrides: bool
) -> None:
    overrides: Overrides = {("13",): ((("13",), F(1, 2)), (("14",), F(1, 2)))}
    if all_overrides:
        overrides = {**overrides, TEN: ((THIRTY, F(1)),)}
    groups = [((old,), (degree, inst, "2010")) for old, degree, inst in lines]
    actual: Transitions = transitions(groups, PUBLISHED, overrides, history, SMALL)
    listed = set(new_groups(groups, PUBLISHED, overrides))
    assert actual.of.keys() == set(groups)
    assert {(new, key) for (_, key), t in actual.of.items() for new, _ in t.destinations} == listed
    for transition in actual.of.values():
        assert sum(share for _, share in transition.destinations) == 1
        assert min(share for _, share in transition.destinations) > 0
