"""What cannot be recoded: one clear error, nothing written, nothing spent, nothing in the ledger."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.errors import (
    DiscreetError,
    DomainError,
    GuaranteeError,
    LedgerError,
    PublishError,
    SpecError,
)
from discreet.publish.measurements import Measurements
from support.recoding import (
    CLOCK,
    COMPLETIONS,
    CROSSWALK,
    EARNINGS,
    FLOWS,
    OVERRIDES,
    PERSON,
    RecodingOffice,
    contents,
    domains,
    write_csv,
)

HISTORY = ("institution", "degree_level", "grad_cohort", "cipcode", "awards")
Changes = dict[str, Any]


@pytest.fixture(scope="module")
def shared(measured_office: RecodingOffice, tmp_path_factory: pytest.TempPathFactory) -> RecodingOffice:
    """One for all refusals: none may change it."""
    return measured_office.copied(tmp_path_factory.mktemp("refusals") / "office")


def refused(office: RecodingOffice, spec: Changes, error: type[DiscreetError], match: str | None, **more: Any) -> str:
    """The message, once it is certain that nothing else happened."""
    (office.folder / f"{spec['release']}.yaml").unlink(missing_ok=True)
    before, head, spent = contents(office.folder), office.ledger.chain().head, office.spent
    folders = {p for p in office.folder.rglob("*") if p.is_dir()}
    with pytest.raises(error, match=match) as caught:
        office.open(spec).run(office.folder / "out-new", **more)
    (office.folder / f"{spec['release']}.yaml").unlink(missing_ok=True)  # which is all that we wrote
    assert contents(office.folder) == before
    assert {p for p in office.folder.rglob("*") if p.is_dir()} == folders
    assert (office.ledger.chain().head, office.spent) == (head, spent)
    assert caught.value.do or error is SpecError  # what is wrong with a key says what to do
    return str(caught.value)


def with_domain(**changes: Any) -> Changes:
    return {"domains": {**domains("programmes_new.csv"), **changes}}


def with_columns(attribute: str, columns: list[str]) -> Changes:
    actual = copy.deepcopy(domains("programmes_new.csv"))
    actual["programme"]["coarser"][attribute] = columns
    return {"domains": actual}


# --- other than was measured ----------------------------------------------------------------------------------------

ONE = {**EARNINGS, "levels": []}
JOBS = {**FLOWS, "levels": []}
COHORTS_BACKWARDS = {"values": ["2013", "2010"]}
OTHER: dict[str, tuple[tuple[Changes, ...], Changes, type[DiscreetError], str]] = {
    "records of a person": ((ONE,), {"unit": {**PERSON, "max_records": 2}}, GuaranteeError, "another unit or epsilon"),
    "unit": ((ONE,), {"unit": "record"}, GuaranteeError, "another unit or epsilon"),
    "epsilon": (({**ONE, "epsilon": "2"},), {}, GuaranteeError, "another unit or epsilon"),
    "epsilon of flows": (({**JOBS, "epsilon": "3"},), {}, GuaranteeError, "another unit or epsilon"),
    "bins": (({**ONE, "bins": {"edges": [1, 20_000, 40_000, 60_000, 90_000]}},), {}, SpecError, "another 'borders'"),
    "number of bins": (({**ONE, "bins": {"edges": [1, 20_000, 40_000]}},), {}, SpecError, "another 'borders'"),
    "value": (({**ONE, "value": "wage"},), {}, SpecError, "another 'value'"),
    "sample": (({**ONE, "sample": [{"column": "pay", "at_least": 5}]},), {}, SpecError, "another 'sample'"),
    "industries": ((JOBS,), with_domain(industry={"values": ["11", "62", "52"]}), SpecError, "another 'industry'"),
    "marginal": (({**JOBS, "marginal": {"industry": "NO"}},), {}, SpecError, "another 'marginal'"),
    "attributes": (({**ONE, "by": ["programme4", "grad_cohort"]},), {}, SpecError, "by other attributes"),
    "order": (
        ({**ONE, "by": ["grad_cohort", "programme4", "years_after"]},),
        {},
        SpecError,
        "has the columns grad_cohort where the measurements have institution, degree_level, cip4",
    ),
    "columns": (
        (ONE,),
        with_columns("programme4", ["degree_level", "institution", "cip4"]),
        SpecError,
        "has the columns degree_level, institution, cip4 where the measurements have institution, degree_level, cip4",
    ),
    "categories": ((ONE,), with_domain(grad_cohort=COHORTS_BACKWARDS), DomainError, "'grad_cohort' has other cat"),
    "more categories": (
        (ONE,),
        with_domain(years_after={"values": ["1", "5", "10"]}),
        DomainError,
        "'years_after' has other categories than the measurements",
    ),
    "table": (({**ONE, "name": "wages"},), {}, SpecError, "'wages' was not measured by earnings"),
    "method": (({**JOBS, "name": "earnings"},), {}, SpecError, "'earnings' was not measured by flows"),
    "a level that was not paid for": (
        ({**EARNINGS, "levels": [{"name": "more", "by": ["school"], "epsilon": "1"}]},),
        {},
        SpecError,
        "'more' was not measured",
    ),
    "asset": ((ONE,), {"asset": "jobs"}, SpecError, "about asset 'graduates', not 'jobs'"),
}


@pytest.mark.parametrize("case", OTHER)
def test_what_was_not_measured_so_is_refused(shared: RecodingOffice, case: str) -> None:
    tables, changes, error, match = OTHER[case]
    refused(shared, shared.recoding(*tables, **changes), error, match)


def test_other_states_are_refused(office: RecodingOffice) -> None:
    write_csv(office.folder / "states.csv", ("state", "division"), [("44", "1"), ("06", "9"), ("09", "1")])
    refused(office, office.recoding(JOBS), SpecError, "another 'state' than it was measured with")


# --- declarations ---------------------------------------------------------------------------------------------------


def test_source_and_recode_together_are_refused(shared: RecodingOffice) -> None:
    spec = shared.recoding(source={"graduates": "graduates.parquet"})
    refused(shared, spec, SpecError, "with `source`, or recodes measurements, with `recode`: not both")


def test_counts_are_refused(shared: RecodingOffice) -> None:
    table = {"name": "n", "method": "counts", "by": ["grad_cohort"], "epsilon": "1"}
    refused(shared, shared.recoding(ONE, table), SpecError, "table 'n' cannot be recoded")


def test_strict_is_refused(shared: RecodingOffice) -> None:
    refused(shared, shared.recoding(ONE, strict=True), SpecError, "leave out `strict`")


def test_a_simulation_is_refused(shared: RecodingOffice) -> None:
    refused(shared, shared.recoding(ONE), SpecError, "draws no noise", simulation="suite")


def test_records_cannot_be_checked(shared: RecodingOffice) -> None:
    with pytest.raises(SpecError, match="reads no records"):
        shared.open(shared.recoding(ONE)).check()
    (shared.folder / "new.yaml").unlink()


@pytest.mark.parametrize(
    "asked",
    [
        {"columns": {}},
        {"columns": {"cip4": 0}},
        {"columns": {"cip4": "five"}},
        {"smallest_weight": 0.001},
        {"smallest_weight": "0"},
        {"smallest_weight": ...},
        {"measurements": ...},
        {"crosswalk": ...},
        {"rule": "rounded"},
        {"overide": "overrides.csv"},
    ],
)
def test_a_wrong_declaration_is_refused(shared: RecodingOffice, asked: Changes) -> None:
    message = refused(shared, shared.recoding(ONE, recode=asked), SpecError, None)
    assert "recode" in message


# --- measurements ---------------------------------------------------------------------------------------------------


def test_missing_measurements_are_refused(shared: RecodingOffice) -> None:
    for where in ("kept/none", "out-old", "kept", "programmes.csv"):
        spec = shared.recoding(ONE, recode={"measurements": where})
        refused(shared, spec, PublishError, "holds no measurements|cannot be read")


def test_a_release_that_kept_nothing_is_refused(office: RecodingOffice) -> None:
    office.measure(ONE, release="bare", keep_measurements=...)
    about = office.kept("old").about
    forged = Measurements(**{**about.model_dump(), "release": "bare"})
    (office.folder / "forged").mkdir()
    (office.folder / "forged/measurements.json").write_text(forged.text())
    spec = office.recoding(ONE, recode={"measurements": "forged"})
    refused(office, spec, LedgerError, "the measurements of 'bare' are not those that were committed")


def test_measurements_of_another_ledger_are_refused(office: RecodingOffice, tmp_path: Path) -> None:
    other = RecodingOffice.founded(tmp_path / "other")
    shutil.copytree(office.folder / "kept", other.folder / "kept")
    refused(other, other.recoding(ONE), LedgerError, "release 'old' is not in the ledger")
    other.measure(ONE, keep_measurements="kept/own")
    refused(other, other.recoding(ONE), LedgerError, "the measurements of 'old' are not those that were committed")


def test_a_real_ledger_takes_no_simulation(office: RecodingOffice, tmp_path: Path) -> None:
    """Were the entries the same, the marks would still differ."""
    from discreet.privacy.ledger.events import Commit, Reserve

    real = discreet.ledger(tmp_path / "real.sqlite", clock=lambda: CLOCK)
    unit = {"kind": "person", "column": "person_id"}
    discreet.api.set_budget(real, "graduates", epsilon="100", unit=unit)
    for event in office.ledger.chain().events:
        if isinstance(event, Reserve):
            real.reserve(event, simulated=False)
        elif isinstance(event, Commit):
            real.commit(event.release, event.files, event.manifest, event.kept)
    with pytest.raises(LedgerError, match="takes no simulation"):
        office.open(office.recoding(ONE), real).run(office.folder / "out-new")
    assert not (office.folder / "out-new").exists()
    assert "new" not in real.chain().names()


def test_any_changed_byte_is_found(office: RecodingOffice) -> None:
    folder = office.folder / "kept/old"
    for name in sorted(contents(folder)):
        whole = (folder / name).read_bytes()
        places = sorted({0, 1, len(whole) // 3, len(whole) // 2, len(whole) - 2, len(whole) - 1})
        places += range(20, 400, 37) if name == "measurements.json" else []
        for place in places:
            changed = bytearray(whole)
            changed[place] ^= 1
            (folder / name).write_bytes(changed)
            refused(office, office.recoding(ONE), DiscreetError, None)
        for content in (whole[:-1], whole + b"\n", b""):
            (folder / name).write_bytes(content)
            refused(office, office.recoding(ONE), DiscreetError, None)
        (folder / name).unlink()
        refused(office, office.recoding(ONE), DiscreetError, None)
        (folder / name).write_bytes(whole)
    office.recode(ONE)


def test_a_changed_file_is_named(office: RecodingOffice) -> None:
    path = office.folder / "kept/old/flows~measured.simulation.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    message = refused(office, office.recoding(ONE), LedgerError, "is not what the ledger has committed")
    assert path.name in message
    assert "restore it from a copy" in message.lower()


# --- public files ---------------------------------------------------------------------------------------------------


def lines(office: RecodingOffice, **files: Any) -> None:
    headers = {
        "crosswalk": ("old", "new", "action"),
        "overrides": ("from", "to", "share"),
        "completions": HISTORY,
    }
    for name, rows in files.items():
        write_csv(office.folder / f"{name}.csv", headers[name], rows)


def test_a_code_that_the_crosswalk_does_not_know_is_refused(office: RecodingOffice) -> None:
    lines(office, crosswalk=[row for row in CROSSWALK if row[0] != "01.0101"])
    message = refused(office, office.recoding(ONE), DomainError, "'01.01' is unknown to the crosswalk")
    assert "table earnings" in message


@pytest.mark.parametrize("overrides", [..., "overrides.csv"])
def test_a_deleted_code_without_an_override_is_refused(office: RecodingOffice, overrides: Any) -> None:
    lines(office, overrides=[row for row in OVERRIDES if row[0] != "22.03"])
    spec = office.recoding(ONE, recode={"overrides": overrides})
    refused(office, spec, DomainError, "'22.03' is deleted in the crosswalk, and no override gives a destination")


@pytest.mark.parametrize("history", [False, True])
def test_codes_without_completions_are_refused(office: RecodingOffice, history: bool) -> None:
    lines(office, completions=[row for row in COMPLETIONS if not row[3].startswith("52")])
    spec = office.recoding(ONE, recode={} if history else {"history": ...})
    codes = "'52.02' is" if history else "'01.09' and '52.02' are"
    refused(office, spec, DomainError, f"{codes} without completions at any level")


@pytest.mark.parametrize("share", ["0.5", "0.7500001", "1", "3/5"])
def test_shares_that_do_not_add_up_are_refused(office: RecodingOffice, share: str) -> None:
    lines(office, overrides=[("22.03", "22.00", "0.25"), ("22.03", "22.01", share)])
    refused(office, office.recoding(ONE), DomainError, "the shares of '22.03' add up to")


@pytest.mark.parametrize("share", ["", "0", "-0.75", "x", "1e-1"])
def test_shares_that_are_no_numbers_are_refused(office: RecodingOffice, share: str) -> None:
    lines(office, overrides=[("22.03", "22.00", "0.25"), ("22.03", "22.01", share)])
    refused(office, office.recoding(ONE), DomainError, "is not a positive number")


@pytest.mark.parametrize("rows", [[("22.03", "")], [("", "22.00")], [("22.03", "22.00"), ("22.03", "22.00")]])
def test_overrides_without_shares_are_checked_too(office: RecodingOffice, rows: Any) -> None:
    write_csv(office.folder / "overrides.csv", ("from", "to"), rows)
    refused(office, office.recoding(ONE), DomainError, "empty code|duplicate line")


def test_overrides_need_both_codes(office: RecodingOffice) -> None:
    write_csv(office.folder / "overrides.csv", ("from", "share"), [("22.03", "1")])
    refused(office, office.recoding(ONE), DomainError, "has no column 'to'")
    (office.folder / "overrides.csv").write_bytes(b"\xff\xfe")
    refused(office, office.recoding(ONE), DomainError, "overrides.csv")


def test_a_list_that_lacks_groups_is_refused_and_some_are_named(shared: RecodingOffice) -> None:
    spec = shared.recoding(ONE, domains=domains("programmes.csv"))
    message = refused(shared, spec, DomainError, "lacks 9 groups to which old ones map: ")
    assert "00100100/05/02.01, 00100100/05/52.10, 00100100/05/22.00, …" in message
    assert "table earnings, domain programme4" in message


def test_a_list_that_lacks_one_group_is_refused(office: RecodingOffice) -> None:
    rows = (office.folder / "programmes_new.csv").read_text().splitlines()
    (office.folder / "programmes_new.csv").write_text(
        "\n".join(row for row in rows if not row.startswith("00100200,05,52.1001")) + "\n"
    )
    message = refused(office, office.recoding(ONE), DomainError, "lacks 1 group to which")
    assert "00100200/05/52.10" in message


def test_a_destination_that_is_in_no_list_is_refused(office: RecodingOffice) -> None:
    lines(office, overrides=[("22.03", "52.10", "1"), ("22", "22", "1")])
    refused(office, office.recoding(ONE), DomainError, "lacks 1 group to which old ones map: 00100200/18/52.10")


def test_a_destination_that_no_file_knows_is_refused(office: RecodingOffice) -> None:
    lines(office, overrides=[("22.03", "22.09", "1"), ("22", "22", "1")])
    refused(office, office.recoding(ONE), DomainError, "sends '22.03' to '22.09'")


def test_shares_by_a_column_that_the_table_lacks_are_refused(office: RecodingOffice) -> None:
    rows = [(*row[:4], "x", row[4]) for row in COMPLETIONS]
    write_csv(office.folder / "completions.csv", (*HISTORY[:4], "region", "awards"), rows)
    spec = office.recoding(ONE, recode={"shares": [["region"], []]})
    message = refused(office, spec, SpecError, "'region'")
    assert "institution" in message


def test_shares_by_a_column_that_the_history_lacks_are_refused(shared: RecodingOffice) -> None:
    spec = shared.recoding(ONE, recode={"shares": [["years_after"], []]})
    refused(shared, spec, DomainError, "column 'years_after'")


def test_a_history_in_other_codes_is_refused(office: RecodingOffice) -> None:
    lines(office, completions=[*COMPLETIONS, ("00100100", "05", "2010", "99.9999", 3)])
    refused(office, office.recoding(ONE), DomainError, "'99.9999' is without a destination in the crosswalk")


@pytest.mark.parametrize("name", ["crosswalk", "completions", "overrides", "programmes_new"])
def test_a_missing_file_is_refused(office: RecodingOffice, name: str) -> None:
    (office.folder / f"{name}.csv").unlink()
    message = refused(office, office.recoding(ONE), DiscreetError, "cannot be read")
    assert f"{name}.csv" in message


def test_overrides_do_not_tell_parents_from_a_file(office: RecodingOffice) -> None:
    both = copy.deepcopy(domains("programmes.csv"))
    both["programme"]["coarser"]["programme4"] = ["institution", "degree_level", "cip4", "cip2"]
    office.measure(ONE, release="both", keep_measurements="kept/both", domains=both)
    new = copy.deepcopy(both)
    new["programme"]["groups"] = "programmes_new.csv"
    codes = {code for old, new_, _ in CROSSWALK for code in (old, new_) if code}
    write_csv(office.folder / "parents.csv", ("code", "parent"), [(code, code[:2]) for code in sorted(codes)])
    columns = {"cip4": 5, "cip2": {"file": "parents.csv", "code": "code", "parent": "parent"}}
    spec = office.recoding(ONE, recode={"measurements": "kept/both", "columns": columns}, domains=new)
    refused(office, spec, SpecError, "overrides name one code, and a table has cip4 and cip2 together")


# --- places ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keep", "match"),
    [
        ("out-new", "equals, contains or lies in the place"),
        ("out-new/kept", "equals, contains or lies in the place"),
        ("kept/old", "already exists"),
        ("out-old/kept", "inside another release"),
    ],
)
def test_a_bad_place_to_keep_is_refused(shared: RecodingOffice, keep: str, match: str) -> None:
    refused(shared, shared.recoding(ONE, keep_measurements=keep), PublishError, match)


def test_a_used_name_is_refused(office: RecodingOffice) -> None:
    refused(office, office.recoding(ONE, release="old"), LedgerError, r"in the ledger already \(committed\)")


def test_an_existing_folder_is_refused(office: RecodingOffice) -> None:
    (office.folder / "out-new").mkdir()
    refused(office, office.recoding(ONE), PublishError, "already exists")


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), MemoryError()])
def test_a_full_disk_leaves_nothing_behind(
    office: RecodingOffice, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    before, head = contents(office.folder), office.ledger.chain().head
    with monkeypatch.context() as patch:
        patch.setattr("discreet.methods.earnings.tables.write_table", failing(error))
        with pytest.raises(type(error)):
            office.recode(ONE)
    (office.folder / "new.yaml").unlink()
    assert contents(office.folder) == before
    assert not list(office.folder.glob(".*")) + list((office.folder / "kept").glob(".*"))
    assert office.ledger.chain().head == head
    office.recode(ONE)


def test_plan_refuses_the_same(shared: RecodingOffice) -> None:
    for tables, changes, error, match in OTHER.values():
        if "asset" not in changes:
            with pytest.raises(error, match=match):
                shared.open(shared.recoding(*tables, **changes)).plan()
    (shared.folder / "new.yaml").unlink()
