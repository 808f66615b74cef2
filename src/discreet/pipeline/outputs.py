"""Where a release goes, and where its measurements stay."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import PublishError
from discreet.methods.writing import Places
from discreet.pipeline.bundle import Staged
from discreet.privacy.chain import Chain, ReleaseState
from discreet.privacy.events import Commit, Derived
from discreet.publish.folder import Output, output_at
from discreet.publish.manifest import Manifest
from discreet.spec import Release
from discreet.words import is_uri


@dataclass(frozen=True)
class Outputs:
    """Where a release goes, and where its measurements stay, if they do."""

    published: Output
    kept: Output | None

    def stage(self) -> Places:
        place = self.published.stage()
        return Places(place, place if self.kept is None else self.kept.stage())

    def seal(self, staged: Staged) -> None:
        self.published.seal(staged.files)
        if self.kept is not None:
            self.kept.seal(staged.kept)

    def hold(self, commit: Commit | Derived) -> bool:
        return self.published.holds(commit.files) and (self.kept is None or self.kept.holds(commit.kept))

    def publish(self, files: dict[str, str], kept: dict[str, str], made: Manifest, *, sealed: bool) -> None:
        """Measurements first: the manifest makes it a release."""
        if self.kept is not None:
            self.kept.publish(kept, None, sealed=sealed)
        self.published.publish(files, made, sealed=sealed)

    def clean(self) -> None:
        self.published.clean()
        if self.kept is not None:
            self.kept.clean()


def keep_at(release: Release) -> Output | None:
    """Where a release keeps its measurements."""
    if release.keep is None:
        return None
    return output_at(release.keep if is_uri(release.keep) else str(release.base / release.keep), release.release)


def refuse_kept(chain: Chain, keep: Output) -> None:
    """A place where another release keeps its measurements, or is about to."""
    states = chain.releases()
    taken = {s.reserve.keep: name for name, s in states.items() if s.reserve.keep and s.abandon is None}
    taken |= {event.keep: name for name, (event, _) in chain.derived().items() if event.keep}
    if keep.where in taken:
        raise PublishError(
            f"is where release {taken[keep.where]!r} keeps its measurements",
            where=f"keep {keep.where}",
            do="name another",
        )


def reserved_outputs(state: ReleaseState) -> Outputs:
    reserve = state.reserve
    return Outputs(
        output_at(reserve.output, reserve.release), output_at(reserve.keep, reserve.release) if reserve.keep else None
    )
