"""The list of groups that a recoding needs, from the old one: `discreet recode-groups`."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.errors import DiscreetError, DomainError, PublishError, SpecError
from discreet.methods.recode.groups import write_groups
from discreet.spec import Release
from support.recoding import OVERRIDES, RECODE, RecodingOffice, write_csv


@pytest.fixture
def office(measured_office: RecodingOffice, tmp_path: Path) -> RecodingOffice:
    return measured_office.copied(tmp_path / "office")


def declared(office: RecodingOffice, **recode: Any) -> Release:
    return office.open(office.recoding(recode=recode)).spec


def listed(path: Path) -> list[tuple[str, ...]]:
    with path.open(newline="") as file:
        return [tuple(row) for row in csv.reader(file)]


def test_every_group_that_an_old_one_can_become(office: RecodingOffice, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    old = next(office.folder.rglob("programmes.csv"))
    assert write_groups(declared(office), old, new, ["cip4"], ["cipcode", "cip2"]) == len(listed(new)) - 1
    header, *rows = listed(new)
    assert header == ("institution", "degree_level", "cip4", "home_state")
    assert len(set(rows)) == len(rows)
    codes = {row[2] for row in rows if row[:2] == ("00100100", "05")}
    assert codes == {"01.01", "01.09", "02.01", "03.02", "52.02", "52.10", "22.00", "22.01"}


def test_several_columns_go_together(office: RecodingOffice, tmp_path: Path) -> None:
    """01.09 becomes 01.09 of family 01, or 02.01 of family 02; overrides of the longer code say the shorter one."""
    old = next(office.folder.rglob("programmes.csv"))
    columns = {"cip4": 5, "cip2": 2}
    write_groups(declared(office, columns=columns), old, tmp_path / "new.csv", [], ["cipcode"])
    header, *rows = listed(tmp_path / "new.csv")
    pairs = {(row[header.index("cip4")], row[header.index("cip2")]) for row in rows}
    assert ("02.01", "02") in pairs
    assert ("22.01", "22") in pairs
    assert all(four.startswith(two) for four, two in pairs)


def refused(office: RecodingOffice, error: type[DiscreetError], match: str, *arguments: Any, **recode: Any) -> None:
    new = office.folder / "never.csv"
    with pytest.raises(error, match=match):
        write_groups(declared(office, **recode), arguments[0], new, *arguments[1:])
    assert not new.exists()


def test_what_cannot_be_listed(office: RecodingOffice, tmp_path: Path) -> None:
    old = next(office.folder.rglob("programmes.csv"))
    refused(office, DomainError, "'cipcode' has codes of the same classification", old, ["cip4"], [])
    refused(office, SpecError, "did you mean 'cipcode'", old, ["cip4"], ["cipcod"])
    refused(office, SpecError, "'state' is not a recoded column", old, ["state"], ["cipcode"])
    refused(office, DomainError, "cannot be read", tmp_path / "none.csv", [], [])
    (tmp_path / "other.csv").write_text("institution,major\n1,2\n")
    refused(office, DomainError, "has none of the recoded columns", tmp_path / "other.csv", [], [])
    (tmp_path / "there.csv").write_text("mine")
    with pytest.raises(PublishError, match="exists already"):
        write_groups(declared(office), old, tmp_path / "there.csv", ["cip4"], ["cipcode", "cip2"])
    assert (tmp_path / "there.csv").read_text() == "mine"


def test_an_override_leads_to_a_code_that_there_is(office: RecodingOffice) -> None:
    old = next(office.folder.rglob("programmes.csv"))
    path = next(office.folder.rglob(Path(RECODE["overrides"]).name))
    write_csv(path, ("from", "to", "share"), [("22.03", "22.99", "1")])
    refused(office, DomainError, "sends '22.03' to '22.99'", old, ["cip4"], ["cipcode", "cip2"])
    write_csv(path, ("from", "to", "share"), OVERRIDES)


def test_an_override_may_name_a_finest_code(office: RecodingOffice, tmp_path: Path) -> None:
    """As if the crosswalk said so: 22.03 then has one destination, and needs no other override."""
    old = next(office.folder.rglob("programmes.csv"))
    path = next(office.folder.rglob(Path(RECODE["overrides"]).name))
    write_csv(path, ("from", "to"), [("22.0301", "22.0101")])
    write_groups(declared(office), old, tmp_path / "new.csv", ["cip4"], ["cipcode", "cip2"])
    codes = {row[2] for row in listed(tmp_path / "new.csv")}
    assert "22.01" in codes
    assert not codes & {"22.00", "22.03"}


def test_from_the_command_line(office: RecodingOffice, tmp_path: Path) -> None:
    office.open(office.recoding())
    spec = next(office.folder.glob("new.yaml"))
    old = next(office.folder.rglob("programmes.csv"))
    arguments = ["recode-groups", str(spec), str(old), str(tmp_path / "new.csv"), "--only", "cip4"]
    done = CliRunner().invoke(app, [*arguments, "--leave-out", "cipcode", "--leave-out", "cip2"])
    assert done.exit_code == 0, done.output
    assert f"new.csv: {len(listed(tmp_path / 'new.csv')) - 1} groups." in done.output.replace("\n", "")
