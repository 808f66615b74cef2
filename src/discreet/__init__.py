"""discreet: disclosure avoidance for labour-market statistics.

>>> import discreet
>>> release = discreet.release("release.yaml")      # doctest: +SKIP
>>> print(release.plan())                           # doctest: +SKIP
>>> release.run("out")                              # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.version import __version__

if TYPE_CHECKING:
    from discreet.api import OpenRelease, ledger, release, set_budget
    from discreet.errors import DiscreetError
    from discreet.methods.counts.spec import Counts
    from discreet.publish.cubes import open_cube

_WHERE = {
    "release": "discreet.api",
    "ledger": "discreet.api",
    "set_budget": "discreet.api",
    "OpenRelease": "discreet.api",
    "open_cube": "discreet.publish.cubes",
    "Counts": "discreet.methods.counts.spec",
    "DiscreetError": "discreet.errors",
}
__all__ = ["Counts", "DiscreetError", "OpenRelease", "__version__", "ledger", "open_cube", "release", "set_budget"]


def __getattr__(name: str) -> Any:
    """Import on first use, so that `discreet --help` and `import discreet` are instant."""
    if name in _WHERE:
        from importlib import import_module

        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")
