"""run and resume: tabulate → reserve → protect → write aside → commit → publish → destroy the key.

Each step can be the last one before a crash. Until the reservation nothing has been spent and nothing is left behind;
from then on `resume` draws the same noise for the same data and ends with the same bytes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

from discreet.engine.workspace import no_core_dumps, sweep
from discreet.errors import (
    DiscreetError,
    DomainError,
    EngineError,
    GuaranteeError,
    KeyRefused,
    LedgerError,
    LedgerUnavailable,
    LedgerUncertain,
    ParameterError,
    PublishError,
    SpecError,
)
from discreet.methods.protocol import Method
from discreet.methods.registry import methods
from discreet.methods.writing import Made
from discreet.noise.key import ReleaseKey
from discreet.noise.keystore import KeyStore
from discreet.pipeline.outputs import (
    Outputs,
    keep_at,
    refuse_other_words,
    refuse_private,
    refuse_taken,
    reserved_outputs,
)
from discreet.pipeline.plan import total_guarantee
from discreet.pipeline.recode import recode
from discreet.pipeline.release_files import Entered, Tabulated, announced, manifest, stage
from discreet.pipeline.tabulation import tabulated
from discreet.pipeline.trusted import trusted
from discreet.privacy.exact import written
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.events import Entry, Reserve, Restored
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.state import Chain, ReleaseState
from discreet.privacy.reservation import Reservation
from discreet.publish.folder import Owner, output_at, refuse_nested
from discreet.publish.manifest import LedgerEntry, Manifest, Said
from discreet.spec import Release
from discreet.version import code_version

Observer = Callable[[str, int, int], None]


def silent(step: str, done: int, total: int) -> None:
    """An observer that says nothing."""


@dataclass(frozen=True)
class Job:
    """A release with everything it is run with."""

    release: Release
    out: str
    ledger: Ledger
    keys: KeyStore
    frame: Any = None
    session: Any = None  # an existing Spark session to run on
    observe: Observer = silent

    def __post_init__(self) -> None:
        """The key store that holds the key is the one that has seen the ledger."""
        object.__setattr__(self, "ledger", self.ledger.remembered_by(self.keys))


def run(job: Job, simulation: str | None = None) -> Manifest:
    """Protect and publish. `simulation` is the seed of a fixed test key, and marks everything made with it."""
    with _alone(job.ledger, job.release.release):
        if job.release.recode is not None:
            if simulation is not None:
                raise SpecError(
                    "a recoding draws no noise: it is a simulation if its measurements are",
                    where="--simulation",
                    do="leave it out",
                )
            return recode(job, complete=False)
        return _run(job, simulation)


def resume(job: Job) -> Manifest:
    """Complete a reserved or committed release: same key, same data, same noise, same bytes; no further cost."""
    with _alone(job.ledger, job.release.release):
        if job.release.recode is not None and job.release.release in job.ledger.chain().derived():
            return recode(job, complete=True)
        if job.release.recode is not None:
            raise LedgerError(
                f"release {job.release.release!r} was not derived yet",
                do="run it: what was interrupted has cost nothing",
            )
        return _resume(job)


def abandon(ledger: Ledger, keys: KeyStore, release: str, reason: str) -> Entry:
    """End a reservation without a release: recorded, its cost spent, its key and staged files destroyed.

    Of a release that is abandoned already only these go: after a crash, or where a colleague without the key ended it.
    """
    ledger = ledger.remembered_by(keys)
    with _alone(ledger, release):
        chain = ledger.chain()
        before = chain.releases().get(release)
        if before is not None and before.abandon is not None:
            _forget(chain, before, keys)
        entry = ledger.abandon(release, reason)
        if before is not None:  # as it was: the ledger may be out of reach by now, and the key must go
            _forget(chain, before, keys)
        return entry


def restore(ledger: Ledger, keys: KeyStore, reason: str) -> tuple[Restored, tuple[str, ...]]:
    """Go on from an older copy of a ledger. Of releases whose reservations are gone for good the keys are destroyed:
    they can be neither resumed nor abandoned any more. Returns what was recorded, and the names of these releases."""
    restored, gone = ledger.remembered_by(keys).restore(reason)
    reserved = [event for entry in gone if isinstance(event := entry.event, Reserve)]
    for reserve in reserved:
        keys.destroy(reserve.key)
    return restored, tuple(reserve.release for reserve in reserved)


def _forget(chain: Chain, state: ReleaseState, keys: KeyStore) -> None:
    """The key, before anything else can fail; then what was staged, as far as it can be removed."""
    key, left = "its key destroyed", list[str]()
    try:
        keys.destroy(state.reserve.key)
    except (KeyRefused, OSError) as error:
        key, left = "its key is not", [str(error)]
    places = reserved_outputs(chain, state).abandon()
    left += [f"{e.where}: {e.what}" if isinstance(e, PublishError) else str(e) for e in places]
    if left:
        raise PublishError(
            f"release {state.reserve.release!r} is abandoned and {key}, but not all that was staged could be removed: "
            + "; ".join(left),
            do="mend that and type it again, or remove it yourself",
        )


@contextmanager
def _alone(ledger: Ledger, release: str) -> Iterator[None]:
    """One process at a time works on a release, on whatever machine: two would take each other's files away. And no
    noise is drawn for an entry that could be taken back unseen."""
    no_core_dumps()
    sweep()
    name = f"{ledger.chain().nonce}-{release}"
    with ledger.store.alone(name) as free:
        if not free:
            raise LedgerError(
                f"another process is working on release {release!r}", do="wait for it to finish, or end it"
            )
        ledger.remember()
        yield


def _run(job: Job, simulation: str | None) -> Manifest:
    release, tables, chain = job.release, trusted(job.release), job.ledger.chain()
    names = announced(release, tables, simulation is not None)
    owner = Owner(chain.nonce, release.release, frozenset(names))
    outputs = Outputs(output_at(job.out, owner), keep_at(release, owner))
    total = total_guarantee(release, tables)
    job.ledger.fits(chain, simulated=simulation is not None)
    chain.refuse_used(release.release)
    chain.balance(release.asset, job.ledger.clock().date()).charge(total)
    refuse_private(job.keys, outputs)
    refuse_taken(chain, job.keys, release.release, outputs)
    if (keep := outputs.kept) is not None:
        refuse_nested(outputs.published, keep)
    outputs.refuse_existing()
    key = ReleaseKey.generate() if simulation is None else ReleaseKey.simulation(simulation)
    with outputs.rehearsed(), tabulated(job, tables, key) as found:
        out, kept = outputs.published.where, "" if keep is None else keep.where
        binding = _bind(release, key, found, (total, out, kept, job.ledger.who()))
        prefix = f"{chain.nonce}-{hashlib.sha256(release.release.encode()).hexdigest()[:16]}-"
        name = prefix + key.subkey("name", length=8).hex()
        reserve = Reserve(
            release=release.release,
            asset=release.asset,
            guarantee=total,
            binding=binding.hex(),
            spec=release.digest(),
            code=code_version(),
            key=name,
            output=out,
            keep=kept,
            names=names,
            who=job.ledger.who(),
            time=job.ledger.clock(),
        )
        if name not in job.keys.names():  # a simulation's key, left by a crash, has the same name: it is the same key
            job.keys.create(name, key)
        job.observe("key", 1, 1)
        try:
            entry = job.ledger.reserve(reserve, simulated=key.simulated)
        except LedgerUncertain:
            raise  # there may be a reservation: without its key nobody could complete it
        except DiscreetError:
            job.keys.destroy(name)  # nothing was reserved: the key was never used
            raise
        job.observe("reserve", 1, 1)
        _forget_unused(job.keys, prefix, name)
        reserved = cast(Reserve, entry.event)  # its time may be a little later: that of the entry before it
        return _complete(job, outputs, Reservation(reserved, key, binding), entry, found)


def _resume(job: Job) -> Manifest:
    release = job.release
    chain = job.ledger.chain()
    state = chain.open_release(release.release)
    _same_user(job, state)
    _same_declaration(release, state)
    output = reserved_outputs(chain, state)
    with output.alone():
        return _resume_alone(job, output, state)


def _resume_alone(job: Job, output: Outputs, state: ReleaseState) -> Manifest:
    release = job.release
    if state.commit and state.committed_at and output.hold(state.commit):
        return _finish(job, output, state, methods(release))
    if state.commit and state.reserve.key not in job.keys.names():
        raise PublishError(
            f"release {release.release!r} was published and its key destroyed; its folder is gone or was changed",
            where=output.published.where,
            do="restore the folder from a copy: the ledger has the digest of every file",
        )
    key = _load(job.keys, state)
    job.ledger.fits(job.ledger.chain(), simulated=key.simulated)
    tables = trusted(release)
    with tabulated(job, tables, key) as found:
        promise = (total_guarantee(release, tables), state.reserve.output, state.reserve.keep, job.ledger.who())
        binding = _bind(release, key, found, promise)
        reservation = Reservation(state.reserve, key, binding)
        return _complete(job, output, reservation, state.reserved_at, found)


def _bind(release: Release, key: ReleaseKey, found: Tabulated, promise: tuple[Guarantee, str, str, str]) -> bytes:
    """The MAC that ties a key to what it will protect: parameters, domains, code, and every cell; and to what was
    promised, where it goes and who reserved it, so that no other entry of the ledger can stand for this one."""
    guarantee, output, keep, who = promise

    def parts() -> Iterator[bytes]:
        yield release.canonical().encode()
        yield code_version().encode()
        yield guarantee.model_dump_json().encode()
        yield output.encode()
        yield keep.encode()
        yield who.encode()
        for table, counted in zip(found.tables, found.cells, strict=True):
            yield table.name.encode()
            for cells in counted:
                yield hashlib.sha256(b"".join(cells.open_inside().fingerprints)).digest()

    return key.mac(parts())


def _complete(job: Job, output: Outputs, reservation: Reservation, entry: Entry, found: Tabulated) -> Manifest:
    """Everything after the reservation. A failure here leaves a reservation that `resume` completes."""
    try:
        if job.ledger.chain().open_release(job.release.release).commit is None:
            output.refuse_finished()
        places = output.stage()
        cells = dict(zip((id(table) for table in found.tables), found.cells, strict=True))

        def protect(table: Method, progress: Callable[[int, int], None]) -> Made:
            return table.protect(found.engine, cells[id(table)], reservation, places, progress)

        guarantee = reservation.reserve.guarantee
        staged = stage(places, job.release, found.tables, reservation, guarantee, protect, job.observe)
        output.seal(staged)
        job.observe("write", 1, 1)
        said = _said(job, reservation.reserve, staged.files, found.tables)
        job.ledger.commit(job.release.release, staged.files, said.sha256(), staged.kept)
        job.observe("commit", 1, 1)
        state = job.ledger.chain().open_release(job.release.release)
        return _finish(job, output, state, found.tables)
    except LedgerUnavailable as error:
        stopped, first = f"stopped ({error.where}: {error.what})", "when the ledger can be used again, "
    except KeyboardInterrupt:
        stopped, first = "interrupted", ""
    except PublishError as error:
        stopped, first = f"stopped ({error.where}: {error.what})", "mend that and "
    except EngineError as error:
        _make_room(job, output)
        stopped, first = f"stopped ({error.what})", "mend that and "
    except (ParameterError, DomainError, GuaranteeError, SpecError) as error:  # should have been refused before
        _make_room(job, output)
        stopped, first = f"stopped ({error.where}: {error.what})", "report this, and "
    except (OSError, MemoryError) as error:
        _make_room(job, output)
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
        stopped, first = f"stopped ({reason})", "make room and "
    raise PublishError(
        f"{stopped} after the reservation (ledger entry {entry.number}): "
        f"epsilon {written(reservation.reserve.guarantee.epsilon)} is spent",
        where=f"release {job.release.release}",
        do=f"{first}complete it with `discreet resume`: it costs nothing more",
    )


def _make_room(job: Job, output: Outputs) -> None:
    """A full disk needs the room. Committed bytes stay, and so does everything if the ledger cannot be asked."""
    with suppress(LedgerError, PublishError, OSError):
        if job.ledger.chain().open_release(job.release.release).commit is None:
            output.clean()


def _said(job: Job, reserve: Reserve, files: dict[str, str], tables: list[Method]) -> Said:
    """What the manifest will say."""
    entered = Entered(
        guarantee=reserve.guarantee,
        day=reserve.time.date(),
        code=reserve.code,
        spec=reserve.spec,
        files=files,
        kind=job.ledger.chain().kind,
    )
    return manifest(job.release, entered, tables)


def _finish(job: Job, output: Outputs, state: ReleaseState, tables: list[Method]) -> Manifest:
    """Publish committed bytes, manifest last, then destroy the key."""
    if state.commit is None or state.committed_at is None:
        raise PublishError("is not committed", where=f"release {state.reserve.release}")
    commit, at = state.commit, state.committed_at
    said = _said(job, state.reserve, commit.files, tables)
    refuse_other_words(said, commit.manifest)
    made = said.entered(LedgerEntry(kind=job.ledger.chain().kind, entry=at.number, head=at.hash))
    output.publish(commit.files, commit.kept, made)
    job.observe("publish", 1, 1)
    job.keys.destroy(state.reserve.key)
    job.observe("destroy", 1, 1)
    return made


def _same_declaration(release: Release, state: ReleaseState) -> None:
    """Before any data is opened: parameters, domains and code must be those of the reservation."""
    for what, found, reserved, mend in (
        ("parameters or domains", release.digest(), state.reserve.spec, "restore them"),
        ("code", code_version(), state.reserve.code, f"resume it with the discreet that is {state.reserve.code}"),
    ):
        if found != reserved:
            end = f", or `discreet ledger abandon {release.release}`: its cost stays spent"
            raise KeyRefused(
                f"the {what} of release {release.release!r} changed since its reservation "
                f"({_short(reserved)} → {_short(found)}): the same noise on anything else would give both away",
                do=f"{mend}{'' if state.commit else end}",
            )


def _same_user(job: Job, state: ReleaseState) -> None:
    """A key lies with whoever reserved, and is bound to that name. Nobody else completes a release."""
    if state.reserve.who != (who := job.ledger.who()):
        raise KeyRefused(
            f"release {state.reserve.release!r} was reserved by {state.reserve.who}, in whose key store its key lies; "
            f"you are {who}",
            do=f"let {state.reserve.who} resume or abandon it",
        )


def _short(digest: str) -> str:
    return digest if len(digest) < 40 else f"{digest[:12]}…"


def _load(keys: KeyStore, state: ReleaseState) -> ReleaseKey:
    name = state.reserve.release
    try:
        return keys.load(state.reserve.key)
    except KeyRefused as error:
        raise KeyRefused(
            f"release {name!r} cannot be resumed without its key ({error.what})",
            do=f"restore the key store, or `discreet ledger abandon {name}`: its cost stays spent",
        ) from None


def _forget_unused(keys: KeyStore, prefix: str, used: str) -> None:
    """Keys of this ledger and release that a crash left before their reservation: nobody will ask for them."""
    for name in keys.names():
        if name.startswith(prefix) and name != used:
            keys.destroy(name)
