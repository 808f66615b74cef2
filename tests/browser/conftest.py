"""A real Chromium and a real server for it. Where Chromium is missing, tests fail and say what to install."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from discreet.serve.app import create_app
from discreet.serve.catalogue import TableCatalogue
from discreet.serve.config import Config, ServerContext
from support.chromium import Browser
from support.served_cubes import cubes_and_pay, serving

MISSING = "no Chromium: run `make system` as root, or apt-get install chromium chromium-driver"
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--disable-component-update",
    "--no-first-run",
    "--window-size=1280,900",
]


@pytest.fixture(scope="session")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> TableCatalogue:
    return cubes_and_pay(tmp_path_factory.mktemp("releases"))


@pytest.fixture(scope="session")
def chromium(catalogue: TableCatalogue, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Browser, Browser]]:
    """One browser for all tests, with a server and with one that has a small limit."""
    program, steering = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or steering is None:
        pytest.fail(
            "no Chromium: run `make system` as root, or apt-get install chromium chromium-driver", pytrace=False
        )
    folder = tmp_path_factory.mktemp("chromium")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in [*FLAGS, f"--user-data-dir={folder / 'profile'}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    (folder / "downloads").mkdir()
    options.add_experimental_option("prefs", {"download.default_directory": str(folder / "downloads")})
    with ExitStack() as stack:
        homes = [
            stack.enter_context(
                serving(create_app(ServerContext(catalogue, Config(max_calls=1_000_000, max_cells=most))))
            )
            for most in (100_000, 40)
        ]
        driver = webdriver.Chrome(options=options, service=Service(steering))
        stack.callback(driver.quit)
        large, small = (Browser(driver, home, folder / "downloads") for home in homes)
        yield large, small


@pytest.fixture
def browser(chromium: tuple[Browser, Browser]) -> Iterator[Browser]:
    """In every test: no requests to other hosts, and an empty console."""
    actual = chromium[0]
    actual.wide_viewport()
    actual.requested(), actual.console_errors()
    yield actual
    homes = tuple(f"{one.home}/" for one in chromium)
    strange = [url for url in actual.requested() if not url.startswith((*homes, "data:", "about:", "blob:", "chrome:"))]
    assert strange == []
    assert actual.console_errors() == []


@pytest.fixture
def small(chromium: tuple[Browser, Browser], browser: Browser) -> Browser:
    """The same browser, at a server whose answers have at most 40 numbers."""
    return chromium[1]
