"""User journeys in a real browser: build, drill down, sort, chart, download, go back; by mouse, keyboard and phone."""

from __future__ import annotations

import csv

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from support.chromium import Browser

WHOLE = "/tables/cube?rows=strength&columns=outdoors&totals=1"


@pytest.mark.core
def test_build_a_table(browser: Browser) -> None:
    browser.open("/")
    browser.follow(browser.link("Cube"))
    browser.choose("#rows-1", "strength")
    browser.choose("#columns", "outdoors")
    browser.one("input[name=totals]").click()
    browser.follow(browser.one("button.main"))
    assert browser.driver.current_url == f"{browser.home}{WHOLE}#result"
    assert browser.one("caption").text == "Weighted total by strength and outdoors"
    assert [row[0] for row in browser.table()] == ["light", "medium", "heavy", "Total"]
    assert all(len(row) == 4 for row in browser.table())


def test_search_the_catalogue(browser: Browser) -> None:
    browser.open("/")
    field = browser.one("#q")
    field.send_keys("median")
    browser.follow(browser.one("form.search button"))
    assert [link.text for link in browser.all(".cards h3 a")] == ["Pay"]
    assert "1 table" in browser.one("[role=status]").text


def test_drill_down_and_back(browser: Browser) -> None:
    browser.open("/tables/cube")
    assert [row[0] for row in browser.table()] == ["11", "13"]
    browser.follow(browser.link("13"))
    assert [row[0] for row in browser.table()] == ["13-1011", "13-2011", "13-2021"]
    browser.driver.back()
    browser.until(lambda: [row[0] for row in browser.table()] == ["11", "13"])
    browser.driver.forward()
    browser.until(lambda: [row[0] for row in browser.table()] == ["13-1011", "13-2011", "13-2021"])
    browser.follow(browser.link("↑ By major"))
    assert [row[0] for row in browser.table()] == ["11", "13"]


def test_sort_by_a_heading(browser: Browser) -> None:
    browser.open("/tables/pay?rows=school&at.degree=1&at.year=2020")
    browser.follow(browser.one("thead th.number a"))
    assert browser.one("thead th[aria-sort]").get_attribute("aria-sort") == "descending"
    assert [row[:2] for row in browser.table()] == [["1", "High & dry"], ["2", "Middle"], ["3", "<b>North</b>"]]
    browser.follow(browser.one("thead th[aria-sort] a"))
    assert browser.one("thead th[aria-sort]").get_attribute("aria-sort") == "ascending"
    assert [row[1] for row in browser.table()] == ["<b>North</b>", "Middle", "High & dry"]
    assert browser.one("#sort").get_attribute("value") == "value"


def test_choose_a_kind_of_chart(browser: Browser) -> None:
    browser.open("/tables/pay?rows=school&columns=year&measure=count")
    kinds = browser.all("#chart [role=group] a")
    assert len(kinds) > 1
    other = next(kind for kind in kinds if kind.get_attribute("aria-current") is None)
    name, before = other.text, browser.one("#chart svg").get_attribute("outerHTML")
    browser.follow(other)
    assert browser.one("#chart [aria-current]").text == name
    assert browser.one("#chart svg").get_attribute("outerHTML") != before
    assert browser.one("#chart svg").is_displayed()


@pytest.mark.parametrize(
    ("page", "label", "name"),
    [
        ("pay?rows=school", "CSV", "pay.csv"),
        ("pay?rows=school", "Excel", "pay.xlsx"),
        ("pay?rows=school", "JSON-stat 2", "pay.json"),
        ("cube?rows=strength", "Chart as SVG", "cube.simulation.svg"),
        ("cube?rows=strength", "Chart as PNG", "cube.simulation.png"),
    ],
)
def test_download(browser: Browser, page: str, label: str, name: str) -> None:
    for old in browser.downloads.iterdir():
        old.unlink()
    browser.open(f"/tables/{page}")
    shown = browser.table()
    browser.link(label).click()
    path = browser.downloads / name
    browser.until(lambda: path.exists() and path.stat().st_size)
    if name.endswith(".csv"):
        with path.open(encoding="utf-8-sig", newline="") as file:
            cells = {cell for row in csv.reader(file) for cell in row}
        assert {"a", "b", "c", "100", "140", "180"} <= cells
    assert browser.table() == shown  # still here


def test_the_link_shows_the_same_table_to_others(browser: Browser) -> None:
    browser.open("/tables/pay?rows=school&columns=year&at.degree=2&sort=-label&top=2")
    address, shown = browser.one("#link").get_attribute("value"), browser.table()
    assert address is not None
    browser.driver.switch_to.new_window("tab")
    try:
        browser.driver.get(address)
        assert browser.table() == shown
        assert address in browser.one("#cite").get_attribute("value")
    finally:
        browser.driver.close()
        browser.driver.switch_to.window(browser.driver.window_handles[0])


def test_keys_alone_build_a_table(browser: Browser) -> None:
    browser.open("/tables/cube")

    def press(*keys: str) -> None:
        ActionChains(browser.driver).send_keys(*keys).perform()

    def focus() -> str:
        actual: str = browser.driver.execute_script(
            "const e = document.activeElement; return e.name || e.id || e.innerText.trim() || e.tagName"
        )
        return actual

    def tab_to(what: str) -> None:
        for _ in range(60):
            if focus().startswith(what):
                outline = "return getComputedStyle(document.activeElement).outlineStyle"
                assert browser.driver.execute_script(outline) != "none", f"no visible focus on {what}"
                return
            press(Keys.TAB)
        raise AssertionError(f"{what} cannot be reached by Tab")

    press(Keys.TAB)
    assert focus() == "Skip to content"
    assert browser.one(".skip").rect["x"] >= 0
    press(Keys.ENTER)
    browser.until(lambda: focus() == "main")
    tab_to("rows")
    press("s")  # Strength
    tab_to("columns")
    tab_to("Outdoors")
    press(Keys.ENTER)
    tab_to("only.outdoors")
    press(Keys.SPACE)
    tab_to("totals")
    press(Keys.SPACE)
    tab_to("Show table")
    page = browser.one("html")
    press(Keys.ENTER)
    browser.until(lambda: browser.is_gone(page))
    browser.until(lambda: [row[0] for row in browser.table()] == ["light", "medium", "heavy", "Total"])
    assert "rows=strength&only.outdoors=yes&totals=1" in browser.driver.current_url
    tab_to("Strength")
    page = browser.one("html")
    press(Keys.ENTER)
    browser.until(lambda: browser.is_gone(page))
    browser.until(lambda: [row[0] for row in browser.table()] == ["heavy", "light", "medium", "Total"])


def test_everything_works_without_a_script(browser: Browser) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.open("/tables/cube")
    assert browser.all("[data-copy] + button, .find") == []
    browser.choose("#rows-1", "strength")
    browser.one("input[name=totals]").click()
    page = browser.one("html")
    browser.one("button.main").click()
    browser.until(lambda: browser.is_gone(page))
    assert browser.one("caption").text == "Weighted total by strength"
    assert len(browser.all("tbody tr")) == 4
    assert browser.one("#link").get_attribute("value").endswith("/tables/cube?rows=strength&totals=1")  # type: ignore[union-attr]


def test_too_large_a_table_leads_to_a_smaller_one(small: Browser) -> None:
    small.open("/tables/cube?rows=occupation&columns=strength")
    offers = small.all(".offers a")
    assert len(offers) >= 3
    small.follow(offers[0])
    assert len(small.table()) >= 2


def test_an_invalid_query_can_be_corrected(browser: Browser) -> None:
    browser.open("/tables/cube?rows=nonsense")
    assert "Unknown variable" in browser.one("[role=alert]").text
    browser.choose("#rows-1", "strength")
    browser.follow(browser.one("button.main"))
    assert [row[0] for row in browser.table()] == ["light", "medium", "heavy"]


PHONE = [
    "/",
    "/about",
    "/tables/cube",
    WHOLE,
    "/tables/pay?rows=school&rows=degree&columns=year",
    "/tables/cube?rows=no",
    "/tables/none",
]


@pytest.mark.parametrize("page", PHONE)
def test_pages_fit_a_phone(browser: Browser, page: str) -> None:
    browser.narrow_viewport()
    browser.open(page)
    width, inner = browser.driver.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= inner == 360
    small_targets = browser.driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])]"
        ".filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 43.9)"
        ".map(e => e.outerHTML.slice(0, 80))",
        "button, select, summary, input:not([type=checkbox]), .tick, nav a, .links a, .offers a, th a",
    )
    assert small_targets == []


def test_codes_can_be_searched(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list with enough codes to have a field to search it."""
    monkeypatch.setattr("discreet.serve.pages.form.MANY", 2)
    browser.open("/tables/pay?rows=school")
    assert browser.all("select[multiple]")
    monkeypatch.undo()
    browser.open("/tables/pay?rows=school")
    assert browser.all(".find") == []  # three codes need none
    browser.driver.execute_script(
        "const list = document.querySelector('details[data-codes] .list');"
        "for (let i = 0; i < 12; i++) { const one = list.firstElementChild.cloneNode(true);"
        " one.lastChild.textContent = ` Code ${i}`; list.append(one); }"
        "const script = document.createElement('script');"
        "script.src = document.querySelector('script').src + '?again';"
        "document.head.append(script);"
    )
    browser.until(lambda: browser.all(".find"))
    browser.one("details[data-codes] summary").click()
    browser.one(".find").send_keys("code 1")
    assert [tick.text for tick in browser.all("details[data-codes] .tick") if tick.is_displayed()] == [
        "Code 1",
        "Code 10",
        "Code 11",
    ]
    browser.one(".find").send_keys(Keys.ENTER)  # does not send the form
    assert browser.one(".find").get_attribute("value") == "code 1"


def test_print_has_the_numbers_and_nothing_to_press(browser: Browser) -> None:
    browser.open(WHOLE)
    size = "return parseFloat(getComputedStyle(document.querySelector('table.numbers')).fontSize)"
    before = browser.driver.execute_script(size)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert browser.one("table.numbers").is_displayed()
        assert not any(one.is_displayed() for one in browser.all("form, .jump, button"))
        assert browser.one(".builder").value_of_css_property("display") == "block"
        assert {one.value_of_css_property("overflow-x") for one in browser.all(".scroll")} == {"visible"}
        assert browser.driver.execute_script(size) < before
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_wrong_address_has_a_way_back(browser: Browser) -> None:
    browser.open("/nothing/here")
    assert browser.one("h1").text == "Not found"
    browser.follow(browser.link("All tables"))
    assert browser.all(".cards h3 a")
