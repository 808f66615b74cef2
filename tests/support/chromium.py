"""A browser page for tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

OWN_STATUS = "server responded with a status of 4"  # of the page that was asked for


@dataclass
class Browser:
    """A driver that keeps the address of the server, and what went wrong."""

    driver: Any
    home: str
    downloads: Path

    def open(self, path: str) -> None:
        self.driver.get(self.home + path)

    def one(self, selector: str) -> WebElement:
        actual: WebElement = self.driver.find_element(By.CSS_SELECTOR, selector)
        return actual

    def all(self, selector: str) -> list[WebElement]:
        actual: list[WebElement] = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return actual

    def link(self, text: str) -> WebElement:
        actual: WebElement = self.driver.find_element(By.LINK_TEXT, text)
        return actual

    def choose(self, selector: str, value: str) -> None:
        Select(self.one(selector)).select_by_value(value)

    def follow(self, element: WebElement) -> None:
        """Click, and wait until the next page has come."""
        page = self.one("html")
        element.click()
        self.until(lambda: self.is_gone(page))
        self.until(lambda: self.driver.execute_script("return document.readyState") == "complete")

    def is_gone(self, element: WebElement) -> bool:
        try:
            element.is_enabled()
        except WebDriverException:  # stale, or asked for while the page changed
            return True
        return False

    def until(self, happened: Callable[[], object]) -> Any:
        patient = WebDriverWait(self.driver, 10, ignored_exceptions=[WebDriverException])
        return patient.until(lambda _: happened())

    def table(self) -> list[list[str]]:
        """The rows of numbers, as they are read."""
        actual: list[list[str]] = self.driver.execute_script(
            "return [...document.querySelectorAll('table.numbers tbody tr')]"
            ".map(row => [...row.cells].map(cell => cell.innerText.trim()))"
        )
        return actual

    def requested(self) -> list[str]:
        """Addresses that were fetched since last asked."""
        events = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def console_errors(self) -> list[str]:
        """What the console has, but for the status of a page itself."""
        messages = [entry["message"] for entry in self.driver.get_log("browser")]
        return [message for message in messages if OWN_STATUS not in message]

    def scheme(self, name: str) -> None:
        media = {"features": [{"name": "prefers-color-scheme", "value": name}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def narrow_viewport(self, width: int = 360) -> None:
        size = {"width": width, "height": 740, "deviceScaleFactor": 2, "mobile": True}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})

    def wide_viewport(self) -> None:
        """As it was at first."""
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        self.scheme("light")
