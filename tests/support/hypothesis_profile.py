"""How drawn examples are drawn, for every test: the same in every run, however long one takes, none remembered. A test
says only how many it wants."""

from __future__ import annotations

from hypothesis import settings

NAME = "discreet"
EVERYWHERE = {"derandomize": True, "deadline": None, "database": None}

settings.register_profile(NAME, settings.get_profile("default"), **EVERYWHERE)  # type: ignore[arg-type]
settings.load_profile(NAME)
