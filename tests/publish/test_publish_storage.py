"""Storage: files are complete or absent, whoever writes them, and have the digest of their content."""

import hashlib
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from discreet.errors import PublishError
from discreet.publish import storage as module
from discreet.publish.storage import HashedFile, LocalFolder, ObjectStore, Storage, sha256
from support.hypothesis_profile import examples

NAMES = ("t.csv", "t.parquet/part-00007.parquet", "a/b/c.csv", "with space.csv", "ü.csv")
posix = pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    for name in ("place", "scratch"):
        (tmp_path / name).mkdir()
    return LocalFolder(tmp_path / "place", tmp_path / "scratch")


def write(place: Storage, name: str, *pieces: bytes) -> str:
    with place.create(name) as file:
        for piece in pieces:
            file.write(piece)
    digest: str = file.sha256()
    return digest


class Crash(BaseException):
    """Not an error: simulates the end of the process."""


def fail(place: Storage, name: str, error: type[BaseException] = Crash) -> None:
    """Fail in the middle of a file."""
    with place.create(name) as file:
        file.write(b"the half of it")
        raise error("gone")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_appears_complete_when_its_block_ends(folder: LocalFolder, name: str) -> None:
    with folder.create(name) as file:
        file.write(b"first, ")
        file.flush()
        assert not (folder.path / name).exists()
        assert folder.names() == set()
        file.write(b"second")
    assert (folder.path / name).read_bytes() == b"first, second"
    assert folder.names() == {name}
    assert list(folder.scratch.iterdir()) == []
    assert folder.sha256(name) == file.sha256() == sha256(folder.path / name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("error", [OSError, MemoryError, KeyboardInterrupt, Crash])
def test_a_failure_leaves_nothing(folder: LocalFolder, name: str, error: type[BaseException]) -> None:
    with pytest.raises(error, match="gone"):
        fail(folder, name, error)
    assert folder.names() == set()
    assert list(folder.scratch.iterdir()) == []


@pytest.mark.parametrize("call", ["fsync", "chmod", "replace"])
def test_a_failure_at_the_end_leaves_nothing(folder: LocalFolder, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module.os, call, full)
        with pytest.raises(OSError, match="No space"):
            write(folder, "t.csv", b"x")
    assert folder.names() == set()
    assert list(folder.scratch.iterdir()) == []


def test_a_failure_keeps_the_previous_file(folder: LocalFolder) -> None:
    write(folder, "t.csv", b"whole")
    with pytest.raises(Crash):
        fail(folder, "t.csv")
    assert (folder.path / "t.csv").read_bytes() == b"whole"


def test_it_is_on_disk_before_it_has_its_name(folder: LocalFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    for call in ("fsync", "replace"):
        original = getattr(os, call)

        def noted(*arguments: Any, original: Any = original, call: str = call) -> None:
            seen.append(call)
            original(*arguments)

        monkeypatch.setattr(module.os, call, noted)
    write(folder, "t.csv", b"x")
    assert seen == ["fsync", "replace"]


def test_a_task_may_be_repeated(folder: LocalFolder) -> None:
    assert write(folder, "t.csv", b"a", b"b") == write(folder, "t.csv", b"ab")
    assert folder.names() == {"t.csv"}


@pytest.mark.parametrize("name", ["t.csv", "t.csv/part-00000.csv"])
def test_writers_of_the_same_name_at_once_leave_equal_bytes(folder: LocalFolder, name: str) -> None:
    """A concurrent reader sees the complete file or none."""
    pieces = [bytes([i]) * 4096 for i in range(32)]
    content, writers = b"".join(pieces), 8
    start, ended = threading.Barrier(writers), threading.Event()
    torn: list[int] = []

    def watch() -> None:
        while not ended.is_set():
            if (folder.path / name).exists():
                actual = (folder.path / name).read_bytes()
                torn.extend([len(actual)] * (actual != content))

    def work(_: int) -> str:
        start.wait(30)
        return write(folder, name, *pieces)

    with ThreadPoolExecutor(writers + 1) as pool:
        watching = pool.submit(watch)
        try:
            digests = set(pool.map(work, range(writers)))
        finally:
            ended.set()
        watching.result()
    assert torn == []
    assert digests == {hashlib.sha256(content).hexdigest()}
    assert (folder.path / name).read_bytes() == content
    assert folder.names() == {name}
    assert list(folder.scratch.iterdir()) == []


def test_one_of_two_writers_fails(folder: LocalFolder) -> None:
    with folder.create("t.csv") as one:
        one.write(b"whole")
        with pytest.raises(Crash):
            fail(folder, "t.csv")
    assert (folder.path / "t.csv").read_bytes() == b"whole"
    assert list(folder.scratch.iterdir()) == []


@posix
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o027, 0o000])
def test_permissions_follow_the_umask(folder: LocalFolder, mask: int) -> None:
    before = os.umask(mask)
    try:
        with folder.create("deep/t.csv"):
            (aside,) = folder.scratch.iterdir()
            assert aside.stat().st_mode & 0o077 == 0  # nobody reads along
        assert os.umask(mask) == mask  # looked at, not changed
    finally:
        os.umask(before)
    assert (folder.path / "deep" / "t.csv").stat().st_mode & 0o777 == 0o666 & ~mask
    assert (folder.path / "deep").stat().st_mode & 0o777 == 0o777 & ~mask


def test_clearing_takes_everything(folder: LocalFolder) -> None:
    for name in NAMES:
        write(folder, name, b"x")
    assert folder.names() == set(NAMES)
    (folder.scratch / "left by a crash").write_bytes(b"x")
    folder.clear()
    folder.clear()  # also when nothing is there
    assert not folder.path.exists()
    assert not folder.scratch.exists()
    assert folder.names() == set()


def test_a_link_is_a_file_too(folder: LocalFolder, tmp_path: Path) -> None:
    """Anything put beside the written files is listed: a dangling link, a link to a folder's file."""
    (folder.path / "link").symlink_to(tmp_path / "nowhere")
    assert folder.names() == {"link"}


def test_a_place_can_be_sent_to_a_worker(folder: LocalFolder) -> None:
    for place in (folder, ObjectStore("s3://bucket/out")):
        assert pickle.loads(pickle.dumps(place)) == place


@given(st.lists(st.binary(max_size=200), max_size=8))
@examples(100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_digest_is_the_files(folder: LocalFolder, pieces: list[bytes]) -> None:
    with folder.create("t") as file:
        for piece in pieces:
            assert file.write(piece) == len(piece)
    assert file.sha256() == folder.sha256("t") == hashlib.sha256(b"".join(pieces)).hexdigest()
    assert (folder.path / "t").read_bytes() == b"".join(pieces)


def test_arrow_writes_buffers_of_wide_numbers(folder: LocalFolder) -> None:
    """The length of a view is in items; of a file in bytes."""
    numbers = np.arange(10, dtype=np.int64)
    with folder.create("t") as file:
        assert file.write(numbers) == file.write(pa.py_buffer(numbers)) == 80
    assert (folder.path / "t").read_bytes() == numbers.tobytes() * 2
    table = pa.table({"x": numbers})
    with folder.create("t.parquet") as file:
        pq.write_table(table, file)
    assert isinstance(file, HashedFile)
    assert file.sha256() == folder.sha256("t.parquet")
    assert pq.read_table(folder.path / "t.parquet").equals(table)


def test_a_prefix_behaves_like_a_folder(tmp_path: Path) -> None:
    """Through the local file system, which Arrow opens like any other."""
    (tmp_path / "out" / "t.csv").mkdir(parents=True)
    prefix = ObjectStore(f"file://{tmp_path}/out/")
    assert ObjectStore(f"file://{tmp_path}/none").names() == set()
    names = {"u.csv", "t.csv/part-00000.csv"}
    digests = {name: write(prefix, name, b"a", b"b") for name in names}
    assert prefix.names() == names
    assert all(prefix.sha256(n) == d == hashlib.sha256(b"ab").hexdigest() for n, d in digests.items())
    assert prefix.read("u.csv") == b"ab"
    with pytest.raises(Crash):
        fail(prefix, "v.csv")
    assert prefix.names() == names
    prefix.clear(["u.csv"])
    assert prefix.names() == {"t.csv/part-00000.csv"}
    prefix.clear(["t.csv/part-00000.csv"])
    assert prefix.names() == set()


@pytest.mark.parametrize("uri", ["nonsense://x", "s4://bucket/x"])
def test_an_unknown_store_is_refused(uri: str) -> None:
    with pytest.raises(PublishError, match="object store"):
        ObjectStore(uri).names()
