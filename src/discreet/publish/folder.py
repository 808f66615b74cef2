"""Output of a release: files are staged, then published; the manifest is written last and makes a release of them.

A local folder is staged beside its final path and renamed. An object store cannot rename: files are written to their
final place and are not a release until the manifest exists.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from discreet.errors import PublishError, StoreUnavailable
from discreet.publish.manifest import FILE, Manifest
from discreet.publish.storage import LocalFolder, ObjectStore, Storage, exclusive_lock, lock_path, umasked
from discreet.uris import as_path, is_uri

LONGEST = 255  # bytes of a file's name
LONGEST_PATH = 4095
_PART = re.compile(r"part-\d{5,}\.\w+")
_MARKED = ".discreet-"
_MARK = b"A release is being written here. This file is removed when the release is complete.\n"


@dataclass(frozen=True)
class Owner:
    """The owner of output files: a release of one ledger, and the names that it may write. A name is that of a file or
    of a folder of parts; `NAME~` covers all intermediate files of a table."""

    ledger: str  # its nonce
    release: str
    names: frozenset[str] = frozenset()

    def tag(self, where: str) -> str:
        """Identifier unique to ledger, release and place; parts are length-prefixed, so that no two combinations
        coincide."""
        parts = [os.fsencode(part) for part in (self.ledger, self.release, where)]
        return hashlib.sha256(b"".join(len(p).to_bytes(8, "big") + p for p in parts)).hexdigest()[:32]

    def writes(self, name: str) -> bool:
        top, _, part = name.partition("/")
        table, tilde, _ = top.partition("~")
        return (table + tilde if tilde else top) in self.names and (not part or _PART.fullmatch(part) is not None)


class ReleaseOutput(Protocol):
    """The place where one release is written."""

    owner: Owner

    @property
    def where(self) -> str: ...
    @property
    def occupied_paths(self) -> list[tuple[str, str]]:
        """The kind of store and the paths in use, in canonical form."""

    def lock(self) -> AbstractContextManager[None]:
        """Exclude other processes, as far as the place can be locked."""

    def refuse_existing(self) -> None: ...
    def refuse_finished(self) -> None:
        """Refuse a place that now holds a release: no noise is drawn for what cannot be published."""

    def stage(self) -> Storage:
        """Empty storage for everything but the manifest."""

    def seal(self, files: dict[str, str]) -> None:
        """Make staged files durable, and refuse unless they are exactly these."""

    def clean(self) -> None:
        """Remove what this release has staged and nothing else."""

    def abandon(self) -> None:
        """Remove it for good, refusing if another process still works on it."""

    def holds(self, files: dict[str, str]) -> bool:
        """Whether exactly these files exist, staged or published."""

    def publish(self, files: dict[str, str], manifest: Manifest | None) -> None:
        """Compare the staged files with the committed digests, move them to their place, and write the manifest last;
        safe to repeat after a crash. Measurements, which stay on the confidential side, have no manifest."""

    def remove_leftovers(self) -> None:
        """Remove staging files after publication."""


def output_at(where: str, owner: Owner) -> ReleaseOutput:
    """The output of a release at a path or a URI."""
    if is_uri(where):
        return StoreOutput(where, owner)
    path = as_path(where)
    if "\0" in path or not path.isprintable() or (path != where and not path.startswith("/")):
        raise PublishError("is not a folder name", where=ascii(where), do="use printable characters only")
    return FolderOutput(Path(path), owner)


class FolderOutput:
    """The folder of one release, and the hidden staging folders beside it. Its path is canonical: symbolic links above
    the folder itself are resolved."""

    def __init__(self, folder: Path, owner: Owner) -> None:
        whole = folder if folder.name not in ("", "..") else Path(os.path.realpath(folder))
        self.folder, self.owner = Path(os.path.realpath(whole.parent)) / whole.name, owner
        beside = f".discreet-{owner.tag(str(self.folder))}"
        self.staging = self.folder.parent / f"{beside}.staging"
        self._scratch = self.folder.parent / f"{beside}.parts"
        self._manifest = self.folder.parent / f"{beside}.manifest"  # before it is in its place

    @property
    def where(self) -> str:
        return str(self.folder)

    def lock(self) -> AbstractContextManager[None]:
        return exclusive_lock(self.folder)

    def refuse_existing(self) -> None:
        if len(os.fsencode(self.folder.name)) > LONGEST:
            raise PublishError("has too long a name", where=str(self.folder), do="choose a shorter name")
        file = max((len(os.fsencode(name)) for name in self.owner.names), default=0) + len("/part-0000000000.parquet")
        if max(len(os.fsencode(path)) for path in (self.folder, self.staging)) + file >= LONGEST_PATH:
            raise PublishError("has too long a path", where=str(self.folder), do="choose a shorter path")
        self.refuse_finished()
        if any((above / FILE).is_file() for above in self.folder.parents):
            raise PublishError("is inside another release", where=str(self.folder), do="choose a folder beside it")
        parent = self.folder.parent
        while not parent.exists():
            parent = parent.parent
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise PublishError("cannot be created", where=str(self.folder), do="choose a folder you can write to")

    def refuse_finished(self) -> None:
        if self.folder.exists() or self.folder.is_symlink():
            raise PublishError("already exists", where=str(self.folder), do="choose a folder that does not exist yet")

    @property
    def occupied_paths(self) -> list[tuple[str, str]]:
        beside = (self.staging, self._scratch, self._manifest, lock_path(self.folder))
        return [("", os.path.realpath(path)) for path in (self.folder, *beside)]

    def stage(self) -> Storage:
        """Empty staging folders, accessible to the owner only (0700)."""
        self.clean()
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        for folder in (self.staging, self._scratch):
            folder.mkdir(mode=0o700)
        return LocalFolder(self.staging, self._scratch)

    def clean(self) -> None:
        LocalFolder(self.staging, self._scratch).clear()
        self._manifest.unlink(missing_ok=True)

    def abandon(self) -> None:
        if self._left():
            with self.lock():
                self.clean()
        if left := self._left():  # cleaning ignores errors
            raise PublishError("cannot be removed", where=str(left[0]), do="remove it by hand")

    def _left(self) -> list[Path]:
        return [path for path in (self.staging, self._scratch, self._manifest) if path.exists()]

    def seal(self, files: dict[str, str]) -> None:
        if LocalFolder(self.staging, self._scratch).names() != set(files):
            raise PublishError("holds other files than were written", where=str(self.staging), do="run it again")
        for folder in (*(p for p in self.staging.rglob("*") if p.is_dir()), self.staging):
            _sync(folder)

    def holds(self, files: dict[str, str]) -> bool:
        return any(contains(folder, files) for folder in (self.folder, self.staging))

    def publish(self, files: dict[str, str], manifest: Manifest | None) -> None:
        if not contains(self.folder, files):
            self.refuse_existing()
            if not contains(self.staging, files):
                raise PublishError(
                    "the staged files are not the committed ones", where=str(self.staging), do="run `discreet resume`"
                )
            public = manifest is not None and not manifest.simulation  # whose noise anybody could subtract
            self.staging.chmod(umasked(0o777) if public else 0o700)
            compared = self.staging.stat().st_ino
            self.staging.rename(self.folder)
            if self.folder.stat().st_ino != compared:
                raise PublishError(
                    "was replaced meanwhile", where=str(self.folder), do="find out who else writes there"
                )
            _sync(self.folder.parent)
        if manifest is not None:
            self._write_manifest(manifest)

    def _write_manifest(self, manifest: Manifest) -> None:
        staged, text = self._manifest, manifest.text().encode()
        if (self.folder / FILE).exists():
            refuse_other_manifest(LocalFolder(self.folder, self.folder), text, self.where)
        staged.unlink(missing_ok=True)
        with os.fdopen(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(text)
        _sync(staged)
        staged.rename(self.folder / FILE)
        _sync(self.folder)

    def remove_leftovers(self) -> None:
        self.clean()


def overlaps(one: ReleaseOutput, other: ReleaseOutput) -> bool:
    """Whether two places are equal or one contains the other, however their paths are spelled."""
    if is_uri(one.where) != is_uri(other.where):
        return False
    pairs = [(a, f"{p}/", b, f"{q}/") for a, p in one.occupied_paths for b, q in other.occupied_paths]
    return any(a == b and (p.startswith(q) or q.startswith(p)) for a, p, b, q in pairs)


def refuse_overlap(output: ReleaseOutput, kept: ReleaseOutput) -> None:
    """Refuse kept measurements in a folder that contains, or is contained in, the published one."""
    if overlaps(output, kept):
        raise PublishError(
            "equals, contains or lies in the place of what is published",
            where=f"keep_measurements {kept.where}",
            do="keep measurements in a folder of their own, on the confidential side",
        )


class StoreOutput:
    """A prefix of an object store. It cannot be locked: a mark file, written first, identifies the owner. Nothing is
    removed without one's own mark, or published beside another one."""

    def __init__(self, uri: str, owner: Owner) -> None:
        self.where, self.owner = uri.rstrip("/"), owner
        self._prefix = ObjectStore(self.where)
        self.mark = f"{_MARKED}{owner.tag(self.where)}"

    def lock(self) -> AbstractContextManager[None]:
        return nullcontext()

    @property
    def occupied_paths(self) -> list[tuple[str, str]]:
        return [self._prefix.location()]

    def refuse_existing(self) -> None:
        if self._prefix.names() - {self.mark}:
            raise PublishError(
                "already exists",
                where=self.where,
                do="choose an empty prefix; what an interrupted recoding left there may be deleted",
            )
        if self._prefix.lacks_bucket():  # which Arrow treats as an empty prefix
            raise StoreUnavailable("there is no such bucket", where=self.where, do="name one that exists")
        if self._prefix.lies_below(FILE):
            raise PublishError("is inside another release", where=self.where, do="choose a prefix beside it")

    def stage(self) -> Storage:
        self.clean()
        with self._prefix.create(self.mark) as file:
            file.write(_MARK)
        names = self._prefix.names()
        if self.mark not in names:
            raise PublishError("does not list what is written there", where=self.where, do="choose another prefix")
        if others := sorted(names - {self.mark}):  # of two concurrent runs, at least one sees the other
            self._prefix.remove(self.mark)
            raise self._not_ours(others[0])
        return self._prefix

    def refuse_finished(self) -> None:
        if FILE in self._prefix.names():
            raise PublishError("is already a release", where=self.where, do="choose another prefix")

    def clean(self) -> None:
        self.refuse_finished()
        names = self._prefix.names()
        if names and self.mark not in names:
            raise self._not_ours(min(names))
        ours = sorted(name for name in names if self.owner.writes(name))
        self._prefix.clear(
            [*ours, self.mark] if names else []
        )  # the mark last: until then it identifies the owner of the rest
        if others := sorted(names - {*ours, self.mark}):
            raise self._not_ours(others[0])

    def abandon(self) -> None:
        """A ledger entry could name any prefix: without the mark files are reported, not removed."""
        names = self._prefix.names()
        if self.mark in names:
            self.clean()
        elif FILE in names or any(name.startswith(_MARKED) for name in names):
            return  # another release's files, which that release must clean
        elif ours := sorted(name for name in names if self.owner.writes(name)):
            raise PublishError(
                f"holds {ours[0]!r}, which this release may have written, but not its mark",
                where=self.where,
                do="find out whose file that is, and remove it by hand",
            )

    def _not_ours(self, name: str) -> PublishError:
        return PublishError(
            f"holds files that release {self.owner.release!r} has not written, such as {name!r}",
            where=self.where,
            do="find out whose they are",
        )

    def seal(self, files: dict[str, str]) -> None:
        """Compares the stored bytes again: others may write to the same prefix."""
        if not self.holds(files):
            raise PublishError("holds other files than were written", where=self.where, do="run `discreet resume`")

    def holds(self, files: dict[str, str]) -> bool:
        return holds(self._prefix, files, self.mark)

    def publish(self, files: dict[str, str], manifest: Manifest | None) -> None:
        if not self.holds(files):
            raise PublishError("the files are not the committed ones", where=self.where, do="run `discreet resume`")
        if manifest is None:
            return
        text = manifest.text().encode()
        if FILE in self._prefix.names():
            refuse_other_manifest(self._prefix, text, self.where)
        with self._prefix.create(FILE) as file:
            file.write(text)
        refuse_other_manifest(self._prefix, text, self.where)
        names = self._prefix.names()
        if gone := sorted(set(files) - names):  # a manifest alone is not a release
            self._prefix.remove(FILE)
            raise PublishError(f"lost {gone[0]!r} meanwhile", where=self.where, do="run `discreet resume`")
        if others := sorted(names - {FILE, self.mark, *files}):
            raise self._not_ours(others[0])

    def remove_leftovers(self) -> None:
        if self.mark in self._prefix.names():
            self._prefix.remove(self.mark)


def refuse_other_manifest(place: Storage, text: bytes, where: str) -> None:
    """Refuse to overwrite a manifest: equal files may belong to another release."""
    if place.read(FILE) != text:
        raise PublishError(
            "already has another manifest",
            where=where,
            do="find out whose it is; if it is damaged, remove it and resume",
        )


def contains(folder: Path, files: dict[str, str]) -> bool:
    """Whether a folder holds exactly these files, byte for byte, with or without a manifest; links are not files."""
    if not folder.is_dir() or any(path.is_symlink() for path in folder.rglob("*")):
        return False
    return holds(LocalFolder(folder, folder), files)


def holds(place: Storage, files: dict[str, str], mark: str = "") -> bool:
    """Whether storage holds exactly these files, byte for byte, with or without a manifest and a mark."""
    names = place.names() - {FILE, mark}
    return names == set(files) and all(place.sha256(n) == digest for n, digest in files.items())


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
