"""Declarations of earnings tables: what is accepted, and every refusal: what, where, and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from discreet.domain.bins import PSEO, Bins
from discreet.errors import DiscreetError, DomainError, GuaranteeError, ParameterError, SpecError
from discreet.methods.earnings.method import EarningsMethod
from discreet.methods.earnings.spec import BinsSpec, Earnings
from discreet.methods.registry import methods
from discreet.spec.loader import load
from support.earnings import DOMAINS, INSTITUTIONS, PROGRAMMES, spec, table

FAMILY = {"name": "families", "by": ["family", "grad_cohort", "years_after"]}


@pytest.fixture
def declare(tmp_path: Path) -> Callable[..., EarningsMethod]:
    """The method that a release with this table is run by."""
    (tmp_path / "programmes.csv").write_text(PROGRAMMES)
    (tmp_path / "institutions.csv").write_text(INSTITUTIONS)

    def declare(*tables: dict[str, Any], **changes: Any) -> EarningsMethod:
        path = tmp_path / "release.yaml"
        data = json.dumps({"release": "r", "asset": "a", **spec(*tables, **changes)})
        path.write_text(yaml.safe_dump(json.loads(data)))  # every value written out
        actual = methods(load(path))[0]
        assert isinstance(actual, EarningsMethod)
        return actual

    return declare


Declare = Callable[..., EarningsMethod]


def refusal(kind: type[DiscreetError], said: Callable[[], object]) -> DiscreetError:
    """What is said: one line, with a place."""
    with pytest.raises(kind) as caught:
        said()
    text = str(caught.value)
    assert "\n" not in text
    assert caught.value.what
    assert caught.value.where
    return caught.value


# --- accepted -------------------------------------------------------------------------------------------------------


def test_defaults(declare: Declare) -> None:
    actual = declare(table(bins=...)).spec
    assert actual.percentiles == [25, 50, 75]
    assert actual.suppress_below == 30
    assert actual.estimator == "pseo"
    assert actual.bins.to_bins() is PSEO
    assert actual.layout is None
    assert actual.levels == []


@pytest.mark.parametrize(
    ("bins", "expected"),
    [
        ("pseo", PSEO),
        ({"standard": "pseo"}, PSEO),
        ({"edges": [-5, 0, 10]}, Bins((-5, 0, 10))),
        ({"edges": [0, 10, 20], "price_index": "1.25"}, Bins((0, 13, 25), "declared edges, times 1.25")),
        (
            {"standard": "pseo", "price_index": "11/10"},
            PSEO.indexed(Fraction(11, 10), f"{PSEO.provenance}, times 1.1"),
        ),
    ],
)
def test_the_ways_to_declare_bins(declare: Declare, bins: Any, expected: Bins) -> None:
    assert declare(table(bins=bins)).bins == expected


def test_lognormal_bins(declare: Declare) -> None:
    actual = declare(table(bins={"lognormal": {"mean": "11.003", "deviation": "0.753", "floor": 10_000}})).bins
    assert actual.count == 21
    assert actual.edges[0] == 10_000


def test_percentiles_with_a_decimal_name_their_columns(declare: Declare) -> None:
    actual = declare(table(percentiles=["12.5", 50, "99.9"]))
    assert actual.points == (Fraction(1, 8), Fraction(1, 2), Fraction(999, 1000))
    names = [c.name for c in actual.columns(actual.levels[0])]
    assert [n for n in names if n.startswith("p")] == [
        f"{p}{end}" for p in ("p12_5", "p50", "p99_9") for end in ("", "_low90", "_high90", "_width")
    ]


def test_a_declaration_survives_being_written_down(declare: Declare) -> None:
    """The digest of a release is of this text: nothing that decides may be missing from it."""
    full = table(
        bins={"lognormal": {"mean": "11", "deviation": "3/4", "floor": 100}, "price_index": "1.1"},
        sample=[{"column": "pay", "at_least": 1, "at_most": 9}, {"column": "e", "equals": ["x"]}],
        percentiles=["12.5", 25, 50, 75],
        suppress_codes={"degree_level": ["18"]},
        levels=[FAMILY, {"name": "s", "by": ["school"], "epsilon": "1/3"}],
        layout={"kind": "lehd", "area": "co", "area_code": "08"},
        reference={"mean": "10", "graduates": 7},
    )
    actual = Earnings.model_validate(full)
    assert Earnings.model_validate(actual.model_dump(mode="json")) == actual


# --- refused while the file is read ---------------------------------------------------------------------------------

NOT_READ: dict[str, tuple[dict[str, Any], str, str]] = {
    # what is wrong: the table, where, what is said
    "a renamed threshold": ({"minimum": 30}, "tables[0].minimum", "'suppress_below': write `suppress_below: 30`"),
    "renamed suppressed codes": (
        {"withhold": {"degree_level": ["07"]}},
        "tables[0].withhold",
        "'suppress_codes': write `suppress_codes: {degree_level: ['07']}`",
    ),
    "renamed families": ({"similar": [["a"]]}, "tables[0].similar", "'borrow_from': write `borrow_from: [[a]]`"),
    "renamed edges": ({"bins": {"borders": [0, 1]}}, "tables[0].bins.borders", "write `edges: [0, 1]`"),
    "a renamed price index": (
        {"bins": {"standard": "pseo", "index": "1.1"}},
        "tables[0].bins.index",
        "write `price_index: '1.1'`",
    ),
    "a level's renamed threshold": (
        {"levels": [{**FAMILY, "minimum": 5}]},
        "tables[0].levels[0].minimum",
        "write `suppress_below: 5`",
    ),
    "a level's renamed codes": (
        {"levels": [{**FAMILY, "withhold": {"cip2": ["01"]}}]},
        "tables[0].levels[0].withhold",
        "write `suppress_codes: {cip2: ['01']}`",
    ),
    "estimator": ({"estimator": "best"}, "tables[0].estimator", "pseo"),
    "no percentiles": ({"percentiles": []}, "tables[0].percentiles", "at least"),
    "percentiles that fall": ({"percentiles": [50, 25]}, "tables[0]", "in ascending order"),
    "a percentile twice": ({"percentiles": [50, 50]}, "tables[0]", "in ascending order"),
    "percentile 0": ({"percentiles": [0, 50]}, "tables[0].percentiles", "must be above 0, found 0"),
    "percentile 100": ({"percentiles": [50, 100]}, "tables[0]", "between 0 and 100"),
    "two decimals": ({"percentiles": ["12.25"]}, "tables[0]", "at most one decimal"),
    "a third": ({"percentiles": ["100/3"]}, "tables[0]", "at most one decimal"),
    "a float": ({"percentiles": [12.5]}, "tables[0].percentiles", 'such as 25 or "12.5"'),
    "one percentile, not a list": ({"percentiles": 50}, "tables[0].percentiles", "list"),
    "no such standard": ({"bins": "pseo2"}, "tables[0]", "expected 'pseo', or keys and values; found 'pseo2'"),
    "two kinds of bins": ({"bins": {"standard": "pseo", "edges": [0, 1]}}, "tables[0].bins", "needs one of"),
    "no kind of bins": ({"bins": {"price_index": "2"}}, "tables[0].bins", "needs one of standard, edges or lognormal"),
    "borders that fall": ({"bins": {"edges": [5, 3]}}, "tables[0].bins", "edge 3 is not above 5"),
    "one border": ({"bins": {"edges": [5]}}, "tables[0].bins", "1 edges; give 2 to 1001"),
    "a border with a fraction": ({"bins": {"edges": [0, 1.5]}}, "tables[0].bins.edges[1]", "an integer"),
    "a border too large": ({"bins": {"edges": [0, 2**41]}}, "tables[0].bins.edges[1]", "at most"),
    "an index of 0": ({"bins": {"standard": "pseo", "price_index": "0"}}, "tables[0].bins.price_index", "above 0"),
    "an index that is a float": (
        {"bins": {"standard": "pseo", "price_index": 1.1}},
        "tables[0].bins.price_index",
        "a float",
    ),
    "lognormal without a floor": (
        {"bins": {"lognormal": {"mean": "11", "deviation": "1"}}},
        "tables[0].bins.lognormal",
        "'floor' is missing",
    ),
    "lognormal above its floor": (
        {"bins": {"lognormal": {"mean": "1", "deviation": "1", "floor": 50}}},
        "tables[0].bins",
        "is not above 50",
    ),
    "a rule that says nothing": ({"sample": [{"column": "pay"}]}, "tables[0].sample[0]", "needs at_least"),
    "a rule with an unknown key": (
        {"sample": [{"column": "pay", "at_leest": 5}]},
        "tables[0].sample[0]",
        "did you mean 'at_least'?",
    ),
    "a rule that equals nothing": ({"sample": [{"column": "pay", "equals": []}]}, "sample[0].equals", "at least"),
    "a rule with a fraction": ({"sample": [{"column": "pay", "at_least": 0.5}]}, "sample[0].at_least", "an integer"),
    "both measured and summed": (
        {"levels": [{**FAMILY, "epsilon": "1", "sum_of": "earnings"}]},
        "tables[0].levels[0]",
        "has both `epsilon` (own noise) and `sum_of`",
    ),
    "the sum of nothing": (
        {"levels": [{**FAMILY, "sum_of": "nobody"}]},
        "tables[0]",
        "level 'families' is the sum of 'nobody', which is no level of this table with an epsilon",
    ),
    "two levels of one name": ({"levels": [FAMILY, FAMILY]}, "tables[0]", "two levels are called 'families'"),
    "a level called like its table": (
        {"levels": [{**FAMILY, "name": "earnings"}]},
        "tables[0]",
        "two levels are called 'earnings'",
    ),
    "epsilon 0": ({"epsilon": "0"}, "tables[0].epsilon", "must be above 0"),
    "epsilon as a float": ({"epsilon": 1.5}, "tables[0].epsilon", "a float"),
    "no epsilon": ({"epsilon": ...}, "tables[0]", "'epsilon' is missing"),
    "no value": ({"value": ...}, "tables[0]", "'value' is missing"),
    "minimum 0": ({"suppress_below": 0}, "tables[0].suppress_below", "at least 1, found 0"),
    "withholding nothing": (
        {"suppress_codes": {"degree_level": []}},
        "tables[0].suppress_codes.degree_level",
        "at least",
    ),
    "another layout": ({"layout": "qwi"}, "tables[0]", "expected 'lehd', or keys and values; found 'qwi'"),
    "an area in capitals": ({"layout": {"area": "CO"}}, "tables[0].layout.area", ""),
    "an area code with letters": ({"layout": {"area_code": "8"}}, "tables[0].layout.area_code", ""),
    "a layout with an unknown key": ({"layout": {"institutions": "x"}}, "tables[0].layout", "did you mean"),
    "a reference without graduates": ({"reference": {"graduates": 0}}, "tables[0].reference.graduates", "at least 1"),
    "an unknown key": ({"percentile": [50]}, "tables[0]", "did you mean 'percentiles'?"),
}


@pytest.mark.parametrize("case", NOT_READ)
def test_refused_while_the_file_is_read(declare: Declare, case: str) -> None:
    changes, where, says = NOT_READ[case]
    actual = refusal(SpecError, lambda: declare(table(**changes)))
    assert where in actual.where
    assert says in str(actual)


def test_names_are_not_those_of_other_tables(declare: Declare) -> None:
    counts = {"name": "families", "method": "counts", "by": ["family"], "epsilon": "1"}
    actual = refusal(SpecError, lambda: declare(table(levels=[FAMILY]), counts))
    assert "two tables are called 'families'" in actual.what
    actual = refusal(SpecError, lambda: declare(table(levels=[FAMILY]), table(name="families")))
    assert "two tables are called 'families'" in actual.what
    actual = refusal(SpecError, lambda: declare(table(levels=[FAMILY]), table(name="b", levels=[FAMILY])))
    assert "two tables are called 'families'" in actual.what


def test_levels_are_by_declared_attributes(declare: Declare) -> None:
    actual = refusal(SpecError, lambda: declare(table(levels=[{"name": "f", "by": ["famly"]}])))
    assert "did you mean 'family'?" in actual.what
    assert actual.where == "tables.earnings.levels.f.by[0]"
    assert actual.do


# --- refused with the domains at hand -------------------------------------------------------------------------------


def test_the_column_that_is_withheld_is_published(declare: Declare) -> None:
    actual = refusal(SpecError, lambda: declare(table(suppress_codes={"cip2": ["01"]})))
    assert actual.what == "suppresses codes of 'cip2', which it does not publish"
    assert actual.where == "table earnings"
    assert actual.do == "name one of institution, degree_level, cip4, grad_cohort, years_after"
    actual = refusal(SpecError, lambda: declare(table(levels=[{**FAMILY, "suppress_codes": {"cip4": ["01.01"]}}])))
    assert actual.where == "level families"


def test_the_code_that_is_withheld_is_a_category(declare: Declare) -> None:
    actual = refusal(SpecError, lambda: declare(table(suppress_codes={"degree_level": ["05", "07"]})))
    assert actual.what == "suppresses degree_level '07', which is no declared category"
    assert actual.where == "table earnings"


def test_a_refused_code_comes_with_advice(declare: Declare) -> None:
    assert refusal(SpecError, lambda: declare(table(suppress_codes={"degree_level": ["07"]}))).do


@pytest.mark.parametrize(
    ("level", "source"),
    [
        ({"by": ["programme", "years_after"]}, "'earnings'"),  # finer than the table
        ({"by": ["region"]}, "'earnings'"),  # something else
        ({"by": ["region"], "sum_of": "earnings"}, "'earnings'"),
        ({"by": ["school", "region"]}, "'earnings'"),
    ],
)
def test_a_level_that_is_no_sum_needs_an_epsilon(declare: Declare, level: dict[str, Any], source: str) -> None:
    domains = {**DOMAINS, "region": {"values": ["n", "s"]}}
    actual = refusal(DomainError, lambda: declare(table(levels=[{"name": "x", **level}]), domains=domains))
    assert actual.what == f"does not consist of whole cells of {source}"
    assert actual.where == "tables.earnings.levels.x"
    assert "give it an `epsilon`" in actual.do
    declare(table(levels=[{"name": "x", "by": level["by"], "epsilon": "1"}]), domains=domains)


def test_a_level_that_is_no_sum_of_any_names_all_that_were_tried(declare: Declare) -> None:
    levels = [{"name": "s", "by": ["school"], "epsilon": "1"}, {"name": "x", "by": ["programme"]}]
    actual = refusal(DomainError, lambda: declare(table(levels=levels)))
    assert actual.what == "does not consist of whole cells of 'earnings' or 's'"


@pytest.mark.parametrize("sum_of", ["families", "x"])
def test_a_sum_is_of_a_measured_level(declare: Declare, sum_of: str) -> None:
    """Of another sum, or of itself: refused, or understood; not a traceback."""
    levels = [FAMILY, {"name": "x", "by": ["school"], "sum_of": sum_of}]
    refusal(DiscreetError, lambda: declare(table(levels=levels)))


def test_geometric_noise_does_not_protect_the_size_of_an_establishment(declare: Declare) -> None:
    unit = {"establishment": "e", "alpha": "0.1", "adversary": "weak"}
    actual = refusal(GuaranteeError, lambda: declare(unit=unit))
    assert "not the size of an establishment" in actual.what
    assert actual.where == "table earnings"
    assert "whole: true" in actual.do
    whole = declare(unit={"establishment": "e", "whole": True, "max_records": 50})
    assert whole.levels[0].distribution.rate == Fraction(3, 50)


@pytest.mark.parametrize(
    "column", ["status", "count", "count_moe90", "p50", "p25_low90", "p75_high90", "p50_width", "bin_1"]
)
def test_an_attribute_may_not_take_a_published_column_name(declare: Declare, column: str) -> None:
    domains = {**DOMAINS, column: {"values": ["1"], "column": "x"}}
    actual = refusal(DomainError, lambda: declare(table(by=[column]), domains=domains))
    assert actual.what == f"a published column is called {column!r} already"
    assert actual.where == "table earnings"
    assert "column:" in actual.do
    actual = refusal(
        DomainError, lambda: declare(table(levels=[{"name": "x", "by": [column], "epsilon": "1"}]), domains=domains)
    )
    assert actual.where == "level x"


@pytest.mark.parametrize("epsilon", ["1e-20", "1e20"])
@pytest.mark.parametrize("where", ["table", "level"])
def test_an_epsilon_that_no_noise_has_is_refused(declare: Declare, epsilon: str, where: str) -> None:
    level = {**FAMILY, "epsilon": epsilon}
    declared = table(epsilon=epsilon) if where == "table" else table(levels=[level])
    actual = refusal(ParameterError, lambda: declare(declared))
    assert "epsilon / max_records" in actual.what
    assert actual.where == "table earnings"
    assert actual.do


def test_levels_of_one_hierarchy_are_not_crossed(declare: Declare) -> None:
    actual = refusal(DomainError, lambda: declare(table(by=["family", "school"])))
    assert "two levels of 'programme' would be crossed" in actual.what
    assert actual.do


# --- LEHD's layout --------------------------------------------------------------------------------------------------


def lehd(**changes: Any) -> dict[str, Any]:
    return table(**{"layout": "lehd", **changes})


def domains(**changes: Any) -> dict[str, Any]:
    return {**DOMAINS, **changes}


def test_the_layout_has_a_place_for_each_level(declare: Declare) -> None:
    levels = [
        FAMILY,
        {"name": "schools", "by": ["school", "years_after"]},
        {"name": "states", "by": ["state4", "grad_cohort", "years_after"]},
    ]
    actual = declare(lehd(levels=levels)).pseoe
    assert actual is not None
    assert {level.name: level.agg.number for level in actual.levels} == {
        **{"earnings": 48, "families": 46},
        **{"schools": 38, "states": 36},
    }


@pytest.mark.parametrize("missing", [25, 50, 75])
def test_the_layout_needs_the_quartiles(declare: Declare, missing: int) -> None:
    actual = refusal(SpecError, lambda: declare(lehd(percentiles=[p for p in (10, 25, 50, 75) if p != missing])))
    assert actual.what == f"the layout lehd needs percentile {missing}"
    assert actual.where == "table earnings"
    assert actual.do == "add it to `percentiles`"


def test_a_column_without_a_place_is_refused(declare: Declare) -> None:
    more = domains(sex={"values": ["1", "2"]})
    actual = refusal(SpecError, lambda: declare(lehd(by=["programme4", "sex", "years_after"]), domains=more))
    assert actual.what == "column 'sex' has no place in the layout"
    assert actual.where == "level earnings, layout lehd"
    assert "institution, state, degree_level, cip4, cip2, grad_cohort, years_after" in actual.do


def test_columns_of_other_names_are_pointed_to(declare: Declare) -> None:
    more = domains(year={"values": ["1"], "column": "years_after"})
    by = ["programme4", "grad_cohort", "year"]
    refusal(SpecError, lambda: declare(lehd(by=by), domains=more))
    assert declare(lehd(by=by, layout={"years_after": "year"}), domains=more).pseoe is not None


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (["institution", "degree_level", "cip4", "cip2"], "has both cip4 and cip2"),
        (["institution", "state", "degree_level", "cip4"], "has both institution and state"),
        (["institution", "cip4"], "has no degree_level"),
        (["degree_level", "cip4"], "has no institution"),
    ],
)
def test_what_is_there_twice_or_not_at_all(declare: Declare, columns: list[str], says: str) -> None:
    programme = {**DOMAINS["programme"], "coarser": {"p": columns}}
    actual = refusal(SpecError, lambda: declare(lehd(by=["p", "years_after"]), domains=domains(programme=programme)))
    assert actual.what == says
    assert actual.where == "level earnings, layout lehd"
    assert actual.do


def test_years_are_needed_and_stand_alone(declare: Declare, tmp_path: Path) -> None:
    actual = refusal(SpecError, lambda: declare(lehd(by=["programme4", "grad_cohort"])))
    assert actual.what == "has no years_after"
    (tmp_path / "g.csv").write_text("institution,degree_level,years_after\n00100100,05,1\n")
    grouped = {"groups": "g.csv", "columns": ["institution", "degree_level", "years_after"], "provenance": "x"}
    actual = refusal(SpecError, lambda: declare(lehd(by=["g"]), domains=domains(g=grouped)))
    assert actual.what == "years_after is part of a group"


@pytest.mark.parametrize("years", [["1", "2"], ["y1"], ["01"]])
def test_years_that_the_layout_lacks(declare: Declare, years: list[str]) -> None:
    actual = refusal(DomainError, lambda: declare(lehd(), domains=domains(years_after={"values": years})))
    strange = next(year for year in years if year != "1")
    assert actual.what == f"years_after has the category {strange!r}"
    assert actual.do == "the layout has years 1, 5 and 10"


def test_other_years_have_no_place(declare: Declare) -> None:
    more = domains(years_after={"values": ["1"], "undeclared": "other"})
    assert "'other'" in refusal(DomainError, lambda: declare(lehd(), domains=more)).what


@pytest.mark.parametrize(
    ("programmes", "code", "identifier"),
    [
        ("100100,05,01.0101,01.01,01,44", "100100", "institution"),
        ("00100100,5,01.0101,01.01,01,44", "5", "degree_level"),
        ("00100100,99,01.0101,01.01,01,44", "99", "degree_level"),
        ("00100100,05,01.0101,1.1,01,44", "1.1", "cipcode"),
        ('00100100,05,01.0101,"0,1",01,44', "0,1", "cipcode"),
    ],
)
def test_codes_are_written_as_lehd_writes_them(
    declare: Declare, tmp_path: Path, programmes: str, code: str, identifier: str
) -> None:
    (tmp_path / "wrong.csv").write_text(f"{PROGRAMMES.splitlines()[0]}\n{programmes}\n")
    programme = {**DOMAINS["programme"], "groups": "wrong.csv"}
    actual = refusal(DomainError, lambda: declare(lehd(), domains=domains(programme=programme)))
    assert actual.what == f"{code!r} is not a code of {identifier} in the layout"
    assert actual.where == "level earnings, layout lehd, domain programme4"
    assert actual.do


@pytest.mark.parametrize("cohort", ["13", "20130", "other"])
def test_cohorts_are_years(declare: Declare, cohort: str) -> None:
    more = domains(grad_cohort={"values": ["2010", cohort]})
    assert (
        f"{cohort!r} is not a code of grad_cohort" in refusal(DomainError, lambda: declare(lehd(), domains=more)).what
    )


def test_undeclared_codes_have_no_place(declare: Declare) -> None:
    more = domains(grad_cohort={"values": ["2010"], "undeclared": "other"})
    actual = refusal(DomainError, lambda: declare(lehd(), domains=more))
    assert actual.what == "'other' is not a code of grad_cohort in the layout"
    assert "undeclared values dropped" in actual.do


def test_two_levels_are_not_the_same_level_of_the_layout(declare: Declare) -> None:
    again = {"name": "again", "by": ["years_after", "grad_cohort", "family"]}
    actual = refusal(SpecError, lambda: declare(lehd(levels=[FAMILY, again])))
    assert actual.what == "two levels are LEHD's aggregation level 46"
    assert actual.where == "table earnings"
    assert actual.do == "publish one of them"


# --- what would be found out only after the budget is spent, or never ------------------------------------------------

LATE: dict[str, tuple[list[dict[str, Any]], dict[str, Any], str]] = {
    "no cohorts, so no years for the version line": ([lehd(by=["programme4", "years_after"])], {}, ""),
    "the cohort of all cohorts": ([lehd()], {"grad_cohort": {"values": ["0000", "2010"]}}, ""),
    "a level called like a file of measurements": (
        [table(levels=[{"name": "earnings~measured", "by": ["family"]}])],
        {},
        "",
    ),
    "two tables in one file of the layout": ([lehd(), lehd(name="second")], {}, ""),
    "a table called like the layout's file": ([lehd(name="pseoe_all")], {}, ""),
    "a level called like a label file": ([lehd(levels=[{**FAMILY, "name": "label_flags"}])], {}, ""),
    "fewer than LEHD's 30": ([lehd(suppress_below=29)], {}, ""),
    "names that differ in case alone": ([table(name="A"), table(name="a")], {}, ""),
    "earnings that LEHD has not": ([lehd(bins={"edges": [-5, 10, 20]})], {}, ""),
    "more bins than can be held": (
        [table(by=["a", "b", "years_after"], levels=[{"name": "x", "by": ["a", "b"]}])],
        {"a": {"values": [str(i) for i in range(9000)]}, "b": {"values": [str(i) for i in range(9000)]}},
        "",
    ),
    "limits that would take hours": (
        [table(percentiles=["0.1"], bins={"edges": list(range(1, 200))})],
        {},
        "",
    ),
}


@pytest.mark.parametrize("case", LATE)
def test_refused_before_anything_is_spent(declare: Declare, case: str) -> None:
    tables, more, _ = LATE[case]
    refusal(DiscreetError, lambda: declare(*tables, domains=domains(**more)))


@pytest.mark.parametrize(
    "bins",
    [
        pytest.param(
            {"lognormal": {"mean": mean, "deviation": deviation, "floor": 1}},
        )
        for mean, deviation in (("1000", "1"), ("1e400", "1"), ("1", "1e400"))
    ],
)
def test_lognormals_beyond_doubles_are_refused_with_a_message(declare: Declare, bins: dict[str, Any]) -> None:
    assert "tables[0].bins" in refusal(SpecError, lambda: declare(table(bins=bins))).where


def test_bins_are_made_anew_from_what_is_declared() -> None:
    declared = BinsSpec.model_validate({"edges": [0, 10]})
    assert declared.to_bins() == declared.to_bins() == Bins((0, 10))
