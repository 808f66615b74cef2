"""The file key store: private, each key written once, unrecoverable when destroyed."""

import os
from pathlib import Path

import pytest

from discreet.errors import ReleaseKeyError
from discreet.noise.key import ReleaseKey
from discreet.noise.keystore import FileKeyStore, KeyStore

posix = pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")


@pytest.fixture
def store(tmp_path: Path) -> FileKeyStore:
    (tmp_path / "keys").mkdir(mode=0o700)
    return FileKeyStore(tmp_path / "keys")


@pytest.mark.parametrize("key", [ReleaseKey.generate(), ReleaseKey.simulation("s")])
def test_round_trip_keeps_the_simulation_mark(store: KeyStore, key: ReleaseKey) -> None:
    store.create("r-1", key)
    assert store.load("r-1") == key
    assert store.names() == ["r-1"]


def test_a_key_is_never_replaced(store: FileKeyStore) -> None:
    store.create("r", ReleaseKey.generate())
    with pytest.raises(ReleaseKeyError, match="exists"):
        store.create("r", ReleaseKey.generate())


def test_destroy_overwrites_unlinks_and_may_be_repeated(store: FileKeyStore) -> None:
    key = ReleaseKey.generate()
    store.create("r", key)
    os.link(store.folder / "r.key", store.folder / "kept")
    store.destroy("r")
    store.destroy("r")
    assert store.names() == []
    assert key.expose().hex().encode() not in (store.folder / "kept").read_bytes()
    with pytest.raises(ReleaseKeyError):
        store.load("r")


@posix
def test_folder_and_file_are_private(store: FileKeyStore) -> None:
    store.create("r", ReleaseKey.generate())
    assert store.folder.stat().st_mode & 0o777 == 0o700
    assert (store.folder / "r.key").stat().st_mode & 0o777 == 0o600


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_file_others_may_touch_is_refused(store: FileKeyStore, mode: int) -> None:
    store.create("r", ReleaseKey.generate())
    (store.folder / "r.key").chmod(mode)
    with pytest.raises(ReleaseKeyError, match="others"):
        store.load("r")


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o755])
def test_a_folder_others_may_enter_is_refused(store: FileKeyStore, mode: int) -> None:
    store.folder.chmod(mode)
    with pytest.raises(ReleaseKeyError, match="others"):
        store.create("r", ReleaseKey.generate())
    with pytest.raises(ReleaseKeyError, match="others"):
        FileKeyStore(store.folder)


@posix
def test_a_link_is_not_followed(store: FileKeyStore, tmp_path: Path) -> None:
    store.create("r", ReleaseKey.generate())
    (store.folder / "s.key").symlink_to(store.folder / "r.key")
    with pytest.raises(ReleaseKeyError):
        store.load("s")


@pytest.mark.parametrize("name", ["", ".", "..", "../r", "a/b", "-r", "a\x00", "a\n", "x" * 200, "é"])
def test_odd_names_are_refused(store: FileKeyStore, name: str) -> None:
    with pytest.raises(ReleaseKeyError):
        store.create(name, ReleaseKey.generate())


@pytest.mark.parametrize("text", [b"", b"x", b"discreet release key 1\nreal\n" + b"z" * 64 + b"\n"])
def test_damaged_files_are_refused(store: FileKeyStore, text: bytes) -> None:
    path = store.folder / "r.key"
    path.write_bytes(text)
    path.chmod(0o600)
    with pytest.raises(ReleaseKeyError):
        store.load("r")
