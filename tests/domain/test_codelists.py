"""Code lists, hierarchies and groups from public CSV files."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from discreet.domain.codelists import from_codes, from_groups, from_hierarchy, read_columns
from discreet.errors import DomainError
from support.hypothesis_profile import examples

NAICS = "sector,division,label\n011,0,a\n012,0,b\n021,0,c\n101,1,d\n"


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(text: str | bytes, name: str = "list.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_codes_keep_leading_zeros_order_and_labels(file: Any) -> None:
    a = from_codes("industry", file(NAICS), "sector", "label", "naics", "other", "BLS")
    assert a.categories == (("011",), ("012",), ("021",), ("101",))
    assert a.labels == ("a", "b", "c", "d")
    assert (a.columns, a.source, a.other, a.provenance) == (("industry",), ("naics",), "other", "BLS")
    assert a.lookup == {("011",): 0, ("012",): 1, ("021",): 2, ("101",): 3}


def test_a_hierarchy_derives_every_level_from_the_finest_code(file: Any) -> None:
    text = "block,tract,county\n1a,1,X\n1b,1,X\n2a,2,X\n3a,3,Y\n"
    block, tract, county = from_hierarchy(file(text), ["block", "tract", "county"], "code", "other", "", "geo")
    assert [a.name for a in (block, tract, county)] == ["block", "tract", "county"]
    assert {a.source for a in (block, tract, county)} == {("code",)}
    assert (block.size, tract.size, county.size) == (5, 4, 3)
    assert county.lookup == {("1a",): 0, ("1b",): 0, ("2a",): 0, ("3a",): 1}
    assert tract.categories == (("1",), ("2",), ("3",))
    fine = list(block.lookup)
    assert list(county.lookup) == fine == list(tract.lookup)


@pytest.mark.parametrize(
    ("text", "child", "level"),
    [
        ("b,t,c\n1a,1,X\n1b,1,Y\n", "t '1'", "'c'"),
        ("b,t,c\n1a,1,X\n1a,2,X\n", "b '1a'", "'t'"),
    ],
)
def test_a_code_has_one_parent(file: Any, text: str, child: str, level: str) -> None:
    with pytest.raises(DomainError, match="two parents") as caught:
        from_hierarchy(file(text), ["b", "t", "c"], "code", None, "", "geo")
    assert child in caught.value.what
    assert level in caught.value.what
    assert caught.value.where == "domain geo, file list.csv"


def test_the_same_row_twice_in_a_hierarchy_changes_nothing(file: Any) -> None:
    once = from_hierarchy(file("b,t\n1a,1\n1b,1\n"), ["b", "t"], "code", None, "", "geo")
    twice = from_hierarchy(file("b,t\n1a,1\n1b,1\n1a,1\n"), ["b", "t"], "code", None, "", "geo")
    assert once == twice


def test_groups_have_several_columns(file: Any) -> None:
    path = file("inst,level,cip\n001,5,01\n001,7,01\n002,5,52\n")
    (g,) = from_groups("programme", path, {"programme": ["inst", "cip", "level"]}, ["i", "c", "l"], None, "IPEDS")
    assert g.categories == (("001", "01", "5"), ("001", "01", "7"), ("002", "52", "5"))
    assert (g.columns, g.source) == (("inst", "cip", "level"), ("i", "c", "l"))
    with pytest.raises(DomainError, match="'001/01' twice"):
        from_groups("programme", path, {"programme": ["inst", "cip"]}, ["i", "c"], None, "IPEDS")


def test_groups_are_nested_in_coarser_groups(file: Any) -> None:
    path = file("inst,cip,family,state\n001,01.01,01,44\n001,01.02,01,44\n002,52.01,52,44\n")
    shown = {"programme": ["inst", "cip"], "families": ["state", "family"], "states": ["state"]}
    fine, families, states = from_groups("programme", path, shown, ["i", "c"], "other", "IPEDS")
    assert families.categories == (("44", "01"), ("44", "52"))
    assert families.lookup == {("001", "01.01"): 0, ("001", "01.02"): 0, ("002", "52.01"): 1}
    assert {a.source for a in (fine, families, states)} == {("i", "c")}
    assert {a.hierarchy for a in (fine, families, states)} == {"programme"}
    assert fine.within(families).tolist() == [0, 0, 1, 2]  # "other" lies in "other"
    assert fine.within(states).tolist() == [0, 0, 0, 1]
    assert families.within(fine) is None


def test_a_duplicate_code_is_refused(file: Any) -> None:
    with pytest.raises(DomainError, match="lists 'x' twice"):
        from_codes("a", file("code\nx\ny\nx\n"), "code", None, "a", None, "")


def test_a_missing_column_suggests_the_nearest(file: Any) -> None:
    with pytest.raises(DomainError, match="no column 'sectr'") as caught:
        read_columns(file(NAICS), ["sectr"], "industry")
    assert caught.value.do == "did you mean 'sector'?"
    with pytest.raises(DomainError, match="no column") as caught:
        read_columns(file(NAICS), ["zzz"], "industry")
    assert "sector, division, label" in caught.value.do


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"code\n", "no categories"),
        (b"code,label\nx\n", "line 2 has 1 fields, the header 2"),
        (b"code,label\nx,y\nz,a,b\n", "line 3 has 3 fields"),
        (b"code\n\xff\xfe\n", "not CSV in UTF-8"),
        (b'code\n"open\n', "not CSV in UTF-8"),
        (b'code\n"a"b\n', "not CSV in UTF-8"),
        ("code\nx\n".encode("utf-16"), "not CSV in UTF-8"),
        (b"code\n" + b"x" * 200_000 + b"\n", "not CSV in UTF-8"),
    ],
)
def test_bad_files_are_refused_by_name(file: Any, content: bytes, says: str) -> None:
    with pytest.raises(DomainError, match=says) as caught:
        from_codes("a", file(content), "code", None, "a", None, "")
    assert "domain a" in caught.value.where


def test_a_missing_file_or_a_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(DomainError, match="cannot be read") as caught:
            read_columns(path, ["code"], "a")
        assert path.name in caught.value.where


def test_an_invalid_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DomainError):
        read_columns(tmp_path / "a\0b.csv", ["code"], "a")


def test_a_byte_order_mark_and_crlf_are_not_part_of_a_code(file: Any) -> None:
    assert read_columns(file(b"\xef\xbb\xbfcode,x\r\n01,a\r\n"), ["code"], "a") == [("01",)]


@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(*[st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)] * 2),
        min_size=1,
        max_size=5,
    )
)
def test_any_text_survives_as_it_was_written(file: Any, rows: list[tuple[str, str]]) -> None:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    path = file(out.getvalue().encode())
    assert read_columns(path, ["a", "b"], "d") == rows
    assert read_columns(path, ["b"], "d") == [(b,) for _, b in rows]


def test_codes_of_groups_that_lost_their_zeros(file: Any) -> None:
    path = file("inst,cip\n00100100,01.01\n")
    (g,) = from_groups("p", path, {"p": ["inst", "cip"]}, ["i", "c"], None, "IPEDS", {"inst": 8})
    assert (g.width_of(0), g.width_of(1)) == (8, None)
