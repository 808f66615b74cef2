"""run and resume: tabulate → reserve → protect → stage → commit → publish → destroy the key.

Each step can be the last one before a crash. Until the reservation no budget has been spent, and a crash leaves at most
an unused key; from then on `resume` draws the same noise for the same data and ends with the same bytes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from discreet.engine import Engine
from discreet.engine.workspace import no_core_dumps, sweep
from discreet.errors import (
    DiscreetError,
    DomainError,
    EngineError,
    GuaranteeError,
    LedgerError,
    LedgerUnavailable,
    ParameterError,
    PublishError,
    ReleaseKeyError,
    SpecError,
    UnconfirmedWrite,
)
from discreet.formatting import Observer, silent
from discreet.methods.registry import methods_and_description
from discreet.noise.key import ReleaseKey
from discreet.noise.keystore import KeyStore
from discreet.pipeline.outputs import (
    Outputs,
    complete,
    kept_output,
    refuse_other_manifest,
    refuse_private,
    refuse_taken,
    reserved_outputs,
)
from discreet.pipeline.tabulation import Tabulated, tabulated
from discreet.privacy.confidential import Reservation
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.events import Commit, Entry, LedgerKind, Reserve
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.state import Chain, ReleaseState
from discreet.publish.description import ReleaseDescription
from discreet.publish.folder import Owner, output_at, refuse_overlap
from discreet.publish.manifest import LedgerEntry, Manifest, ManifestBody, manifest_body
from discreet.spec import Release
from discreet.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from discreet.engine.frames import Frames


@dataclass(frozen=True)
class ReleaseJob:
    """A release with its ledger, keys, output and engine."""

    release: Release
    out: str
    ledger: Ledger
    keys: KeyStore
    frame: Frames | None = None
    session: SparkSession | None = None  # an existing one to run on
    observe: Observer = silent

    def __post_init__(self) -> None:
        """The key store that holds the key is the one whose memory detects rollbacks of the ledger."""
        object.__setattr__(self, "ledger", self.ledger.remembered_by(self.keys))


def run(job: ReleaseJob, simulation: str | None = None) -> Manifest:
    """Protect and publish. `simulation` is the seed of a fixed test key, and marks every output."""
    with release_lock(job.ledger, job.release.release) as chain:
        if job.release.recode is not None:
            if simulation is not None:
                raise SpecError(
                    "a recoding draws no noise: it is a simulation if its measurements are",
                    where="--simulation",
                    do="leave it out",
                )
            return _recode(job, complete=False)
        return _run(job, chain, simulation)


def resume(job: ReleaseJob) -> Manifest:
    """Complete a reserved or committed release: same key, same data, same noise, same bytes; no further cost."""
    with release_lock(job.ledger, job.release.release) as chain:
        if job.release.recode is not None and job.release.release in chain.derived():
            return _recode(job, complete=True)
        if job.release.recode is not None:
            raise LedgerError(
                f"release {job.release.release!r} was not derived yet",
                do="run it: an interrupted recoding has no privacy cost",
            )
        return _resume(job, chain)


def _recode(job: ReleaseJob, *, complete: bool) -> Manifest:
    from discreet.pipeline.recode import recode

    return recode(job, complete=complete)


@contextmanager
def release_lock(ledger: Ledger, release: str) -> Iterator[Chain]:
    """Lock a release on all machines: two processes would remove each other's files. And the key store has seen every
    entry before noise is drawn, so that no reservation can be rolled back unnoticed. Gives the ledger's chain."""
    no_core_dumps()
    sweep()
    with ledger.store.lock(f"{ledger.nonce}-{release}") as free:
        if not free:
            raise LedgerError(
                f"another process is working on release {release!r}", do="wait for it to finish, or stop it"
            )
        yield ledger.remember()


def _run(job: ReleaseJob, chain: Chain, simulation: str | None) -> Manifest:
    """tabulate → reserve → complete."""
    methods, description = methods_and_description(job.release, simulated=simulation is not None, trust=True)
    outputs = _refuse_before_reading(job, chain, description)
    key = ReleaseKey.generate() if simulation is None else ReleaseKey.simulation(simulation)
    with outputs.dry_run(), tabulated(job, methods, key) as (engine, tables):
        reservation, entry = _reserve(job, chain.nonce, description, outputs, key, tables)
        return _complete(job, description, outputs, reservation, entry, engine, tables, committed=False)


def _refuse_before_reading(job: ReleaseJob, chain: Chain, description: ReleaseDescription) -> Outputs:
    """The output locations. Everything that can be refused before a record is read is refused here."""
    release = job.release
    owner = Owner(chain.nonce, release.release, frozenset(description.output_names))
    outputs = Outputs(output_at(job.out, owner), kept_output(release, owner))
    job.ledger.refuse_other_kind(chain, simulated=description.simulated)
    chain.refuse_used(release.release)
    chain.balance(release.asset, job.ledger.clock().date()).charge(description.guarantee)
    refuse_private(job.keys, outputs)
    refuse_taken(chain, job.keys, release.release, outputs)
    if outputs.kept is not None:
        refuse_overlap(outputs.published, outputs.kept)
    outputs.refuse_existing()
    return outputs


def _reserve(
    job: ReleaseJob,
    nonce: str,
    description: ReleaseDescription,
    outputs: Outputs,
    key: ReleaseKey,
    tables: list[Tabulated],
) -> tuple[Reservation, Entry]:
    """Store the key, then reserve the cost: from then on it is spent, and the key is bound to the tabulated cells."""
    release = job.release
    out, keep = outputs.published.where, "" if outputs.kept is None else outputs.kept.where
    binding = _bind(release, key, tables, (description.guarantee, out, keep, job.ledger.who()))
    prefix = f"{nonce}-{hashlib.sha256(release.release.encode()).hexdigest()[:16]}-"
    name = prefix + key.subkey("name", length=8).hex()
    reserve = Reserve(
        release=release.release,
        asset=release.asset,
        guarantee=description.guarantee,
        binding=binding.hex(),
        spec=release.digest(),
        code=code_version(),
        key=name,
        output=out,
        keep=keep,
        names=description.output_names,
        who=job.ledger.who(),
        time=job.ledger.clock(),
    )
    if name not in job.keys.names():  # a simulation's key, left by a crash, has the same name: it is the same key
        job.keys.create(name, key)
    job.observe("key", 1, 1)
    try:
        entry = job.ledger.reserve(reserve, simulated=key.simulated)
    except UnconfirmedWrite:
        raise  # the reservation may exist: without its key nobody could complete it
    except DiscreetError:
        job.keys.destroy(name)  # nothing was reserved: the key was never used
        raise
    job.observe("reserve", 1, 1)
    _destroy_unused(job.keys, prefix, name)
    reserved = cast(Reserve, entry.event)  # its time may be a little later: that of the entry before it
    return Reservation(reserved, key, binding), entry


def _resume(job: ReleaseJob, chain: Chain) -> Manifest:
    release = job.release
    state = chain.open_release(release.release)
    _same_user(job, state)
    _same_declaration(release, state)
    outputs = reserved_outputs(chain, state)
    with outputs.locked():
        return _resume_locked(job, chain, outputs, state)


def _resume_locked(job: ReleaseJob, chain: Chain, outputs: Outputs, state: ReleaseState) -> Manifest:
    release, simulated = job.release, chain.kind == "simulation"
    if state.committed_at is not None and state.commit is not None and outputs.hold(state.commit):
        _, description = methods_and_description(release, simulated=simulated)
        content = _said(description, state.reserve, state.commit.files)
        refuse_other_manifest(content, state.commit.manifest)
        return _publish(job, content, outputs, state.reserve, state.committed_at)
    if state.commit and state.reserve.key not in job.keys.names():
        raise PublishError(
            f"release {release.release!r} was published and its key destroyed; its folder is gone or was changed",
            where=outputs.published.where,
            do="restore the folder from a copy: the ledger has the digest of every file",
        )
    key = _load(job.keys, state)
    job.ledger.refuse_other_kind(chain, simulated=key.simulated)
    methods, description = methods_and_description(release, simulated=simulated, trust=True)
    with tabulated(job, methods, key) as (engine, tables):
        claim = (description.guarantee, state.reserve.output, state.reserve.keep, job.ledger.who())
        reservation = Reservation(state.reserve, key, _bind(release, key, tables, claim))
        done = state.commit is not None
        return _complete(job, description, outputs, reservation, state.reserved_at, engine, tables, committed=done)


def _bind(release: Release, key: ReleaseKey, tables: list[Tabulated], claim: tuple[Guarantee, str, str, str]) -> bytes:
    """The MAC that binds a key to what it will protect (parameters, domains, code, every cell), and to its guarantee,
    output locations and user, so that no other entry of the ledger can be used in place of this one."""
    guarantee, output, keep, who = claim

    def parts() -> Iterator[bytes]:
        yield release.canonical().encode()
        yield code_version().encode()
        yield guarantee.model_dump_json().encode()
        yield output.encode()
        yield keep.encode()
        yield who.encode()
        for table in tables:
            yield table.method.name.encode()
            for cells in table.cells:
                yield hashlib.sha256(b"".join(cells.open_confidential().fingerprints)).digest()

    return key.mac(parts())


def _complete(
    job: ReleaseJob,
    description: ReleaseDescription,
    outputs: Outputs,
    reservation: Reservation,
    entry: Entry,
    engine: Engine,
    tables: list[Tabulated],
    *,
    committed: bool,
) -> Manifest:
    """protect → write → commit → publish. A failure in between leaves a reservation that `resume` completes."""
    release = job.release
    with _completable(job, outputs, reservation, entry):
        if not committed:
            outputs.refuse_finished()
        places = outputs.stage()
        protected = []
        for table in tables:
            progress = partial(job.observe, f"protect {table.method.name}")
            protected.append(table.method.protect(engine, table.cells, reservation, places, progress))
        staged = complete(places, description, protected, reservation, keep=release.keep_measurements is not None)
        outputs.seal(staged)
        job.observe("write", 1, 1)
        content = _said(description, reservation.reserve, staged.files)
        commit = job.ledger.commit(release.release, staged.files, content.sha256(), staged.kept)
        job.observe("commit", 1, 1)
        return _publish(job, content, outputs, reservation.reserve, commit)


@contextmanager
def _completable(job: ReleaseJob, outputs: Outputs, reservation: Reservation, entry: Entry) -> Iterator[None]:
    """Turn any failure after the reservation into a message that says what is spent and how to complete the release."""
    try:
        yield
        return
    except LedgerUnavailable as error:
        stopped, first = f"stopped ({error.where}: {error.what})", "when the ledger can be used again, "
    except KeyboardInterrupt:
        stopped, first = "interrupted", ""
    except PublishError as error:
        stopped, first = f"stopped ({error.where}: {error.what})", "fix that and "
    except EngineError as error:
        _remove_staged(job, outputs)
        stopped, first = f"stopped ({error.what})", "fix that and "
    except (ParameterError, DomainError, GuaranteeError, SpecError) as error:  # should have been refused before
        _remove_staged(job, outputs)
        stopped, first = f"stopped ({error.where}: {error.what})", "report this, and "
    except (OSError, MemoryError) as error:
        _remove_staged(job, outputs)
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
        stopped, first = f"stopped ({reason})", "free disk space and "
    raise PublishError(
        f"{stopped} after the reservation (ledger entry {entry.number}): "
        f"epsilon {format_exact(reservation.reserve.guarantee.epsilon)} is spent",
        where=f"release {job.release.release}",
        do=f"{first}complete it with `discreet resume`, at no further cost",
    )


def _remove_staged(job: ReleaseJob, outputs: Outputs) -> None:
    """Remove staged files, for the disk may be full; not committed ones, nor if the ledger is unavailable."""
    with suppress(LedgerError, PublishError, OSError):
        if job.ledger.chain().open_release(job.release.release).commit is None:
            outputs.clean()


def _said(description: ReleaseDescription, reserve: Reserve, files: dict[str, str]) -> ManifestBody:
    """The content of the manifest, with files in the ledger's order."""
    in_order = dict(sorted(files.items()))
    return manifest_body(
        description, reserved=reserve.time.date(), code=reserve.code, spec=reserve.spec, files=in_order
    )


def _publish(job: ReleaseJob, content: ManifestBody, outputs: Outputs, reserve: Reserve, committed: Entry) -> Manifest:
    """Publish committed bytes, manifest last, then destroy the key."""
    commit = cast(Commit, committed.event)
    kind: LedgerKind = "simulation" if content.simulation else "real"
    manifest = content.with_ledger_entry(LedgerEntry(kind=kind, entry=committed.number, head=committed.hash))
    outputs.publish(commit.files, commit.kept, manifest)
    job.observe("publish", 1, 1)
    job.keys.destroy(reserve.key)
    job.observe("destroy", 1, 1)
    return manifest


def _same_declaration(release: Release, state: ReleaseState) -> None:
    """Before data is opened, refuse other parameters, domains or code than those of the reservation."""
    for what, current, reserved, fix in (
        ("parameters or domains", release.digest(), state.reserve.spec, "restore them"),
        ("code", code_version(), state.reserve.code, f"resume it with the discreet that is {state.reserve.code}"),
    ):
        if current != reserved:
            end = f", or `discreet ledger abandon {release.release}`: its cost stays spent"
            raise ReleaseKeyError(
                f"the {what} of release {release.release!r} changed since its reservation "
                f"({_short(reserved)} → {_short(current)}): the same noise on anything else could be differenced away",
                do=f"{fix}{'' if state.commit else end}",
            )


def _same_user(job: ReleaseJob, state: ReleaseState) -> None:
    """A key lies in the store of the user who reserved, and is bound to that name: nobody else completes a release."""
    if state.reserve.who != (who := job.ledger.who()):
        raise ReleaseKeyError(
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
    except ReleaseKeyError as error:
        raise ReleaseKeyError(
            f"release {name!r} cannot be resumed without its key ({error.what})",
            do=f"restore the key store, or `discreet ledger abandon {name}`: its cost stays spent",
        ) from None


def _destroy_unused(keys: KeyStore, prefix: str, used: str) -> None:
    """Destroy keys of this ledger and release that a crash left before their reservation: they were never used."""
    for name in keys.names():
        if name.startswith(prefix) and name != used:
            keys.destroy(name)
