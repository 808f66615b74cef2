"""The methods of a release's tables and its description: privacy loss, published tables, file names. All of it follows
from the declaration."""

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


def methods_and_description(
    release: Release, *, simulated: bool = False, trust: bool = False
) -> tuple[list[Method], ReleaseDescription]:
    """The methods of a release, ready to be planned or run, and the description of everything they publish.

    With `trust`, code named by the declaration is first run on synthetic numbers; after this it may be called. `check`
    and `run` trust it, or the user says so; `plan`, which may be given a file from somebody else, only reads it as
    text."""
    prepared = [_method(release, table) for table in release.tables]
    description = describe(release, prepared, simulated=simulated)
    if release.keep_measurements is not None and not description.measurements:
        raise SpecError(
            "no table has measurements that can be kept", where="keep_measurements", do="only earnings and flows do"
        )
    for method in prepared if trust else ():
        method.try_code()
    return prepared, description


def methods(release: Release, *, trust: bool = False) -> list[Method]:
    """The methods of a release."""
    return methods_and_description(release, trust=trust)[0]


def _method(release: Release, table: TableSpec) -> Method:
    module = import_module(f"discreet.methods.{table.method}.method")
    method: Method = getattr(module, f"{METHODS[table.method]}Method").of(release, table)
    return method


STRICT = (
    "Strict mode: the existence of this release reveals that no record broke the declared rules. "
    "The guarantee does not cover that information."
)
LOOKED_UP = (
    "Lookup tables ({names}) are treated as fixed: what one of their rows says about the records that refer to it is "
    "not protected."
)


def describe(release: Release, methods: Sequence[Method], *, simulated: bool) -> ReleaseDescription:
    """The description of everything a release publishes. File names that would collide are refused."""
    tables, measured = [], []
    for method, declared in zip(methods, release.tables, strict=True):
        tables += [replace(table, method=declared.method) for table in method.published_tables()]
        measured += [replace(measurement, method=declared.method) for measurement in method.measurements()]
    layouts = [file for method in methods for file in method.layouts(simulated).items()]
    description = ReleaseDescription(
        release=release.release,
        asset=release.asset,
        simulated=simulated,
        guarantee=total_guarantee(release, methods),
        tables=tuple(tables),
        measurements=tuple(measured),
        layouts=dict(layouts),
        shared=_merged_sidecars([shared for method in methods if (shared := method.shared_files()) is not None]),
        intermediate_names=tuple(
            dict.fromkeys([*(m.name for m in methods), *(t.name for t in tables), *(m.name for m in measured)])
        ),
        recoding=release.recode is not None,
    )
    _refuse_doubles(
        [
            *(name for t in tables for name in t.top_level_files(simulated)),
            *(name for name, _ in layouts),
            *description.shared_files,
        ]
    )
    return description


def _merged_sidecars(shared: Sequence[Sidecars]) -> Sidecars | None:
    if not shared:
        return None
    from discreet.publish.lehd.sidecars import merged_sidecars

    return merged_sidecars(shared)


def _refuse_doubles(names: Sequence[str]) -> None:
    """Refuse two outputs with one file name; some file systems do not distinguish A from a."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise SpecError(f"two files are called {name!r}", where="tables", do="rename a table or a level")
        seen.add(name.lower())


def total_guarantee(release: Release, methods: Sequence[Method]) -> Guarantee:
    """Tables of one release are functions of the same records: sequential composition, privacy losses add."""
    total = compose(method.guarantee() for method in methods)
    further = [STRICT] if release.strict else []
    further += [LOOKED_UP.format(names=", ".join(release.join))] if release.join else []
    return total.model_copy(update={"caveats": (*total.caveats, *further)}) if further else total
