"""The tables of a release made into methods."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from discreet.errors import SpecError
from discreet.methods import METHODS
from discreet.methods.description import describe
from discreet.methods.protocol import Method

if TYPE_CHECKING:
    from discreet.spec import Release, TableSpec


def methods(release: Release) -> list[Method]:
    """The tables of a release, ready to be planned or run."""
    made = [_method(release, table) for table in release.tables]
    description = describe(release, made, simulated=False)
    if release.keep is not None and not description.measurements:
        raise SpecError("nothing is measured that could be kept", where="keep", do="only earnings and flows are")
    return made


def _method(release: Release, table: TableSpec) -> Method:
    module = import_module(f"discreet.methods.{table.method}.method")
    method: Method = getattr(module, f"{METHODS[table.method]}Method").of(release, table)
    return method
