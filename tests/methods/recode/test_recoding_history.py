"""Completions by old and new code at each level: against plain Python, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from discreet.domain import Key
from discreet.errors import DomainError
from discreet.methods.recode import history as module
from discreet.methods.recode.crosswalk import Crosswalk
from discreet.methods.recode.history import History, read_history
from discreet.methods.recode.rollup import Prefix, PublishedCrosswalk
from support.hypothesis_profile import examples

F = Fraction
properties = examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
Write = Callable[[str], Path]
LEVELS = (("degree", "inst", "cohort"), ("degree", "inst"), ("degree",), ())

# A1 stays, A2 leaves for B, A3 splits 1:2, A4 goes to three codes, of which two are B; A9 is deleted.
# C only moves; D is deleted as a whole.
CROSSWALK = Crosswalk(
    {
        "A1": (("A1", F(1)),),
        "A2": (("B2", F(1)),),
        "A3": (("A3", F(1, 3)), ("B3", F(2, 3))),
        "A4": (("A4", F(1, 2)), ("B4", F(1, 4)), ("B5", F(1, 4))),
        "C1": (("E1", F(1)),),
    },
    frozenset({"A9", "C9", "D1"}),
    frozenset({"B9"}),
)
PUBLISHED = PublishedCrosswalk(CROSSWALK, (Prefix(1),), (Prefix(1),))
A, B = ("A",), ("B",)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "completions.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def read(path: Path, new: str | None = "new", overridden: tuple[Key, ...] = ()) -> History:
    return read_history(path, PUBLISHED, LEVELS, old="old", new=new, number="awards", overridden=overridden)


HEADER = "inst,cohort,title,awards,degree,old,new\n"


def test_lines_are_cast_by_the_crosswalk_or_by_their_own_new_code(write: Write) -> None:
    actual = read(
        write(
            HEADER
            + "001,2010,x,5,05,A1,\n"
            + "001,2010,x,2,05,A2,\n"
            + '001,2010,"x, y",7,05,="A3",\n'
            + "001,2010,x,1,05,A1,B9\n"  # dual-coded: a new code that the crosswalk only knows of
            + '001,2010,"two\nlines",4,05,A9,="A1"\n'  # so even a deleted code is of use
            + "001,2013,x,100,05,A1,\n"
        )
    )
    assert actual.columns == ("degree", "inst", "cohort")
    assert actual.counts(0, A, ("05", "001", "2010")) == {A: 9 + F(7, 3), B: 3 + F(14, 3)}
    assert actual.counts(0, A, ("05", "001", "2013")) == {A: 100}
    assert actual.counts(1, A, ("05", "001", "2013")) == {A: 109 + F(7, 3), B: 3 + F(14, 3)}
    assert actual.counts(0, A, ("05", "001", "1999")) == {}
    assert actual.counts(0, A, ("05", "002", "2010")) == {}
    assert actual.counts(0, ("C",), ("05", "001", "2010")) == {}


def test_zeros_are_no_support(write: Write) -> None:
    actual = read(write(HEADER + "001,2010,x,0,05,A1,\n002,2010,x,3,05,A2,\n"))
    assert actual.counts(0, A, ("05", "001", "2010")) == {}
    assert actual.counts(2, A, ("05", "001", "2010")) == {B: 3}


def test_a_file_without_lines_has_no_support(write: Write) -> None:
    actual = read(write(HEADER))
    assert all(actual.counts(level, A, ("05", "001", "2010")) == {} for level in range(4))


rows = st.lists(
    st.tuples(
        st.sampled_from(["01", "02"]),
        st.sampled_from(["i", "j", "k"]),
        st.sampled_from(["2010", "2013"]),
        st.sampled_from(
            [("A1", ""), ("A2", ""), ("A3", ""), ("A4", ""), ("A1", "B3"), ("A9", "A1"), ("C1", ""), ("D1", "")]
        ),
        st.integers(0, 9),
    ),
    max_size=40,
)


@properties
@given(rows, st.sampled_from([60, 200, 1 << 24]))
def test_totals_are_those_of_plain_python(
    write: Write, lines: list[tuple[str, str, str, Key, int]], block: int
) -> None:
    text = "".join(
        f'{inst},{cohort},"x\ny",{n},{degree},{old},{new}\n' for degree, inst, cohort, (old, new), n in lines
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)  # lines are read in blocks: their borders are of no account
        actual = read(write(HEADER + text))
    for level, columns in enumerate(LEVELS):
        for key in product(["01", "02"], ["i", "j", "k"], ["2010", "2013"]):
            wanted: dict[Key, Fraction] = {}
            for *own, (old, new), n in lines:
                if old[0] == "A" and tuple(own)[: len(columns)] == key[: len(columns)]:
                    for code, share in ((new, F(1)),) if new else CROSSWALK.shares[old]:
                        wanted[(code[0],)] = wanted.get((code[0],), F(0)) + n * share
            assert actual.counts(level, A, key) == {new: n for new, n in wanted.items() if n}


def test_a_byte_order_mark_and_crlf_are_no_part_of_a_code(tmp_path: Path) -> None:
    path = tmp_path / "bom.csv"
    path.write_bytes(b"\xef\xbb\xbfold,awards\r\nA1,3\r\n")
    assert read_history(path, PUBLISHED, [()], old="old", number="awards").counts(0, A, ()) == {A: 3}


def test_a_code_may_be_a_key_too(write: Write) -> None:
    actual = read_history(write("old,n\nA1,3\nA2,4\n"), PUBLISHED, [["old"], []], old="old", number="n")
    assert [actual.counts(level, A, ("A2",)) for level in range(2)] == [{B: 4}, {A: 3, B: 4}]


def test_levels_may_overlap_in_any_way(write: Write) -> None:
    path = write("x,y,old,n\n1,a,A1,1\n1,b,A2,2\n2,a,A2,4\n")
    actual = read_history(path, PUBLISHED, [["x"], ["y", "x"], ["y"]], old="old", number="n")
    assert actual.columns == ("x", "y")
    assert [actual.counts(level, A, ("1", "a")) for level in range(3)] == [{A: 1, B: 2}, {A: 1}, {A: 1, B: 4}]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("001,2010,x,5,05,A8,", "'A8' is without a destination in the crosswalk"),
        ("001,2010,x,5,05,A8,A1", "'A8' is without a destination"),
        ("001,2010,x,5,05,A9,", "'A9' is without a destination"),
        ("001,2010,x,0,05,Z8,\n001,2010,x,0,05,,", "'' and 'Z8' are without a destination"),
        ("001,2010,x,5,05,A1,E1", "'A1' is coded 'E1', where the crosswalk does not lead from 'A'"),
        ("001,2010,x,5,05,A1,A7", "'A1' is coded 'A7', where"),
        ("001,2010,x,-1,05,A1,", "awards '-1' is not an integer"),
        ("001,2010,x,1.5,05,A1,", r"awards '1\.5' is not an integer"),
        ("001,2010,x,,05,A1,", "awards '' is not an integer"),
        ("001,2010,x,0x1A,05,A1,", "awards '0x1A' is not an integer"),
        ("001,2010,x,12345678901,05,A1,", "awards '12345678901' is not an integer"),
        ("001,2010,x,1,05,A1", "is not CSV"),
    ],
)
def test_what_completions_may_not_say(write: Write, line: str, says: str) -> None:
    with pytest.raises(DomainError, match=says) as caught:
        read(write(f"{HEADER}001,2010,x,5,05,A1,\n{line}\n"))
    assert caught.value.where == "completions, file completions.csv"
    assert caught.value.do


def test_codes_that_need_no_evidence_may_be_deleted(write: Write) -> None:
    actual = read(write(HEADER + "001,2010,x,5,05,C9,\n001,2010,x,5,05,D1,\n001,2010,x,5,05,C1,F1\n"))
    assert actual.counts(3, ("C",), ("05", "001", "2010")) == {}


def test_unknown_codes_of_an_overridden_one_are_left_out(write: Write) -> None:
    path = write(HEADER + "001,2010,x,5,05,A8,\n001,2010,x,5,05,A9,\n001,2010,x,5,05,A1,E1\n001,2010,x,5,05,Z1,\n")
    actual = read(path, overridden=(A, ("Z",)))
    assert actual.counts(3, A, ("05", "001", "2010")) == {}
    with pytest.raises(DomainError, match="'Z1'"):
        read(path, overridden=(A,))


def test_finest_overrides_say_where_deleted_codes_go(write: Write) -> None:
    published = PublishedCrosswalk(CROSSWALK.with_overrides({"A9": (("B9", F(1)),)}), (Prefix(1),), (Prefix(1),))
    path = write(HEADER + "001,2010,x,5,05,A9,\n")
    actual = read_history(path, published, LEVELS, old="old", number="awards")
    assert actual.counts(0, A, ("05", "001", "2010")) == {B: 5}


def test_missing_files_columns_and_levels_are_refused(write: Write, tmp_path: Path) -> None:
    for bad in (tmp_path / "none.csv", tmp_path, tmp_path / "a\0b.csv"):
        with pytest.raises(DomainError, match="cannot be read"):
            read(bad)
    with pytest.raises(DomainError, match="has no column 'inst'") as caught:
        read(write("degree,cohort,old,awards,new\n"))
    assert "degree, cohort" in caught.value.do
    with pytest.raises(DomainError, match="has two columns 'old'"):
        read(write("degree,inst,cohort,old,awards,new,old\n"))
    with pytest.raises(DomainError, match="no levels"):
        read_history(write(HEADER), PUBLISHED, [], old="old", number="awards")
    path = tmp_path / "latin.csv"
    path.write_bytes((HEADER + "001,2010,x,5,05,A1,\n").encode() + b"\xe9,2010,x,5,05,A1,\n")
    with pytest.raises(DomainError, match="is not CSV in UTF-8"):
        read(path)
