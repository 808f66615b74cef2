"""Shared by all studies: texts as data, tables by their columns, claims with their evidence, the report's template."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from discreet.report.blocks import Figure, Heading, Paragraph, Table
from discreet_studies import PAPERS, texts
from discreet_studies.claims import Claims
from discreet_studies.texts import HERE, blocks, definitions, published, say, table


def test_a_row_is_formatted_from_its_fields() -> None:
    row = {"ratio": 0.5, "none": None, "nan": float("nan"), "third": Fraction(1, 8), "many": 12345.6, "name": "a"}
    assert say("{name} {#}: {ratio:.1%} {none:.3f} {nan:.2f} {third:exact} {many:short} {ratio:short}", row, 3) == (
        "a 3: 50.0% – – 0.125 12,346 0.5"
    )
    assert say("{imag}", 2 + 1j) == "1.0"
    with pytest.raises(KeyError):
        say("{nothing}", row)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A toy study."""
    monkeypatch.setattr(texts, "HERE", tmp_path)
    definitions.cache_clear()
    (tmp_path / "paper" / "published").mkdir(parents=True)
    return tmp_path / "paper"


def test_a_table_has_declared_columns_and_those_from_its_rows(folder: Path) -> None:
    columns = {"numbers": {"n": "{#}", "*by": ".1f", "all": "{total:,}"}}
    (folder / "tables.yaml").write_text(yaml.safe_dump(columns, sort_keys=False), encoding="utf-8")
    rows = [{"by": {"a": 1, "b": 2}, "total": 3000}, {"by": {"a": 3, "b": None}, "total": 3}]
    made = table("paper", "numbers", rows)
    assert (made.columns, made.rows) == (["n", "a", "b", "all"], [["1", "1.0", "2.0", "3,000"], ["2", "3.0", "–", "3"]])
    assert table("paper", "numbers", []).rows == []


def test_a_report_renders_its_template(folder: Path) -> None:
    text = "# {{ title }}\n\nOne\nline of {{ x|f('.1%') }}.\n\n[t]\n\n![A\nfigure](f.svg)\n\n"
    text += "{% if no %}\nnever\n{% endif %}\n"
    (folder / "report.md").write_text(text, encoding="utf-8")
    made = blocks("paper", {"t": (t := Table("t", ["a"], []))}, {"title": "T", "x": 0.5, "no": False})
    assert made == [Heading(1, "T"), Paragraph("One line of 50.0%."), t, Figure("f.svg", "A figure")]


def test_claims_are_tested_in_order_and_may_be_untestable(folder: Path) -> None:
    said = {"ours": "{n}", "paper": "1", "untested": "nothing"}
    both = {name: {**said, "claim": name} for name in ("one", "other")}
    (folder / "claims.yaml").write_text(yaml.safe_dump(both), encoding="utf-8")
    claims: Claims[int] = Claims("paper")

    @claims
    def other(n: int) -> tuple[bool | None, dict[str, object]]:
        return n == 1, {"n": n}

    @claims
    def one(n: int) -> tuple[bool | None, dict[str, object]]:
        return None, {}

    actual = claims.of(2)
    assert [(c.claim, c.ours, c.verdict) for c in actual] == [
        ("other", "2", "not confirmed"),
        ("one", "nothing", "not tested"),
    ]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_declared_table_and_claim_is_used(paper: str) -> None:
    report = (HERE / paper / "report.md").read_text(encoding="utf-8").replace("{{ finding.number }}", "1")
    unused = [name for name in definitions(paper, "tables") if f"[{name}]" not in report]
    assert not [name for name in unused if not name.startswith("finding-") and definitions(paper, "tables")[name]]
    if (HERE / paper / "claims.yaml").exists():
        source = (HERE / paper / "verdicts.py").read_text(encoding="utf-8")
        assert all(f"def {name}(" in source for name in definitions(paper, "claims"))


def test_printed_numbers_are_parsed_by_type() -> None:
    from discreet_studies.sensitivity.table1 import ROWS, PrintedShares

    assert published("sensitivity", "table-1", PrintedShares) == ROWS
    assert ROWS[4].race is None
    assert (ROWS[0].race, ROWS[0].signal) == (1, 71.0)
