"""Written aside, then published: a staging folder becomes the output folder, and the manifest comes last."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from discreet.errors import PublishError
from discreet.publish.manifest import FILE, Manifest
from discreet.publish.tables import sha256


class Output:
    """The folder of one release, and the hidden one beside it in which it is prepared."""

    def __init__(self, folder: Path, release: str) -> None:
        self.folder = folder.absolute()
        self.staging = self.folder.parent / f".{self.folder.name}.{release}.staging"

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

    def stage(self) -> Path:
        """An empty staging folder that only we can enter."""
        self.clean()
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.staging.mkdir(mode=0o700)
        return self.staging

    def clean(self) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)

    def seal(self) -> dict[str, str]:
        """Everything staged is on disk; its digests go into the ledger."""
        names = sorted(path.name for path in self.staging.iterdir())
        for name in names:
            _sync(self.staging / name)
        _sync(self.staging)
        return {name: sha256(self.staging / name) for name in names}

    def holds(self, files: dict[str, str]) -> Path | None:
        """The folder, staged or final, that contains exactly these bytes already."""
        return next((f for f in (self.folder, self.staging) if contains(f, files)), None)

    def publish(self, files: dict[str, str], manifest: Manifest) -> None:
        """Move the staged folder into place and write the manifest; safe to repeat after a crash."""
        if not contains(self.folder, files):
            self.refuse_existing()
            if not contains(self.staging, files):
                raise PublishError(
                    "the staged files are not the committed ones", where=str(self.staging), do="run `discreet resume`"
                )
            mask = os.umask(0)
            os.umask(mask)
            self.staging.chmod(0o777 & ~mask)
            self.staging.rename(self.folder)
            _sync(self.folder.parent)
        aside = self.folder.parent / f".{self.folder.name}.{manifest.release}.manifest"
        aside.unlink(missing_ok=True)
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "w", encoding="utf-8") as file:
            file.write(manifest.text())
        _sync(aside)
        aside.rename(self.folder / FILE)
        _sync(self.folder)
        self.clean()


def contains(folder: Path, files: dict[str, str]) -> bool:
    """Whether a folder holds exactly these files, byte for byte, with or without a manifest."""
    if not folder.is_dir() or {p.name for p in folder.iterdir()} - {FILE} != set(files):
        return False
    return all(sha256(folder / name) == digest for name, digest in files.items())


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
