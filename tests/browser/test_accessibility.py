"""axe-core on every kind of page, in light and dark, on a desk and a phone: nothing serious."""

from __future__ import annotations

import pytest
from axe_core_python.base import AXE_SCRIPT

from support.chromium import Browser

PAGES = {
    "catalogue": "/",
    "search without result": "/?q=nothing+at+all",
    "builder": "/tables/cube",
    "result": "/tables/cube?rows=occupation&rows=strength&columns=outdoors&totals=1&share=rows&sort=-value",
    "marks": "/tables/pay?rows=school&rows=degree&columns=year",
    "error": "/tables/cube?rows=nonsense",
    "about": "/about",
    "missing": "/tables/none",
}
RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then(done, (error) => done({failed: String(error)}));
"""


def findings(browser: Browser) -> list[str]:
    """What axe finds serious or critical."""
    browser.driver.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    browser.driver.execute_script(AXE_SCRIPT)
    result = browser.driver.execute_async_script(RUN)
    assert "violations" in result, result
    return [
        f"{one['id']}: {node['html'][:120]} {node.get('failureSummary', '')[:200]}"
        for one in result["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_nothing_serious(browser: Browser, page: str, scheme: str) -> None:
    browser.scheme(scheme)
    browser.open(PAGES[page])
    assert findings(browser) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_where_a_table_is_too_large(small: Browser, scheme: str) -> None:
    small.scheme(scheme)
    small.open("/tables/cube?rows=occupation&columns=strength")
    assert small.all(".offers a")
    assert findings(small) == []


def test_nothing_serious_on_a_phone(browser: Browser) -> None:
    browser.narrow_viewport()
    browser.open(PAGES["marks"])
    assert findings(browser) == []


def test_axe_would_find_something(browser: Browser) -> None:
    """A page with a planted defect fails."""
    browser.open("/about")
    browser.driver.execute_script("document.querySelector('main').append(document.createElement('button'))")
    assert any(actual.startswith("button-name") for actual in findings(browser))
