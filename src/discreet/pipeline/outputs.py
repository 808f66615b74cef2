"""Where a release goes, where its measurements stay, and what is written beside its tables: codebook and layouts."""

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
from discreet.publish.folder import Output, Owner, nested, output_at
from discreet.publish.manifest import Manifest, Said
from discreet.publish.storage import Storage
from discreet.spec import Release
from discreet.uris import is_uri

if TYPE_CHECKING:
    from discreet.publish.measurements import MeasuredTable


@dataclass(frozen=True)
class Outputs:
    """Where a release goes, and where its measurements stay, if they do."""

    published: Output
    kept: Output | None

    @property
    def all(self) -> list[Output]:
        """Both, or the one there is."""
        return [self.published] if self.kept is None else [self.published, self.kept]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One process at a time works on these places, whatever else it does."""
        with ExitStack() as stack:
            for output in self.all:
                stack.enter_context(output.alone())
            yield

    def refuse_existing(self) -> None:
        for output in self.all:
            output.refuse_existing()

    @contextmanager
    def rehearsed(self) -> Iterator[None]:
        """Alone, and what cannot be made, marked or listed there is refused before anything is read or spent."""
        with self.alone():
            self.refuse_existing()  # somebody may have finished there before we held it
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

    def publish(self, files: dict[str, str], kept: dict[str, str], made: Manifest) -> None:
        """Measurements first: the manifest makes it a release."""
        if self.kept is not None:
            self.kept.publish(kept, None)
        self.published.publish(files, made)
        for output in self.all:
            output.done()

    def clean(self) -> None:
        for output in self.all:
            output.clean()

    def abandon(self) -> list[PublishError | OSError]:
        """Remove what was staged; what stands in the way of that, place by place."""
        found = list[PublishError | OSError]()
        for output in self.all:
            try:
                output.abandon()
            except (PublishError, OSError) as error:
                found.append(error)
        return found


def keep_at(release: Release, owner: Owner) -> Output | None:
    """Where a release keeps its measurements."""
    if (place := release.keep_measurements) is None:
        return None
    return output_at(place if is_uri(place) else str(release.base / place), owner)


def refuse_taken(chain: Chain, keys: KeyStore, release: str, outputs: Outputs) -> None:
    """Refuse a location that is, contains or lies in one that another release needs: where it is still to be
    published, or where its measurements stay."""
    held = set(keys.names())
    needed = list[tuple[str, Output]]()
    for name, state in chain.releases().items():
        if name == release or state.abandon is not None:
            continue
        theirs, kept = reserved_outputs(chain, state), f"where release {name!r} keeps its measurements"
        if state.commit is None or state.reserve.key in held:
            needed.append((f"where release {name!r} is still to be published", theirs.published))
        needed += [(kept, theirs.kept)] if theirs.kept is not None else []
    for name, (event, _) in chain.derived().items():
        if event.keep and name != release:
            kept = f"where release {name!r} keeps its measurements"
            needed.append((kept, output_at(event.keep, Owner(chain.nonce, name))))
    for ours in outputs.all:
        for what, place in needed:
            if nested(ours, place):
                raise PublishError(f"is {what}, or inside or around it", where=ours.where, do="name another")


def refuse_private(keys: KeyStore, outputs: Outputs) -> None:
    """What is published must not lie where keys do, or where things are swept away."""
    for output in outputs.all:
        taken = [] if is_uri(output.where) else [path for _, path in output.occupied]
        for folder in map(os.path.realpath, [workspace.home(), *keys.private]):
            if any(f"{path}/".startswith(f"{folder}/") for path in taken):
                raise PublishError(
                    "lies in the private temporary folder or the key store", where=output.where, do="name another"
                )


def refuse_other_words(said: Said, digest: str) -> None:
    """A manifest is what the ledger has: the same code makes the same words."""
    if said.sha256() != digest:
        raise PublishError(
            "its manifest would not be the one that was committed",
            where=f"release {said.release}",
            do="complete it with the version and the files it was begun with",
        )


def reserved_outputs(chain: Chain, state: ReleaseState) -> Outputs:
    """Where a reserved release goes, as the ledger has it."""
    reserve = state.reserve
    owner = Owner(chain.nonce, reserve.release, frozenset(reserve.names))
    return Outputs(output_at(reserve.output, owner), output_at(reserve.keep, owner) if reserve.keep else None)


@dataclass(frozen=True)
class Staged:
    """Everything but the manifest: published files and kept measurements, with their digests."""

    files: dict[str, str]
    kept: dict[str, str]


def complete(
    places: OutputLocations, description: ReleaseDescription, made: Sequence[MethodOutput], grant: Grant, keep: bool
) -> Staged:
    """Write what is left when every method has written its tables: all but the manifest. Measurements stay only if they
    are to be kept."""
    tables = {name: digest for output in made for name, digest in output.files.items()}
    texts = dict[str, str]()
    if description.shared is not None:
        texts |= description.shared.texts(grant.simulated, grant.time.date(), description.release)
    if description.recoded is not None:
        texts |= {description.transitions(name): text for name, text in description.recoded.tables.items()}
    kept = _kept(places.measured, description, made, keep)
    return Staged(tables | _written(places.published, texts | codebooks(description)), kept)


def _kept(place: Storage, description: ReleaseDescription, made: Sequence[MethodOutput], keep: bool) -> dict[str, str]:
    """The files of measurements with their digests; removed, unless they stay."""
    files = {n: d for output in made for parts in output.measured.values() for n, d in parts.value.files.items()}
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
            _measured(m, output) for m in description.measurements for output in made if m.name in output.measured
        ),
    )
    return files | _written(place, {MEASUREMENTS: about.text()})


def _written(place: Storage, texts: Mapping[str, str]) -> dict[str, str]:
    """Small files, and their digests."""
    files = {}
    for name, text in texts.items():
        with place.create(name) as file:
            file.write(text.encode())
        files[name] = file.sha256()
    return files


def _measured(measurement: Measurement, made: MethodOutput) -> MeasuredTable:
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
        draws=made.draws.get(measurement.name),
        guarantee=measurement.guarantee,
        files=made.measured[measurement.name].value.files,
    )
