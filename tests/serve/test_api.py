"""The API: compatibility with PxWeb, numbers of the published cube, caching, and helpful refusals."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import date, datetime, timedelta, tzinfo
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from fastapi import FastAPI

from discreet.publish.cubes import open_cube
from discreet.serve.config import Config
from support.expected_answers import with_stored
from support.survey import OCCUPATIONS, OUTDOORS, STRENGTH
from support.web_client import WebClient, is_problem, open_app, released

TABLES = "/api/v2/tables"
DATA = f"{TABLES}/cube/data"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def app(folder: Path) -> FastAPI:
    return with_stored(folder)


@pytest.fixture(scope="module")
def web(app: FastAPI) -> Iterator[WebClient]:
    client = WebClient(app)
    yield client
    client.close()


# --- what is there ------------------------------------------------------------------------------------------------


def test_the_catalogue_has_pages_and_links_to_walk_them(web: WebClient) -> None:
    first = web.get(f"{TABLES}?pageSize=2").json()
    assert first["page"] == {"pageNumber": 1, "pageSize": 2, "totalElements": 4, "totalPages": 2}
    seen, actual = [], first
    while True:
        seen += [table["id"] for table in actual["tables"]]
        rel = {one["rel"]: one["href"] for one in actual["links"]}
        assert ("next" in rel, "previous" in rel) == (len(seen) < 4, len(seen) > 2)
        if "next" not in rel:
            break
        actual = web.get(rel["next"]).json()
    assert seen == ["cube", "counts", "few", "firms"]
    for path, said in (
        ("pageNumber=4&pageSize=2", "Page 4 does not exist"),
        ("pageNumber=2", "the list has 1 page"),
    ):
        beyond = web.get(f"{TABLES}?{path}")
        assert (beyond.status_code, is_problem(beyond)) == (404, True)
        assert said in beyond.json()["detail"]
    assert web.get(f"{TABLES}?pageSize=0").status_code == 400


@pytest.mark.parametrize(
    ("words", "actual"),
    [
        ("", ["cube", "counts", "few", "firms"]),
        ("OUTDOORS cube", ["cube"]),
        ("strength", ["cube", "counts", "few", "firms"]),
        ("calibrated", ["cube"]),  # of the notes
        ("bayfield", ["firms"]),  # of the labels of codes
        ("WAGES heavy", ["firms"]),  # of measures, and of codes
        ("nothing", []),
        ("wages cube", []),
    ],
)
def test_the_catalogue_is_searched(web: WebClient, words: str, actual: list[str]) -> None:
    response = web.get(TABLES, params={"query": words})
    assert [table["id"] for table in response.json()["tables"]] == actual
    assert response.status_code == 200


def test_a_table_states_its_guarantee_and_links_to_its_data(web: WebClient) -> None:
    actual = web.get(f"{TABLES}/cube").json()
    assert "factor of at most" in actual["extension"]["guarantee"]
    assert "factor of at most" not in actual["description"]
    assert (
        actual["description"]
        == f"{actual['label']}. Every table is a sum of cells of this cube: the same set of cells has the same value "
        "in all tables."
    )
    assert web.get(f"{TABLES}/firms").json()["description"] == "Firms. Firms of one county each."
    assert web.get(f"{TABLES}/counts").json()["description"] == "Counts."
    assert actual["variableNames"] == ["Occupation", "Strength", "Outdoors"]
    assert actual["simulation"] is True
    for one in actual["links"]:
        assert web.get(one["href"]).status_code == 200


def test_metadata_has_all_codes_and_which_variables_may_be_omitted(web: WebClient) -> None:
    cube = web.get(f"{TABLES}/cube/metadata").json()
    assert cube["id"] == ["occupation", "strength", "outdoors", "ContentsCode"]
    assert cube["size"] == [5, 3, 2, 4]
    assert list(cube["dimension"]["strength"]["category"]["index"]) == STRENGTH
    assert cube["dimension"]["strength"]["extension"] == {"elimination": True, "codelists": []}
    assert cube["dimension"]["ContentsCode"]["extension"]["elimination"] is False
    assert cube["dimension"]["ContentsCode"]["category"]["unit"]["se"]["decimals"] == 1
    assert cube["extension"]["guarantee"]
    (coarser,) = cube["dimension"]["occupation"]["extension"]["codelists"]
    assert coarser["id"] == "cube_major"
    stored = web.get(f"{TABLES}/firms/metadata").json()
    assert stored["dimension"]["county"]["extension"]["elimination"] is False


def test_a_code_list_groups_finer_codes_and_can_be_requested(web: WebClient) -> None:
    actual = web.get("/api/v2/codelists/cube_major").json()
    groups = {value["code"]: value["valueMap"] for value in actual["values"]}
    assert groups == {m: [o for o, of in OCCUPATIONS.items() if of == m] for m in ("11", "13")}
    by_list = web.get(f"{DATA}?valueCodes[occupation]=*&codelist[occupation]=cube_major")
    assert by_list.json()["value"] == web.get(f"{DATA}?valueCodes[major]=*").json()["value"]
    assert is_problem(web.get("/api/v2/codelists/cube_strength"))


def test_the_configuration_states_the_limits(web: WebClient) -> None:
    actual = web.get("/api/v2/config").json()
    assert actual["maxDataCells"] == 100_000
    assert actual["maxCallsPerTimeWindow"] == 1_000_000
    assert actual["timeWindow"] == 10
    assert actual["dataFormats"] == ["json-stat2", "csv", "xlsx", "parquet", "sdmx-csv"]
    assert actual["defaultDataFormat"] == "json-stat2"
    for name in actual["dataFormats"]:
        response = web.get(f"{DATA}?outputFormat={name}")
        assert response.status_code == 200
        assert ("content-disposition" in response.headers) == (name != "json-stat2")


# --- numbers ------------------------------------------------------------------------------------------------------


def test_numbers_are_those_of_the_cube(web: WebClient, folder: Path) -> None:
    actual = web.get(f"{DATA}?valueCodes[strength]=*&valueCodes[outdoors]=no&where[major]=11").json()
    table = open_cube(folder, "cube").table(["strength", "outdoors"], {"major": ["11"], "outdoors": ["no"]})
    assert actual["size"] == [3, 1, 4]
    values = np.array(actual["value"]).reshape(3, 4)
    assert np.allclose(values[:, 0], table.estimate, atol=0.051)
    assert np.allclose(values[:, 1], table.se, atol=0.051)


def test_codes_come_in_the_order_of_the_query_with_only_its_measures(web: WebClient) -> None:
    path = f"{DATA}?valueCodes[strength]=heavy,light&valueCodes[ContentsCode]=se&outputFormat=csv"
    rows = list(csv.DictReader(io.StringIO(web.get(path).text.lstrip("\ufeff"))))
    assert [row["strength"] for row in rows] == ["heavy", "light"]
    assert "estimate" not in rows[0]
    every = list(csv.DictReader(io.StringIO(web.get(f"{DATA}?valueCodes[strength]=*&outputFormat=csv").text)))
    assert {row["strength"]: row["se"] for row in rows}["heavy"] == every[2]["se"]


def test_post_gives_the_same_answer_as_get(web: WebClient) -> None:
    body = {
        "selection": [
            {"variableCode": "occupation", "valueCodes": ["*"], "codelist": "cube_major"},
            {"variableCode": "outdoors", "valueCodes": OUTDOORS},
            {"variableCode": "ContentsCode", "valueCodes": ["estimate"]},
            {"variableCode": "strength", "valueCodes": []},
        ],
        "where": [{"variableCode": "strength", "valueCodes": ["light"]}],
    }
    posted = web.post(DATA, json=body)
    asked = f"{DATA}?valueCodes[major]=*&valueCodes[outdoors]=yes,no&valueCodes[ContentsCode]=estimate"
    assert posted.status_code == 200
    assert posted.content == web.get(f"{asked}&where[strength]=light").content
    csv_too = web.post(f"{DATA}?outputFormat=csv", json=body)
    assert csv_too.headers["content-type"].startswith("text/csv")


def test_a_posted_query_is_never_cached(web: WebClient) -> None:
    posted = web.post(DATA, json={"selection": []}, headers={"If-None-Match": "*"})
    assert posted.status_code == 200
    assert posted.headers["cache-control"] == "no-store"
    assert "etag" not in posted.headers


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"selection": 1}',
        b'{"selection": [{"variableCode": ""}]}',
        b'{"selection": [{"variableCode": "strength", "valueCodes": [""]}]}',
        b'{"selection": [{"variableCode": "strength", "valueCodes": ["\\ud800"]}]}',
        b'{"selection": [], "more": 1}',
        b'{"selection": [{"variableCode": "strength"}, {"variableCode": "strength"}]}',
        b'{"selection":' + b"[" * 30_000,
        b"\xff\xfe",
    ],
)
def test_an_invalid_body_is_refused(web: WebClient, body: bytes) -> None:
    response = web.post(DATA, content=body)
    assert response.status_code == 400
    assert is_problem(response)


def test_a_query_is_in_the_url_or_in_the_body(web: WebClient) -> None:
    assert web.post(f"{DATA}?valueCodes[strength]=*", json={"selection": []}).status_code == 400


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("nothing/data", 404, "unknown table"),
        ("nothing/metadata", 404, "unknown table"),
        ("cube/data?valueCodes[nothing]=*", 400, "use one of occupation, strength"),
        ("cube/data?valueCodes[strength]=none", 400, "its codes are light, medium, heavy"),
        ("cube/data?valueCodes[strength]=light,light", 400, "duplicate code"),
        ("cube/data?valueCodes[major]=*&valueCodes[occupation]=*", 400, "duplicate variable"),
        ("cube/data?valueCodes[ContentsCode]=none", 400, "use one of estimate, se"),
        ("cube/data?outputFormat=pdf", 400, "json-stat2, csv"),
        ("cube/data?where[strength]=light&where[major]=11&where[occupation]=13-1011", 400, "occur together"),
        ("cube/data?lang=sv", 400, "lang"),
        ("firms/data", 400, "firms: county, strength are neither shown"),
        ("firms/data?where[strength]=light", 400, "county is neither shown"),
        ("firms/data?where[strength]=light,heavy", 400, "several codes"),
        ("firms/data?where[nothing]=light", 400, "use one of county, strength"),
        ("cube/data?LANG=sv", 400, "lang"),
    ],
)
def test_refusals_say_what_to_do(web: WebClient, path: str, status: int, said: str) -> None:
    response = web.get(f"{TABLES}/{path}")
    assert response.status_code == status
    assert is_problem(response)
    assert said.lower() in response.json()["detail"].lower()


def test_too_large_a_query_is_offered_less_detail(folder: Path) -> None:
    web = WebClient(open_app(folder, Config(max_cells=40, prefix="/here")))
    path = f"/here{DATA}?valueCodes[occupation]=*&valueCodes[strength]=*&valueCodes[outdoors]=no&outputFormat=csv"
    refused = web.get(path)
    assert refused.status_code == 403
    assert is_problem(refused)
    assert refused.json()["offers"] == ["occupation", "strength", "outdoors"]
    instead = refused.json()["instead"]
    assert instead.startswith("/here/api/v2/tables/cube/data?valueCodes%5Bmajor%5D=*")
    assert "outputFormat=csv" in instead
    assert "major instead of occupation" in refused.json()["detail"]
    assert web.get(instead).status_code == 200
    assert web.post(f"/here{DATA}", json={"selection": []}).status_code == 200
    web.close()


def test_all_missing_variables_are_named_with_a_url_that_has_them(web: WebClient, folder: Path) -> None:
    refused = web.get(f"{TABLES}/firms/data?outputFormat=csv").json()
    assert "valueCodes[county]=*" in refused["detail"]
    answered = web.get(refused["instead"])
    assert answered.status_code == 200
    assert answered.headers["content-type"].startswith("text/csv")
    small = WebClient(with_stored(folder, Config(max_cells=4)))
    example = small.get(f"{TABLES}/firms/data").json()["instead"]
    assert small.get(example).json()["size"] == [2, 2]
    wide = small.get(f"{TABLES}/firms/data?valueCodes[county]=*&valueCodes[strength]=*").json()
    assert "county limited to 01" in wide["detail"]
    assert wide["instead"] == example
    small.close()


def test_expressions_select_codes_in_urls_and_bodies(web: WebClient) -> None:
    first, last = min(OCCUPATIONS), max(OCCUPATIONS)
    plain = web.get(f"{DATA}?valueCodes[occupation]={','.join(OCCUPATIONS)}&valueCodes[strength]={STRENGTH[0]}").content
    for written in (f"range({first},{last})", f"from({first})", f"to({last})", "top(5)", "bottom(5)", "1*", "11*,13*"):
        asked = web.get(f"{DATA}?valuecodes[occupation]={written}&valuecodes[strength]=top(1)&stub=strength")
        assert (asked.status_code, asked.content) == (200, plain)
        codes = written.split(",1") if written == "11*,13*" else [written]
        body = {
            "selection": [
                {"variableCode": "occupation", "valueCodes": [codes[0], *("1" + code for code in codes[1:])]},
                {"variableCode": "strength", "valueCodes": ["top(1)"]},
            ],
            "placement": {"heading": ["strength"], "stub": ["occupation"]},
        }
        assert web.post(DATA, json=body).content == plain


def test_a_body_names_code_lists_either_way(web: WebClient) -> None:
    def posted(**more: str) -> bytes:
        return web.post(
            DATA, json={"selection": [{"variableCode": "occupation", "valueCodes": ["11"], **more}]}
        ).content

    assert (
        posted(codeList="cube_major")
        == posted(codelist="cube_major")
        == web.get(f"{DATA}?valueCodes[major]=11").content
    )
    finer = ",".join(code for code, major in OCCUPATIONS.items() if major == "11")
    single = posted(codeList="cube_major", outputValues="single")
    assert single == web.get(f"{DATA}?valueCodes[occupation]={finer}").content
    assert b"unknown code list" in posted(codeList="cube_major", codelist="other")


def test_past_days_selects_recent_releases(web: WebClient, monkeypatch: pytest.MonkeyPatch) -> None:
    day = date.fromisoformat(web.get(f"{TABLES}/cube").json()["updated"][:10])

    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Later:
            return cls(day.year, day.month, day.day, tzinfo=tz) + timedelta(days=3)

    monkeypatch.setattr("discreet.serve.api.datetime", Later)
    actual = {days: web.get(f"{TABLES}?pastDays={days}&pageSize=2") for days in (2, 3)}
    assert [one.json()["page"]["totalElements"] for one in actual.values()] == [0, 3]
    assert all("pastDays=3" in one["href"] for one in actual[3].json()["links"])
    for wrong in ("0", "-1", "x", "1e9", "9999999999"):
        assert is_problem(web.get(f"{TABLES}?pastDays={wrong}"))


# --- caches -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [TABLES, f"{TABLES}/cube", f"{TABLES}/cube/metadata", DATA, "/api/v2/config", "/api/v2/codelists/cube_major"],
)
def test_cached_content_is_not_sent_again(web: WebClient, path: str) -> None:
    first = web.get(path)
    tag = first.headers["etag"]
    assert first.headers["cache-control"].startswith("public, max-age=")
    for said in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = web.get(path, headers={"If-None-Match": said})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert web.get(path, headers={"If-None-Match": '"other"'}).content == first.content


def test_an_etag_depends_on_query_format_and_release(web: WebClient, folder: Path) -> None:
    def tag(path: str, client: WebClient = web) -> str:
        return client.get(path).headers["etag"]

    other = WebClient(open_app(folder, Config(max_cells=99)))
    different = [DATA, f"{DATA}?outputFormat=csv", f"{DATA}?where[major]=11", f"{TABLES}/counts/data", TABLES]
    assert len({tag(path) for path in different}) == len(different)
    assert tag(f"{DATA}?where[major]=11&where[strength]=light") == tag(f"{DATA}?where[strength]=light&where[major]=11")
    assert tag(DATA) == tag(f"{DATA}?outputFormat=json-stat2")
    assert tag(DATA) != tag(DATA, other)
    assert web.get(f"{DATA}?where[none]=1", headers={"If-None-Match": "*"}).status_code == 400
    other.close()


def test_head_says_what_get_would(web: WebClient) -> None:
    for path in (DATA, TABLES, "/health", f"{TABLES}/nothing"):
        head, get = web("HEAD", path), web.get(path)
        assert head.content == b""
        assert head.status_code == get.status_code
        if path != "/health":
            assert head.headers == get.headers


def test_links_hold_under_a_prefix_which_the_proxy_removes_or_not(folder: Path) -> None:
    web = WebClient(open_app(folder, Config(prefix="/statistics")))
    for path in (f"/statistics{TABLES}", TABLES):
        actual = web.get(path).json()
        hrefs = [one["href"] for one in (*actual["links"], *actual["tables"][0]["links"])]
        assert all(href.startswith("/statistics/api/v2/tables") for href in hrefs)
        assert all(web.get(href).status_code == 200 for href in hrefs)
    assert web.get("/statistics/api/v2/openapi.json").json()["servers"] == [{"url": "/statistics"}]
    assert web.get("/statisticsapi/v2/tables").status_code == 404
    web.close()


def test_a_hostile_host_is_in_no_link(web: WebClient) -> None:
    assert "evil" not in web.get(TABLES, headers={"Host": "evil.example"}).text


def test_table_names_are_quoted_in_links(web: WebClient) -> None:
    assert is_problem(web.get(f"{TABLES}/{quote('../../manifest.json', safe='')}"))
    assert is_problem(web.get(f"{TABLES}/%00"))


def test_a_slash_at_the_end_is_no_redirect(web: WebClient) -> None:
    assert web.get(f"{TABLES}/").content == web.get(TABLES).content
    for path in (f"{TABLES}/cube/", f"{DATA}//", "/health/", "//evil.example/", "/api/v2/"):
        response = web.get(path, headers={"Host": "evil.example"})
        assert response.status_code in (200, 404)
        assert "location" not in response.headers
