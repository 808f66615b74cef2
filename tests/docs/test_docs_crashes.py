"""The table of crashes in docs/operations.md, row by row: stop a run after the step, look, do what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import discreet
from discreet.api import OpenRelease, set_budget
from discreet.errors import LedgerError
from discreet.noise.keystore import FileKeyStore
from discreet.publish.folder import FolderOutput, Owner
from support.docs_snippets import ROOT

WITHIN = "within `publish`"
SPEC = """\
release: small
asset: people
source: {people: people.csv}
unit: {person: person, max_records: 1}
domains: {sector: {values: [farm, shop]}}
tables: [{name: sectors, method: counts, by: [sector], epsilon: "1"}]
"""


@dataclass(frozen=True)
class Row:
    """What a reader finds after a crash."""

    key: str
    staged: str
    output: str
    ledger: str
    do: str


def table() -> dict[str, Row]:
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:within )?`\w+`) \| (.+?) \|$", text, re.MULTILINE)
    cells = {step: [cell.strip() for cell in rest.split(" | ")] for step, rest in rows if rest.count(" | ") == 5}
    return {step: Row(c[0], c[1], c[2], c[3], c[4].strip("`")) for step, c in cells.items()}


TABLE = table()


class PowerCut(BaseException):
    """Nothing in the product expects it."""


class Place:
    """A small agency and what lies about in it."""

    def __init__(self, folder: Path) -> None:
        (folder / "release.yaml").write_text(SPEC)
        (folder / "people.csv").write_text("person,sector\n1,farm\n2,shop\n2,shop\n3,mine\n")
        self.keys = FileKeyStore(folder / "keys")
        self.release: OpenRelease = discreet.release(folder / "release.yaml", keys=self.keys)
        set_budget(self.release.ledger, "people", epsilon="1", unit={"kind": "person", "column": "person"})
        self.out = folder / "out"
        owner = Owner(self.release.ledger.chain().nonce, "small")
        self.staging = FolderOutput(self.out, owner).staging
        self.steps: list[str] = []

    def run(self, stop_after: str = "") -> None:
        def observe(step: str, done: int, total: int) -> None:
            name = step.partition(" ")[0]
            if done == total:
                self.steps.append(name)
                if name == stop_after:
                    raise PowerCut

        try:
            self.release.run(self.out, observe=observe)
        except PowerCut:
            assert stop_after
        else:
            assert not stop_after, f"there is no step {stop_after!r}"

    def seen(self) -> tuple[str, str, str, str]:
        state = self.release.ledger.chain().releases().get("small")
        return (
            "yes" if self.keys.names() else "no",
            _files(self.staging),
            _files(self.out),
            state.status if state else "nothing",
        )


def _files(folder: Path) -> str:
    if not folder.exists():
        return "nothing"
    names = {path.name for path in folder.iterdir()}
    tables = {"sectors.csv", "sectors.parquet"}
    whole = tables | {"codebook.json", "codebook.md"}
    if folder.name.startswith("."):
        kinds = {frozenset(tables): "tables", frozenset(whole): "complete"}
    else:
        kinds = {frozenset(whole): "no manifest", frozenset(whole | {"manifest.json"}): "complete"}
    return kinds[frozenset(names)]


def test_the_table_has_a_row_for_every_step(reader: Path) -> None:
    place = Place(reader)
    place.run()
    assert [f"`{step}`" for step in place.steps] == [step for step in TABLE if step != WITHIN]


@pytest.mark.parametrize("step", TABLE)
def test_after_a_crash_all_is_as_the_table_says(step: str, reader: Path) -> None:
    place, row = Place(reader), TABLE[step]
    if step == WITHIN:
        place.run("commit")
        place.staging.rename(place.out)
    else:
        place.run(step.strip("`"))
    assert place.seen() == (row.key, row.staged, row.output, row.ledger)
    if row.do == "run":
        with pytest.raises(LedgerError):
            place.release.resume()
        place.run()
    else:
        assert row.do == ("nothing" if step == "`destroy`" else "resume")
        made = place.release.resume()
        assert place.release.ledger.verify(made.ledger.head).balance("people", place.release.ledger.clock().date())
    assert place.seen() == ("no", "nothing", "complete", "committed")
    assert len(place.release.ledger.chain().entries) == 4, "a crash must cost nothing more"
