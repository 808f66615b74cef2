"""Verify a published folder against the ledger: every file and the manifest are those that were committed."""

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
    """The manifest of a folder whose every byte the ledger has committed; anything else is refused."""
    where = str(path)
    folder = where.removesuffix(FILE).rstrip("/") or "." if where.rpartition("/")[2] == FILE else where
    manifest = read(folder)
    chain = ledger.verify(manifest.ledger.head)
    fixed, at = _fixed(chain, manifest.release)
    entered = LedgerEntry(kind=chain.kind, entry=at.number, head=at.hash)
    if manifest.sha256() != fixed.manifest or manifest.files != fixed.files or manifest.ledger != entered:
        raise PublishError(
            "has a manifest that is not the one that was committed", where=folder, do="restore it from a copy"
        )
    intact = holds(storage_at(folder), fixed.files) if is_uri(folder) else contains(Path(as_path(folder)), fixed.files)
    if not intact:
        raise PublishError(
            "has files that are not those that were committed", where=folder, do="restore them from a copy"
        )
    return manifest


def _fixed(chain: Chain, release: str) -> tuple[Commit | DerivedRelease, Entry]:
    """The entry that fixes the bytes of a release."""
    if (derived := chain.derived().get(release)) is not None:
        return derived
    state = chain.open_release(release)
    if state.commit is None or state.committed_at is None:
        raise LedgerError(f"release {release!r} is reserved, not committed", do="complete it with `discreet resume`")
    return state.commit, state.committed_at
