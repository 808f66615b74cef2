"""A release described, from its declaration alone: what it costs, what leaves, and under which names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.errors import SpecError
from discreet.privacy.guarantee import Guarantee, compose
from discreet.publish.description import ReleaseDescription
from discreet.publish.lehd.sidecars import joined

if TYPE_CHECKING:
    from discreet.methods.protocol import Method
    from discreet.spec import Release

STRICT = (
    "Strict mode: that this release exists tells that no record broke the declared rules. "
    "The promise does not cover what that reveals."
)
LOOKED_UP = (
    "Tables that records are looked up in ({names}) count as given: what one of their rows says of the records that it "
    "is looked up for is not protected."
)


def describe(release: Release, methods: Sequence[Method], *, simulated: bool) -> ReleaseDescription:
    """Everything that a release publishes. Two files that would be one are refused."""
    tables, measured = [], []
    for method, declared in zip(methods, release.tables, strict=True):
        tables += [replace(table, method=declared.method) for table in method.published()]
        measured += [replace(measurement, method=declared.method) for measurement in method.measurements()]
    layouts = [file for method in methods for file in method.layouts(simulated).items()]
    found = ReleaseDescription(
        release=release.release,
        asset=release.asset,
        simulated=simulated,
        guarantee=total_guarantee(release, methods),
        tables=tuple(tables),
        measurements=tuple(measured),
        layouts=dict(layouts),
        shared=joined(shared for method in methods if (shared := method.shared_files()) is not None),
        aside=tuple(
            dict.fromkeys([*(m.name for m in methods), *(t.name for t in tables), *(m.name for m in measured)])
        ),
        recoding=release.recode is not None,
    )
    _refuse_doubles(
        [*(name for t in tables for name in t.whole(simulated)), *(name for name, _ in layouts), *found.shared_files]
    )
    return found


def _refuse_doubles(names: Sequence[str]) -> None:
    """Two tables, or a table and a layout, that would be one file; on some systems A and a are one."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise SpecError(f"two files are called {name!r}", where="tables", do="rename a table or a level")
        seen.add(name.lower())


def total_guarantee(release: Release, methods: Sequence[Method]) -> Guarantee:
    """Tables of one release are functions of the same records: their costs add (sequential composition)."""
    total = compose(method.guarantee() for method in methods)
    further = [STRICT] if release.strict else []
    further += [LOOKED_UP.format(names=", ".join(release.join))] if release.join else []
    return total.model_copy(update={"caveats": (*total.caveats, *further)}) if further else total
