"""A published folder against the ledger: the files, what the manifest says, and that the ledger committed both."""

from __future__ import annotations

from pathlib import Path

from discreet.errors import PublishError
from discreet.privacy.ledger import Ledger
from discreet.publish.folder import holds
from discreet.publish.manifest import FILE, Manifest, read
from discreet.publish.place import place_at


def verify_folder(ledger: Ledger, path: str | Path) -> Manifest:
    """The manifest of a folder whose every byte is what the ledger committed; anything else is refused."""
    where = str(path)
    folder = where.removesuffix(FILE).rstrip("/") or "." if where.rpartition("/")[2] == FILE else where
    made = read(folder)
    chain = ledger.verify(made.ledger.head)
    derived = chain.derived().get(made.release)
    state = chain.origin(made.release)
    if derived is None:
        files = None if state.commit is None else state.commit.files
        spec, code, day = state.reserve.spec, state.reserve.code, state.reserve.time.date()
    else:
        files, spec, code, day = derived[0].files, derived[0].spec, derived[0].code, derived[0].time.date()
    of = derived[0].of if derived else ""
    said = (made.asset, made.guarantee, made.derived_from, made.spec, made.code, made.reserved, made.simulation)
    wrote = (state.reserve.asset, state.reserve.guarantee, of, spec, code, day, chain.kind == "simulation")
    if files is None or made.files != files or said != wrote:
        raise PublishError(
            "has a manifest that is not the one that was committed", where=folder, do="restore it from a copy"
        )
    if not holds(place_at(folder), files):
        raise PublishError(
            "has files that are not those that were committed", where=folder, do="restore them from a copy"
        )
    return made
