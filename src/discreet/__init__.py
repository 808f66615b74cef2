"""discreet: disclosure avoidance for labour-market statistics.

>>> import discreet
>>> release = discreet.release("release.yaml")      # doctest: +SKIP
>>> print(release.plan())                           # doctest: +SKIP
>>> release.run("out")                              # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.version import __version__

if TYPE_CHECKING:
    from discreet.api import OpenRelease, ledger, release, set_budget
    from discreet.engine.frames import Frame
    from discreet.errors import DiscreetError
    from discreet.methods.counts.spec import Counts
    from discreet.methods.earnings.spec import Earnings
    from discreet.methods.employer.spec import Employer
    from discreet.methods.flows.spec import Flows
    from discreet.methods.hypercube.spec import Hypercube
    from discreet.methods.sensitivity.spec import Sensitivity
    from discreet.pipeline.plan import Plan
    from discreet.privacy.guarantee import Guarantee
    from discreet.publish.cubes import open_cube
    from discreet.publish.manifest import Manifest
    from discreet.serve.client import Client
    from discreet.spec.recode import Recode

_MODULES = {
    "release": "discreet.api",
    "ledger": "discreet.api",
    "set_budget": "discreet.api",
    "OpenRelease": "discreet.api",
    "open_cube": "discreet.publish.cubes",
    "Frame": "discreet.engine.frames",
    "Counts": "discreet.methods.counts.spec",
    "Earnings": "discreet.methods.earnings.spec",
    "Flows": "discreet.methods.flows.spec",
    "Employer": "discreet.methods.employer.spec",
    "Hypercube": "discreet.methods.hypercube.spec",
    "Sensitivity": "discreet.methods.sensitivity.spec",
    "Recode": "discreet.spec.recode",
    "Guarantee": "discreet.privacy.guarantee",
    "Plan": "discreet.pipeline.plan",
    "Manifest": "discreet.publish.manifest",
    "Client": "discreet.serve.client",
    "DiscreetError": "discreet.errors",
}
__all__ = [
    "Client",
    "Counts",
    "DiscreetError",
    "Earnings",
    "Employer",
    "Flows",
    "Frame",
    "Guarantee",
    "Hypercube",
    "Manifest",
    "OpenRelease",
    "Plan",
    "Recode",
    "Sensitivity",
    "__version__",
    "ledger",
    "open_cube",
    "release",
    "set_budget",
]


def __getattr__(name: str) -> object:
    """Import on first use, so that `discreet --help` and `import discreet` are instant."""
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")
