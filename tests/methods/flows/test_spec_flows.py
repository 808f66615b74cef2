"""Declarations of flows tables: what is accepted, and every refusal, with nothing written or spent."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import pytest

import discreet
from discreet.errors import DiscreetError, DomainError, GuaranteeError, ParameterError, SpecError
from discreet.methods.flows.correction import RULES
from discreet.methods.flows.method import FlowsMethod
from discreet.methods.flows.spec import Flows, Rule
from discreet.methods.registry import methods
from support.flows import (
    BY,
    CORRECTION,
    DOMAINS,
    LEVELS,
    SECTORS,
    SUPPRESS,
    CareersAgency,
    employment,
    graduates,
    job_flows,
    plain,
    spec,
    table,
)

RECORDS = graduates(2)


@pytest.fixture
def office(tmp_path: Path) -> CareersAgency:
    return CareersAgency(tmp_path / "office", RECORDS)


def declared(office: CareersAgency, *tables: dict[str, Any], **changes: Any) -> FlowsMethod:
    """The method that a release with these tables is run by."""
    actual = methods(office.open(spec(*tables, **changes)).spec)[0]
    assert isinstance(actual, FlowsMethod)
    return actual


# --- accepted -------------------------------------------------------------------------------------------------------


def test_defaults(office: CareersAgency) -> None:
    actual = declared(office, plain()).spec
    assert (actual.marginal.industry, actual.marginal.state, actual.marginal.undeclared) == ("ZZ", "Z", False)
    assert actual.correction.rule == "published"
    assert actual.correction.marginal_weight == 1
    assert actual.formats == ["parquet", "csv"]
    assert actual.measurements
    assert actual.levels == []
    assert (actual.home_state, actual.suppress, actual.layout) == (None, None, None)


def test_every_rule_that_can_be_declared_is_there() -> None:
    assert set(get_args(Rule)) == set(RULES)


def test_a_declaration_survives_being_written_down() -> None:
    """The digest of a release is of this text: nothing that decides may be missing from it."""
    correction = {**CORRECTION, "rule": "projection", "marginal_weight": "1/3"}
    full = table(
        correction=correction, layout="lehd", marginal={"undeclared": True}, formats=["csv"], measurements=False
    )
    actual = Flows.model_validate(full)
    assert Flows.model_validate(actual.model_dump(mode="json")) == actual


def test_the_content_of_control_files_is_part_of_the_digest(office: CareersAgency) -> None:
    digests = [office.open(spec()).spec.digest()]
    for name, line in {"job_flows": "44,06,1", "employment": "06,11,1", "missing": "2013,5,06"}.items():
        path = office.folder / f"{name}.csv"
        path.write_text(f"{path.read_text()}{line}\n")
        digests.append(office.open(spec()).spec.digest())
    assert len(set(digests)) == 4


def test_names_of_levels_with_a_dot_mean_nothing_else(office: CareersAgency) -> None:
    """Names of further domains cannot collide with names of levels."""
    names = ("flows.home", "flows.to", "flows.periods", "total.to")
    levels = [{"name": "total", "by": BY, "to": ["division"]}, *({"name": n, "by": BY} for n in names)]
    actual = declared(office, table(levels=levels))
    assert {shape.name: shape.domain.columns for shape in actual.sums} == {
        "total": (*actual.groups.columns, "division"),
        **dict.fromkeys(names, actual.groups.columns),
    }


def test_files_that_are_written(office: CareersAgency) -> None:
    def files(**changes: Any) -> set[str]:
        return {f"{t.name}.{kind}" for t in declared(office, plain(**changes)).published_tables() for kind in t.formats}

    report = {"flows_correction.parquet", "flows_correction.csv"}
    assert files() == {"flows.parquet", "flows.csv", "flows_measured.parquet", *report}
    assert files(formats=["csv"], measurements=False) == {"flows.csv", *report}
    assert files(formats=["parquet"]) == {"flows.parquet", "flows_measured.parquet", *report}


# --- refused --------------------------------------------------------------------------------------------------------

Files = Mapping[str, str | None]
Case = tuple[dict[str, Any], str, str]  # what is declared instead, where, what is said


def level(**changes: Any) -> dict[str, Any]:
    return {"levels": [{"name": "x", "by": BY, "to": [], **changes}]}


def correct(**changes: Any) -> dict[str, Any]:
    return {"correction": {**CORRECTION, **changes}}


def suppress(**changes: Any) -> dict[str, Any]:
    return {"suppress": {key: value for key, value in {**SUPPRESS, **changes}.items() if value is not ...}}


NOT_READ: dict[str, Case] = {
    "no epsilon": ({"epsilon": ...}, "tables[0]", "'epsilon' is missing"),
    "epsilon 0": ({"epsilon": "0"}, "tables[0].epsilon", "must be above 0"),
    "epsilon as a float": ({"epsilon": 1.5}, "tables[0].epsilon", "a float"),
    "a renamed home state": ({"home": "home"}, "tables[0].home", "'home_state': write `home_state: home`"),
    "no industry": ({"industry": ...}, "tables[0]", "'industry' is missing"),
    "no state": ({"state": ...}, "tables[0]", "'state' is missing"),
    "job flows without a home": ({"home_state": ..., "layout": ...}, "tables[0]", "job_flows need `home_state`"),
    "layout without a home": (
        {"home_state": ..., "correction": {}, "layout": "lehd"},
        "tables[0]",
        "the layout lehd needs `home_state`",
    ),
    "layout without levels": ({"levels": [], "layout": "lehd"}, "tables[0]", "and `levels`, which it lists"),
    "one attribute for both": ({"industry": "state"}, "tables[0]", "industry and state are the same attribute"),
    "a format twice": ({"formats": ["csv", "csv"]}, "tables[0]", "duplicate entry in formats"),
    "no format": ({"formats": []}, "tables[0].formats", "at least 1"),
    "another format": ({"formats": ["xlsx"]}, "tables[0].formats[0]", "'parquet' or 'csv'"),
    "another rule": (correct(rule="best"), "tables[0].correction.rule", "'published'"),
    "no families": (correct(industry_flows=[]), "tables[0].correction.industry_flows", "at least 1"),
    "a weight of 0": (correct(marginal_weight="0"), "tables[0].correction.marginal_weight", "must be above 0"),
    "a weight beyond all": (correct(marginal_weight="1e10"), "tables[0].correction.marginal_weight", "lies outside"),
    "an unknown control": (correct(job_flow={}), "tables[0].correction", "did you mean 'job_flows'?"),
    "a control without a file": (
        correct(job_flows={"value": "n"}),
        "tables[0].correction.job_flows",
        "'file' is missing",
    ),
    "threshold 0": (suppress(threshold="0"), "tables[0].suppress.threshold", "must be above 0"),
    "threshold above 1": (suppress(threshold="1.01"), "tables[0].suppress.threshold", "is a share, not above 1"),
    "threshold as a float": (suppress(threshold=0.5), "tables[0].suppress.threshold", "a float"),
    "no threshold": (suppress(threshold=...), "tables[0].suppress", "'threshold' is missing"),
    "no periods": (suppress(periods=[]), "tables[0].suppress.periods", "at least 1"),
    "three sides": (level(to=["industry", "division", "state"]), "tables[0].levels[0].to", "at most 2"),
    "an empty marginal code": ({"marginal": {"state": ""}}, "tables[0].marginal.state", "at least 1"),
    "a level called like its table": (level(name="flows"), "", "two tables are called 'flows'"),
    "two levels of one name": (
        {"levels": [{"name": "x", "by": BY}, {"name": "x", "by": []}]},
        "",
        "two tables are called 'x'",
    ),
    "an unknown key": ({"marginals": {}}, "tables[0]", "did you mean 'marginal'?"),
}

UNSOUND: dict[str, Case] = {
    # attributes that are not there
    "industry that is not declared": ({"industry": "sector"}, "tables.flows.industry", "unknown attribute 'sector'"),
    "state that is a hierarchy": ({"state": "geography"}, "tables.flows.state", "'geography' is a hierarchy"),
    "home that is not declared": ({"home_state": "hom"}, "tables.flows.home_state", "did you mean 'home'?"),
    "families that are not declared": (
        correct(industry_flows=["famly"]),
        "tables.flows.correction.industry_flows[0]",
        "did you mean 'family'?",
    ),
    "division that is not declared": (suppress(division="div"), "tables.flows.suppress.division", "unknown attribute"),
    "periods that are not declared": (suppress(periods=["year"]), "tables.flows.suppress.periods[0]", "unknown"),
    "destinations that are not declared": (level(to=["div"]), "tables.flows.levels.x.to[0]", "unknown attribute 'div'"),
    # attributes that are not coarser
    "home that is not coarser": (
        {"home_state": "division"},
        "tables.flows.home_state",
        "does not consist of whole groups",
    ),
    "home that has no state": (
        {"home_state": "college", "correction": {}},
        "tables.flows.home_state",
        "no category that is a dest",
    ),
    "families that are finer": (
        correct(industry_flows=["programme"]),
        "tables.flows.correction.industry_flows",
        "whole groups",
    ),
    "a level of finer groups": (level(by=["programme"]), "tables.flows.levels.x", "does not consist of whole groups"),
    "a level by a destination": (level(by=["industry"]), "tables.flows.levels.x", "does not consist of whole groups"),
    "a level into groups": (level(to=["college"]), "tables.flows.levels.x", "not consist of whole categories"),
    "a level into two of states": (
        level(to=["division", "wide"]),
        "by division, wide",
        "two levels of 'geography' would be crossed",
    ),
    "a level into industries twice": (
        level(to=["industry", "again"]),
        "tables.flows.levels.x",
        "or is a second attribute for one of them",
    ),
    "suppression by finer groups": (
        suppress(by=["programme"]),
        "tables.flows.suppress.by",
        "does not consist of whole groups",
    ),
    "suppression in periods of others": (
        suppress(periods=["industry"]),
        "tables.flows.suppress.periods",
        "whole groups",
    ),
    "suppression in groups for periods": (suppress(periods=["family"]), "tables.flows.suppress", "list of groups"),
    "suppression of industries": (
        suppress(division="industry"),
        "tables.flows.suppress",
        "not consist of whole states",
    ),
    # destinations
    "industry with other": ({"industry": "folded"}, "tables.flows.industry", "counts undeclared values as 'other'"),
    "groups as industry": ({"industry": "pairs"}, "tables.flows.industry", "'pairs' is a list of groups"),
    "groups as state": ({"state": "pairs"}, "tables.flows.state", "'pairs' is a list of groups"),
    "a marginal industry that is one": (
        {"marginal": {"industry": "52"}},
        "tables.flows.marginal.industry",
        "'52' is a category of 'industry' and the code of the marginal cell",
    ),
    "a marginal state that is one": ({"marginal": {"state": "06"}}, "tables.flows.marginal.state", "is a category"),
    "a marginal code that is padded to one": (
        {"industry": "padded", "marginal": {"industry": "1"}, "correction": {}},
        "tables.flows.marginal.industry",
        "is a category of 'padded'",
    ),
    # columns and files of one name
    "groups by the destination": (
        {"by": [*BY, "state"]},
        "table flows",
        "column 'state' is read for both the group and the dest",
    ),
    "a level with two columns": (level(by=["home"], to=["state"]), "by home, state", "published twice"),
    "groups called flow": ({"by": [*BY, "flow"]}, "table flows", "a published column is called 'flow' already"),
    "groups called measured": ({"by": [*BY, "measured"]}, "table flows", "is called 'measured' already"),
    "groups called moe90": ({"by": [*BY, "moe90"]}, "table flows", "is called 'moe90' already"),
    "groups called employed": (
        {"by": [*BY, "employed"], **level(by=["employed"])},
        "table x",
        "is called 'employed' already",
    ),
    "groups called share": (
        {"by": [*BY, "share"], **suppress(by=["college", "share"])},
        "table flows_unobserved",
        "is called 'share' already",
    ),
    "a level called as the measurements": (level(name="flows_measured"), "tables", "two files are called"),
    "a level called as the report": (level(name="flows_correction"), "tables", "two files are called"),
    "a level called as the shares": (level(name="flows_unobserved"), "tables", "two files are called"),
    "a level in capitals": (level(name="FLOWS_Measured"), "tables", "two files are called"),
    # LEHD's layout
    "four digits in the layout": (
        {"layout": "lehd", "by": ["programme4", "grad_cohort", "years_after"], "correction": {}, "suppress": ...}
        | level(by=["programme4", "grad_cohort", "years_after"]),
        "level x, layout lehd",
        "is by 4-digit field; flows are by 2-digit field",
    ),
    "states in the layout": (
        {"layout": "lehd", **level(to=["state"])},
        "level x, layout lehd",
        "column 'state' has no place in the layout",
    ),
    "one aggregation level twice": (
        {"layout": "lehd", "levels": [{"name": n, "by": BY} for n in "xy"]},
        "layout lehd",
        "two levels are LEHD's aggregation level",
    ),
    "no degree level": (
        {"layout": "lehd", **level(by=["college", "years_after"])},
        "layout lehd",
        "has no degree_level",
    ),
}
MORE: dict[str, Any] = {  # domains that only the unsound use
    "folded": {"values": ["11", "52"], "column": "industry", "undeclared": "other"},
    "pairs": {"groups": "pairs.csv", "columns": ["k", "s"], "provenance": "made up"},
    "again": {"values": list(SECTORS), "column": "industry"},
    "padded": {"values": ["01", "02"], "column": "industry", "width": 2},
    **{name: {"values": ["1"], "column": "x"} for name in ("flow", "measured", "moe90", "employed", "share")},
}


def domains() -> dict[str, Any]:
    coarser = {**DOMAINS["programme"]["coarser"], "programme4": ["institution", "degree_level", "cip4"]}
    geography = {"hierarchy": "wide.csv", "levels": ["state", "division", "wide"]}
    return {**DOMAINS, "programme": {**DOMAINS["programme"], "coarser": coarser}, "geography": geography, **MORE}


def refused(office: CareersAgency, said: Mapping[str, Any]) -> DiscreetError:
    """What a run is refused with: one line with a place, before anything is written, spent or kept."""
    parent, before = office.folder.parent, {path.name for path in office.folder.iterdir()}
    with pytest.raises(DiscreetError) as caught:
        office.open(said).run(parent / "out", simulation="refused")
    assert "\n" not in str(caught.value)
    assert caught.value.what
    assert [path.name for path in parent.iterdir()] == ["office"]
    assert {path.name for path in office.folder.iterdir()} - before == {"ledger1.sqlite", "release1.yaml"}
    chain = discreet.ledger(office.folder / "ledger1.sqlite").verify()
    assert not chain.releases()
    assert chain.balance("records", dt.date(2026, 1, 15)).epsilon == 0
    keys = Path(os.environ["DISCREET_KEYS"])
    assert not keys.exists() or not list(keys.glob("*.key"))
    return caught.value


def wide(office: CareersAgency) -> None:
    """The further public files that the unsound name."""
    states = (office.folder / "states.csv").read_text().splitlines()
    (office.folder / "wide.csv").write_text("\n".join([f"{states[0]},wide", *(f"{s},all" for s in states[1:])]) + "\n")
    (office.folder / "pairs.csv").write_text("k,s\n11,06\n")


@pytest.mark.parametrize("case", NOT_READ)
def test_refused_while_the_file_is_read(office: CareersAgency, case: str) -> None:
    changes, where, says = NOT_READ[case]
    actual = refused(office, spec(table(**changes)))
    assert isinstance(actual, SpecError)
    assert where in actual.where
    assert says in str(actual)


@pytest.mark.parametrize("case", UNSOUND)
def test_refused_with_the_domains_at_hand(office: CareersAgency, case: str) -> None:
    wide(office)
    changes, where, says = UNSOUND[case]
    actual = refused(office, spec(table(**changes), domains=domains()))
    assert isinstance(actual, SpecError | DomainError)
    assert actual.where.startswith(where) or actual.where.endswith(where)
    assert says in actual.what
    assert actual.do


def test_the_table_that_the_unsound_are_made_of_is_accepted(office: CareersAgency) -> None:
    """Or they would be refused for something else."""
    wide(office)
    assert declared(office, table(), domains=domains()).pseof is None
    levels = [{"name": name, **LEVELS[name]} for name in ("total", "both")]
    assert declared(office, table(layout="lehd", levels=levels), domains=domains()).pseof is not None


def test_geometric_noise_does_not_protect_the_size_of_an_establishment(office: CareersAgency) -> None:
    unit = {"establishment": "person_id", "alpha": "0.1", "adversary": "weak"}
    with pytest.raises(GuaranteeError) as caught:
        methods(opened(office, spec(unit=unit)))
    assert "not the size of an establishment" in caught.value.what
    assert caught.value.where == "table flows"
    assert caught.value.do
    whole = {"establishment": "person_id", "whole": True, "max_records": 50}
    (actual,) = methods(opened(office, spec(unit=whole)))
    assert isinstance(actual, FlowsMethod)
    assert actual.distribution.rate == Fraction(3, 50)


def opened(office: CareersAgency, said: Mapping[str, Any]) -> Any:
    from discreet.spec.loader import build

    return build({"release": "r", "asset": "a", **json.loads(json.dumps(said))}, office.folder)


@pytest.mark.parametrize("epsilon", ["1e-20", "1e20"])
def test_an_epsilon_that_no_noise_has_is_refused(office: CareersAgency, epsilon: str) -> None:
    actual = refused(office, spec(table(epsilon=epsilon)))
    assert isinstance(actual, ParameterError)
    assert "epsilon / max_records" in actual.what
    assert actual.where == "table flows"
    assert actual.do


def test_more_noise_than_the_correction_can_move_is_refused(office: CareersAgency) -> None:
    actual = refused(office, spec(table(epsilon="1e-5")))
    assert isinstance(actual, ParameterError)
    assert "units to correct in each group" in actual.what
    assert actual.where == "table flows"
    assert actual.do


def test_a_level_can_be_kept_out_of_the_layout(office: CareersAgency) -> None:
    levels = [{"name": "total", **LEVELS["total"]}, {"name": "everybody", **LEVELS["everybody"], "layout": False}]
    actual = declared(office, table(layout="lehd", levels=levels))
    assert actual.pseof is not None
    assert [level.name for level in actual.pseof.levels] == ["total"]
    assert [shape.name for shape in actual.sums] == ["total", "everybody"]
    said = refused(CareersAgency(office.folder / "other" / "office"), spec(table(layout="lehd", levels=levels[1:])))
    assert "has no level to write" in said.what
    assert said.do


# --- control files --------------------------------------------------------------------------------------------------


def without(text: str, *starts: str) -> str:
    """A file without the lines that begin so."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(starts))


def cut(text: str, column: str) -> str:
    """A file without one of its columns."""
    rows = [line.split(",") for line in text.splitlines()]
    place = rows[0].index(column)
    return "".join(",".join(row[:place] + row[place + 1 :]) + "\n" for row in rows)


def sector(text: str, code: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if line.split(",")[1] != code)


JOBS, JOBS_AT = job_flows(), "tables.flows.correction.job_flows, file job_flows.csv"
WORK, WORK_AT = employment(), "tables.flows.correction.employment, file employment.csv"
GONE_AT = "tables.flows.suppress, file missing.csv"
HEAD = "grad_cohort,years_after,state\n"
FILES: dict[str, tuple[str, str | None, str, str]] = {
    # the file, what stands in it, where, what is said
    "no such file": ("job_flows.csv", None, "file job_flows.csv", "cannot be read"),
    "no file of employment": ("employment.csv", None, "file employment.csv", "cannot be read"),
    "an empty file": ("job_flows.csv", "", JOBS_AT, "is empty"),
    "a column that is missing": ("job_flows.csv", cut(JOBS, "hires"), JOBS_AT, "has no column 'hires'"),
    "no column of states": ("employment.csv", cut(WORK, "state"), WORK_AT, "has no column 'state'"),
    "a home that is missing": ("job_flows.csv", without(JOBS, "66,"), JOBS_AT, "has no line for from_state '66'"),
    "a state that is missing": ("job_flows.csv", sector(JOBS, "41"), JOBS_AT, "has no line for to_state '41'"),
    "a pair that is missing": (
        "job_flows.csv",
        without(JOBS, "06,41"),
        JOBS_AT,
        "has no line for from_state '06' and to_state '41'",
    ),
    "two pairs that are missing": (
        "job_flows.csv",
        without(JOBS, "06,41", "66,36"),
        JOBS_AT,
        "to_state '41', nor for 1 other",
    ),
    "a state without employment": ("employment.csv", without(WORK, "36,"), WORK_AT, "has no line for state '36'"),
    "a sector that is missing": ("employment.csv", sector(WORK, "52"), WORK_AT, "has no line for industry '52'"),
    "a sector of a state that is missing": (
        "employment.csv",
        without(WORK, "34,52"),
        WORK_AT,
        "has no line for industry '52' and state '34'",
    ),
    "a state that lost its zero": (
        "employment.csv",
        WORK.replace("\n06,", "\n6,"),
        WORK_AT,
        "has no line for state '06'",
    ),
    "nobody who moves to a state": (
        "job_flows.csv",
        "".join(
            f"{line.rsplit(',', 1)[0]},0\n" if line.split(",")[1] == "41" else f"{line}\n" for line in JOBS.split()
        ),
        JOBS_AT,
        "is 0 everywhere for to_state '41'",
    ),
    "codes of others alone": ("employment.csv", f"{WORK.split()[0]}\n6,1,2\n", WORK_AT, "has no line with a declared"),
    "a negative value": ("employment.csv", f"{WORK}06,11,-1\n", WORK_AT, "employment is negative"),
    "no number": ("employment.csv", f"{WORK}06,11,many\n", WORK_AT, "employment is 'many', which is not a number"),
    "nothing": ("employment.csv", f"{WORK}06,11,\n", WORK_AT, "which is not a number"),
    "infinity": ("employment.csv", f"{WORK}06,11,inf\n", WORK_AT, "which is not a number"),
    "not a number": ("job_flows.csv", f"{JOBS}06,06,nan\n", JOBS_AT, "which is not a number"),
    "beyond all numbers": ("job_flows.csv", f"{JOBS}06,06,1e16\n", JOBS_AT, "adds up to more than"),
    "a line too short": ("job_flows.csv", f"{JOBS}06,06\n", JOBS_AT, "has 2 fields, the header 3"),
    "no file of missing states": ("missing.csv", None, "file missing.csv", "cannot be read"),
    "missing states without a period": ("missing.csv", "years_after,state\n", GONE_AT, "no column 'grad_cohort'"),
    "a missing state that is none": ("missing.csv", f"{HEAD}2010,1,99\n", GONE_AT, "line 2 names state '99'"),
    "a period that is none": (
        "missing.csv",
        f"{HEAD}2010,1,06\n2011,1,06\n",
        GONE_AT,
        "line 3 names grad_cohort '2011'",
    ),
    "no complete period": (
        "missing.csv",
        HEAD + "".join(f"{c},{y},06\n" for c in ("2010", "2013") for y in "15"),
        GONE_AT,
        "leaves no period in which every state has data",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_control_files_that_are_refused(office: CareersAgency, case: str) -> None:
    name, text, where, says = FILES[case]
    (office.folder / name).unlink() if text is None else (office.folder / name).write_text(text)
    actual = refused(office, spec())
    assert actual.where.startswith(where) or actual.where.endswith(where)
    assert says in actual.what
    assert actual.do


@pytest.mark.parametrize("line", ["06,11,-1", "06,11,many"])
def test_the_line_of_a_control_file_is_named(office: CareersAgency, line: str) -> None:
    (office.folder / "employment.csv").write_text(f"{WORK}{line}\n")
    assert refused(office, spec()).where == f"{WORK_AT}, line {len(WORK.splitlines()) + 1}"


def test_a_control_file_can_be_named_alone(office: CareersAgency) -> None:
    actual = declared(office, table(**correct(job_flows="job_flows.csv", employment="employment.csv")))
    assert actual.spec == declared(office, table()).spec


def test_columns_of_control_files_can_have_other_names(office: CareersAgency) -> None:
    before = declared(office).weights
    (office.folder / "job_flows.csv").write_text(JOBS.replace("from_state,to_state,hires", "h,s,n"))
    (office.folder / "employment.csv").write_text(WORK.replace("state,industry,employment", "s,k,n"))
    jobs = {"file": "job_flows.csv", "origin": "h", "destination": "s", "value": "n"}
    work = {"file": "employment.csv", "state": "s", "industry": "k", "value": "n"}
    actual = declared(office, table(**correct(job_flows=jobs, employment=work))).weights
    assert actual.jobs.tolist() == before.jobs.tolist()
    assert actual.employment.tolist() == before.employment.tolist()
