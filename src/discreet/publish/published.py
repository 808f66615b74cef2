"""Reads the files of a published release. A file that does not match the manifest, or content that does not match
manifest, codebook and models, damaged or forged, is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pyarrow import ArrowException

from discreet import formats
from discreet.errors import PublishError
from discreet.post.cubes.model import CubeModel
from discreet.publish.description import stem
from discreet.publish.manifest import Manifest, TableEntry, read
from discreet.publish.storage import Storage, storage_at

RESTORE = "restore the release from a copy"
_OTHERWISE = (ArrowException, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@contextmanager
def refuse_inconsistent(where: str) -> Iterator[None]:
    """Turns any exception on inconsistent content into a refusal that names its type, without its message."""
    try:
        yield
    except (*_OTHERWISE, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the operating system; Arrow's, for a file that is not Parquet, has no number
        what = f"has inconsistent content ({type(error).__name__})"
        raise PublishError(what, where=where, do=RESTORE) from None


def read_verified(manifest: Manifest, place: Storage, name: str) -> bytes:
    """A file of a release, refused unless it matches the manifest."""
    if name not in manifest.files:  # even if a table's entry names it
        raise PublishError("is not what the manifest lists", where=name, do=RESTORE)
    try:
        content = place.read(name)
    except FileNotFoundError:
        raise PublishError("is missing", where=name, do=RESTORE) from None
    if sha256(content).hexdigest() != manifest.files[name]:
        raise PublishError("is not what the manifest lists", where=name, do=RESTORE)
    return content


@dataclass(frozen=True)
class PublishedFiles:
    """The manifest of a release, the storage of its files, and the name used in messages."""

    manifest: Manifest
    storage: Storage
    where: str

    @classmethod
    def of(cls, folder: str | Path) -> PublishedFiles:
        return cls(read(str(folder)), storage_at(str(folder)), str(folder))

    def read(self, name: str) -> bytes:
        return read_verified(self.manifest, self.storage, name)

    def table(self, name: str) -> TableEntry:
        for table in self.manifest.tables:
            if table.name == name:
                return table
        raise PublishError(f"has no table {name!r}", where="manifest", do=RESTORE)

    def is_cube(self, name: str) -> bool:
        """Whether the release has an error model of this table."""
        return self._model_file(name) in self.manifest.files

    def model(self, name: str) -> CubeModel:
        """The error model of a cube."""
        file = self._model_file(name)
        try:
            return CubeModel.model_validate(formats.parsed(self.read(file), formats.MODEL, file))
        except ValueError:
            raise PublishError("is not a valid cube model", where=file, do=RESTORE) from None

    def _model_file(self, name: str) -> str:
        return f"{stem(name, self.manifest.simulation)}.model.json"


def parquet_files(table: TableEntry) -> list[str]:
    return [file for file in table.files if file.endswith(".parquet")]
