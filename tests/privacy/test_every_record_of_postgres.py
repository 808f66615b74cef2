"""A table of PostgreSQL: a text in another encoding does not stop a release, and equal numbers are one person."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.neighbouring_experiments import FARM, SHOP
from support.neighbouring_releases import ReleaseOffice, assert_own_cell_only
from support.postgres_server import PostgresServer, execute


@pytest.fixture
def office(tmp_path: Path) -> ReleaseOffice:
    return ReleaseOffice(tmp_path / "office")


@pytest.fixture(scope="module", params=["UTF8", "LATIN1", "SQL_ASCII"])
def database(request: pytest.FixtureRequest, server: PostgresServer) -> tuple[str, str]:
    """An encoding, and the address of a database in it."""
    return request.param, server.database(request.param)


# What a text column may hold in each encoding, besides ASCII.
FOREIGN = {"UTF8": "chr(233)", "LATIN1": "chr(233)", "SQL_ASCII": r"E'M\xfcll\xff'"}


@pytest.mark.parametrize("column", ["sector", "person_id"])
def test_a_text_in_the_encoding_of_its_database_stops_nothing(
    office: ReleaseOffice, database: tuple[str, str], column: str
) -> None:
    """One é in a LATIN1 database, or any byte in one without an encoding, came as it lay there; the engine took it for
    broken UTF-8, and the whole release ended: that it did not come out tells of that one record."""
    encoding, url = database
    fine, dirty = f"fine_{column}", f"dirty_{column}"
    values = {"person_id": "'p3'", "sector": "'farm'", column: FOREIGN[encoding]}
    execute(
        url,
        f"CREATE TABLE {fine} (person_id text, sector text)",
        f"INSERT INTO {fine} VALUES ('p1', 'farm'), ('p2', 'shop')",
        f"CREATE TABLE {dirty} AS TABLE {fine}",
        f"INSERT INTO {dirty} VALUES ({values['person_id']}, {values['sector']})",
    )
    runs = [office.run({"postgres": url, "table": table}) for table in (fine, dirty)]
    assert_own_cell_only(*runs, FARM)
    assert runs[0].occupied() == {FARM: 1, SHOP: 1}


def test_a_letter_of_a_known_encoding_is_a_code(office: ReleaseOffice, database: tuple[str, str]) -> None:
    """Where the database knows its encoding, é is é: not missing, and the same person wherever it stands."""
    encoding, url = database
    execute(
        url,
        "CREATE TABLE letters (person_id text, sector text)",
        f"INSERT INTO letters VALUES ('p1', {FOREIGN[encoding]})",
    )
    actual = office.run({"postgres": url, "table": "letters"}, codes={"sector": ["é"]})
    assert actual.complete, actual.stopped
    assert actual.occupied() == ({} if encoding == "SQL_ASCII" else {("é",): 1})


def test_a_single_byte_stops_nothing(office: ReleaseOffice, server: PostgresServer) -> None:
    """PostgreSQL's type "char" is one byte of any value: one record beyond 127 is no UTF-8, and ended the release."""
    url = server.schema()
    execute(
        url,
        'CREATE TABLE fine (person_id text, sector "char")',
        "INSERT INTO fine VALUES ('p1', 'a'), ('p2', 'b')",
        "CREATE TABLE dirty AS TABLE fine",
        """INSERT INTO dirty VALUES ('p3', (-23)::int::"char")""",
    )
    runs = [office.run({"postgres": url, "table": table}, codes={"sector": ["a", "b"]}) for table in ("fine", "dirty")]
    assert_own_cell_only(*runs)


@pytest.mark.parametrize("kind", ["numeric", "numeric(10, 2)", "numeric(10, 0)", "double precision", "real"])
def test_persons_are_no_inexact_numbers_of_a_database(office: ReleaseOffice, server: PostgresServer, kind: str) -> None:
    """7, 7.0 and 7.00 are equal in SQL; as texts they were three persons, and one person's three records all counted
    where one may. Refused by type, with and without them; or one person, in whatever way it is written."""
    url = server.schema()
    execute(
        url,
        f"CREATE TABLE people (person_id {kind}, sector text)",
        "INSERT INTO people VALUES (7, 'farm'), (7.0, 'farm'), (7.00, 'farm')",
        f"CREATE TABLE one (person_id {kind}, sector text)",
        "INSERT INTO one VALUES (7, 'farm')",
    )
    actual, one = (office.run({"postgres": url, "table": table}) for table in ("people", "one"))
    assert not actual.stopped
    if actual.complete and kind.startswith("numeric"):
        assert actual.occupied() == one.occupied() == {FARM: 1}
        return
    assert "person_id" in actual.refused, f"released: {actual.cells}"
    assert re.search(r"\btext\b|Int64", actual.refused)
    assert actual.spent == one.spent == 0
    assert one.refused == actual.refused


def test_numbers_as_values_of_a_database(office: ReleaseOffice, server: PostgresServer) -> None:
    """Earnings may be `numeric` with any number of digits; one that is not a number, or infinite, is one record's."""
    url = server.schema()
    execute(
        url,
        "CREATE TABLE fine (person_id bigint, sector text, v numeric)",
        "INSERT INTO fine VALUES (1, 'farm', 1), (2, 'farm', 2.50), (3, 'shop', 3.000000000000000000001)",
        "CREATE TABLE dirty AS TABLE fine",
        "INSERT INTO dirty VALUES (4, 'farm', 'NaN')",
        "CREATE TABLE long AS TABLE fine",
        f"INSERT INTO long VALUES (4, 'farm', {'9' * 5000})",
    )
    table = {
        "method": "sensitivity",
        "statistic": {"name": "mean", "of": "v"},
        "variables": {"v": {"low": "0", "high": "10", "outside": "drop"}},
    }
    fine, dirty, long = (
        office.run({"postgres": url, "table": name}, table=table, delta="0.01") for name in ("fine", "dirty", "long")
    )
    assert fine.occupied() == {FARM: 2, SHOP: 1}
    assert_own_cell_only(fine, dirty)
    assert_own_cell_only(fine, long)
