"""Output locations of a release and its kept measurements, and the files beside its tables: codebook and layouts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.engine import workspace
from discreet.errors import PublishError
from discreet.methods.writing import MethodOutput, OutputLocations
from discreet.noise.keystore import KeyStore
from discreet.privacy.confidential import Grant
from discreet.privacy.ledger.events import Commit, DerivedRelease
from discreet.privacy.ledger.state import Chain, ReleaseState
from discreet.publish.codebook import codebooks
from discreet.publish.description import MEASUREMENTS, Measurement, ReleaseDescription
from discreet.publish.folder import Owner, ReleaseOutput, output_at, overlaps
from discreet.publish.manifest import Manifest, ManifestBody
from discreet.publish.storage import Storage
from discreet.spec import Release
from discreet.uris import is_uri

if TYPE_CHECKING:
    from discreet.publish.measurements import MeasuredTable


@dataclass(frozen=True)
class Outputs:
    """Where a release is published, and where its noisy measurements are kept, if they are."""

    published: ReleaseOutput
    kept: ReleaseOutput | None

    @property
    def all(self) -> list[ReleaseOutput]:
        """Both, or the first alone."""
        return [self.published] if self.kept is None else [self.published, self.kept]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock both: one process at a time works on an output location."""
        with ExitStack() as stack:
            for output in self.all:
                stack.enter_context(output.lock())
            yield

    def refuse_existing(self) -> None:
        for output in self.all:
            output.refuse_existing()

    @contextmanager
    def dry_run(self) -> Iterator[None]:
        """Lock both, and refuse one that cannot be created, marked or listed before anything is read or spent."""
        with self.locked():
            self.refuse_existing()  # another process may have published there before we had the lock
            for output in self.all:
                output.stage()
                output.clean()
            yield

    def refuse_finished(self) -> None:
        for output in self.all:
            output.refuse_finished()

    def stage(self) -> OutputLocations:
        place = self.published.stage()
        return OutputLocations(place, place if self.kept is None else self.kept.stage())

    def seal(self, staged: Staged) -> None:
        owner = self.published.owner
        if strange := sorted(name for name in (*staged.files, *staged.kept) if not owner.writes(name)):
            raise PublishError(
                f"has written {strange[0]!r}, which it did not announce",
                where=f"release {owner.release}",
                do="report it",
            )
        self.published.seal(staged.files)
        if self.kept is not None:
            self.kept.seal(staged.kept)

    def hold(self, commit: Commit | DerivedRelease) -> bool:
        return self.published.holds(commit.files) and (self.kept is None or self.kept.holds(commit.kept))

    def publish(self, files: dict[str, str], kept: dict[str, str], manifest: Manifest) -> None:
        """Kept measurements first, the manifest last: it makes the folder a release."""
        if self.kept is not None:
            self.kept.publish(kept, None)
        self.published.publish(files, manifest)
        for output in self.all:
            output.remove_leftovers()

    def clean(self) -> None:
        for output in self.all:
            output.clean()

    def abandon(self) -> list[PublishError | OSError]:
        """Remove staged files; gives the errors of locations where that failed."""
        errors = list[PublishError | OSError]()
        for output in self.all:
            try:
                output.abandon()
            except (PublishError, OSError) as error:
                errors.append(error)
        return errors


def kept_output(release: Release, owner: Owner) -> ReleaseOutput | None:
    """Where a release keeps its noisy measurements."""
    if (place := release.keep_measurements) is None:
        return None
    return output_at(place if is_uri(place) else str(release.base / place), owner)


def refuse_taken(chain: Chain, keys: KeyStore, release: str, outputs: Outputs) -> None:
    """Refuse a location that is, contains or lies in one that another release needs: where it is still to be
    published, or where its measurements stay."""
    names = set(keys.names())
    needed = list[tuple[str, ReleaseOutput]]()
    for name, state in chain.releases().items():
        if name == release or state.abandon is not None:
            continue
        theirs, kept = reserved_outputs(chain, state), f"where release {name!r} keeps its measurements"
        if state.commit is None or state.reserve.key in names:
            needed.append((f"where release {name!r} is still to be published", theirs.published))
        needed += [(kept, theirs.kept)] if theirs.kept is not None else []
    for name, (event, _) in chain.derived().items():
        if event.keep and name != release:
            kept = f"where release {name!r} keeps its measurements"
            needed.append((kept, output_at(event.keep, Owner(chain.nonce, name))))
    for ours in outputs.all:
        for what, place in needed:
            if overlaps(ours, place):
                raise PublishError(f"is {what}, or inside or around it", where=ours.where, do="name another")


def refuse_private(keys: KeyStore, outputs: Outputs) -> None:
    """Refuse an output in the key store, or in the private temporary folder, which is emptied."""
    for output in outputs.all:
        taken = [] if is_uri(output.where) else [path for _, path in output.occupied_paths]
        for folder in map(os.path.realpath, [workspace.home(), *keys.private]):
            if any(f"{path}/".startswith(f"{folder}/") for path in taken):
                raise PublishError(
                    "lies in the private temporary folder or the key store", where=output.where, do="name another"
                )


def refuse_other_manifest(content: ManifestBody, digest: str) -> None:
    """Refuse a manifest other than the committed one: the same code reproduces it."""
    if content.sha256() != digest:
        raise PublishError(
            "its manifest would not be the one that was committed",
            where=f"release {content.release}",
            do="complete it with the version of discreet and the files that it was begun with",
        )


def reserved_outputs(chain: Chain, state: ReleaseState) -> Outputs:
    """The output locations of a reserved release, as the ledger has them."""
    reserve = state.reserve
    owner = Owner(chain.nonce, reserve.release, frozenset(reserve.names))
    return Outputs(output_at(reserve.output, owner), output_at(reserve.keep, owner) if reserve.keep else None)


@dataclass(frozen=True)
class Staged:
    """Everything but the manifest: published files and kept measurements, with their digests."""

    files: dict[str, str]
    kept: dict[str, str]


def complete(
    places: OutputLocations, description: ReleaseDescription, outputs: Sequence[MethodOutput], grant: Grant, keep: bool
) -> Staged:
    """Write the remaining files after every method has written its tables: all but the manifest. Removes measurements
    unless they are to be kept."""
    tables = {name: digest for output in outputs for name, digest in output.files.items()}
    texts = dict[str, str]()
    if description.shared is not None:
        texts |= description.shared.texts(grant.simulated, grant.time.date(), description.release)
    if description.recoding_source is not None:
        texts |= {description.transitions(name): text for name, text in description.recoding_source.tables.items()}
    kept = _kept(places.measurements, description, outputs, keep)
    return Staged(tables | _written(places.published, texts | codebooks(description)), kept)


def _kept(
    place: Storage, description: ReleaseDescription, outputs: Sequence[MethodOutput], keep: bool
) -> dict[str, str]:
    """The files of kept measurements with their digests; removed unless they are to be kept."""
    files = {n: d for output in outputs for parts in output.measurements.values() for n, d in parts.value.files.items()}
    if not keep:
        for name in files:
            place.remove(name)
        return {}
    from discreet.publish.measurements import Measurements

    about = Measurements(
        release=description.release,
        asset=description.asset,
        simulation=description.simulated,
        guarantee=description.guarantee,
        tables=tuple(
            _measured(m, output)
            for m in description.measurements
            for output in outputs
            if m.name in output.measurements
        ),
    )
    return files | _written(place, {MEASUREMENTS: about.text()})


def _written(place: Storage, texts: Mapping[str, str]) -> dict[str, str]:
    """Write small files; gives their digests."""
    files = {}
    for name, text in texts.items():
        with place.create(name) as file:
            file.write(text.encode())
        files[name] = file.sha256()
    return files


def _measured(measurement: Measurement, output: MethodOutput) -> MeasuredTable:
    from discreet.publish.measurements import MeasuredAttribute, MeasuredTable

    return MeasuredTable(
        name=measurement.name,
        method=measurement.method,
        attributes=tuple(
            MeasuredAttribute(name=a.name, columns=a.columns, categories=a.published)
            for a in measurement.groups.attributes
        ),
        width=measurement.width,
        about=measurement.about,
        rate=measurement.rate,
        draws=output.draws.get(measurement.name),
        guarantee=measurement.guarantee,
        files=output.measurements[measurement.name].value.files,
    )
