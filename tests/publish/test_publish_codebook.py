"""The codebook: every file, column and code, as Markdown and as JSON."""

import json
from dataclasses import replace

import pytest

from discreet.domain import Attribute, Domain
from discreet.privacy.guarantee import Guarantee, Person
from discreet.publish.codebook import as_json, as_markdown, codebooks
from discreet.publish.description import SIMULATION, Column, PublishedTable, ReleaseDescription

STATE = Attribute.flat("state", ["01", "02"], ["Alabama", "Alaska"], "st", "other", "FIPS 5-2")
GROUP = Attribute("prog", ("inst", "cip"), ("i", "c"), (("001", "52"),), {("001", "52"): 0}, provenance="IPEDS")
GUARANTEE = Guarantee(unit=Person(column="p", max_records=2), epsilon="1.5", caveats=("weights are exact", "two"))
TABLE = PublishedTable(
    name="t",
    by=("state", "prog"),
    domain=Domain((STATE, GROUP)),
    guarantee=GUARANTEE,
    composition="",
    noise="two-sided geometric",
    error=None,
    columns=(Column("state", "code", "state | territory"), Column("count", "integer", "a\nb")),
)
RELEASE = ReleaseDescription("r", "a", False, GUARANTEE, (TABLE,), (), {}, None, ("t",))


@pytest.mark.parametrize("simulated", [False, True])
def test_simulations_are_marked_in_both(simulated: bool) -> None:
    described = replace(RELEASE, simulated=simulated)
    text, data = as_markdown(described), json.loads(as_json(described))
    assert (SIMULATION in text) == simulated
    assert data["notice"] == (SIMULATION if simulated else "")


def test_the_json_has_every_code_as_published() -> None:
    data = json.loads(as_json(RELEASE))
    assert data["release"] == "r"
    assert data["tables"]["t"]["files"] == ["t.parquet", "t.csv"]
    assert [c["name"] for c in data["tables"]["t"]["columns"]] == ["state", "count"]
    state, group = data["attributes"]["state"], data["attributes"]["prog"]
    assert state["codes"] == [["01"], ["02"], ["other"]]
    assert (state["undeclared"], state["provenance"]) == ("other", "FIPS 5-2")
    assert (group["columns"], group["codes"], group["labels"]) == (["inst", "cip"], [["001", "52"]], None)
    assert group["undeclared"] == "dropped"


def test_every_code_has_a_label_where_there_are_labels() -> None:
    state = json.loads(as_json(RELEASE))["attributes"]["state"]
    assert len(state["labels"]) == len(state["codes"])


def test_the_text_states_the_guarantee_and_every_caveat() -> None:
    text = as_markdown(RELEASE)
    assert GUARANTEE.in_words() in text
    for caveat in GUARANTEE.caveats:
        assert f"- Caveat: {caveat}" in text
    assert "t.parquet, t.csv" in text
    assert "two-sided geometric" in text


def test_the_text_escapes_table_cells() -> None:
    lines = as_markdown(RELEASE).splitlines()
    assert "| state | code | state \\| territory |" in lines
    assert "| count | integer | a b |" in lines


def test_no_caveats_no_list() -> None:
    text = as_markdown(replace(RELEASE, guarantee=Guarantee(unit=GUARANTEE.unit, epsilon=1)))
    assert "Caveat" not in text
    assert "\n\n\n" not in text


def test_both_are_deterministic_and_named() -> None:
    made = replace(RELEASE, simulated=True)
    assert codebooks(made) == {"codebook.json": as_json(made), "codebook.md": as_markdown(made)}
    assert codebooks(made) == codebooks(replace(made))
