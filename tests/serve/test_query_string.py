"""Query strings: queries survive a round trip, and hostile query strings are refused in one sentence."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidQuery
from discreet.serve.query_model import Measure, QueryableTable, TableQuery, TableVariable, resolve_query
from discreet.serve.query_string import MAX_PARAMETERS, canonical, describe_reduction, link, parse_query, reduce_query

MAJOR = TableVariable("major", "Major", ("11", "13"), ("A", "B"), "occupation", (0, 0, 1))
VARIABLES = (
    TableVariable("occupation", "Occupation", ("111", "112", "131"), ("a", "b", "c")),
    TableVariable("strength", "Strength", tuple("abcdefgh"), tuple("abcdefgh")),
    TableVariable("outdoors", "Outdoors", ("yes", "no"), ("Yes", "No")),
    MAJOR,
)


def table(additive: bool = True) -> QueryableTable:
    actual: Any = SimpleNamespace(
        summary=SimpleNamespace(id="cube"), variables=VARIABLES, measures=(Measure("estimate", "x"),), additive=additive
    )

    def cells(question: TableQuery) -> int:
        shown, _, measures = resolve_query(actual, question)
        size = len(measures)
        for v in shown:
            size *= len(v)
        return size

    actual.cells = cells
    return cast(QueryableTable, actual)


TABLE = table()
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(lambda n: n != "ContentsCode")
CODES = st.lists(
    st.one_of(
        st.sampled_from(["*", ",", "\\", "a,b", "\\,", "é", "]", "6*", "?", "top(1)", "[to(a)]", "range(a", "b)"]),
        NAMES,
    ),
    min_size=1,
    max_size=4,
)


@st.composite
def questions(draw: st.DrawFn) -> TableQuery:
    def some(all_too: bool) -> tuple[tuple[str, tuple[str, ...]], ...]:
        names = draw(st.lists(NAMES, unique=True, max_size=4))
        return tuple((n, () if all_too and draw(st.booleans()) else tuple(draw(CODES))) for n in names)

    return TableQuery(some(True), some(False), tuple(draw(st.one_of(st.just([]), CODES))))


@given(questions())
def test_a_link_is_parsed_back_into_its_query(question: TableQuery) -> None:
    text = link(question)
    assert parse_query(TABLE, text)[0] == canonical(question)
    assert parse_query(TABLE, text.encode())[0] == canonical(question)
    assert link(parse_query(TABLE, text)[0]) == text
    assert text.isascii()
    assert not set(text) & set(" []\"'<>\\\n")


def test_limits_are_sorted_and_what_is_shown_keeps_its_order() -> None:
    one = TableQuery((("b", ("2", "1")), ("a", ())), (("z", ("2", "1")), ("y", ("1",))))
    other = TableQuery((("b", ("2", "1")), ("a", ())), (("y", ("1",)), ("z", ("1", "2"))))
    assert link(one) == link(other)
    assert link(one) == "valueCodes%5Bb%5D=2,1&valueCodes%5Ba%5D=*&where%5By%5D=1&where%5Bz%5D=1,2"
    assert link(TableQuery((("a", ()), ("b", ("2", "1"))), one.where)) != link(one)


@pytest.mark.parametrize(
    ("query", "question"),
    [
        ("", TableQuery()),
        ("valueCodes[a]=1,2", TableQuery((("a", ("1", "2")),))),
        ("valueCodes[a]=1&valueCodes[a]=2", TableQuery((("a", ("1", "2")),))),
        ("valueCodes%5Ba%5D=*", TableQuery((("a", ()),))),
        ("valueCodes[a]=", TableQuery()),
        ("where[a]=", TableQuery()),
        ("where[a]=*", TableQuery()),
        (r"valueCodes[a]=\*", TableQuery((("a", ("*",)),))),
        (r"valueCodes[a]=x\,y,z", TableQuery((("a", ("x,y", "z")),))),
        ("valueCodes[ContentsCode]=se,estimate", TableQuery(measures=("se", "estimate"))),
        ("valueCodes[ContentsCode]=*", TableQuery()),
        ("valueCodes[a][b]=1", TableQuery((("a][b", ("1",)),))),
        ("valueCodes[%C3%A9]=%E2%82%AC+1", TableQuery((("é", ("€ 1",)),))),
        ("valueCodes[occupation]=*&codelist[occupation]=cube_major", TableQuery((("major", ()),))),
    ],
)
def test_links_are_parsed(query: str, question: TableQuery) -> None:
    assert parse_query(TABLE, query)[0] == question


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (b"valueCodes[a]=%ff", "UTF-8"),
        (b"\xff=1", "UTF-8"),
        (b"valueCodes[a]=1,*", "with codes"),
        (b"valueCodes[a]=1,,2", "empty code"),
        (b"valueCodes[a]=,", "empty code"),
        (b"valueCodes[a]=1\\", "backslash"),
        (b"valueCodes[]=1", "unknown parameter"),
        (b"valuecode[a]=1", "unknown parameter"),
        (b"LANG=en&lang=en", "twice"),
        (b"outputFormatParams=UseColours", "UseCodes, UseTexts"),
        (b"outputFormatParams=", "UseCodes, UseTexts"),
        (b"outputValues[occupation]=both", "aggregated or single"),
        (b"outputValues=both", "aggregated or single"),
        (b"valueCodes[a]=1*", "unknown variable"),
        (b"valueCodes[strength]=x*", "no code matches"),
        (b"valueCodes[strength]=range(d,b)", "no code matches"),
        (b"valueCodes[strength]=range(b,x)", "unknown code 'x'"),
        (b"valueCodes[strength]=range(b)", "takes two codes"),
        (b"valueCodes[strength]=from(a,b)", "takes one code"),
        (b"valueCodes[strength]=from(x)", "unknown code 'x'"),
        (b"valueCodes[strength]=top(0)", "takes one or two numbers"),
        (b"valueCodes[strength]=top(-1)", "takes one or two numbers"),
        (b"valueCodes[strength]=bottom(" + b"9" * 5_000 + b")", "takes one or two numbers"),
        (b"valueCodes[strength]=top()", "takes one or two numbers"),
        (b"valueCodes[strength]=*,a*", "with codes"),
        (b"valueCodes[strength]=" + b",".join([b"?"] * 51), "more than 50 expressions"),
        (b"valueCodes=1", "unknown parameter"),
        (b"a[b]=1", "unknown parameter"),
        (b"lang=en&lang=en", "twice"),
        (b"codelist[a]=x", "not shown"),
        (b"valueCodes[occupation]=*&codelist[occupation]=cube_strength", "unknown code list"),
        (b"&".join(b"where[a]=1" for _ in range(MAX_PARAMETERS + 1)), "more than"),
    ],
)
def test_hostile_links_are_refused_in_a_sentence(query: bytes, said: str) -> None:
    with pytest.raises(InvalidQuery, match=said) as refusal:
        parse_query(TABLE, query, ["lang"])
    assert len(str(refusal.value)) < 400


STRANGE = ("6", "61", "611", "6*", "a?", "top(1)", "range(a", "b)", "a,b", "*", "\\", "[x]")


@pytest.mark.parametrize(
    ("written", "codes"),
    [
        ("61*", ["61", "611"]),
        ("?1", ["61"]),
        ("6?", ["61", "6*"]),
        ("*1*", ["61", "611", "top(1)"]),
        ("6*", ["6*"]),  # a code already
        (r"6\*", ["6*"]),
        (r"a\?", ["a?"]),
        (r"?\*", ["6*"]),
        ("[*", ["[x]"]),
        ("top(2)", ["6", "61"]),
        ("TOP(2,1)", ["61", "611"]),
        ("top(99)", list(STRANGE)),
        ("bottom(2)", ["\\", "[x]"]),
        ("bottom(1,1)", ["\\"]),
        ("top(1)", ["top(1)"]),
        (r"\top(1)", ["top(1)"]),
        ("range(61,a?)", ["61", "611", "6*", "a?"]),
        ("[range(61,611)]", ["61", "611"]),
        (r"range(a\,b,\*)", ["a,b", "*"]),
        ("to(61)", ["6", "61"]),
        ("from([x])", ["[x]"]),
        ("611,to(61)", ["611", "6", "61"]),
        ("to(61),61*,6", ["6", "61", "611"]),
        (r"\range(a,b)", ["range(a", "b)"]),
    ],
)
def test_codes_are_chosen_by_expressions_and_literally_if_they_are_codes(written: str, codes: list[str]) -> None:
    own: Any = SimpleNamespace(**vars(TABLE) | {"variables": (TableVariable("a", "A", STRANGE, STRANGE),)})
    for kind in ("valueCodes", "where"):
        actual = parse_query(own, f"{kind}[a]={quote(written)}")[0]
        assert dict(actual.by if kind == "valueCodes" else actual.where) == {
            "a": tuple(codes if kind == "valueCodes" else sorted(codes))
        }
        assert parse_query(own, link(actual))[0] == actual


def test_a_wildcard_that_would_go_back_forever_does_not() -> None:
    code = "a" * 2_000
    own: Any = SimpleNamespace(**vars(TABLE) | {"variables": (TableVariable("a", "A", (code,) * 50, (code,) * 50),)})
    start = time.perf_counter()
    with pytest.raises(InvalidQuery, match="no code matches"):
        parse_query(own, "where[a]=" + "*a" * 30 + "*b")
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    "query",
    [
        "VALUECODES[occupation]=131,112&CodeList[strength]=&valuecodes[strength]=",
        "valueCodes[occupation]=131,112&heading=occupation&stub=strength,outdoors&placement=x",
        "valueCodes[occupation]=131,112&outputFormatParams=useCodes,SeparatorTab&outputFormatParams=includetitle",
        "valueCodes[occupation]=131,112&outputValues[occupation]=single&outputvalues=Aggregated",
    ],
)
def test_what_pxweb_clients_also_write_is_understood(query: str) -> None:
    query = query.replace("&CodeList[strength]=", "")
    assert parse_query(TABLE, query)[0] == TableQuery((("occupation", ("131", "112")),))


def test_a_code_list_shows_its_own_codes_or_the_finer_ones_in_them() -> None:
    start = "valueCodes[occupation]=11&codeList[occupation]=cube_major&outputValues[occupation]="
    assert parse_query(TABLE, f"{start}aggregated")[0] == TableQuery((("major", ("11",)),))
    assert parse_query(TABLE, f"{start}single")[0] == TableQuery((("occupation", ("111", "112")),))
    assert parse_query(TABLE, start.replace("=11", "=?3") + "single")[0] == TableQuery((("occupation", ("131",)),))
    with pytest.raises(InvalidQuery, match="unknown code '12' of major"):
        parse_query(TABLE, start.replace("=11", "=12") + "single")


def test_an_unpaired_bracket_is_part_of_the_name_and_a_long_name_is_cut() -> None:
    with pytest.raises(InvalidQuery) as refusal:
        parse_query(TABLE, "x" * 60_000)
    assert len(str(refusal.value)) < 300


@given(st.binary(max_size=60))
def test_any_bytes_are_parsed_or_refused(query: bytes) -> None:
    try:
        actual, _ = parse_query(TABLE, query, ["lang"])
    except InvalidQuery:
        return
    assert parse_query(TABLE, link(actual))[0] == actual


@given(st.sampled_from([1, 2, 3, 5, 16, 24]), st.booleans(), st.data())
def test_less_detail_is_within_the_limit_and_keeps_the_selection(
    most: int, additive: bool, data: st.DataObject
) -> None:
    own = VARIABLES[:3]
    chosen = {v.id: tuple(data.draw(st.lists(st.sampled_from(v.codes), unique=True))) for v in own}
    question = TableQuery(tuple(chosen.items()))
    actual = reduce_query(table(additive), question, most)
    assert actual is not None
    assert table(additive).cells(actual) <= most
    limits = dict(actual.where)
    for name, codes in chosen.items():
        kept = name in actual.shown or (name == "occupation" and "major" in actual.shown)
        if not additive:
            assert kept or len(limits[name]) == 1
        elif codes and not kept:
            assert set(limits[name]) == set(codes)


def test_less_detail_is_a_coarser_variable_first() -> None:
    wide = TableQuery((("occupation", ()), ("outdoors", ())))
    assert reduce_query(TABLE, wide, 6) == wide
    assert reduce_query(TABLE, wide, 5) == TableQuery((("major", ()), ("outdoors", ())))
    assert reduce_query(TABLE, wide, 0) is None


def test_reductions_are_described() -> None:
    wide = TableQuery((("occupation", ()), ("strength", ("a", "b")), ("outdoors", ())))
    for most, said in [
        (8, "major instead of occupation"),
        (2, "summed over occupation; summed over strength (selected codes only)"),
    ]:
        smaller = reduce_query(TABLE, wide, most)
        assert smaller is not None
        assert said in describe_reduction(TABLE, wide, smaller)
    stored = reduce_query(table(additive=False), wide, 4)
    assert stored is not None
    assert describe_reduction(table(additive=False), wide, stored) == "occupation limited to 111"


def test_quoted_text_of_others_is_in_the_link() -> None:
    assert link(TableQuery(), [("outputFormat", "a b&c")]) == f"outputFormat={quote('a b&c', safe='')}"
