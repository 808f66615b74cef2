"""The files of a published release: each is what the manifest lists, or refused. It is read as manifest, codebook and
models say; one that is otherwise, damaged or forged, is refused, too."""

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
    """Whatever does not fit together inside is a refusal of what is read. Its own message may be long, and stays."""
    try:
        yield
    except (*_OTHERWISE, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's; Arrow's, of a file that is no Parquet file, has no number
        what = f"holds something else than it says ({type(error).__name__})"
        raise PublishError(what, where=where, do=RESTORE) from None


def read_verified(manifest: Manifest, place: Storage, name: str) -> bytes:
    """A file of a release, if it is what the manifest lists."""
    if name not in manifest.files:  # whatever a table's entry says
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
    """What the manifest says, where the files lie, and what to call the place."""

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
        """Whether a table has a model beside it."""
        return self._model_file(name) in self.manifest.files

    def model(self, name: str) -> CubeModel:
        """The model of a cube's errors."""
        file = self._model_file(name)
        try:
            return CubeModel.model_validate(formats.parsed(self.read(file), formats.MODEL, file))
        except ValueError:
            raise PublishError("is no model of a cube", where=file, do=RESTORE) from None

    def _model_file(self, name: str) -> str:
        return f"{stem(name, self.manifest.simulation)}.model.json"


def parquet_files(table: TableEntry) -> list[str]:
    return [file for file in table.files if file.endswith(".parquet")]
