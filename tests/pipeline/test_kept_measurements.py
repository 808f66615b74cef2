"""Kept noisy measurements: exactly what was committed, in a location of their own, also after crashes."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import DiscreetError, LedgerError, PublishError, SpecError
from discreet.noise.keystore import FileKeyStore, default_keys
from discreet.pipeline.abandon import abandon
from discreet.publish.folder import FolderOutput
from discreet.publish.storage import sha256
from support.object_store import BUCKET, S3Server
from support.recoding import (
    CLOCK,
    EARNINGS,
    FLOWS,
    RecodingOffice,
    RunCrash,
    Watch,
    contents,
    read_measurements,
    without_head,
)

SMALL = ({**EARNINGS, "levels": EARNINGS["levels"][:1]}, {**FLOWS, "levels": []})
STEPS = (
    "read#1", "tabulate#1", "key#1", "reserve#1", "protect earnings#1", "protect earnings#2", "protect earnings#3",
    "protect flows#1", "protect flows#2", "write#1", "commit#1", "publish#1", "destroy#1",
)  # fmt: skip
BEFORE_RESERVATION = STEPS[:3]


def fresh(place: Path) -> RecodingOffice:
    """An office as new. Always in the same place: the ledger, and so its head, says where a release goes."""
    shutil.rmtree(place, ignore_errors=True)
    return RecodingOffice.founded(place)


def hidden(office: RecodingOffice) -> list[str]:
    """What is staged, beside either place."""
    return sorted(p.name for folder in (office.folder, office.folder / "kept") for p in folder.glob(".*"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keep") / "office"


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, place: Path
) -> tuple[dict[str, bytes], dict[str, bytes], list[str]]:
    """What an undisturbed run publishes and keeps, and the steps it takes."""
    home, watch = tmp_path_factory.mktemp("undisturbed"), Watch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_KEYS", str(home / "keys"))
        patch.setenv("DISCREET_TMP", str(home / "tmp"))
        office = fresh(place)
        office.open(office.measuring(*SMALL)).run(place / "out-old", simulation="suite", observe=watch)
    return contents(place / "out-old"), contents(place / "kept/old"), watch.seen


# --- what is where --------------------------------------------------------------------------------------------------


def test_exactly_the_committed_files_are_kept(measured_office: RecodingOffice) -> None:
    folder, chain = measured_office.folder / "kept/old", measured_office.ledger.chain()
    committed = chain.releases()["old"].commit
    assert committed is not None
    assert {name: sha256(folder / name) for name in contents(folder)} == committed.kept == chain.kept("old")
    about = read_measurements(folder).about
    assert set(committed.kept) == {"measurements.json", *(name for table in about.tables for name in table.files)}
    assert [table.name for table in about.tables] == ["earnings", "families", "flows", "family_flows"]
    assert (about.release, about.asset, about.simulation) == ("old", "graduates", True)
    assert about.guarantee.epsilon == 3 + 3 / 2 + 3 / 2 + 3 / 2


def test_measurements_are_of_every_cell_suppressed_or_not(measured_office: RecodingOffice) -> None:
    kept = measured_office.kept("old")
    for table in kept.about.tables:
        assert kept.counts[table.name].shape == (table.groups, table.width)
    assert kept.table("earnings").groups == 12 * 2 * 2
    assert kept.table("flows").width == 3 * 3 + 1


def test_nothing_kept_is_published_and_nothing_published_is_kept(measured_office: RecodingOffice) -> None:
    published, kept = (contents(measured_office.folder / name) for name in ("out-old", "kept/old"))
    assert not published.keys() & kept.keys()
    assert not set(published.values()) & set(kept.values())
    assert not [name for name in published if "~" in name or name == "measurements.json"]
    assert "manifest.json" not in kept
    assert b"kept" not in published["manifest.json"]
    assert set(measured_office.ledger.chain().releases()["old"].commit.files) == published.keys() - {"manifest.json"}  # type: ignore[union-attr]


def test_only_the_owner_enters_the_kept_folder(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        office = RecodingOffice.founded(tmp_path / "office")
        office.measure(*SMALL)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((office.folder / name).stat().st_mode) for name in ("out-old", "kept/old")]
    assert modes == [0o700, 0o700]  # of a simulation nobody else reads what would be published, either
    assert not hidden(office)


@pytest.mark.parametrize("parts", [False, True])
def test_published_bytes_are_the_same_with_and_without_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: bool
) -> None:
    if parts:  # a few groups in a file
        monkeypatch.setattr("discreet.methods.histograms.PART", 40)
    actual = []
    for name, keep in (("with", "kept/old"), ("without", ...)):
        office = RecodingOffice.founded(tmp_path / name)
        actual.append(without_head(office.measure(*SMALL, keep_measurements=keep)))
        assert (office.folder / "kept").exists() == (keep is not ...)
    assert actual[0] == actual[1]
    kept = contents(tmp_path / "with/kept/old")
    assert len(kept) > 3 if parts else len(kept) == 3
    chain = RecodingOffice(tmp_path / "without").ledger.chain()
    assert chain.kept("old") == {}
    assert chain.releases()["old"].reserve.keep == ""


def test_a_release_of_counts_has_nothing_to_keep(tmp_path: Path) -> None:
    office = RecodingOffice.founded(tmp_path / "office")
    with pytest.raises(SpecError, match="no table has measurements that can be kept"):
        office.measure({"name": "n", "method": "counts", "by": ["grad_cohort"], "epsilon": "1"})
    assert office.spent == 0


# --- refused before anything is spent -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> RecodingOffice:
    return RecodingOffice.founded(tmp_path_factory.mktemp("founded") / "office")


def refused(office: RecodingOffice, out: str | Path, keep: str, match: str) -> None:
    before, head = set(office.folder.rglob("*")), office.ledger.chain().head
    release = office.open(office.measuring(*SMALL, keep_measurements=keep))
    with pytest.raises(DiscreetError, match=match):
        release.run(out, simulation="suite")
    (office.folder / "old.yaml").unlink()
    assert set(office.folder.rglob("*")) == before
    assert office.ledger.chain().head == head
    assert not default_keys().names()


@pytest.mark.parametrize(
    ("out", "keep"),
    [
        ("out", "out/kept"),
        ("out", "out/deep/er/kept"),
        ("kept/out", "kept"),
        ("out", "out"),
        ("out", "out/"),
        ("out", "./out"),
    ],
)
def test_nested_locations_are_refused(founded: RecodingOffice, out: str, keep: str) -> None:
    refused(founded, founded.folder / out, keep, "equals, contains or lies in the place of what is published")


@pytest.mark.parametrize("keep", ["there/../out", "there/../out/kept", "link/out", "link/out/kept"])
def test_nested_locations_by_another_path_are_refused(tmp_path: Path, keep: str) -> None:
    office = RecodingOffice.founded(tmp_path / "office")
    (office.folder / "there").mkdir()
    (office.folder / "link").symlink_to(office.folder)
    refused(office, office.folder / "out", keep, "equals, contains or lies in the place of what is published")


def test_locations_with_a_common_prefix_are_accepted(tmp_path: Path) -> None:
    office = RecodingOffice.founded(tmp_path / "office")
    office.open(office.measuring(*SMALL, keep_measurements="out-kept")).run(office.folder / "out", simulation="suite")
    assert (office.folder / "out-kept/measurements.json").is_file()


def test_what_exists_is_refused(tmp_path: Path) -> None:
    office = RecodingOffice.founded(tmp_path / "office")
    (office.folder / "there").mkdir()
    (office.folder / "file").write_text("mine")
    (office.folder / "loose").symlink_to(office.folder / "nowhere")
    for keep in ("there", "file", "loose"):
        refused(office, office.folder / "out", keep, "already exists")
    refused(office, office.folder / "out", "file/kept", "cannot be created")
    assert (office.folder / "file").read_text() == "mine"


def test_a_place_inside_another_release_is_refused(office: RecodingOffice) -> None:
    release = office.open(office.measuring(*SMALL, release="r2", keep_measurements="out-old/kept"))
    with pytest.raises(PublishError, match="inside another release"):
        release.run(office.folder / "out2", simulation="suite")
    assert "r2" not in office.ledger.chain().names()


@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    office = RecodingOffice.founded(tmp_path / "office")
    (office.folder / "locked").mkdir(mode=0o500)
    refused(office, office.folder / "out", "locked/kept", "cannot be created")


def test_a_place_that_appears_to_be_locked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the test before, also for root."""
    office = RecodingOffice.founded(tmp_path / "office")
    (office.folder / "locked").mkdir()
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked" and may(path, mode))
    refused(office, office.folder / "out", "locked/kept", "cannot be created")


# --- crashes --------------------------------------------------------------------------------------------------------


def test_the_steps_are_all_tried(undisturbed: tuple[dict[str, bytes], dict[str, bytes], list[str]]) -> None:
    assert tuple(dict.fromkeys(undisturbed[2])) == STEPS


def resumed(office: RecodingOffice, undisturbed: tuple[dict[str, bytes], dict[str, bytes], list[str]]) -> None:
    """What an operator would do, and what must come of it."""
    release = office.open(office.measuring(*SMALL))
    if "old" in office.ledger.chain().names():
        assert office.spent == 9 / 2
        release.resume()
    else:
        assert office.spent == 0
        assert not (office.folder / "kept").exists()
        release.run(office.folder / "out-old", simulation="suite")
    assert contents(office.folder / "out-old") == undisturbed[0]
    assert contents(office.folder / "kept/old") == undisturbed[1]
    assert stat.S_IMODE((office.folder / "kept/old").stat().st_mode) == 0o700
    assert office.spent == 9 / 2
    assert not hidden(office)
    assert not default_keys().names()


@pytest.mark.parametrize("step", STEPS)
def test_ended_at_any_step_then_resumed(
    place: Path, undisturbed: tuple[dict[str, bytes], dict[str, bytes], list[str]], step: str
) -> None:
    office = fresh(place)
    with pytest.raises(RunCrash):
        office.open(office.measuring(*SMALL)).run(place / "out-old", simulation="suite", observe=Watch(step))
    assert ("old" in office.ledger.chain().names()) == (step not in BEFORE_RESERVATION)
    assert (place / "out-old").exists() == (place / "kept/old").exists() == (step in STEPS[-2:])
    resumed(office, undisturbed)


MOMENTS = {
    "between the renames": "publish",
    "before the manifest": "_write_manifest",
}


def ended_in(patch: pytest.MonkeyPatch, name: str) -> None:
    """End the process when the published folder, not the kept one, comes to this point."""
    then = getattr(FolderOutput, name)

    def crash(self: FolderOutput, *given: Any, **named: Any) -> None:
        if name == "publish" and given[1] is None:
            then(self, *given, **named)
        else:
            raise RunCrash

    patch.setattr(FolderOutput, name, crash)


@pytest.mark.parametrize("moment", MOMENTS)
def test_ended_while_publishing_then_resumed(
    place: Path, undisturbed: tuple[dict[str, bytes], dict[str, bytes], list[str]], moment: str
) -> None:
    office = fresh(place)
    with pytest.MonkeyPatch.context() as patch:
        ended_in(patch, MOMENTS[moment])
        with pytest.raises(RunCrash):
            office.open(office.measuring(*SMALL)).run(place / "out-old", simulation="suite")
    assert contents(place / "kept/old") == undisturbed[1]
    assert (place / "out-old").exists() == (moment == "before the manifest")
    assert not (place / "out-old/manifest.json").exists()
    resumed(office, undisturbed)


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_while_publishing_then_resumed(
    place: Path, undisturbed: tuple[dict[str, bytes], dict[str, bytes], list[str]], moment: str
) -> None:
    """SIGKILL in a process of its own: no clean-up, no goodbye."""
    office = fresh(place)
    spec = office.measuring(*SMALL)
    office.open(spec)
    code = (
        "import datetime, os, signal, sys\n"
        "import discreet\n"
        "from discreet.publish.folder import FolderOutput\n"
        f"name = {MOMENTS[moment]!r}\n"
        "then = getattr(FolderOutput, name)\n"
        "def kill(self, *given, **named):\n"
        "    if name == 'publish' and given[1] is None:\n"
        "        return then(self, *given, **named)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "setattr(FolderOutput, name, kill)\n"
        "clock = datetime.datetime.fromisoformat(sys.argv[3])\n"
        "ledger = discreet.ledger(sys.argv[2], clock=lambda: clock)\n"
        "discreet.release(sys.argv[1], ledger=ledger).run(sys.argv[4], simulation='suite')\n"
    )
    arguments = [place / "old.yaml", place / "discreet-ledger.sqlite", CLOCK.isoformat(), place / "out-old"]
    killed = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert contents(place / "kept/old") == undisturbed[1]
    resumed(office, undisturbed)


@pytest.mark.parametrize("lost", ["published", "kept", "both"])
def test_committed_but_staging_lost_is_drawn_again(
    place: Path, undisturbed: tuple[dict[str, bytes], dict[str, bytes], list[str]], lost: str
) -> None:
    office = fresh(place)
    with pytest.raises(RunCrash):
        office.open(office.measuring(*SMALL)).run(place / "out-old", simulation="suite", observe=Watch("commit#1"))
    if lost != "kept":
        shutil.rmtree(office.staging("out-old", "old"))
    if lost != "published":
        shutil.rmtree(office.staging("kept/old", "old"))
    resumed(office, undisturbed)


def test_kept_in_place_but_what_was_to_be_published_lost_is_drawn_again(
    place: Path, undisturbed: tuple[dict[str, bytes], dict[str, bytes], list[str]]
) -> None:
    office = fresh(place)
    with pytest.MonkeyPatch.context() as patch:
        ended_in(patch, "publish")
        with pytest.raises(RunCrash):
            office.open(office.measuring(*SMALL)).run(place / "out-old", simulation="suite")
    shutil.rmtree(office.staging("out-old", "old"))
    resumed(office, undisturbed)


@pytest.mark.parametrize("step", ["reserve#1", "protect flows#1", "write#1"])
def test_abandon_removes_staged_measurements(place: Path, step: str) -> None:
    office = fresh(place)
    with pytest.raises(RunCrash):
        office.open(office.measuring(*SMALL)).run(place / "out-old", simulation="suite", observe=Watch(step))
    staged = hidden(office)
    assert bool(staged) == (step != "reserve#1")
    assert (office.staging("kept/old", "old").name in staged) == (step != "reserve#1")
    abandon(office.ledger, default_keys(), "old", "a test")
    assert not hidden(office)
    assert not default_keys().names()
    assert office.spent == 9 / 2
    with pytest.raises(LedgerError, match="abandoned"):
        office.ledger.chain().kept("old")


def test_resume_ignores_another_location_for_measurements(
    place: Path, undisturbed: tuple[dict[str, bytes], dict[str, bytes], list[str]]
) -> None:
    """Where measurements go was reserved; what the file says later does not matter."""
    office = fresh(place)
    with pytest.raises(RunCrash):
        office.open(office.measuring(*SMALL)).run(place / "out-old", simulation="suite", observe=Watch("reserve#1"))
    office.open(office.measuring(*SMALL, keep_measurements="elsewhere")).resume()
    assert contents(place / "kept/old") == undisturbed[1]
    assert not (place / "elsewhere").exists()


# --- object stores --------------------------------------------------------------------------------------------------


def bare(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if name != "manifest.json"}


@pytest.mark.parametrize("both", [False, True])
def test_measurements_are_kept_in_an_object_store(
    store: S3Server,
    tmp_path: Path,
    undisturbed: tuple[dict[str, bytes], dict[str, bytes], list[str]],
    both: bool,
) -> None:
    office, prefix = RecodingOffice.founded(tmp_path / "office"), f"keep{both}"
    out = store.uri(f"{prefix}/out") if both else str(office.folder / "out")
    office.open(office.measuring(*SMALL, keep_measurements=store.uri(f"{prefix}/kept"))).run(out, simulation="suite")
    assert store.files(f"{prefix}/kept") == undisturbed[1]
    published = store.files(f"{prefix}/out") if both else contents(office.folder / "out")
    assert "manifest.json" in published
    assert bare(published) == bare(undisturbed[0])


@pytest.mark.parametrize("step", ["reserve#1", "protect earnings#1", "write#1", "commit#1", "publish#1"])
def test_a_run_into_an_object_store_ends_and_is_resumed(
    store: S3Server,
    tmp_path: Path,
    undisturbed: tuple[dict[str, bytes], dict[str, bytes], list[str]],
    step: str,
) -> None:
    office, prefix = RecodingOffice.founded(tmp_path / "office"), f"crash-{step[:-2].replace(' ', '-')}"
    release = office.open(office.measuring(*SMALL, keep_measurements=store.uri(f"{prefix}/kept")))
    with pytest.raises(RunCrash):
        release.run(store.uri(f"{prefix}/out"), simulation="suite", observe=Watch(step))
    release.resume()
    assert store.files(f"{prefix}/kept") == undisturbed[1]
    assert bare(store.files(f"{prefix}/out")) == bare(undisturbed[0])
    assert "manifest.json" in store.files(f"{prefix}/out")
    assert office.spent == 9 / 2


def test_abandon_removes_measurements_from_an_object_store(store: S3Server, tmp_path: Path) -> None:
    office = RecodingOffice.founded(tmp_path / "office")
    release = office.open(office.measuring(*SMALL, keep_measurements=store.uri("abandoned/kept")))
    with pytest.raises(RunCrash):
        release.run(store.uri("abandoned/out"), simulation="suite", observe=Watch("write#1"))
    assert store.files("abandoned/kept")
    abandon(office.ledger, default_keys(), "old", "a test")
    assert not store.objects("abandoned/kept")
    assert not store.objects("abandoned/out")


def test_abandon_touches_no_prefix_that_an_entry_only_names(store: S3Server, tmp_path: Path) -> None:
    """An entry could name any prefix: only what lies beside the release's own mark is removed."""
    office = RecodingOffice.founded(tmp_path / "office")
    release = office.open(office.measuring(*SMALL, keep_measurements=store.uri("others/kept")))
    with pytest.raises(RunCrash):
        release.run(office.folder / "out", simulation="suite", observe=Watch("reserve#1"))
    store.put("others/kept/measurements.json", b"somebody else's")
    with pytest.raises(PublishError, match=r"holds 'measurements\.json', which this release may have written"):
        abandon(office.ledger, FileKeyStore(tmp_path / "nobody"), "old", "a test")
    assert store.files("others/kept") == {"measurements.json": b"somebody else's"}


def test_a_prefix_that_is_not_empty_is_refused(store: S3Server, tmp_path: Path) -> None:
    office = RecodingOffice.founded(tmp_path / "office")
    store.put("taken/kept/mine.txt", b"mine")
    refused(office, tmp_path / "out", store.uri("taken/kept"), "already exists")
    assert store.files("taken/kept") == {"mine.txt": b"mine"}
    refused(office, tmp_path / "out", store.uri("kept", bucket=f"{BUCKET}-none"), "no such bucket")


@pytest.mark.parametrize(
    ("out", "keep"),
    [
        ("nested/a", "nested/a"),
        ("nested/b", "nested/b/kept"),
        ("nested/c/out", "nested/c"),
    ],
)
def test_prefixes_inside_each_other_are_refused(store: S3Server, tmp_path: Path, out: str, keep: str) -> None:
    office = RecodingOffice.founded(tmp_path / "office")
    refused(office, store.uri(out), store.uri(keep), "equals, contains or lies in the place of what is published")


def test_the_location_of_measurements_is_not_in_the_digest(founded: RecodingOffice) -> None:
    digests = {
        founded.open(founded.measuring(*SMALL, keep_measurements=keep)).spec.digest() for keep in ("a", "b", ...)
    }
    assert len(digests) == 1
