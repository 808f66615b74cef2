"""Storage of files: a folder, or a prefix of an object store. Writes are atomic: a file is complete or absent.

Several workers may write the same file concurrently, since tasks can be repeated: all of them write the same bytes. But
only one process at a time works on an output folder, whatever its ledger, release or user.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from pyarrow import ArrowException

from discreet import filelock
from discreet.errors import PublishError, StoreUnavailable
from discreet.uris import as_path, is_uri


def lock_path(folder: Path) -> Path:
    """The lock file of a folder: beside it, where every process that writes there can find it."""
    name = hashlib.sha256(os.fsencode(folder.name)).hexdigest()[:32]
    return Path(os.path.realpath(folder.parent)) / f".discreet-{name}.lock"


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[None]:
    """Lock a folder, which need not exist, or refuse. The lock ends with the process; its empty file may remain."""
    path = lock_path(folder)
    missing = [above for above in path.parents if not above.exists()]
    try:
        handle = filelock.acquire(path)
    except OSError as error:
        raise PublishError(
            f"cannot be locked ({os.strerror(error.errno or 0)})",
            where=str(folder),
            do=f"choose a folder you can write to; if no process is writing it, {path.name} beside it may be removed",
        ) from None
    if handle is None:
        raise PublishError("another process is writing it", where=str(folder), do="wait for it to finish, or stop it")
    try:
        yield
    finally:
        filelock.release(path, handle)
        with suppress(OSError):
            for above in missing:
                above.rmdir()  # until one that is in use


PIECE = 1 << 20
_SCHEMES = frozenset({"s3", "gs", "gcs", "abfs", "abfss", "hdfs", "file"})


def sha256(path: Path) -> str:
    """The digest of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def umasked(mode: int) -> int:
    """A file mode restricted by the user's umask."""
    mask = os.umask(0)
    os.umask(mask)
    return mode & ~mask


class Storage(Protocol):
    """A folder of files with names like `jobs.parquet` or `jobs.parquet/part-00007.parquet`."""

    def create(self, name: str) -> Any:
        """A context manager: a `HashedFile`, which appears when the block ends without an exception."""

    def names(self) -> set[str]: ...
    def read(self, name: str) -> bytes:
        """A file that fits into memory; FileNotFoundError if it is missing."""

    def sha256(self, name: str) -> str: ...
    def remove(self, name: str) -> None: ...


class HashedFile:
    """A file being written, with the SHA-256 of its content; has the part of the file protocol that Arrow needs."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw, self._hash = raw, hashlib.sha256()
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._hash.update(view)
        self._raw.write(view)
        return view.nbytes

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        """Nothing to do: the storage flushes at the end."""

    def close(self) -> None:
        self.closed = True

    def sha256(self) -> str:
        return self._hash.hexdigest()


def storage_at(where: str) -> Storage:
    """The storage at a path or a URI."""
    path = Path(as_path(where))
    return ObjectStore(where.rstrip("/")) if is_uri(where) else LocalFolder(path, path)


@dataclass(frozen=True)
class LocalFolder:
    """A local folder, or one shared by all workers. Files are written in `scratch`, beside it, and moved."""

    path: Path
    scratch: Path

    @contextmanager
    def create(self, name: str) -> Iterator[HashedFile]:
        target = self.path / name
        handle, temporary = tempfile.mkstemp(dir=self.scratch)  # fails for a task that outlived its release
        try:
            for folder in reversed(Path(name).parents[:-1]):
                (self.path / folder).mkdir(exist_ok=True)
            with os.fdopen(handle, "wb") as raw:
                yield HashedFile(raw)
                raw.flush()
                os.fsync(raw.fileno())
            Path(temporary).chmod(umasked(0o666))
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def names(self) -> set[str]:
        return {path.relative_to(self.path).as_posix() for path in self.path.rglob("*") if not path.is_dir()}

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def sha256(self, name: str) -> str:
        return sha256(self.path / name)

    def remove(self, name: str) -> None:
        (self.path / name).unlink()
        for folder in Path(name).parents[:-1]:
            with suppress(OSError):  # other files are still in it
                (self.path / folder).rmdir()

    def clear(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.rmtree(self.scratch, ignore_errors=True)


@dataclass(frozen=True)
class ObjectStore:
    """A prefix of an object store, or an HDFS folder: s3://, gs://, abfss://, hdfs://. Nothing is ever renamed."""

    uri: str

    @contextmanager
    def create(self, name: str) -> Iterator[HashedFile]:
        system, base = self._open()
        target = f"{base}/{name}"
        with tempfile.TemporaryFile() as whole:  # closing an upload completes it: only a complete file is sent
            file = HashedFile(cast(BinaryIO, whole))
            yield file
            size = whole.tell()
            whole.seek(0)
            with self._store_errors(), system.open_output_stream(target) as sent:
                while piece := whole.read(PIECE):
                    sent.write(piece)
        with self._store_errors():
            stored = system.get_file_info(target).size
        if stored != size:
            raise PublishError(
                "was not stored completely", where=f"{self.uri}/{name}", do="complete it with `discreet resume`"
            )

    def names(self) -> set[str]:
        from pyarrow.fs import FileSelector, FileType

        system, base = self._open()
        with self._store_errors():
            listing = system.get_file_info(FileSelector(base, allow_not_found=True, recursive=True))
        return {item.path[len(base) + 1 :] for item in listing if item.type == FileType.File}

    def location(self) -> tuple[str, str]:
        """The kind of store and the path in it, without options."""
        system, base = self._open()
        return str(system.type_name), base

    def lacks_bucket(self) -> bool:
        """Whether the bucket of this prefix is known not to exist."""
        from pyarrow.fs import FileType

        _, base = self._open()
        return bool(self._kind(base.partition("/")[0] or "/") == FileType.NotFound)

    def lies_below(self, name: str) -> bool:
        """Whether a file of this name exists in a prefix above this one."""
        from pyarrow.fs import FileType

        _, base = self._open()
        above = [base.rsplit("/", i)[0] for i in range(1, base.count("/") + 1)]
        return any(self._kind(f"{folder}/{name}") == FileType.File for folder in above)

    def _kind(self, path: str) -> Any:
        """The type of a path outside the prefix, or None where access is refused."""
        system, _ = self._open()
        with suppress(OSError, ArrowException):
            return system.get_file_info(path).type
        return None

    def sha256(self, name: str) -> str:
        system, base = self._open()
        digest = hashlib.sha256()
        with self._store_errors(), system.open_input_stream(f"{base}/{name}") as file:
            while piece := file.read(PIECE):
                digest.update(piece)
        return digest.hexdigest()

    def read(self, name: str) -> bytes:
        system, base = self._open()
        with self._store_errors(), system.open_input_stream(f"{base}/{name}") as file:
            return bytes(file.read())

    def remove(self, name: str) -> None:
        system, base = self._open()
        folder, _, _ = name.rpartition("/")
        with self._store_errors():
            system.delete_file(f"{base}/{name}")
            if folder and not any(other.startswith(f"{folder}/") for other in self.names()):
                system.delete_dir(f"{base}/{folder}")  # the empty object that Arrow leaves for it

    def clear(self, names: Sequence[str]) -> None:
        """Remove these files, in this order."""
        system, base = self._open()
        with self._store_errors():
            for name in names:
                system.delete_file(f"{base}/{name}")
            if names and not self.names() and "/" in base.strip("/"):
                system.delete_dir(base)  # the empty objects that Arrow leaves for folders; a whole bucket stays

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        """Turns errors of the store into refusals that name their kind."""
        try:
            yield
        except FileNotFoundError:
            raise
        except (OSError, ArrowException) as error:
            code = re.search(r"AWS Error (\w+)", str(error))
            kind = code[1].replace("_", " ").lower() if code else type(error).__name__
            raise StoreUnavailable(
                f"the object store refuses access or cannot be reached ({kind})",
                where=self.uri,
                do="check its address, and that the credentials in the environment allow reading, writing and deleting",
            ) from None

    def _open(self) -> tuple[Any, str]:
        from pyarrow.fs import FileSystem

        scheme, _, rest = self.uri.partition("://")
        if _has_credentials(scheme, rest):
            raise PublishError(
                "contains credentials, which would be written to the ledger",
                where=f"{scheme}://…",
                do="put them in the environment or the store's own configuration",
            )
        known = "s3" if scheme.lower() in ("s3a", "s3n") else scheme.lower()
        try:
            if known not in _SCHEMES:
                raise ValueError("unknown scheme")
            system, base = FileSystem.from_uri(f"{known}://{rest}")
        except (ValueError, OSError, ArrowException) as error:
            raise PublishError(
                f"cannot be opened as an object store ({type(error).__name__})",
                where=self.uri,
                do="name a folder, or s3://, gs://, abfss:// or hdfs:// with its credentials in the environment",
            ) from None
        base = base.rstrip("/")
        parts = base.removeprefix("/").split("/")  # after `%2e` has been decoded
        if any(part in ("", ".", "..") for part in parts) or not base.isprintable():
            raise PublishError(
                "has an empty part, `.` or `..`, or a control character: it could be listed in one place and written "
                "in another",
                where=self.uri,
                do="give the canonical prefix",
            )
        return system, base


def _has_credentials(scheme: str, rest: str) -> bool:
    """Bucket names contain neither `@` nor `:`; Azure writes CONTAINER@ACCOUNT, with a key after a colon."""
    host, _, query = rest.partition("/")[0], *rest.partition("?")[1:]
    user, at, _ = host.rpartition("@")
    named = re.search(r"(secret|password|token|key)[^=&]*=", query, re.IGNORECASE)
    return bool(named) or (bool(at) or ":" in host if scheme.lower().startswith("s3") else ":" in user)
