"""Crosswalks and roll-ups from public files: wrapped codes, weights, deleted and new codes, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import DomainError
from discreet.methods.recode.crosswalk import (
    Crosswalk,
    CrosswalkSummary,
    finest_overrides,
    number,
    proportional,
    read_crosswalk,
    read_overrides,
    unwrap,
)
from discreet.methods.recode.rollup import Parents, Prefix, PublishedCrosswalk, read_parents
from support.hypothesis_profile import examples

F = Fraction
properties = examples(80)
Write = Callable[[str], Path]

CIP = (
    "CIP2010,Title,Action,CIP2020\n"
    '="01","AGRI.","No substantive changes",="01"\n'
    '="01.01","Business, of farms.","No substantive changes",="01.01"\n'
    '="01.0101","Business.","No substantive changes",="01.0101"\n'
    '"=""01.0102""","Trade.","Moved to","=""02.0101"""\n'
    '="60.0101","Dental","Deleted",="60.0101"\n'
    ',"","New",="02.0199"\n'
    '="","","New",="02.0101"\n'
)
NAICS = (  # six digits, several destinations, with employment as the weight
    "old,new,jobs\n"
    "315110,315120,300\n"
    "315110,315990,100\n"
    "333911,333914,1/3\n"
    "333911,333999,0.5\n"
    "454110,455110,1\n"
    ",459999,\n"
    "999990,,\n"
)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "file.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def cip(path: Path, length: int | None = 7) -> Crosswalk:
    return read_crosswalk(path, "CIP2010", "CIP2020", action="Action", deleted=["Deleted"], length=length)


def test_only_the_finest_codes_count_and_wrapping_is_taken_off(write: Write) -> None:
    actual = cip(write(CIP))
    assert actual.shares == {"01.0101": (("01.0101", F(1)),), "01.0102": (("02.0101", F(1)),)}
    assert actual.deleted == {"60.0101"}
    assert actual.new == {"02.0199"}  # 02.0101 is listed as new, but an old code leads to it
    assert actual.summary() == CrosswalkSummary(unchanged=1, moved=1, split=0, deleted=1, new=1)
    assert set(cip(write(CIP), None).shares) == {"01", "01.01", "01.0101", "01.0102"}


def test_one_to_many_with_weights(write: Write) -> None:
    actual = read_crosswalk(write(NAICS), "old", "new", weight="jobs")
    assert actual.shares["315110"] == (("315120", F(3, 4)), ("315990", F(1, 4)))
    assert actual.shares["333911"] == (("333914", F(2, 5)), ("333999", F(3, 5)))
    assert actual.summary() == CrosswalkSummary(unchanged=0, moved=1, split=2, deleted=1, new=1)
    assert read_crosswalk(write(NAICS), "old", "new").shares["315110"] == (("315120", F(1, 2)), ("315990", F(1, 2)))


def test_weights_of_the_same_pair_add_up_and_without_weights_it_counts_once(write: Write) -> None:
    text = "o,n,w\na,x,1\na,x,2\na,y,1\n"
    assert read_crosswalk(write(text), "o", "n", weight="w").shares["a"] == (("x", F(3, 4)), ("y", F(1, 4)))
    assert read_crosswalk(write(text), "o", "n").shares["a"] == (("x", F(1, 2)), ("y", F(1, 2)))


def test_the_order_of_lines_is_of_no_account(write: Write) -> None:
    header, *lines = NAICS.splitlines()
    again = "\n".join([header, *reversed(lines)]) + "\n"
    one, other = (read_crosswalk(write(text), "old", "new", weight="jobs") for text in (NAICS, again))
    assert list(one.shares.items()) == list(other.shares.items())
    assert (one.deleted, one.new) == (other.deleted, other.new)


@pytest.mark.parametrize("weight", ["0", "-1", "", "x", "1e9", "1/0", "0.0", "nan", "1.5.2", "9" * 50, "١"])
def test_a_weight_is_a_positive_exact_number(write: Write, weight: str) -> None:
    with pytest.raises(DomainError, match="not a positive number") as caught:
        read_crosswalk(write(f"o,n,w\na,x,{weight}\n"), "o", "n", weight="w")
    assert caught.value.where == "crosswalk, file file.csv, 'a'"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("o,n,a\na,x,\na,a,Deleted\n", "'a' is both deleted and moved"),
        ("o,n,a\na,,\na,x,\nb,,\nb,x,\n", "'a' and 'b' are both deleted and moved"),
        ("o,n,a\na,a,Deleted\n", "no old code has a new one"),
        ("o,n,a\n,,\n", "no old code has a new one"),
        ("o,n\na,x\n", "no column 'a'"),
    ],
)
def test_what_a_crosswalk_may_not_say(write: Write, text: str, says: str) -> None:
    with pytest.raises(DomainError, match=says) as caught:
        read_crosswalk(write(text), "o", "n", action="a", deleted=["Deleted"])
    assert "file file.csv" in caught.value.where
    assert caught.value.do


def test_a_line_from_one_level_to_another_is_refused(write: Write) -> None:
    with pytest.raises(DomainError, match=r"'01.0101' → '01.01' connects two levels"):
        read_crosswalk(write("o,n\n01.0101,01.01\n"), "o", "n", length=7)


def test_overrides_of_finest_codes(write: Write) -> None:
    lines = "60.0101,02.0199\n99.9999,01.0101\n99.9999,02.0101\n01.0101,02.0101\n"
    overrides = finest_overrides(read_overrides(write(f"from,to\n{lines}")))
    actual = cip(write(CIP)).with_overrides(overrides)
    assert actual.shares["60.0101"] == (("02.0199", F(1)),)
    assert actual.shares["99.9999"] == (("01.0101", F(1, 2)), ("02.0101", F(1, 2)))
    assert not actual.deleted
    assert not actual.new
    assert actual.shares["01.0102"] == (("02.0101", F(1)),)
    assert actual.shares["01.0101"] == (("02.0101", F(1)),)


def test_shares_that_are_none_are_refused() -> None:
    for shares in ((), (("x", F(1, 2)),), (("x", F(3, 2)), ("y", F(-1, 2)))):
        with pytest.raises(DomainError, match="the shares of 'a'"):
            Crosswalk({"a": shares})


def test_a_crosswalk_knows_the_new_codes(write: Write) -> None:
    actual = cip(write(CIP))
    assert all(map(actual.has_new_code, ("01.0101", "02.0101", "02.0199")))
    assert not any(map(actual.has_new_code, ("60.0101", "01.0102", "")))


# ------------------------------------------------------------------------------------------------------- overrides


def test_overrides_have_shares(write: Write) -> None:
    path = write('from,to,share\n51.08,01.83,1/3\n51.08,="51.08",2/3\n60.06,61.22,1\n')
    assert read_overrides(path, "share") == {
        ("51.08",): ((("01.83",), F(1, 3)), (("51.08",), F(2, 3))),
        ("60.06",): ((("61.22",), F(1)),),
    }


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("a,x,0.3\na,y,0.6999\n", r"shares of 'a' add up to 9999/10000"),
        ("a,x,0.9\n", "shares of 'a' add up to 9/10"),
        ("a,x,1\na,x,1\n", "duplicate line 'a' → 'x'"),
        ("a,,1\n", "an empty code"),
        (",x,1\n", "an empty code"),
        ("a,x,\n", "not a positive number"),
        ("a,x,0\na,y,1\n", "not a positive number"),
    ],
)
def test_what_overrides_may_not_say(write: Write, lines: str, says: str) -> None:
    with pytest.raises(DomainError, match=says) as caught:
        read_overrides(write(f"from,to,share\n{lines}"), share="share")
    assert caught.value.where.startswith("overrides, file file.csv")


# -------------------------------------------------------------------------------------------------------- roll-ups


def test_naics_sectors_are_no_prefixes(write: Write) -> None:
    crosswalk = read_crosswalk(write(NAICS), "old", "new", weight="jobs")
    parents = read_parents(
        write(
            "code,parent\n315110,31-33\n333911,31-33\n454110,44-45\n999990,99\n"
            "315120,31-33\n315990,31-33\n333914,31-33\n333999,31-33\n455110,44-45\n459999,44-45\n"
        )
    )
    published = PublishedCrosswalk(crosswalk, (Prefix(3), parents), (Prefix(3), parents))
    assert published.possible == {
        ("315", "31-33"): (("315", "31-33"),),
        ("333", "31-33"): (("333", "31-33"),),
        ("454", "44-45"): (("455", "44-45"),),
    }
    assert published.deleted == {("999", "99")}
    assert not published.ambiguous
    assert PublishedCrosswalk(crosswalk, (Prefix(6),), (Prefix(6),)).ambiguous.keys() == {("315110",), ("333911",)}


@pytest.mark.parametrize(
    ("text", "says"),
    [("code,parent\na,x\na,y\n", "'a' has two parents"), ("code,parent\na,\n", "empty code")],
)
def test_a_code_has_one_parent(write: Write, text: str, says: str) -> None:
    with pytest.raises(DomainError, match=says):
        read_parents(write(text))


def test_a_code_that_cannot_be_rolled_up_is_refused() -> None:
    with pytest.raises(DomainError, match=r"'01.0' is shorter than the 5 characters"):
        Prefix(5).of("01.0")
    with pytest.raises(DomainError, match="'b' has no parent") as caught:
        Parents({"a": "x"}, "sectors.csv").of("b")
    assert caught.value.where == "roll-up, file sectors.csv"
    with pytest.raises(DomainError, match="a prefix of 0"):
        Prefix(0)
    for parts in ((), (Prefix(2), Prefix(5))):
        with pytest.raises(DomainError, match="not the same number"):
            PublishedCrosswalk(Crosswalk({"a": (("b", F(1)),)}), parts, (Prefix(1),))


codes = st.text("abc", min_size=2, max_size=2)


@properties
@given(st.dictionaries(codes, st.dictionaries(codes, st.fractions(F(1, 9), 9), min_size=1, max_size=3), min_size=1))
def test_a_published_code_can_go_where_its_finest_codes_can(weights: dict[str, dict[str, Fraction]]) -> None:
    crosswalk = Crosswalk({old: proportional(pairs) for old, pairs in weights.items()})
    published = PublishedCrosswalk(crosswalk, (Prefix(1),), (Prefix(1),))
    pairs = {(old[0], new[0]) for old, shares in weights.items() for new in shares}
    assert {(old, new) for (old,), news in published.possible.items() for (new,) in news} == pairs
    assert all(list(news) == sorted(set(news)) for news in published.possible.values())
    assert published.ambiguous == {old: news for old, news in published.possible.items() if len(news) > 1}


@properties
@given(st.text("01. ", max_size=6).map(str.strip))
def test_wrapping_comes_off_once(code: str) -> None:
    assert unwrap(f'="{code}"') == unwrap(code) == code


@properties
@given(st.fractions(F(1, 10**9), 10**9))
def test_numbers_are_exact(value: Fraction) -> None:
    assert number(str(value), "here") == value


def test_an_action_that_no_line_has_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "crosswalk.csv"
    path.write_text("o,n,a\na,x,Moved\nb,b,Deleted\n")
    with pytest.raises(DomainError, match=r"no line has the action 'deleted'.*Moved, Deleted"):
        read_crosswalk(path, "o", "n", action="a", deleted=["deleted"])
    with pytest.raises(DomainError, match="Name its column"):
        read_crosswalk(path, "o", "n", deleted=["Deleted"])
    assert read_crosswalk(path, "o", "n", action="a", deleted=["Deleted"]).deleted == {"b"}
