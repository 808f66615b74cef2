"""Engines for the tests of this folder."""

import pytest

from support.engines import QUIET, engine, session, spark

__all__ = ["engine", "session", "spark"]


def pytest_configure(config: pytest.Config) -> None:
    for line in QUIET:
        config.addinivalue_line("filterwarnings", line)
