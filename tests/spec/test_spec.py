"""Declarations: what is accepted, what is refused, and what the digest covers."""

import functools
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import DiscreetError, SpecError
from discreet.methods.hypercube.spec import Hypercube
from discreet.privacy.guarantee import Establishment, Job, Person, Record, WholeEstablishment
from discreet.spec import Release, unknown
from discreet.spec.base import renamed
from discreet.spec.loader import build
from support.hypothesis_profile import examples

properties = examples(40)


def spec(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "release": "r-1",
        "asset": "a",
        "source": {"g": "data.parquet"},
        "unit": {"person": "pid", "max_records": 2},
        "domains": {"d": {"values": ["01", "02"]}, "e": {"values": ["x"], "undeclared": "other", "column": "ee"}},
        "tables": [{"name": "t", "method": "counts", "by": ["d", "e"], "epsilon": "1.5"}],
    }
    return {k: v for k, v in {**base, **changes}.items() if v is not ...}


def table(**changes: Any) -> dict[str, Any]:
    fields = {"name": "t", "method": "counts", "by": ["d"], "epsilon": "1", **changes}
    return {k: v for k, v in fields.items() if v is not ...}


def release(**changes: Any) -> Release:
    return build(spec(**changes), Path("/base"))


# --- keys that changed their name ---------------------------------------------------------------------------------


def test_the_earlier_name_of_a_key_is_refused_with_the_line_as_it_should_be() -> None:
    """`keep` says what is kept; a recoding's `smallest`, what is smallest."""
    now = "key 'keep' is now called 'keep_measurements': write `keep_measurements: kept/one`"
    with pytest.raises(SpecError, match=re.escape(now)):
        release(keep="kept/one")
    crosswalk = {"file": "crosswalk.csv", "old": "o", "new": "n"}
    recode = {"measurements": "kept", "columns": {"cip": 7}, "crosswalk": crosswalk, "smallest": "0.001"}
    now = "key 'smallest' is now called 'smallest_weight': write `smallest_weight: '0.001'`"
    with pytest.raises(SpecError, match=re.escape(now)):
        release(source=..., recode=recode)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (30, "write `new: 30`"),
        ("01", "write `new: '01'`"),
        (Fraction(24, 23), "write `new: 24/23`"),
        ({"b": 1, "a": [True]}, "write `new: {b: 1, a: [true]}`"),
        (None, "write `new: null`"),
        ([SHARED := ["x"], SHARED], "write `new: [[x], [x]]`"),
        ("two\n\nlines", "write the same value there"),
        ("x" * 1000, "write the same value there"),
        (Path("p"), "write the same value there"),
        (functools.reduce(lambda inner, _: [inner], range(3000), []), "write the same value there"),
    ],
    ids=lambda value: str(value)[:20] if not isinstance(value, list) else "list",
)
def test_what_a_renamed_key_suggests_is_one_line_that_would_be_read(value: Any, shown: str) -> None:
    text = renamed("old", "new", value)
    assert text == f"key 'old' is now called 'new': {shown}"
    assert "\n" not in text


def test_keys_within_the_value_of_a_renamed_key_are_renamed_with_it() -> None:
    value = {"epsilon": "1", "tables": [["sex"]], "effect": "2"}
    annotation = Hypercube.model_fields["squared_weights"].annotation
    line = "write `squared_weights: {epsilon: '1', tables: [[sex]], design_effect: '2'}`"
    assert renamed("squares", "squared_weights", value, annotation).endswith(line)


# --- units --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("record", Record()),
        ({"person": "pid", "max_records": 2}, Person(column="pid", max_records=2)),
        ({"job": "j", "max_records": 1}, Job(column="j", max_records=1)),
        (
            {"establishment": "e", "alpha": "0.1", "adversary": "weak"},
            Establishment(column="e", alpha="0.1", adversary="weak"),
        ),
        (
            {"establishment": "e", "whole": True, "max_records": 9},
            WholeEstablishment(column="e", max_records=9),
        ),
    ],
)
def test_every_unit_can_be_written(unit: Any, expected: Any) -> None:
    assert release(unit=unit).unit == expected


@pytest.mark.parametrize(
    ("unit", "says"),
    [
        ({"person": "pid"}, "needs 'max_records'"),
        ({"job": "pid"}, "needs 'max_records'"),
        ({"establishment": "e"}, "needs 'alpha'"),
        ({"establishment": "e", "alpha": "1"}, "needs 'adversary'"),
        ({"establishment": "e", "whole": True}, "needs 'max_records'"),
        ({"establishment": "e", "whole": True, "max_records": 1, "alpha": "1"}, "unknown key 'alpha'"),
        ({"establishment": "e", "alpha": 0.1, "adversary": "weak"}, "a float"),
        ({"establishment": "e", "alpha": "0", "adversary": "weak"}, "above 0"),
        ({"establishment": "e", "alpha": "1", "adversary": "mean"}, "strong"),
        ({"person": "pid", "max_record": 2}, "did you mean 'max_records'"),
        ({"person": "pid", "max_records": 0}, "must be at least 1, found 0"),
        ({"person": "pid", "max_records": "2"}, "integer"),
        ({"person": "pid", "max_records": 2.0}, "integer"),
        ({"person": "pid", "max_records": True}, "integer"),
        ({"person": 5, "max_records": 2}, "expected text"),
        ("person", "expected keys and values"),
        (None, "expected keys and values"),
        (["record"], "expected keys and values"),
        (..., "'unit' is missing"),
    ],
)
def test_a_unit_has_no_defaults(unit: Any, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        release(unit=unit)


@pytest.mark.parametrize("unit", [{}, {"people": "pid"}, {"person": "p", "job": "j", "max_records": 1}])
def test_a_unit_that_is_none_or_two_is_refused(unit: Any) -> None:
    with pytest.raises(SpecError, match="names no unit"):
        release(unit=unit)


@pytest.mark.parametrize(
    "unit",
    [
        {"person": "pid", "max_records": 2, "whole": True},
        {"job": "pid", "max_records": 2, "whole": "yes"},
        {"establishment": "e", "alpha": "1", "adversary": "weak", "whole": "true"},
        {"establishment": "e", "alpha": "1", "adversary": "weak", "whole": 1},
    ],
)
def test_whole_is_not_ignored(unit: Any) -> None:
    with pytest.raises(SpecError, match="whole"):
        release(unit=unit)


# --- tables -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"epsilon": ...}, "'epsilon' is missing"),
        ({"epsilon": 1.5}, "a float"),
        ({"epsilon": "0"}, "above 0"),
        ({"epsilon": "-1"}, "above 0"),
        ({"epsilon": "many"}, "exact number"),
        ({"epsilon": None}, "exact number"),
        ({"epsilon": True}, "a bool"),
        ({"epsilon": ["1"]}, "a list"),
        ({"epsilno": "1"}, "did you mean 'epsilon'"),
        ({"method": ...}, "'method' is missing"),
        ({"method": "count"}, "did you mean 'counts'"),
        ({"method": None}, "unknown method"),
        ({"name": ...}, "'name' is missing"),
        ({"name": "a/b"}, "letters, digits"),
        ({"name": ".a"}, "letters, digits"),
        ({"name": ""}, "letters, digits"),
        ({"name": "a\n"}, "letters, digits"),
        ({"name": "x" * 101}, "letters, digits"),
        ({"name": 5}, "expected text"),
        ({"by": ...}, "'by' is missing"),
        ({"by": "d"}, "expected a list"),
        ({"by": [1]}, "expected text"),
        ({"form": "thin"}, "'dense' or 'sparse'"),
        ({"nonnegative": "yes"}, "true or false"),
        ({"nonnegative": 1}, "true or false"),
        ({"round_to": 1}, "must be at least 2, found 1"),
        ({"round_to": 5.0}, "integer"),
        ({"round_to": True}, "integer"),
    ],
)
def test_tables_are_strict(change: dict[str, Any], says: str) -> None:
    with pytest.raises(SpecError, match=says) as caught:
        release(tables=[table(**change)])
    assert "tables" in caught.value.where


@pytest.mark.parametrize("method", [["counts"], {"counts": 1}])
def test_a_method_of_a_wrong_type_is_refused(method: Any) -> None:
    with pytest.raises(SpecError, match="method"):
        release(tables=[table(method=method)])


@pytest.mark.parametrize("tables", [[], {}, "t", None, [5], ["t"]])
def test_tables_are_a_list_of_tables(tables: Any) -> None:
    with pytest.raises(SpecError):
        release(tables=tables)


def test_tables_have_their_own_names() -> None:
    with pytest.raises(SpecError, match="two tables are called 't'"):
        release(tables=[table(), table()])


def test_an_unknown_attribute_names_the_nearest() -> None:
    actual = release(domains={"degree": {"values": ["1"]}}, tables=[table(by=["degre"])])
    with pytest.raises(SpecError, match="did you mean 'degree'") as caught:
        actual.tables[0].domains(actual)
    assert caught.value.where == "tables.t.by[0]"


def test_an_attribute_is_used_once_in_a_table() -> None:
    actual = release(tables=[table(by=["d", "d"])])
    with pytest.raises(DiscreetError, match="twice"):
        actual.tables[0].domains(actual)


def test_a_table_by_nothing_is_the_total() -> None:
    actual = release(tables=[table(by=[])])
    assert actual.tables[0].domains(actual)["t"].cells == 1


# --- sources ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "x.parquet",
        {"path": "x", "format": "csv"},
        {"duckdb": "x.db", "table": "t"},
        {"postgres": "host=h user=u", "table": "t"},
    ],
)
def test_sources(source: Any) -> None:
    assert release(source={"g": source}).describe_source() == "g"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (..., "'source' is missing"),
        ({}, "found none"),
        ({"a": "x", "b": "y"}, "say under `join`"),
        ("x.parquet", "keys and values"),
        ({"g": 5}, "keys and values"),
        ({"g": {"path": "x", "format": "excel"}}, "'parquet'"),
        ({"g": {"paht": "x"}}, "did you mean 'path'"),
        ({"g": {"duckdb": "x"}}, "'table' is missing"),
        ({"g": {"duckdb": "x", "table": "t", "path": "y"}}, "unknown key 'path'"),
        ({"bad name": "x"}, "letters, digits"),
        ({"g": {"postgres": "host=h password=hunter2", "table": "t"}}, "contains a password"),
        ({"g": {"postgres": "host=h password = hunter2", "table": "t"}}, "contains a password"),
        ({"g": {"postgres": "postgresql://u:hunter2@h/db", "table": "t"}}, "contains a password"),
        ({"g": {"postgres": "postgresql://h/db?password=hunter2", "table": "t"}}, "contains a password"),
    ],
)
def test_bad_sources_are_refused_and_passwords_not_repeated(source: Any, says: str) -> None:
    with pytest.raises(SpecError, match=says) as caught:
        release(source=source)
    assert "hunter2" not in str(caught.value)


# --- domains ------------------------------------------------------------------------------------------------------


def attribute(domain: Any, base: Path = Path("/base")) -> Any:
    (actual,) = build(spec(domains={"d": domain}, tables=[table()]), base).attributes.values()
    return actual


@pytest.mark.parametrize(
    ("rule", "other"), [("drop", None), ("other", "other"), ({"other": "rest"}, "rest"), (..., None)]
)
def test_what_happens_to_the_undeclared(rule: Any, other: str | None) -> None:
    domain = {"values": ["1"]} if rule is ... else {"values": ["1"], "undeclared": rule}
    assert attribute(domain).other == other


@pytest.mark.parametrize(
    ("domain", "says"),
    [
        ({}, "needs one of values, codes, hierarchy or groups"),
        (["1"], "needs one of"),
        ("1", "needs one of"),
        ({"valus": ["1"]}, "needs one of"),
        ({"values": "1"}, "expected a list"),
        ({"values": [1]}, "quote it"),
        ({"values": [True]}, "quote it"),
        ({"values": ["1"], "codes": "x.csv"}, "unknown key 'codes'"),
        ({"values": ["1"], "undeclared": "keep"}, "drop"),
        ({"values": ["1"], "undeclared": True}, "drop"),
        ({"values": ["1"], "colum": "c"}, "did you mean 'column'"),
        ({"values": ["1"], "column": ""}, "at least 1"),
        ({"groups": "g.csv", "columns": ["a"]}, "'provenance' is missing"),
        ({"groups": "g.csv", "columns": ["a"], "provenance": ""}, "at least 1"),
        ({"groups": "g.csv", "columns": [], "provenance": "x"}, "at least 1"),
        ({"groups": "g.csv", "columns": ["a"], "source_columns": [], "provenance": "x"}, "one name for each"),
        ({"hierarchy": "h.csv", "levels": []}, "at least 1"),
        ({"hierarchy": "h.csv"}, "'levels' is missing"),
    ],
)
def test_domains_are_strict(domain: Any, says: str) -> None:
    with pytest.raises(SpecError, match=says) as caught:
        attribute(domain)
    assert "domains" in caught.value.where


def test_domains_from_files(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("code,name\n01,one\n02,two\n")
    codes = attribute({"codes": "c.csv", "code": "code", "label": "name", "column": "x"}, tmp_path)
    assert (codes.categories, codes.labels, codes.source) == ((("01",), ("02",)), ("one", "two"), ("x",))
    groups = attribute({"groups": "c.csv", "columns": ["code", "name"], "provenance": "here"}, tmp_path)
    assert (groups.columns, groups.provenance) == (("code", "name"), "here")
    actual = build(spec(domains={"h": {"hierarchy": "c.csv", "levels": ["code", "name"]}}), tmp_path).attributes
    assert list(actual) == ["code", "name"]
    assert actual["name"].source == ("code",)


def test_an_attribute_is_declared_once(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("d,e\n1,1\n")
    both = {"d": {"values": ["1"]}, "h": {"hierarchy": "c.csv", "levels": ["d", "e"]}}
    with pytest.raises(SpecError, match="'d' is declared twice"):
        _ = build(spec(domains=both), tmp_path).attributes


# --- round trip and digest ----------------------------------------------------------------------------------------

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,5}", fullmatch=True)
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
positives = st.fractions("0.001", 100).map(str) | st.integers(1, 9)
units = st.one_of(
    st.just("record"),
    st.builds(lambda c, k: {"person": c, "max_records": k}, texts, st.integers(1, 9)),
    st.builds(lambda c, k: {"job": c, "max_records": k}, texts, st.integers(1, 9)),
    st.builds(lambda c, k: {"establishment": c, "whole": True, "max_records": k}, texts, st.integers(1, 9)),
    st.builds(
        lambda c, a, w: {"establishment": c, "alpha": a, "adversary": w},
        texts,
        positives,
        st.sampled_from(["strong", "weak"]),
    ),
)
rules = st.sampled_from(["drop", "other", {"other": "rest"}])
codes = st.lists(texts.filter(lambda t: t not in {"other", "rest"}), min_size=1, max_size=3, unique=True)
domains = st.dictionaries(names, st.fixed_dictionaries({"values": codes, "undeclared": rules}), min_size=1, max_size=3)


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    declared = draw(domains)
    by = st.lists(st.sampled_from(sorted(declared)), unique=True)
    more = st.fixed_dictionaries(
        {},
        optional={"form": st.sampled_from(["dense", "sparse"]), "nonnegative": st.booleans(), "round_to": st.just(5)},
    )
    tables = [
        {"name": name, "method": "counts", "by": draw(by), "epsilon": draw(positives), **draw(more)}
        for name in draw(st.lists(names, min_size=1, max_size=2, unique=True))
    ]
    return spec(release=draw(names), unit=draw(units), domains=declared, tables=tables, strict=draw(st.booleans()))


@properties
@given(specs())
def test_a_release_survives_being_written_down(data: dict[str, Any]) -> None:
    first = build(data, Path("/base"))
    again = build(first.model_dump(mode="json"), Path("/base"))
    assert again == first
    assert again.canonical() == first.canonical()


@pytest.mark.parametrize(
    "change",
    [
        {"release": "r-2"},
        {"asset": "b"},
        {"unit": {"person": "pid", "max_records": 3}},
        {"unit": {"person": "p", "max_records": 2}},
        {"unit": {"job": "pid", "max_records": 2}},
        {"strict": True},
        {"domains": {"d": {"values": ["02", "01"]}, "e": {"values": ["x"], "undeclared": "other", "column": "ee"}}},
        {"domains": {"d": {"values": ["01", "02"]}, "e": {"values": ["x"], "column": "ee"}}},
        {"domains": {"d": {"values": ["01", "02"]}, "e": {"values": ["x"], "undeclared": "other"}}},
        {"tables": [table(by=["d", "e"], epsilon="1.6")]},
        {"tables": [table(by=["e", "d"], epsilon="1.5")]},
        {"tables": [table(by=["d", "e"], epsilon="1.5", name="u")]},
        {"tables": [table(by=["d", "e"], epsilon="1.5", form="sparse")]},
        {"tables": [table(by=["d", "e"], epsilon="1.5", nonnegative=True)]},
        {"tables": [table(by=["d", "e"], epsilon="1.5", round_to=5)]},
        {"tables": [table(by=["d", "e"], epsilon="1.5"), table(name="u")]},
    ],
)
def test_what_decides_the_release_is_in_its_digest(change: dict[str, Any]) -> None:
    assert release(**change).digest() != release().digest()


@pytest.mark.parametrize(
    "change",
    [
        {"source": {"g": "elsewhere.csv"}},
        {"ledger": "other.sqlite"},
        {"output": "elsewhere"},
        {"tables": [table(by=["d", "e"], epsilon="3/2")]},
        {"tables": [table(by=["d", "e"], epsilon="1.50", form="dense")]},
    ],
)
def test_where_files_lie_and_how_numbers_are_written_is_not(change: dict[str, Any]) -> None:
    assert release(**change).digest() == release().digest()


def test_unused_domains_do_not_matter_and_are_not_in_the_digest() -> None:
    more = {**spec()["domains"], "z": {"values": ["1"]}}
    assert release(domains=more).digest() == release().digest()


def test_a_release_is_frozen() -> None:
    from pydantic import ValidationError

    with pytest.raises(ValidationError, match="frozen"):
        release().asset = "b"  # type: ignore[misc]


@pytest.mark.parametrize("key", ["release", "asset", "source", "unit", "domains", "tables"])
def test_nothing_essential_has_a_default(key: str) -> None:
    with pytest.raises(SpecError, match=f"'{key}' is missing"):
        release(**{key: ...})


def test_the_base_is_not_the_users_to_set() -> None:
    with pytest.raises(SpecError, match="unknown key 'base'"):
        release(base="/etc")


def test_the_nearest_key_or_all_of_them() -> None:
    assert unknown("epsilno", ["epsilon", "by"]) == "unknown key 'epsilno'; did you mean 'epsilon'?"
    assert unknown("zzz", ["epsilon", "by"], "word") == "unknown word 'zzz'; known: epsilon, by"


def test_text_that_cannot_be_encoded_is_refused() -> None:
    with pytest.raises(DiscreetError):
        release(domains={"d": {"values": ["\ud800"]}}, tables=[table()]).digest()


@pytest.mark.parametrize("delimiter", ['"', "\0", "\n", "é", "€", "||", ""])
def test_delimiters_that_no_line_can_be_cut_at_are_refused(delimiter: str) -> None:
    """Quoted lines would be read, and one without quotes would stop the release, or all be dropped in silence."""
    from discreet.spec import FileSource

    with pytest.raises(ValueError, match="printable one of ASCII that is no quote"):
        FileSource(path="a.csv", delimiter=delimiter)
    assert [FileSource(path="a.csv", delimiter=d).delimiter for d in "\t;| "] == ["\t", ";", "|", " "]
