"""Written aside, then published: the manifest comes last and makes a release.

A folder is prepared beside its place and renamed. An object store cannot rename: its files lie where they will be
read, and are no release until the manifest is there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Protocol

from discreet.errors import PublishError, StoreUnavailable
from discreet.publish.manifest import FILE, Manifest
from discreet.publish.measurements import FILE as MEASUREMENTS
from discreet.publish.measurements import read as read_measurements
from discreet.publish.place import Folder, Place, Prefix, permitted
from discreet.words import as_path, is_uri

# The files of a release: its codebook, tables, parts of tables, a layout's line of metadata, what measurements are.
LONGEST = 255  # bytes of a file's name
_OURS = re.compile(
    r"measurements\.json|codebook\.(json|md)|version_pseo(\.simulation)?\.txt|[^/]+\.(parquet|csv)(/part-\d{5,}\.(parquet|csv))?"
)


class Output(Protocol):
    """Where one release goes."""

    @property
    def where(self) -> str: ...
    @property
    def occupied(self) -> list[tuple[str, str]]:
        """The kind of store and the paths that it takes, in one spelling."""

    def refuse_existing(self) -> None: ...
    def stage(self) -> Place:
        """An empty place for everything but the manifest."""

    def seal(self, files: dict[str, str]) -> None:
        """Everything staged is there for good, and nothing else."""

    def clean(self) -> None:
        """Remove what was staged."""

    def holds(self, files: dict[str, str]) -> bool:
        """Whether exactly these bytes are there already, staged or final."""

    def publish(self, files: dict[str, str], manifest: Manifest | None, *, sealed: bool = False) -> None:
        """Put what was staged into its place, and the manifest last; safe to repeat after a crash. What this process
        has just sealed is not read again. Measurements, which stay inside, have no manifest."""


def output_at(where: str, release: str) -> Output:
    """The output of a release at a path or a URI."""
    if is_uri(where):
        return StoreOutput(where, release)
    return FolderOutput(Path(as_path(where)), release)


class FolderOutput:
    """The folder of one release, and the hidden ones beside it in which it is prepared."""

    def __init__(self, folder: Path, release: str) -> None:
        self.folder, self._release = folder.absolute(), release
        self.staging = self.folder.parent / f".{self.folder.name}.{release}.staging"
        self._scratch = self.folder.parent / f".{self.folder.name}.{release}.parts"

    @property
    def where(self) -> str:
        return str(self.folder)

    def refuse_existing(self) -> None:
        if self.folder.exists() or self.folder.is_symlink():
            raise PublishError("exists already", where=str(self.folder), do="name a folder that does not exist yet")
        if any((above / FILE).exists() for above in self.folder.parents):
            raise PublishError("lies inside another release", where=str(self.folder), do="name a folder beside it")
        parent = self.folder.parent
        while not parent.exists():
            parent = parent.parent
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise PublishError("cannot be created", where=str(self.folder), do="name a folder you can write to")
        if len(os.fsencode(self._manifest.name)) > LONGEST:
            raise PublishError(
                "has too long a name, together with the release's", where=str(self.folder), do="name a shorter one"
            )

    @property
    def _manifest(self) -> Path:
        """The manifest before it is in its place; of all names beside the folder the longest."""
        return self.folder.parent / f".{self.folder.name}.{self._release}.manifest"

    @property
    def occupied(self) -> list[tuple[str, str]]:
        return [("", os.path.realpath(path)) for path in (self.folder, self.staging, self._scratch, self._manifest)]

    def stage(self) -> Place:
        """Empty staging folders that only we can enter."""
        self.clean()
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        for folder in (self.staging, self._scratch):
            folder.mkdir(mode=0o700)
        return Folder(self.staging, self._scratch)

    def clean(self) -> None:
        Folder(self.staging, self._scratch).clear()

    def seal(self, files: dict[str, str]) -> None:
        found = Folder(self.staging, self._scratch).names()
        if found != set(files):
            raise PublishError("holds other files than were written", where=str(self.staging), do="run it again")
        for folder in (*(p for p in self.staging.rglob("*") if p.is_dir()), self.staging):
            _sync(folder)

    def holds(self, files: dict[str, str]) -> bool:
        return any(contains(folder, files) for folder in (self.folder, self.staging))

    def publish(self, files: dict[str, str], manifest: Manifest | None, *, sealed: bool = False) -> None:
        if not contains(self.folder, files):
            self.refuse_existing()
            if not sealed and not contains(self.staging, files):
                raise PublishError(
                    "the staged files are not the committed ones", where=str(self.staging), do="run `discreet resume`"
                )
            self.staging.chmod(permitted(0o777) if manifest is not None else 0o700)
            self.staging.rename(self.folder)
            _sync(self.folder.parent)
        if manifest is not None:
            self._finish(manifest)
        self.clean()

    def _finish(self, manifest: Manifest) -> None:
        aside = self._manifest
        aside.unlink(missing_ok=True)
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "w", encoding="utf-8") as file:
            file.write(manifest.text())
        _sync(aside)
        aside.rename(self.folder / FILE)
        _sync(self.folder)


def refuse_nested(output: Output, kept: Output) -> None:
    """Measurements lie neither in what is published nor around it, however the two are written."""
    pairs = [(a, f"{p}/", b, f"{q}/") for a, p in output.occupied for b, q in kept.occupied]
    if any(a == b and (p.startswith(q) or q.startswith(p)) for a, p, b, q in pairs):
        raise PublishError(
            "is or contains the place of what is published, or lies in it",
            where=f"keep {kept.where}",
            do="keep measurements in a folder of their own, inside",
        )


class StoreOutput:
    """A prefix of an object store."""

    def __init__(self, uri: str, release: str) -> None:
        self.where, self._release = uri.rstrip("/"), release
        self._prefix = Prefix(self.where)

    @property
    def occupied(self) -> list[tuple[str, str]]:
        return [self._prefix.location()]

    def refuse_existing(self) -> None:
        if self._prefix.names():
            raise PublishError(
                "exists already",
                where=self.where,
                do="name a prefix that is empty; what an interrupted recoding left there may be deleted",
            )
        if self._prefix.lacks_bucket():  # which Arrow takes for an empty prefix
            raise StoreUnavailable("there is no such bucket", where=self.where, do="name one that exists")
        if self._prefix.lies_below(FILE):
            raise PublishError("lies inside another release", where=self.where, do="name a prefix beside it")

    def stage(self) -> Place:
        self.clean()
        return self._prefix

    def clean(self) -> None:
        """Remove what a release could have left, and nothing that others have put there meanwhile."""
        names = self._prefix.names()
        if FILE in names:
            raise PublishError("is a release already", where=self.where, do="name another prefix")
        if strange := sorted(name for name in names if _OURS.fullmatch(name) is None):
            raise PublishError(
                f"holds what no release writes, {strange[0]!r} for one", where=self.where, do="see whose that is"
            )
        if MEASUREMENTS in names and (other := measurements_of(self._prefix, self.where)) != self._release:
            raise PublishError(
                f"holds the measurements of release {other!r}", where=self.where, do="name another prefix"
            )
        self._prefix.clear()

    def seal(self, files: dict[str, str]) -> None:
        """Read again: others may write to the same prefix."""
        if not holds(self._prefix, files):
            raise PublishError("holds other files than were written", where=self.where, do="run `discreet resume`")

    def holds(self, files: dict[str, str]) -> bool:
        return holds(self._prefix, files)

    def publish(self, files: dict[str, str], manifest: Manifest | None, *, sealed: bool = False) -> None:
        if not sealed and not holds(self._prefix, files):
            raise PublishError("the files are not the committed ones", where=self.where, do="run `discreet resume`")
        if manifest is not None:
            with self._prefix.create(FILE) as file:
                file.write(manifest.text().encode())


def measurements_of(place: Place, where: str) -> str:
    """The release whose measurements lie there."""
    return read_measurements(place, where)[0].release


def contains(folder: Path, files: dict[str, str]) -> bool:
    """Whether a folder holds exactly these files, byte for byte, with or without a manifest."""
    return folder.is_dir() and holds(Folder(folder, folder), files)


def holds(place: Place, files: dict[str, str]) -> bool:
    """Whether a place holds exactly these files, byte for byte, with or without a manifest."""
    return place.names() - {FILE} == set(files) and all(place.sha256(n) == digest for n, digest in files.items())


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
