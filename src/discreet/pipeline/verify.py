"""A published folder against the ledger: the files, what the manifest says, and that the ledger committed both."""

from __future__ import annotations

from pathlib import Path

from discreet.errors import LedgerError, PublishError
from discreet.privacy.ledger.events import Commit, DerivedRelease, Entry
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.state import Chain
from discreet.publish.folder import contains, holds
from discreet.publish.manifest import FILE, LedgerEntry, Manifest, read
from discreet.publish.storage import storage_at
from discreet.uris import as_path, is_uri


def verify_folder(ledger: Ledger, path: str | Path) -> Manifest:
    """The manifest of a folder whose every byte is what the ledger committed; anything else is refused."""
    where = str(path)
    folder = where.removesuffix(FILE).rstrip("/") or "." if where.rpartition("/")[2] == FILE else where
    made = read(folder)
    chain = ledger.verify(made.ledger.head)
    fixed, at = _fixed(chain, made.release)
    entered = LedgerEntry(kind=chain.kind, entry=at.number, head=at.hash)
    if made.sha256() != fixed.manifest or made.files != fixed.files or made.ledger != entered:
        raise PublishError(
            "has a manifest that is not the one that was committed", where=folder, do="restore it from a copy"
        )
    inside = holds(storage_at(folder), fixed.files) if is_uri(folder) else contains(Path(as_path(folder)), fixed.files)
    if not inside:
        raise PublishError(
            "has files that are not those that were committed", where=folder, do="restore them from a copy"
        )
    return made


def _fixed(chain: Chain, release: str) -> tuple[Commit | DerivedRelease, Entry]:
    """What the ledger has fixed of a release, and where."""
    if (derived := chain.derived().get(release)) is not None:
        return derived
    state = chain.open_release(release)
    if state.commit is None or state.committed_at is None:
        raise LedgerError(f"release {release!r} is reserved, not committed", do="complete it with `discreet resume`")
    return state.commit, state.committed_at
