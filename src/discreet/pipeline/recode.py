"""A release of kept measurements in another classification: verify → recode → stage → record → publish.

Post-processing: no record is opened, no key is used, no budget is spent. The output is a function of the measurements
and of public files, so an interrupted run is simply repeated, and gives the same bytes.
"""

from __future__ import annotations

import datetime as dt
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
import pyarrow as pa

from discreet.errors import DiscreetError, LedgerError, SpecError
from discreet.methods.histograms import histogram_spans, read_histograms
from discreet.methods.noise_provenance import UNKNOWN
from discreet.methods.protocol import Method
from discreet.methods.recode.recoding import GroupCounts, Recoding
from discreet.methods.registry import methods_and_description
from discreet.methods.writing import MethodOutput, OutputLocations, measurements_name
from discreet.pipeline.outputs import (
    Outputs,
    complete,
    kept_output,
    refuse_other_manifest,
    refuse_private,
    refuse_taken,
)
from discreet.pipeline.stored_measurements import Source, describe_recoding, open_source, plan_recoding, refuse_asset
from discreet.privacy.confidential import Derivation, Grant
from discreet.privacy.ledger.events import DerivedRelease, Entry
from discreet.privacy.ledger.ledger import TOLERANCE
from discreet.privacy.ledger.state import Chain
from discreet.privacy.protected import Protected
from discreet.publish.description import Measurement, ReleaseDescription
from discreet.publish.folder import Owner, output_at, refuse_overlap
from discreet.publish.manifest import LedgerEntry, Manifest, ManifestBody, manifest_body
from discreet.publish.storage import Storage
from discreet.publish.tables import WrittenTable, write_table
from discreet.spec import Release
from discreet.spec.recode import Recode
from discreet.version import code_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from discreet.engine.spans import Progress
    from discreet.methods.noise_provenance import NoiseProvenance
    from discreet.pipeline.run import ReleaseJob


class Recodable(Protocol):
    """A method that can compute its tables from noisy measurements alone."""

    name: str

    def measurements(self) -> list[Measurement]: ...
    def make(
        self,
        measured: Mapping[str, Protected[WrittenTable]],
        grant: Grant,
        places: OutputLocations,
        progress: Progress,
        provenances: Mapping[str, NoiseProvenance],
    ) -> dict[str, str]: ...


def recode(job: ReleaseJob, *, complete: bool) -> Manifest:
    """Publish, or complete an interrupted run."""
    release, spec = job.release, _recode_spec(job.release)
    chain = job.ledger.chain()
    source = open_source(release, spec, chain)
    known = chain.derived().get(release.release)
    if not complete:
        chain.refuse_used(release.release)
    refuse_asset(release, source)
    tables, description = methods_and_description(release, simulated=source.about.simulation)
    outputs = _outputs(job, chain, known, description.output_names)
    recodings = plan_recoding(release, spec, tables, source)
    description = description.with_recoding(describe_recoding(source, recodings))
    with outputs.locked():
        if known is None:
            outputs.refuse_existing()
        return _recode(job, description, outputs, tables, source, recodings, known)


def _recode(
    job: ReleaseJob,
    description: ReleaseDescription,
    outputs: Outputs,
    tables: list[Method],
    source: Source,
    recodings: Mapping[str, Recoding],
    known: tuple[DerivedRelease, Entry] | None,
) -> Manifest:
    """recode noisy measurements (no noise is drawn) → stage → commit → publish."""
    release, chain = job.release, job.ledger.chain()
    if known is not None and outputs.hold(known[0]):
        return _publish(job, description, outputs, known)
    job.observe("read", 1, 1)
    simulated, time = source.about.simulation, _now(job, chain) if known is None else known[0].time
    job.ledger.refuse_other_kind(chain, simulated=simulated)
    source.verify()
    grant = Derivation(release.release, time, simulated, source.digests)
    with _cleaned_up(outputs):
        places = outputs.stage()
        recoded = [
            _recoded(
                cast(Recodable, table), recodings, source, grant, places, partial(job.observe, f"protect {table.name}")
            )
            for table in tables
        ]
        staged = complete(places, description, recoded, grant, keep=release.keep_measurements is not None)
        outputs.seal(staged)
    job.observe("write", 1, 1)
    derived = DerivedRelease(
        release=release.release,
        asset=release.asset,
        of=source.about.release,
        spec=release.digest(),
        code=code_version(),
        output=outputs.published.where,
        keep="" if outputs.kept is None else outputs.kept.where,
        files=staged.files,
        manifest="",
        kept=staged.kept,
        who=job.ledger.who() if known is None else known[0].who,
        time=time,
    )
    derived = derived.model_copy(update={"manifest": _said(description, derived).sha256()})
    entry = job.ledger.derive(derived, simulated=simulated)
    job.observe("commit", 1, 1)
    entered = cast(DerivedRelease, entry.event)  # its time may be a little later: that of the entry before it
    return _publish(job, description, outputs, (entered, entry))


def _now(job: ReleaseJob, chain: Chain) -> dt.datetime:
    """The time of the next entry: clocks of several machines differ a little, and files have its date."""
    clock, latest = job.ledger.clock(), chain.latest()
    return latest if clock < latest <= clock + TOLERANCE else clock


@contextmanager
def _cleaned_up(outputs: Outputs) -> Iterator[None]:
    """Remove staged files after a refusal, or on a full disk."""
    try:
        yield
    except (DiscreetError, OSError, MemoryError):
        with suppress(DiscreetError, OSError):
            outputs.clean()
        raise


def _recoded(
    table: Recodable,
    recodings: Mapping[str, Recoding],
    source: Source,
    grant: Derivation,
    places: OutputLocations,
    progress: Progress,
) -> MethodOutput:
    """The measurements of a table in the new classification, and its tables computed from them."""
    parts: dict[str, Protected[WrittenTable]] = {}
    for measurement in table.measurements():
        recoding = recodings[measurement.name]
        old = recoding.old.files
        stored = grant.read_back(old, WrittenTable(old, 0), recoding.old.guarantee)
        counts = recoding.recode(read_histograms(source.place, stored, recoding.old.width), grant.release)
        parts[measurement.name] = _written(measurement, grant.protect(counts, stored.guarantee), places.measurements)
    provenances = {name: recodings[name].provenance for name in parts}
    files = table.make(parts, grant, places, progress, provenances)
    return MethodOutput(files, parts, {name: _draws(recodings[name]) for name in parts})


def _draws(recoding: Recoding) -> tuple[int, ...]:
    """How many noise draws each new group sums, where that is known."""
    draws, blurred = recoding.provenance.draws(np.arange(recoding.new.cells), recoding.new.cells)
    return tuple(np.where(blurred, UNKNOWN, draws).tolist())


def _written(measurement: Measurement, counts: Protected[GroupCounts], place: Storage) -> Protected[WrittenTable]:
    """Write recoded measurements, in the format of the original ones."""
    name, schema = measurements_name(measurement.name), pa.schema([("count", pa.int64())])
    spans = histogram_spans(measurement.groups.cells, measurement.width)
    flat, files = counts.value.reshape(-1), dict[str, str]()
    for span in spans:
        piece = pa.RecordBatch.from_arrays([pa.array(flat[span.first : span.end])], schema=schema)
        part = span.number if len(spans) > 1 else None
        rows = iter([counts.map(lambda _, piece=piece: piece)])  # type: ignore[misc]
        files |= write_table(place, name, schema, rows, counts.simulated, part, ("parquet",), packed=True).files
    return counts.map(lambda _: WrittenTable(files, flat.size))


def _publish(
    job: ReleaseJob, description: ReleaseDescription, outputs: Outputs, entry: tuple[DerivedRelease, Entry]
) -> Manifest:
    derived, at = entry
    content = _said(description, derived)
    refuse_other_manifest(content, derived.manifest)
    manifest = content.with_ledger_entry(LedgerEntry(kind=job.ledger.chain().kind, entry=at.number, head=at.hash))
    outputs.publish(derived.files, derived.kept, manifest)
    job.observe("publish", 1, 1)
    return manifest


def _said(description: ReleaseDescription, derived: DerivedRelease) -> ManifestBody:
    return manifest_body(
        description, reserved=derived.time.date(), code=derived.code, spec=derived.spec, files=derived.files
    )


def _recode_spec(release: Release) -> Recode:
    if release.recode is None:
        raise SpecError("has no key 'recode'", where=f"release {release.release}", do="run it on records")
    return release.recode


def _outputs(
    job: ReleaseJob, chain: Chain, known: tuple[DerivedRelease, Entry] | None, names: tuple[str, ...]
) -> Outputs:
    """The output locations; those in the ledger, if it has the release already."""
    release = job.release
    owner = Owner(chain.nonce, release.release, frozenset(names))
    if known is None:
        published, kept = output_at(job.out, owner), kept_output(release, owner)
        refuse_private(job.keys, Outputs(published, kept))
        refuse_taken(chain, job.keys, release.release, Outputs(published, kept))
        published.refuse_existing()
    else:
        before = known[0]
        if before.spec != release.digest() or before.code != code_version():
            raise LedgerError(
                f"the parameters, domains or code of release {release.release!r} changed since it was derived",
                do="restore them, or give it another name: a recoding has no privacy cost",
            )
        published = output_at(before.output, owner)
        kept = output_at(before.keep, owner) if before.keep else None
    if kept is not None:
        refuse_overlap(published, kept)
        if known is None:
            kept.refuse_existing()
    return Outputs(published, kept)
