"""Staging, sealing, publishing: at every moment the folder is a complete release or none."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import PublishError
from discreet.privacy.guarantee import Guarantee, Record
from discreet.publish import manifest as manifests
from discreet.publish.folder import FolderOutput, Owner, StoreOutput, output_at
from discreet.publish.manifest import FILE, LedgerEntry, Manifest, ManifestBody, read

posix = pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
OWNER = Owner("0" * 32, "r")
CONTENT = {"t.csv": b"a,b\n1,2\n", "t.parquet": b"PAR1", "u.csv/part-00000.csv": b"c\n"}


def made(files: dict[str, str], release: str = "r") -> Manifest:
    guarantee = Guarantee(unit=Record(), epsilon="1.5")
    said = ManifestBody(
        release=release,
        asset="a",
        simulation=False,
        notice="",
        reserved="2026-01-01",
        code="1",
        spec="00",
        guarantee=guarantee,
        guarantee_in_words=guarantee.in_words(),
        composition="one table",
        domains=[],
        tables=[],
        files=files,
    )
    return said.with_ledger_entry(LedgerEntry(kind="real", entry=4, head="ab"))


@pytest.fixture
def output(tmp_path: Path) -> FolderOutput:
    return FolderOutput(tmp_path / "deep" / "out", OWNER)


def staged(output: FolderOutput) -> dict[str, str]:
    place, files = output.stage(), {}
    for name, content in CONTENT.items():
        with place.create(name) as file:
            file.write(content)
        files[name] = file.sha256()
    output.seal(files)
    return files


def complete(output: FolderOutput, files: dict[str, str]) -> None:
    actual = {p.relative_to(output.folder).as_posix(): p for p in output.folder.rglob("*") if not p.is_dir()}
    assert set(actual) == {*CONTENT, FILE}
    assert {name: p.read_bytes() for name, p in actual.items() if name != FILE} == CONTENT
    assert read(output.folder).files == files
    assert {p.name for p in output.folder.parent.iterdir()} == {output.folder.name}  # nothing is left beside it


def test_staged_sealed_published(output: FolderOutput) -> None:
    files = staged(output)
    assert set(files) == set(CONTENT)
    assert not output.folder.exists()
    assert output.staging.is_dir()
    assert output.holds(files) is True
    output.publish(files, made(files))
    output.remove_leftovers()
    complete(output, files)
    assert not output.staging.exists()
    assert output.holds(files) is True


def test_publishing_twice_changes_nothing(output: FolderOutput) -> None:
    files = staged(output)
    output.publish(files, made(files))
    before = (output.folder / FILE).read_bytes()
    output.publish(files, made(files))
    output.remove_leftovers()
    complete(output, files)
    assert (output.folder / FILE).read_bytes() == before


class Crash(BaseException):
    """Not an error: simulates the end of the process."""


@pytest.mark.parametrize("moment", range(9))
def test_a_crash_at_any_moment_of_publishing_can_be_repeated(
    output: FolderOutput, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Stop before the n-th call that touches the disk; then publish again."""
    files, left = staged(output), moment

    def stopping(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Crash
            return original(*arguments, **options)

        return call

    with monkeypatch.context() as patch, suppress(Crash):
        for owner, name in ((Path, "chmod"), (Path, "rename"), (Path, "write_text"), (os, "fsync")):
            patch.setattr(owner, name, stopping(getattr(owner, name)))
        output.publish(files, made(files))
    if (output.folder / FILE).exists():
        assert read(output.folder).files == files
    else:
        with pytest.raises(PublishError, match="no manifest"):
            read(output.folder)
    output.publish(files, made(files))
    output.remove_leftovers()
    complete(output, files)


def test_a_partial_manifest_is_never_visible(output: FolderOutput, monkeypatch: pytest.MonkeyPatch) -> None:
    files = staged(output)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("discreet.publish.folder.os.fsync", full)  # the manifest is written, but not yet in its place
        with pytest.raises(OSError, match="No space"):
            output.publish(files, made(files))
    assert not (output.folder / FILE).exists()
    output.publish(files, made(files))
    output.remove_leftovers()
    complete(output, files)


@pytest.mark.parametrize("what", ["missing", "changed", "added"])
def test_a_folder_with_other_bytes_is_refused(output: FolderOutput, what: str) -> None:
    files = staged(output)
    output.publish(files, made(files))
    match what:
        case "missing":
            (output.folder / "t.csv").unlink()
        case "changed":
            (output.folder / "t.csv").write_bytes(b"a,b\n1,3\n")
        case _:
            (output.folder / "extra.csv").write_bytes(b"")
    assert output.holds(files) is False
    with pytest.raises(PublishError, match="already exists"):
        output.publish(files, made(files))


@pytest.mark.parametrize("what", ["missing", "changed", "added"])
def test_staged_bytes_that_were_not_committed_are_refused(output: FolderOutput, what: str) -> None:
    files = staged(output)
    match what:
        case "missing":
            (output.staging / "t.csv").unlink()
        case "changed":
            (output.staging / "t.csv").write_bytes(b"the truth")
        case _:
            (output.staging / "extra.csv").write_bytes(b"the truth")
    with pytest.raises(PublishError):
        output.publish(files, made(files))
    assert not output.folder.exists()


def test_nothing_staged_is_refused(output: FolderOutput) -> None:
    with pytest.raises(PublishError):
        output.publish({"t.csv": "00"}, made({"t.csv": "00"}))


@pytest.mark.parametrize("name", ["extra.csv", "u.csv/part-00001.csv", "empty/../extra", ".hidden"])
def test_a_file_that_was_not_written_is_not_sealed(output: FolderOutput, name: str) -> None:
    files = staged(output)
    (output.staging / "empty").mkdir()
    output.seal(files)  # a folder is no file
    (output.staging / name).write_bytes(b"the truth")
    with pytest.raises(PublishError, match="other files than were written"):
        output.seal(files)


def test_a_file_that_was_lost_is_not_sealed(output: FolderOutput) -> None:
    files = staged(output)
    (output.staging / "u.csv/part-00000.csv").unlink()
    with pytest.raises(PublishError, match="other files than were written"):
        output.seal(files)


def test_sealed_files_replace_nothing(output: FolderOutput) -> None:
    files = staged(output)
    output.folder.mkdir()
    with pytest.raises(PublishError, match="already exists"):
        output.publish(files, made(files))
    assert list(output.folder.iterdir()) == []
    assert output.holds(files)


def test_a_path_is_a_folder_and_a_uri_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for where in ("out", str(tmp_path / "out"), f"file://{tmp_path}/out", f"FILE://{tmp_path}/out"):
        output = output_at(where, OWNER)
        assert isinstance(output, FolderOutput)
        assert output.where == str(tmp_path / "out")
    for where in ("s3://bucket/out", "hdfs://name/out/", "abfss://a@b/out"):
        output = output_at(where, OWNER)
        assert isinstance(output, StoreOutput)
        assert output.where == where.rstrip("/")


def test_existing_output_is_refused(output: FolderOutput, tmp_path: Path) -> None:
    output.refuse_existing()
    output.folder.mkdir(parents=True)
    with pytest.raises(PublishError, match="already exists"):
        output.refuse_existing()
    (tmp_path / "file").write_text("")
    with pytest.raises(PublishError, match="already exists"):
        FolderOutput(tmp_path / "file", OWNER).refuse_existing()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(PublishError, match="already exists"):
        FolderOutput(tmp_path / "dangling", OWNER).refuse_existing()
    with pytest.raises(PublishError, match="cannot be created"):
        FolderOutput(tmp_path / "file" / "out", OWNER).refuse_existing()


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PublishError, match="cannot be created"):
            FolderOutput(tmp_path / "out", OWNER).refuse_existing()
    finally:
        tmp_path.chmod(0o700)


def test_staging_starts_empty(output: FolderOutput) -> None:
    staged(output)
    (output.staging / "old").write_text("")
    with output.stage().create("t.csv"):
        (scratch,) = (p for p in output.folder.parent.iterdir() if p != output.staging)
        (unfinished,) = scratch.iterdir()
    (scratch / unfinished.name).write_text("left by a crash")
    assert output.stage().names() == set()
    assert list(output.staging.iterdir()) == list(scratch.iterdir()) == []


def test_abandoned_files_are_removed_or_reported(output: FolderOutput, monkeypatch: pytest.MonkeyPatch) -> None:
    output.abandon()
    assert not output.folder.parent.exists()  # nothing was there to be locked
    staged(output)
    with monkeypatch.context() as patch:
        patch.setattr("discreet.publish.storage.shutil.rmtree", lambda *_, **__: None)  # as where we have no right to
        with pytest.raises(PublishError, match="cannot be removed") as caught:
            output.abandon()
    assert caught.value.where == str(output.staging)
    output.abandon()
    assert list(output.folder.parent.iterdir()) == []


def test_releases_and_folders_have_their_own_staging(tmp_path: Path) -> None:
    names = [(n, f, r) for n in ("0" * 32, "1" * 32) for f in ("a", "a.b", "b") for r in ("b.c", "c", "r")]
    places = {FolderOutput(tmp_path / f, Owner(n, r)).staging for n, f, r in names}
    assert len(places) == 18
    assert all(place.parent == tmp_path and place.name.startswith(".") for place in places)


@posix
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o027])
def test_staging_is_private_and_publication_follows_the_umask(output: FolderOutput, mask: int) -> None:
    before = os.umask(mask)
    try:
        files = staged(output)
        for folder in output.folder.parent.iterdir():
            assert folder.stat().st_mode & 0o777 == 0o700
        output.publish(files, made(files))
        assert os.umask(mask) == mask  # looked at, not changed
    finally:
        os.umask(before)
    assert output.folder.stat().st_mode & 0o777 == 0o777 & ~mask
    for path in output.folder.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o777 if path.is_dir() else 0o666) & ~mask


def test_holds_nothing_when_nothing_is_there(output: FolderOutput) -> None:
    assert output.holds({}) is False
    assert output.holds({"t.csv": "00"}) is False


def test_the_manifest_file_is_not_part_of_the_digests(output: FolderOutput) -> None:
    files = staged(output)
    output.publish(files, made(files))
    assert manifests.FILE not in files
    assert output.holds(files) is True
