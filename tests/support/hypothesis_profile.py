"""The Hypothesis profile of all tests: deterministic examples, no deadline, no example database.

A test states only the number of examples. `make test` draws a few of them (`--hypothesis-profile=fast`), and the slower
tiers, which run these tests again, draw all.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings

FAST, FULL = "fast", "full"
FEW = 10
EVERYWHERE = {"derandomize": True, "deadline": None, "database": None}

settings.register_profile(FULL, settings.get_profile("default"), **EVERYWHERE)  # type: ignore[arg-type]
settings.register_profile(FAST, settings.get_profile(FULL), max_examples=FEW)
settings.load_profile(FULL)


def examples(number: int, **more: Any) -> settings:
    """So many examples, or the few of `make test`."""
    few = settings.get_current_profile_name() == FAST
    return settings(max_examples=min(number, FEW) if few else number, **more)
