"""End reservations that will not be completed: one by name, or those that a restored ledger has lost."""

from __future__ import annotations

from discreet.errors import PublishError, ReleaseKeyError
from discreet.noise.keystore import KeyStore
from discreet.pipeline.outputs import reserved_outputs
from discreet.pipeline.run import release_lock
from discreet.privacy.ledger.events import Entry, Reserve, Restoration
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.state import Chain, ReleaseState


def abandon(ledger: Ledger, keys: KeyStore, release: str, reason: str) -> Entry:
    """End a reservation without a release: recorded, its cost spent, its key and staged files destroyed.

    Repeated for an abandoned release, it destroys only the key and staged files: after a crash, or where a colleague
    without the key abandoned it.
    """
    ledger = ledger.remembered_by(keys)
    with release_lock(ledger, release):
        chain = ledger.chain()
        before = chain.releases().get(release)
        if before is not None and before.abandon is not None:
            _destroy_key_and_staging(chain, before, keys)
        entry = ledger.abandon(release, reason)
        if (
            before is not None
        ):  # state as read before: the ledger may be unavailable by now, and the key must be destroyed
            _destroy_key_and_staging(chain, before, keys)
        return entry


def restore(ledger: Ledger, keys: KeyStore, reason: str) -> tuple[Restoration, tuple[str, ...]]:
    """Continue from an older copy of a ledger. Keys of reservations that are lost for good are destroyed: they can be
    neither resumed nor abandoned. Returns the restoration, and the names of these releases."""
    restored, gone = ledger.remembered_by(keys).restore(reason)
    reserved = [event for entry in gone if isinstance(event := entry.event, Reserve)]
    for reserve in reserved:
        keys.destroy(reserve.key)
    return restored, tuple(reserve.release for reserve in reserved)


def _destroy_key_and_staging(chain: Chain, state: ReleaseState, keys: KeyStore) -> None:
    """Destroy the key, before anything else can fail; then remove staged files, as far as possible."""
    key, left = "its key destroyed", list[str]()
    try:
        keys.destroy(state.reserve.key)
    except (ReleaseKeyError, OSError) as error:
        key, left = "its key is not", [str(error)]
    places = reserved_outputs(chain, state).abandon()
    left += [f"{e.where}: {e.what}" if isinstance(e, PublishError) else str(e) for e in places]
    if left:
        raise PublishError(
            f"release {state.reserve.release!r} is abandoned and {key}, but not all staged files could be removed: "
            + "; ".join(left),
            do="fix that and repeat the command, or remove them yourself",
        )
