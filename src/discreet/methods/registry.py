"""The methods there are, one line each, and the tables of a release made into them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from discreet.errors import SpecError
from discreet.methods import METHODS
from discreet.methods.protocol import Method
from discreet.publish.lehd.sidecars import joined

if TYPE_CHECKING:
    from discreet.spec import Release, TableSpec


def methods(release: Release) -> list[Method]:
    """The tables of a release, ready to be planned or run."""
    found = [_method(release, table) for table in release.tables]
    if release.keep is not None and not any(method.measurements() for method in found):
        raise SpecError("nothing is measured that could be kept", where="keep", do="only earnings and flows are")
    small = joined(method.sidecars() for method in found)
    _refuse_doubles([*(name for method in found for name in _files(method)), *small.files(False)])
    return found


def _files(method: Method) -> list[str]:
    tables = [f"{table.name}.{kind}" for table in method.published() for kind in table.kinds]
    return [*tables, *method.layouts(False)]


def _refuse_doubles(names: list[str]) -> None:
    """Two tables, or a table and a layout, that would be one file; on some systems A and a are one."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise SpecError(f"two files are called {name!r}", where="tables", do="rename a table or a level")
        seen.add(name.lower())


def _method(release: Release, table: TableSpec) -> Method:
    module = import_module(f"discreet.methods.{table.method}.method")
    method: Method = getattr(module, f"{METHODS[table.method]}Method").of(release, table)
    return method
