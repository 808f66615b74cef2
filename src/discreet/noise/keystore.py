"""The key store, which holds release keys until their release commits: by default one private file per key. It also
remembers the last state of each ledger, so that a ledger that was rolled back is detected (`privacy.ledger`)."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from discreet import filelock
from discreet.errors import LedgerUnavailable, ReleaseKeyError
from discreet.noise.key import KEY_BYTES, ReleaseKey

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_KINDS = {b"real": False, b"simulation": True}
_MAGIC = b"discreet release key 1"
_SUFFIX = ".key"
_MEMORY = ".ledger"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
ENVIRONMENT = "DISCREET_KEYS"
WAIT_SECONDS = 10.0


def default_keys() -> KeyStore:
    """The user's key store: `$DISCREET_KEYS`, or a private folder in the home directory."""
    named = os.environ.get(ENVIRONMENT)
    return FileKeyStore(Path(named) if named else Path.home() / ".discreet" / "keys")


class KeyStore(Protocol):
    """Stores keys by name. A key is created once and destroyed once."""

    def create(self, name: str, key: ReleaseKey) -> None:
        """Store a new key; refused if the name exists."""

    def load(self, name: str) -> ReleaseKey:
        """The key of that name, marked if it is a simulation key."""

    def destroy(self, name: str) -> None:
        """Make the key unrecoverable; no effect if it does not exist."""

    @property
    def private(self) -> list[Path]:
        """Folders that nobody else may write to."""

    def names(self) -> list[str]:
        """The names of all keys, sorted."""

    def recall(self, ledger: str) -> bytes:
        """The last remembered state of the ledger with this nonce; empty if there is none."""

    def remember(self, ledger: str, content: bytes) -> None:
        """Replace it atomically, and on disk before this returns."""

    def lock(self, ledger: str) -> AbstractContextManager[None]:
        """Lock the remembered state of a ledger against all other users of this store."""


class FileKeyStore:
    """A folder that only its owner can access (0700), with one file per key (0600)."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists():
            self._check_folder()

    @property
    def private(self) -> list[Path]:
        return [self.folder]

    def create(self, name: str, key: ReleaseKey) -> None:
        """Write a new file, on disk before this returns; an existing one is never replaced."""
        path = self._path(name)
        self._make_folder()
        kind = b"simulation" if key.simulated else b"real"
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o600)
        except FileExistsError:
            raise ReleaseKeyError(
                "a key with this name already exists",
                where=str(path),
                do="resume or abandon its release, or choose another name",
            ) from None
        try:
            _write(handle, b"\n".join((_MAGIC, kind, key.expose().hex().encode(), b"")))
        except OSError:  # for example a full disk: nothing was reserved for it
            path.unlink()
            raise
        self._sync_folder()

    def load(self, name: str) -> ReleaseKey:
        """Read a key; refused if another user could have read or replaced it."""
        path = self._path(name)
        try:
            handle = os.open(path, os.O_RDONLY | _NO_LINK)
        except OSError as error:
            what = f"the key cannot be opened ({error.strerror})"
            raise ReleaseKeyError(what, where=str(path), do="check the name and its release") from None
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if os.name == "posix" and (status.st_mode & 0o077 or status.st_uid != os.geteuid()):
                raise ReleaseKeyError(
                    "other users can read or change the key file",
                    where=str(path),
                    do="abandon its release and start again",
                )
            lines = file.read(1024).split(b"\n")
        if len(lines) != 4 or lines[0] != _MAGIC or lines[1] not in _KINDS or len(lines[2]) != 2 * KEY_BYTES:
            raise ReleaseKeyError(
                "this is not a release key", where=str(path), do="restore the file or abandon its release"
            )
        try:
            secret = bytes.fromhex(lines[2].decode("ascii"))
        except ValueError:
            raise ReleaseKeyError(
                "the key is damaged", where=str(path), do="restore it or abandon its release"
            ) from None
        return ReleaseKey(secret, simulated=_KINDS[lines[1]])

    def destroy(self, name: str) -> None:
        """Overwrite, then unlink. (Flash disks and copy-on-write file systems keep old blocks: encrypt them.)"""
        path = self._path(name)
        try:
            handle = os.open(path, os.O_WRONLY | _NO_LINK)
            _write(handle, os.urandom(os.fstat(handle).st_size))
        except FileNotFoundError:
            return
        finally:  # also if it could not be overwritten
            path.unlink(missing_ok=True)
        self._sync_folder()

    def names(self) -> list[str]:
        """The names of the keys in the folder."""
        return sorted(path.name.removesuffix(_SUFFIX) for path in self.folder.glob("*" + _SUFFIX))

    def recall(self, ledger: str) -> bytes:
        path = self._path(ledger, _MEMORY)
        if not path.exists():
            return b""
        with os.fdopen(os.open(path, os.O_RDONLY | _NO_LINK), "rb") as file:
            return file.read()

    def remember(self, ledger: str, content: bytes) -> None:
        path = self._path(ledger, _MEMORY)
        self._make_folder()
        aside = path.with_name(path.name + "~")
        aside.unlink(missing_ok=True)
        _write(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), content)
        aside.replace(path)
        self._sync_folder()

    @contextmanager
    def lock(self, ledger: str) -> Iterator[None]:
        path = self._path(ledger, f"{_MEMORY}.lock")
        self._make_folder()
        with filelock.try_lock(path, WAIT_SECONDS) as free:
            if not free:
                raise LedgerUnavailable(
                    f"in use by another process for more than {WAIT_SECONDS:g} seconds",
                    where=f"key store {self.folder}",
                    do="wait for it to finish and try again",
                )
            yield

    def _path(self, name: str, suffix: str = _SUFFIX) -> Path:
        if not _NAME.fullmatch(name):
            raise ReleaseKeyError(
                "a key's name consists of letters, digits, '.', '_' and '-', and begins with a letter or digit",
                where="key store",
                do="rename the release",
            )
        if self.folder.exists():
            self._check_folder()
        return self.folder / (name + suffix)

    def _make_folder(self) -> None:
        """Create the folder, and its parent if missing, accessible to their owner only."""
        self.folder.parent.parent.mkdir(parents=True, exist_ok=True)
        for folder in (self.folder.parent, self.folder):
            folder.mkdir(mode=0o700, exist_ok=True)
        self._check_folder()

    def _check_folder(self) -> None:
        status = self.folder.stat()
        if not stat.S_ISDIR(status.st_mode):
            raise ReleaseKeyError("the key store is not a folder", where=str(self.folder), do="name a folder")
        if os.name == "posix" and (status.st_mode & 0o077 or status.st_uid != os.geteuid()):
            where, do = str(self.folder), "restrict it to its owner: chmod 700"
            raise ReleaseKeyError("other users can access the key store's folder", where=where, do=do)

    def _sync_folder(self) -> None:
        if os.name != "posix":
            return
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _write(handle: int, content: bytes) -> None:
    """Write to disk before this returns."""
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(handle)
