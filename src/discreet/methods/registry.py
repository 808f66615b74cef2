"""The tables of a release made into methods, and described: what it costs, what leaves, under which names. All of it is
known from the declaration alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from discreet.errors import SpecError
from discreet.methods import METHODS
from discreet.methods.protocol import Method
from discreet.privacy.guarantee import Guarantee, compose
from discreet.publish.description import ReleaseDescription

if TYPE_CHECKING:
    from discreet.methods.protocol import Method
    from discreet.publish.lehd.sidecars import Sidecars
    from discreet.spec import Release, TableSpec


def described(
    release: Release, *, simulated: bool = False, trust: bool = False
) -> tuple[list[Method], ReleaseDescription]:
    """The tables of a release, ready to be planned or run, and everything that they publish.

    Code that the declaration names is tried on synthetic numbers if it is trusted: from here on it may be called. It
    runs for who checks or runs a release, or says that it is trusted; a plan, which somebody may make of a file that
    they were sent, reads it as text."""
    made = [_method(release, table) for table in release.tables]
    description = describe(release, made, simulated=simulated)
    if release.keep_measurements is not None and not description.measurements:
        raise SpecError(
            "nothing is measured that could be kept", where="keep_measurements", do="only earnings and flows are"
        )
    for method in made if trust else ():
        method.try_code()
    return made, description


def methods(release: Release, *, trust: bool = False) -> list[Method]:
    """The tables of a release alone."""
    return described(release, trust=trust)[0]


def _method(release: Release, table: TableSpec) -> Method:
    module = import_module(f"discreet.methods.{table.method}.method")
    method: Method = getattr(module, f"{METHODS[table.method]}Method").of(release, table)
    return method


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
        shared=_joined([shared for method in methods if (shared := method.shared_files()) is not None]),
        aside=tuple(
            dict.fromkeys([*(m.name for m in methods), *(t.name for t in tables), *(m.name for m in measured)])
        ),
        recoding=release.recode is not None,
    )
    _refuse_doubles(
        [*(name for t in tables for name in t.whole(simulated)), *(name for name, _ in layouts), *found.shared_files]
    )
    return found


def _joined(shared: Sequence[Sidecars]) -> Sidecars | None:
    if not shared:
        return None
    from discreet.publish.lehd.sidecars import joined

    return joined(shared)


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
