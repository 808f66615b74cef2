"""Pages: contents and links; nothing inline, everything escaped."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import httpx
import numpy as np
import pytest
from fastapi import FastAPI

from discreet.errors import QueryTooLarge
from discreet.serve.catalogue import TableCatalogue
from discreet.serve.config import Config, ServerContext
from discreet.serve.pages import router
from discreet.serve.query_model import TableQuery
from support.served_cubes import HIGH, PageTable, cubes_and_pay, pay

Get = Callable[..., httpx.Response]


def site(catalogue: TableCatalogue, config: Config | None = None, root: str = "") -> Get:
    app = FastAPI()
    app.include_router(router(ServerContext(catalogue, config or Config())))
    transport = httpx.ASGITransport(app=app, root_path=root)

    async def ask(path: str, **headers: str) -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="https://numbers.example") as client:
            return await client.get(root + path, headers=headers)

    return lambda path, **headers: asyncio.run(ask(path, **headers))


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> TableCatalogue:
    return cubes_and_pay(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def get(catalogue: TableCatalogue) -> Get:
    return site(catalogue)


PAGES = [
    "/",
    "/?q=cube",
    "/?q=nothing+like+this",
    "/about",
    "/tables/cube",
    "/tables/cube?rows=occupation&columns=strength&totals=1&share=columns",
    "/tables/cube?rows=",
    "/tables/counts?rows=strength&error=se",
    "/tables/pay",
    "/tables/pay?rows=school&columns=year&error=se",
    "/tables/counts?rows=strength&rows=outdoors&sort=-value",
]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_whole_and_has_nothing_inline(get: Get, page: str) -> None:
    answer = get(page)
    assert answer.status_code == 200
    text = answer.text
    assert text.startswith("<!doctype html>")
    assert '<html lang="en">' in text
    assert text.count("<h1>") == 1
    assert "Skip to content" in text
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=|javascript:", text)
    assert re.findall(r"<script[^>]*>(.*?)</script>", text, re.S) == [""]
    assert "http://" not in text.replace("http://www.w3.org/", "")
    seen = PageTable(text)
    assert len(set(seen.ids)) == len(seen.ids)
    assert {urlsplit(link).netloc for link in seen.links} == {""}
    assert "set-cookie" not in answer.headers


def test_catalogue_groups_by_release_and_is_searched(get: Get) -> None:
    text = get("/").text
    assert re.findall(r"<h2[^>]*>(\S+)", text) == ["survey1", "pay-2021"]
    assert "e^1.5 is about 4.5." in text
    assert "Schools are public." in text
    actual = get("/?q=SCHOOL+median").text
    assert "/tables/pay" in actual
    assert "/tables/cube" not in actual
    assert "1 table matching" in actual
    assert "&lt;script&gt;" in get("/?q=<script>").text


def test_first_look_shows_groups_and_links_to_their_codes(get: Get, catalogue: TableCatalogue) -> None:
    seen = PageTable(get("/tables/cube").text)
    assert [row[0] for row in seen.rows] == ["Major", "11", "13"]
    down = next(link for link in seen.links if "only.major=13" in link)
    below = PageTable(get(down).text)
    assert [row[0] for row in below.rows] == ["Occupation", "13-1011", "13-2011", "13-2021"]
    answer = catalogue.table("cube").answer(TableQuery((("occupation", ("13-1011",)),)), 100)
    assert below.rows[1][1].split()[0].replace("−", "-").replace(",", "") == f"{answer.numbers['estimate'][0]:.1f}"
    assert "by occupation; major: 13" in get(down).text
    up = next(link for link in below.links if "rows=major" in link)
    assert [row[0] for row in PageTable(get(up).text).rows] == ["Major", "11", "13"]


def test_totals_are_queries_of_their_own(get: Get, catalogue: TableCatalogue) -> None:
    seen = PageTable(
        get("/tables/cube?rows=strength&columns=outdoors&totals=1&only.strength=light&only.strength=heavy").text
    )
    assert [row[0] for row in seen.rows] == ["Strength", "yes", "light", "heavy", "Total"]
    table = catalogue.table("cube")
    limit = (("strength", ("light", "heavy")),)
    across = table.answer(TableQuery((("outdoors", ()),), limit), 100).numbers["estimate"]
    every = table.answer(TableQuery((), limit), 100).numbers["estimate"][0]
    wanted = [f"{value:,.1f}".replace("-", "−") for value in (*across, every)]
    assert [cell.split()[0] for cell in seen.rows[-1][1:]] == wanted
    assert PageTable(get("/tables/pay?rows=school&totals=1").text).rows[-1][0] != "Total"


@pytest.mark.parametrize(("share", "place"), [("rows", (0, -1)), ("columns", (-1, 0)), ("all", (-1, -1))])
def test_percentages_divide_by_the_chosen_total(get: Get, share: str, place: tuple[int, int]) -> None:
    address = "/tables/counts?rows=strength&columns=outdoors&totals=1&error=none"
    numbers, shares = (PageTable(get(f"{address}{more}").text).rows[2:] for more in ("", f"&share={share}"))
    values = np.array([[_number(cell) for cell in row[1:]] for row in numbers])
    base = {"rows": values[:, -1:], "columns": values[-1:, :], "all": values[-1:, -1:]}[share]
    shown = np.array([[_number(cell.replace("%", "")) for cell in row[1:]] for row in shares])
    assert np.abs(shown - 100 * values / base).max() <= 0.0501
    assert shown[place] == 100


def test_percentages_say_whether_they_have_an_error(get: Get) -> None:
    counts = unescape(get("/tables/counts?rows=strength&share=all").text)
    assert "Errors of percentages are first-order" in counts
    assert re.search(r"% ?<.*± \d", counts)
    cube = unescape(get("/tables/cube?rows=strength&share=all").text)
    assert "No error is given for percentages" in cube
    assert "need a variable in the columns" in get("/tables/cube?rows=strength&share=rows").text


def test_rows_are_sorted_and_ranked(get: Get) -> None:
    seen = PageTable(get("/tables/pay?rows=school&at.degree=1&at.year=2020&measure=count&sort=-value").text)
    assert [row[:2] for row in seen.rows] == [["Rank", "School"], ["1", "High & dry"], ["2", "Middle"], ["3", HIGH]]
    upward = next(link for link in seen.links if "sort=value" in link)
    assert [row[1] for row in PageTable(get(upward).text).rows[1:]] == [HIGH, "Middle", "High & dry"]
    assert [row[1] for row in PageTable(get(f"{upward.partition('#')[0]}&top=1").text).rows[1:]] == [HIGH]
    by_label = PageTable(get("/tables/pay?rows=school&sort=-label").text)
    assert [row[0] for row in by_label.rows[1:]] == ["Middle", "High & dry", HIGH]
    by_column = PageTable(get("/tables/pay?rows=school&columns=year&at.degree=2&sort=-value&key=2021&what=p50").text)
    assert [row[1] for row in by_column.rows[3:]] == [HIGH, "Middle", "High & dry"]
    assert by_column.rows[-1][0] == ""  # no number, no rank


def test_suppressed_and_absent_cells_are_shown_and_explained(get: Get) -> None:
    text = get("/tables/pay?rows=school&rows=degree&columns=year").text
    rows = {tuple(row[:2]): row[2:] for row in PageTable(text).rows[3:]}
    assert rows[HIGH, "1"] == ["100 ± 10", "30,000 29,500 to 32,500", "110 u ± 30", "suppressed s"]
    assert rows["High & dry", "2"][2:] == [":", ":"]
    assert "suppressed by a rule stated in the notes of the release" in text
    assert "no such combination of codes in the release" in text
    assert "use with caution: the standard error" in text
    assert "unreliable: the standard error" in text


def test_labels_are_escaped(get: Get) -> None:
    text = get("/tables/pay?rows=school").text
    assert HIGH not in text
    assert "&lt;b&gt;North&lt;/b&gt;" in text


def test_headings_have_scopes_and_tables_captions(get: Get) -> None:
    text = get("/tables/pay?rows=school&columns=year&at.degree=2").text
    assert "<caption" in text
    assert "Count and median by school and year; degree: 2" in text
    scopes = PageTable(text).scopes
    assert scopes == ["col", "colgroup", "colgroup", "colgroup", *["col"] * 4, *["row"] * 3]


def test_variables_not_shown_of_a_non_additive_table_have_one_code(get: Get) -> None:
    text = get("/tables/pay?rows=school").text
    assert "degree: 1; year: 2020" in text
    assert '<select name="at.degree"' in text
    assert "cannot be summed" in text
    assert 'name="totals"' not in text


def test_an_invalid_query_keeps_the_form(get: Get) -> None:
    for query, said in {
        "rows=nonsense": "Unknown variable",
        "rows=school&only.school=z": "Unknown code",
        "rows=school&at.degree=9": "Unknown code",
        "rows=school&measure=mean": "Unknown measure",
        "rows=school&sort=random": "unknown value",
        "rows=school&page=x": "is not a number",
        "rows=school&rows=degree&rows=year": "more than two variables",
        "rows=school&columns=school": "duplicate variable",
        "rows=school&only.sex=1": "Unknown variable",
        "rows=school&at.sex=1": "Unknown variable",
    }.items():
        answer = get(f"/tables/pay?{query}")
        assert answer.status_code == 400, query
        assert said.casefold() in unescape(answer.text).casefold(), query
        assert "Show table" in answer.text
        assert "<table" not in answer.text
    assert get("/tables/cube?rows=occupation&columns=major").status_code == 400


def test_too_large_a_table_is_offered_with_less_detail(catalogue: TableCatalogue) -> None:
    config = Config(max_cells=40)
    get = site(catalogue, config)
    parse_query = "/tables/cube?rows=occupation&columns=strength"
    with pytest.raises(QueryTooLarge):
        catalogue.table("cube").answer(TableQuery((("occupation", ()), ("strength", ()))), config.max_cells)
    answer = get(parse_query)
    assert answer.status_code == 200
    offers = PageTable(answer.text.partition('class="offers"')[2].partition("</ul>")[0]).links
    assert len(offers) >= 3
    assert any("rows=major" in link for link in offers)
    for link in offers:
        actual = get(link)
        assert actual.status_code == 200
        assert "<table" in actual.text
    small = get("/tables/pay?rows=school&rows=degree&columns=year")
    assert 'class="offers"' in small.text


def test_long_tables_come_in_pages(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.serve.pages.view.PAGE_ROWS", 10)
    address = "/tables/cube?rows=occupation&rows=strength&totals=1"
    first = get(address)
    seen = PageTable(first.text)
    assert len(seen.rows) == 12  # headings, ten rows, total
    assert "Rows 1 to 10 of 15" in " ".join(first.text.split())
    rest = PageTable(get(next(link for link in seen.links if "page=2" in link)).text)
    assert len(rest.rows) == 7
    assert PageTable(get(f"{address}&page=99").text).rows == rest.rows


def test_files_of_the_same_answer_are_linked(get: Get) -> None:
    text = get("/tables/cube?rows=strength&only.strength=light&only.major=11").text
    links = {
        dict(parse_qsl(urlsplit(link).query))["outputFormat"]: link for link in PageTable(text).links if "/api/" in link
    }
    assert list(links) == ["csv", "xlsx", "parquet", "json-stat2", "sdmx-csv"]
    assert dict(parse_qsl(urlsplit(links["csv"]).query)) == {
        "valueCodes[strength]": "light",
        "where[major]": "11",
        "valueCodes[ContentsCode]": "estimate,se,low90,high90",
        "outputFormat": "csv",
    }
    assert 'download="cube.simulation.csv"' in text
    assert 'download="pay.csv"' in get("/tables/pay").text


def test_link_and_citation_lead_back_to_the_same_table(get: Get) -> None:
    text = get("/tables/cube?rows=strength&columns=&share=&sort=-value&totals=1&utm_source=x").text
    address = unescape(re.search(r'id="link"[^>]*value="([^"]+)"', text)[1])  # type: ignore[index]
    assert address == "https://numbers.example/tables/cube?rows=strength&totals=1&sort=-value"
    again = get(address.removeprefix("https://numbers.example"))
    assert PageTable(again.text).rows == PageTable(text).rows
    citation = unescape(re.search(r'id="cite"[^>]*>([^<]+)<', text)[1])  # type: ignore[index]
    assert address in citation
    assert "a simulation" in citation
    assert "survey1" in citation


def test_simulation_is_stated_on_every_page(get: Get, catalogue: TableCatalogue, tmp_path: object) -> None:
    real = site(replace(catalogue, tables={"pay": catalogue.table("pay")}, simulation=False))
    for page in ["/", "/about", "/tables/pay", "/tables/pay?rows=no", "/tables/none"]:
        assert 'class="banner"' in get(page).text
        assert 'class="banner"' not in real(page).text


def test_unknown_tables_and_files_are_not_found(get: Get) -> None:
    for page in [
        "/tables/none",
        "/tables/none/chart.svg",
        "/tables/pay/chart.gif",
        "/static/none.css",
        "/static/site.css",
    ]:
        assert get(page).status_code == 404
    assert "&lt;i&gt;" in get("/tables/<i>").text


def test_static_files_are_kept_for_ever_and_pages_asked_again(get: Get) -> None:
    page = get("/about")
    names = re.findall(r'"(/static/[^"]+)"', page.text)
    assert len(names) == 3
    for name in names:
        answer = get(name)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    again = get("/about", **{"if-none-match": page.headers["etag"]})
    assert again.status_code == 304
    assert again.content == b""
    assert page.headers["cache-control"] == "no-cache"


def test_links_have_the_prefix(catalogue: TableCatalogue) -> None:
    get = site(catalogue, root="/statistics")
    for page in ["/", "/about", "/tables/cube", "/tables/pay?rows=school&sort=-value"]:
        text = get(page).text
        links = [*PageTable(text).links, *re.findall(r'(?:src|action|href)="([^"]+)"', text)]
        assert {link.split("/", 2)[1] for link in links if not link.startswith("#")} == {"statistics"}
    assert "https://numbers.example/statistics/tables/cube?" in get("/tables/cube").text


def test_charts_are_drawn_and_can_be_taken(get: Get) -> None:
    text = get("/tables/cube?rows=strength").text
    assert "<svg" in text
    svg = next(link for link in PageTable(text).links if "chart.svg" in link)
    answer = get(svg)
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["content-disposition"] == 'attachment; filename="cube.simulation.svg"'
    assert answer.text.startswith("<svg")
    picture = get(svg.replace("chart.svg", "chart.png"))
    assert picture.content.startswith(b"\x89PNG")
    assert get("/tables/pay/chart.svg?rows=nonsense").status_code == 400


def test_simulated_stored_table_has_its_name_on_files(tmp_path: object, catalogue: TableCatalogue) -> None:
    table = pay(tmp_path, simulation=True)  # type: ignore[arg-type]
    get = site(TableCatalogue({"pay": table}, True, "0"))
    assert 'download="pay.simulation.xlsx"' in get("/tables/pay").text


def _number(text: str) -> float:
    return float(text.split(maxsplit=1)[0].replace(",", "").replace("−", "-"))


def test_captions_state_that_only_some_rows_are_shown(get: Get) -> None:
    text = unescape(get("/tables/cube?rows=occupation&totals=1&share=columns&sort=-value&top=2").text)
    seen = PageTable(text)
    assert [row[1] for row in seen.rows][-1:] != ["Total"]
    assert seen.rows[-1][1] == "Total of all 5 rows"
    caption = re.search(r"<caption[^>]*><span>(.*?)</span>", text)[1]  # type: ignore[index]
    assert caption.endswith("by occupation, percent of each column, 2 largest of 5")
    assert f"{caption}. " in text.partition('id="cite"')[2]
    assert "by Occupation, 2 largest of 5" in re.search(r"<svg.*?<title[^>]*>(.*?)</title>", text, re.S)[1]  # type: ignore[index]
    assert "Percentages are based on all 5 rows" in text
    for sort, kind in {"value": "smallest", "label": "first", "": "first"}.items():
        assert f"2 {kind} of 5" in get(f"/tables/cube?rows=occupation&sort={sort}&top=2").text
    whole = get("/tables/cube?rows=occupation&totals=1&top=5").text
    assert " of 5" not in PageTable(whole).rows[-1][0]
    assert "largest of" not in whole.partition("</table>")[0].partition("<caption")[2]


@pytest.mark.parametrize(("share", "said"), [("rows", "of each row"), ("columns", "of each column"), ("all", "of all")])
def test_captions_state_the_base_of_percentages(get: Get, share: str, said: str) -> None:
    text = get(f"/tables/counts?rows=strength&columns=outdoors&share={share}").text
    assert f"by strength and outdoors, percent {said}</span>" in text
    dashes = any("–" in cell for row in PageTable(text).rows for cell in row)
    assert ("the base of the percentage is unreliable" in text) == dashes


def test_columns_are_defined(catalogue: TableCatalogue) -> None:
    table = catalogue.table("pay")
    first = replace(table.measures[0], meaning="How many <people>.")
    told = replace(table, measures=(first, *table.measures[1:]))  # type: ignore[type-var]
    get = site(replace(catalogue, tables={"pay": told}))
    text = get("/tables/pay?rows=school").text
    assert "Definitions of the columns" in text
    assert "<dt>Count</dt><dd>How many &lt;people&gt;.</dd>" in text
    assert 'title="How many &lt;people&gt;."' in text
    assert "Definitions of the columns" not in get("/tables/pay?rows=school&measure=p50").text
    assert "/tables/pay" in get("/?q=people").text


def test_search_looks_into_codes_and_notes(get: Get) -> None:
    for q in ("dry", "suppressed"):
        assert "1 table matching" in get(f"/?q={q}").text, q
    assert "0 tables matching" in get("/?q=dryest").text


def test_files_have_codes_with_commas_and_strange_names(catalogue: TableCatalogue) -> None:
    from discreet.serve.pages.form import downloads
    from discreet.serve.query_string import parse_query as read_link

    table = catalogue.table("pay")
    school = replace(table.variables[0], codes=("a,b", "*", "\\"))
    odd = replace(table, variables=(school, *table.variables[1:]))  # type: ignore[type-var]
    asking = TableQuery((("school", ("a,b", "*")),), (("degree", ("1",)), ("year", ("2020",))), ("count",))
    label, address, name = downloads(asking, "pay/2 &", "/root", True)[0]
    assert label == "CSV"
    assert address.startswith("/root/api/v2/tables/pay%2F2%20%26/data?")
    assert name == "pay_2__.simulation.csv"
    assert read_link(odd, urlsplit(address).query, ["outputFormat"])[0] == asking


def test_pages_for_urls_that_do_not_exist(get: Get) -> None:
    for path in ("/nothing", "/tables", "/tables/pay/more", "/tables/", "/apis"):
        answer = get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"].startswith("text/html")
        assert "All tables" in answer.text
    for path in ("/api", "/api/v2/nothing"):
        assert get(path).headers["content-type"] == "application/json"


def test_refusals_on_pages_use_labels(get: Get) -> None:
    text = unescape(get("/tables/pay?rows=school&only.school=z").text)
    assert f"Unknown code 'z' of School (limits). Its codes are {HIGH}, Middle, High & dry." in text
    assert "The measures are Count and Median." in get("/tables/pay?rows=school&measure=mean").text
    assert "The variables are School, Degree and Year." in get("/tables/pay?rows=x").text


def test_unavailable_kinds_of_chart_are_noted(get: Get) -> None:
    assert "“pie” is not a kind of chart." in get("/tables/cube?rows=strength&chart=pie").text
    assert (
        "“tiles” is not available for this table. Available: bars."
        in get("/tables/cube?rows=strength&chart=tiles").text
    )
    assert "kind of chart." not in get("/tables/cube?rows=strength&chart=bars").text


def test_cards_have_the_guarantee_in_a_collapsed_section(get: Get, catalogue: TableCatalogue) -> None:
    text = get("/").text
    folded = " ".join(re.findall(r"<details>(.*?)</details>", text, re.S))
    assert "e^1.5 is about 4.5." in folded
    assert "Schools are public." in folded
    assert "Privacy guarantee and 1 caveat<" in folded
    table = catalogue.table("pay")
    about = replace(table.summary, method="sensitivity")
    chi = replace(table, summary=about, measures=(replace(table.measures[0], id="chi"),))  # type: ignore[type-var]
    assert (
        "Scale factors for the noise of other tables, by school"
        in site(replace(catalogue, tables={"pay": chi}))("/").text
    )
