"""Where files are written: a folder, or a prefix of an object store. A file is there whole or not at all.

Several workers may write the same file at once, for a task can be repeated: whoever is last leaves the same bytes. But
one process at a time works on a folder that is to be published, whichever ledger, release or user it works for.
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
    """The file that is locked: beside the folder, for that is what all who write there have in common."""
    name = hashlib.sha256(os.fsencode(folder.name)).hexdigest()[:32]
    return Path(os.path.realpath(folder.parent)) / f".discreet-{name}.lock"


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[None]:
    """Hold a folder, which need not exist, or be refused. The lock goes with the process, its empty file may stay."""
    path = lock_path(folder)
    missing = [above for above in path.parents if not above.exists()]
    try:
        handle = filelock.acquire(path)
    except OSError as error:
        raise PublishError(
            f"cannot be locked ({os.strerror(error.errno or 0)})",
            where=str(folder),
            do=f"name a folder you can write to; if nobody is writing it, {path.name} beside it may be removed",
        ) from None
    if handle is None:
        raise PublishError("another process is writing it", where=str(folder), do="wait for it to finish, or end it")
    try:
        yield
    finally:
        filelock.release(path, handle)
        with suppress(OSError):
            for above in missing:
                above.rmdir()  # until one that is in use


PIECE = 1 << 20
_KINDS = frozenset({"s3", "gs", "gcs", "abfs", "abfss", "hdfs", "file"})


def sha256(path: Path) -> str:
    """The digest of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def umasked(mode: int) -> int:
    """A mode as the user's umask allows it."""
    mask = os.umask(0)
    os.umask(mask)
    return mode & ~mask


class Storage(Protocol):
    """A folder of files with names like `jobs.parquet` or `jobs.parquet/part-00007.parquet`."""

    def create(self, name: str) -> Any:
        """A context manager: a `Hashed` file, which appears when the block ends well."""

    def names(self) -> set[str]: ...
    def read(self, name: str) -> bytes:
        """A file that fits into memory; FileNotFoundError if it is not there."""

    def sha256(self, name: str) -> str: ...
    def remove(self, name: str) -> None: ...


class HashedFile:
    """A file being written, with the SHA-256 of what went in. Speaks as much of the file protocol as Arrow asks for."""

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
        """Nothing to do: the place sees to it at the end."""

    def close(self) -> None:
        self.closed = True

    def sha256(self) -> str:
        return self._hash.hexdigest()


def storage_at(where: str) -> Storage:
    """What lies at a path or a URI."""
    path = Path(as_path(where))
    return ObjectStore(where.rstrip("/")) if is_uri(where) else LocalFolder(path, path)


@dataclass(frozen=True)
class LocalFolder:
    """A folder of this machine, or one that all workers share. Files are made in `scratch`, beside it, and moved."""

    path: Path
    scratch: Path

    @contextmanager
    def create(self, name: str) -> Iterator[HashedFile]:
        target = self.path / name
        handle, aside = tempfile.mkstemp(dir=self.scratch)  # fails for a task that outlived its release
        try:
            for folder in reversed(Path(name).parents[:-1]):
                (self.path / folder).mkdir(exist_ok=True)
            with os.fdopen(handle, "wb") as raw:
                yield HashedFile(raw)
                raw.flush()
                os.fsync(raw.fileno())
            Path(aside).chmod(umasked(0o666))
            Path(aside).replace(target)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
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
            with suppress(OSError):  # others are still in it
                (self.path / folder).rmdir()

    def clear(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.rmtree(self.scratch, ignore_errors=True)


@dataclass(frozen=True)
class ObjectStore:
    """A prefix of an object store, or a folder of HDFS: s3://, gs://, abfss://, hdfs://. Nothing is ever renamed."""

    uri: str

    @contextmanager
    def create(self, name: str) -> Iterator[HashedFile]:
        system, base = self._open()
        target = f"{base}/{name}"
        with tempfile.TemporaryFile() as whole:  # closing an upload completes it: only a whole file is sent
            file = HashedFile(cast(BinaryIO, whole))
            yield file
            size = whole.tell()
            whole.seek(0)
            with self._asked(), system.open_output_stream(target) as sent:
                while piece := whole.read(PIECE):
                    sent.write(piece)
        with self._asked():
            stored = system.get_file_info(target).size
        if stored != size:
            raise PublishError(
                "was not stored whole", where=f"{self.uri}/{name}", do="complete it with `discreet resume`"
            )

    def names(self) -> set[str]:
        from pyarrow.fs import FileSelector, FileType

        system, base = self._open()
        with self._asked():
            found = system.get_file_info(FileSelector(base, allow_not_found=True, recursive=True))
        return {item.path[len(base) + 1 :] for item in found if item.type == FileType.File}

    def location(self) -> tuple[str, str]:
        """The kind of store and the path in it, without options."""
        system, base = self._open()
        return str(system.type_name), base

    def lacks_bucket(self) -> bool:
        """Whether there is surely no bucket to hold this prefix."""
        from pyarrow.fs import FileType

        _, base = self._open()
        return bool(self._kind(base.partition("/")[0] or "/") == FileType.NotFound)

    def lies_below(self, name: str) -> bool:
        """Whether a file of this name is seen in a prefix above this one."""
        from pyarrow.fs import FileType

        _, base = self._open()
        above = [base.rsplit("/", i)[0] for i in range(1, base.count("/") + 1)]
        return any(self._kind(f"{folder}/{name}") == FileType.File for folder in above)

    def _kind(self, path: str) -> Any:
        """What lies at a path outside the prefix; unknown where we may not look."""
        system, _ = self._open()
        with suppress(OSError, ArrowException):
            return system.get_file_info(path).type
        return None

    def sha256(self, name: str) -> str:
        system, base = self._open()
        digest = hashlib.sha256()
        with self._asked(), system.open_input_stream(f"{base}/{name}") as file:
            while piece := file.read(PIECE):
                digest.update(piece)
        return digest.hexdigest()

    def read(self, name: str) -> bytes:
        system, base = self._open()
        with self._asked(), system.open_input_stream(f"{base}/{name}") as file:
            return bytes(file.read())

    def remove(self, name: str) -> None:
        system, base = self._open()
        folder, _, _ = name.rpartition("/")
        with self._asked():
            system.delete_file(f"{base}/{name}")
            if folder and not any(other.startswith(f"{folder}/") for other in self.names()):
                system.delete_dir(f"{base}/{folder}")  # the empty object that Arrow leaves for it

    def clear(self, names: Sequence[str]) -> None:
        """Remove these files, in this order."""
        system, base = self._open()
        with self._asked():
            for name in names:
                system.delete_file(f"{base}/{name}")
            if names and not self.names() and "/" in base.strip("/"):
                system.delete_dir(base)  # the empty objects that Arrow leaves for folders; a whole bucket stays

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """A store's refusal is told by its kind."""
        try:
            yield
        except FileNotFoundError:
            raise
        except (OSError, ArrowException) as error:
            found = re.search(r"AWS Error (\w+)", str(error))
            kind = found[1].replace("_", " ").lower() if found else type(error).__name__
            raise StoreUnavailable(
                f"the object store refuses, or cannot be reached ({kind})",
                where=self.uri,
                do="check its address, and that the credentials in the environment may read, write and delete there",
            ) from None

    def _open(self) -> tuple[Any, str]:
        from pyarrow.fs import FileSystem

        scheme, _, rest = self.uri.partition("://")
        if _has_credentials(scheme, rest):
            raise PublishError(
                "contains credentials, and would be written into the ledger",
                where=f"{scheme}://…",
                do="put them into the environment or the store's own configuration",
            )
        known = "s3" if scheme.lower() in ("s3a", "s3n") else scheme.lower()
        try:
            if known not in _KINDS:
                raise ValueError("no kind of object store")
            system, base = FileSystem.from_uri(f"{known}://{rest}")
        except (ValueError, OSError, ArrowException) as error:
            raise PublishError(
                f"cannot be opened as an object store ({type(error).__name__})",
                where=self.uri,
                do="name a folder, or s3://, gs://, abfss:// or hdfs:// with its credentials in the environment",
            ) from None
        base = base.rstrip("/")
        parts = base.removeprefix("/").split("/")  # what `%2e` meant is told here
        if any(part in ("", ".", "..") for part in parts) or not base.isprintable():
            raise PublishError(
                "has an empty part, a dot for one, or a control character: it could be listed in one place and written "
                "in another",
                where=self.uri,
                do="name the prefix itself",
            )
        return system, base


def _has_credentials(scheme: str, rest: str) -> bool:
    """Buckets have neither `@` nor `:` in their names; Azure writes CONTAINER@ACCOUNT, and a key after a colon."""
    host, _, query = rest.partition("/")[0], *rest.partition("?")[1:]
    user, at, _ = host.rpartition("@")
    named = re.search(r"(secret|password|token|key)[^=&]*=", query, re.IGNORECASE)
    return bool(named) or (bool(at) or ":" in host if scheme.lower().startswith("s3") else ":" in user)
