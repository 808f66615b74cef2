"""A manifest is byte for byte what the ledger has committed; changes are detected, with the ledger or by digests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.errors import DiscreetError, LedgerError, PublishError
from discreet.pipeline.verify import verify_folder
from discreet.publish.manifest import read
from discreet.serve.catalogue import TableCatalogue
from support.agency import Agency
from support.forged_manifests import forge_manifest

Change = Callable[[dict[str, Any]], object]
FORGERIES: dict[str, Change] = {
    "the words of a table": lambda m: m["tables"][0].update(guarantee_in_words="Nobody can learn anything."),
    "the promise of a table": lambda m: m["tables"][0]["guarantee"].update(epsilon="0.01"),
    "the caveats of a table": lambda m: m["tables"][0]["guarantee"].update(caveats=["none"]),
    "the noise of a table": lambda m: m["tables"][0].update(noise="none"),
    "the margin of a table": lambda m: m["tables"][0].update(margin90=0),
    "the cells of a table": lambda m: m["tables"][0].update(cells=1),
    "what a table is about": lambda m: m["tables"][0].update(about="all people"),
    "a table left out": lambda m: m["tables"].pop(),
    "the words of the release": lambda m: m.update(guarantee_in_words="Nobody can learn anything."),
    "the promise of the release": lambda m: m["guarantee"].update(epsilon="0.2"),
    "the asset": lambda m: m.update(asset="others"),
    "the composition": lambda m: m.update(composition="at no cost"),
    "where a domain is from": lambda m: m["domains"][0].update(provenance="a census"),
    "a domain left out": lambda m: m["domains"].pop(),
    "the notice": lambda m: m.update(notice="Approved."),
    "how to check it": lambda m: m.update(check="There is no need to."),
    "a layout": lambda m: m["layouts"].update({"states.csv": "LEHD's"}),
    "the day": lambda m: m.update(reserved="2020-01-01"),
    "the code": lambda m: m.update(code="9.9"),
}
ELSEWHERE: dict[str, Change] = {
    "another entry": lambda m: m["ledger"].update(entry=1),
    "another head": lambda m: m["ledger"].update(head="0" * 64),
    "another kind of ledger": lambda m: m["ledger"].update(kind="simulation"),
}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_KEYS", str(home / "keys"))
        patch.setenv("DISCREET_TMP", str(home / "tmp"))
        agency = Agency(tmp_path_factory.mktemp("verify") / "agency")
        agency.release().run(agency.folder / "out")
    return agency.folder


@pytest.fixture
def folder(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published / "out", tmp_path / "out"))


def ledger_of(published: Path) -> Any:
    return discreet.ledger(published / "discreet-ledger.sqlite")


def test_what_was_published_is_accepted(published: Path, folder: Path) -> None:
    made = verify_folder(ledger_of(published), folder)
    commit = ledger_of(published).chain().releases()["r1"].commit
    assert made.digest == made.sha256() == commit.manifest
    assert TableCatalogue.of([folder]).tables
    assert {"codebook.json", "codebook.md"} <= set(commit.files)


@pytest.mark.parametrize("what", [*FORGERIES, *ELSEWHERE])
def test_the_ledger_finds_a_careful_forgery(published: Path, folder: Path, what: str) -> None:
    """Every digest in the folder fits: nothing but the ledger can tell."""
    forge_manifest(folder, (FORGERIES | ELSEWHERE)[what])
    assert read(folder)
    with pytest.raises(DiscreetError, match=r"manifest that is not the one that was committed|rolled back"):
        verify_folder(ledger_of(published), folder)


@pytest.mark.parametrize("what", FORGERIES)
def test_an_edited_manifest_is_not_served(folder: Path, what: str) -> None:
    path = folder / "manifest.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    FORGERIES[what](said)
    path.write_text(json.dumps(said, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    for opened in (read, lambda place: TableCatalogue.of([place])):
        with pytest.raises(PublishError, match="has a manifest that was changed: its digest does not match"):
            opened(folder)


def test_a_duplicate_key_in_a_manifest_is_refused(folder: Path) -> None:
    """The second counts for one reader, the first for another."""
    path = folder / "manifest.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('  "asset"', '  "asset": "others",\n  "asset"', 1), encoding="utf-8")
    with pytest.raises(PublishError, match="has a manifest that was changed"):
        read(folder)


def test_a_release_that_was_only_reserved_has_no_manifest(published: Path, folder: Path, tmp_path: Path) -> None:
    class Crash(BaseException):
        pass

    def stop(step: str, done: int, total: int) -> None:
        if step == "reserve":
            raise Crash

    agency = Agency(tmp_path / "agency")
    with pytest.raises(Crash):
        agency.release().run(agency.folder / "out", observe=stop)
    ledger = discreet.ledger(agency.ledger_path)
    forge_manifest(folder, lambda m: m["ledger"].update(head=ledger.chain().head))
    with pytest.raises(LedgerError, match="is reserved, not committed"):
        verify_folder(ledger, folder)


def test_the_digest_can_be_checked_without_discreet(folder: Path) -> None:
    said = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    digest = said.pop("digest")
    del said["ledger"]
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert sha256(text.encode()).hexdigest() == digest
    assert "discreet ledger verify --manifest" in said["check"]
