"""What tests need, and which tier runs them: declared here instead of in each test.

`make test` runs what is quick, `make test-slow` the rest of what every submission must pass, `make test-full` all. What
needs Spark, PostgreSQL, a browser or an object store is `slow`, and so are the studies; but not the tests marked
`core`: one of each that `make test` runs, too. Others that are slow say so themselves. A test that draws examples
(Hypothesis marks it) runs in both: with few of them in `make test`, with all in `make test-slow`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from xdist.scheduler import LoadGroupScheduling

NEEDS = {
    "spark": "a Spark session, and with it Java",
    "postgres": "a PostgreSQL server",
    "browser": "Chromium and its driver",
    "objectstore": "an object store, which runs in the process",
}
TIERS = {
    "slow": "not in `make test` but in `make test-slow`",
    "full": "slower than CI allows: only `make test-full` runs it",
    "core": "in `make test` though it needs something that starts slowly",
}
FIXTURES = {"spark": "spark", "server": "postgres", "chromium": "browser", "object_server": "objectstore"}
FOLDERS = {"engine/spark": "spark"}  # programs that start a Spark of their own
SLOW_TO_START = {"spark", "postgres", "browser", "objectstore"}
ASIDE = ("tests/studies/",)  # of no release: slow, all of them


def needs(item: pytest.Item) -> Iterator[str]:
    """By the fixtures that a test uses, by parameters that say so, and by its folder."""
    yield from (need for fixture, need in FIXTURES.items() if fixture in getattr(item, "fixturenames", ()))
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    yield from (need for need in NEEDS if any(isinstance(value, str) and value == need for value in parameters))
    yield from (need for folder, need in FOLDERS.items() if f"tests/{folder}/" in item.path.as_posix())
    yield from (mark.name for mark in item.iter_markers() if mark.name in NEEDS)


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in {**{name: f"needs {what}" for name, what in NEEDS.items()}, **TIERS}.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test has its marks; and whatever needs one server runs in one process, first of all."""
    order = [*NEEDS, ""]
    places: dict[int, int] = {}
    for item in items:
        actual = [name for name in NEEDS if name in set(needs(item))]
        for name in actual:
            item.add_marker(name)
        if actual:
            item.add_marker(pytest.mark.xdist_group(actual[0]))
        aside = item.nodeid.startswith(ASIDE)
        if (aside or SLOW_TO_START & set(actual)) and not item.get_closest_marker("core"):
            item.add_marker("slow")
        places[id(item)] = order.index(actual[0] if actual else "")
    items.sort(key=lambda item: places[id(item)])


class ByServerOrFile(LoadGroupScheduling):
    """Tests of one server run in one process, the others file by file: fixtures of a module are made once."""

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        return nodeid.split("::", 1)[0] if scope == nodeid else scope


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadGroupScheduling | None:
    return ByServerOrFile(config, log) if config.getvalue("dist") == "loadgroup" else None
