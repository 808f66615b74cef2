"""Earnings end to end: published tables are consistent, the noise has the stated distribution, sums are exact."""

from __future__ import annotations

import csv
import importlib
import io
import itertools
import json
import math
import pkgutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from typer.testing import CliRunner

import discreet
import discreet.methods.earnings
import discreet.publish.lehd
from discreet.api import set_budget
from discreet.cli import app
from discreet.errors import ParameterError, PublishError
from discreet.post.laplace_sum import count_margin
from discreet.privacy.protected import Protected
from discreet.publish import tables
from discreet.publish.lehd import schema
from discreet.publish.manifest import Manifest
from discreet.publish.storage import LocalFolder
from support.earnings import (
    BORDERS,
    COHORTS,
    DOMAINS,
    INSTITUTIONS,
    PERSON,
    YEARS,
    Record,
    Registrar,
    arrow,
    bins_of,
    graduates,
    programmes,
    read,
    spec,
    table,
)

Files = dict[str, bytes]
Measured = dict[str, np.ndarray[Any, np.dtype[np.int64]]]
LARGE, SMALL, EMPTY = "00100100", "00100200", "00100300"  # institutions of the usual release
BINS = [f"bin_{i}" for i in range(1, len(BORDERS))]
WITHHELD = "01.09"
FAMILIES = {"name": "families", "by": ["family", "grad_cohort", "years_after"]}
SCHOOLS = {"name": "schools", "by": ["school", "years_after"], "epsilon": "3/2"}
STATES = {"name": "states", "by": ["state4", "years_after"], "suppress_codes": {"degree_level": ["18"]}}
LEVELS = ("earnings", "families", "schools", "states")
USUAL = table(layout="lehd", suppress_codes={"cip4": [WITHHELD]}, levels=[FAMILIES, SCHOOLS, STATES])
CODES: Mapping[str, Callable[..., tuple[str, ...]]] = {  # of the cell of each level that a programme lies in
    "earnings": lambda p, cohort, years: (p["institution"], p["degree_level"], p["cip4"], cohort, years),
    "families": lambda p, cohort, years: (p["institution"], p["degree_level"], p["cip2"], cohort, years),
    "schools": lambda p, cohort, years: (p["institution"], p["degree_level"], years),
    "states": lambda p, cohort, years: (p["state"], p["degree_level"], p["cip4"], years),
}


def cells_of(level: str) -> list[tuple[str, ...]]:
    """Every declared cell of a level, in order, by hand: groups of the list, times the years, times the cohorts."""
    coded = CODES[level]
    by_cohort = level in ("earnings", "families")
    groups = list(dict.fromkeys(coded(p, "", "")[: 2 if level == "schools" else 3] for p in programmes()))
    rest = itertools.product(COHORTS, YEARS) if by_cohort else ((y,) for y in YEARS)
    return [(*group, *more) for group, more in itertools.product(groups, list(rest))]


def children() -> dict[str, dict[tuple[str, ...], set[tuple[str, ...]]]]:
    """The base cells of each cell of a level."""
    actual: dict[str, dict[tuple[str, ...], set[tuple[str, ...]]]] = {level: defaultdict(set) for level in LEVELS}
    for p, cohort, years in itertools.product(programmes(), COHORTS, YEARS):
        for level, coded in CODES.items():
            actual[level][coded(p, cohort, years)].add(CODES["earnings"](p, cohort, years))
    return actual


def rows_of(published: pa.Table) -> dict[tuple[str, ...], dict[str, Any]]:
    """The rows of a table by their codes."""
    width = published.column_names.index("status")
    return {tuple(row.values())[:width]: dict(list(row.items())[width:]) for row in published.to_pylist()}


# --- the usual release ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Files, Measured, Manifest]]:
    """Published once for many tests: many graduates of one institution, few of another, none of the third."""
    folder = tmp_path_factory.mktemp("usual")
    records = [*graduates(120, only=[LARGE]), *graduates(8, only=[SMALL], seed=8)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_KEYS", str(folder / "keys"))
        patch.setenv("DISCREET_TMP", str(folder / "tmp"))
        seen = watched(patch)
        office = Registrar(folder / "office", records)
        opened = office.open(spec(USUAL))
        made = opened.run(folder / "out", simulation="usual")
        yield Registrar.files(folder / "out"), seen, made


def watched(patch: pytest.MonkeyPatch) -> Measured:
    """The noisy histograms from which all else is computed, captured before they are removed."""
    seen: Measured = {}
    remove = LocalFolder.remove

    def look(self: LocalFolder, name: str) -> None:
        seen[name] = pq.read_table(pa.BufferReader(self.read(name))).column("count").to_numpy()
        remove(self, name)

    patch.setattr(LocalFolder, "remove", look)
    return seen


@pytest.fixture
def files(usual: tuple[Files, Measured, Manifest]) -> Files:
    return usual[0]


def histograms(seen: Measured, level: str, bins: int = len(BINS)) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The measured histograms of a level, one row a cell."""
    parts = [seen[name] for name in sorted(seen) if name.startswith(f"{level}~")]
    return np.concatenate(parts).reshape(-1, bins)


@pytest.mark.parametrize("level", LEVELS)
def test_every_declared_cell_has_a_row_occupied_or_not(files: Files, level: str) -> None:
    published = rows_of(read(files, level))
    assert list(published) == cells_of(level)
    assert any(cell[0] == EMPTY or cell[0] == "06" for cell in published)


@pytest.mark.parametrize("level", LEVELS)
def test_percentiles_rise_and_lie_between_their_limits(files: Files, level: str) -> None:
    shown = [row for row in rows_of(read(files, level)).values() if row["status"] == 1]
    assert shown
    for row in shown:
        assert row["p25"] <= row["p50"] <= row["p75"]
        for p in ("p25", "p50", "p75"):
            assert BORDERS[0] <= row[f"{p}_low90"] <= row[p] <= row[f"{p}_high90"] <= BORDERS[-1]
            inside = [b - a for a, b in itertools.pairwise(BORDERS) if a <= row[p] <= b]
            assert row[f"{p}_width"] in inside
        assert row["count"] == sum(row[b] for b in BINS)


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_is_published_below_the_threshold_and_suppressed_cells_have_no_numbers(
    files: Files, level: str
) -> None:
    published = rows_of(read(files, level)).values()
    assert {row["status"] for row in published} == {1, 5}
    for row in published:
        numbers = [value for name, value in row.items() if name != "status"]
        if row["status"] == 1:
            assert row["count"] >= 30
            assert None not in numbers
        else:
            assert set(numbers) == {None}


def test_suppression_follows_from_the_protected_count_and_the_suppressed_codes(
    usual: tuple[Files, Measured, Manifest],
) -> None:
    """Suppression depends on neither true counts nor records; cells on both sides of the threshold exist."""
    files, seen, _ = usual
    for level, withheld in (("earnings", {WITHHELD}), ("schools", set())):
        counts = histograms(seen, level).sum(axis=1).tolist()
        published = rows_of(read(files, level))
        expected = [
            5 if count < 30 or withheld & set(cell) else 1 for cell, count in zip(published, counts, strict=True)
        ]
        assert [row["status"] for row in published.values()] == expected
    assert any(0 < count < 30 for count in histograms(seen, "earnings").sum(axis=1))


def test_cells_with_suppressed_codes_are_suppressed_however_large(usual: tuple[Files, Measured, Manifest]) -> None:
    files, seen, _ = usual
    counts = dict(zip(cells_of("earnings"), histograms(seen, "earnings").sum(axis=1).tolist(), strict=True))
    published = rows_of(read(files, "earnings"))
    kept_back = [cell for cell in published if cell[2] == WITHHELD]
    assert len(kept_back) == len(COHORTS) * len(YEARS)
    assert all(counts[cell] >= 30 and published[cell]["status"] == 5 for cell in kept_back)
    assert all(row["status"] == 5 for cell, row in rows_of(read(files, "states")).items() if cell[1] == "18")
    assert any(row["status"] == 1 for cell, row in rows_of(read(files, "states")).items() if cell[2] == WITHHELD)


@pytest.mark.parametrize("level", LEVELS)
def test_csv_and_parquet_say_the_same(files: Files, level: str) -> None:
    rows = list(csv.reader(io.StringIO(files[f"{level}.simulation.csv"].decode())))
    published = read(files, level)
    assert rows[0] == published.column_names
    shown = [["" if value is None else str(value) for value in row.values()] for row in published.to_pylist()]
    assert rows[1:] == shown


@pytest.mark.parametrize("level", LEVELS)
def test_margins_are_those_of_a_sum_of_that_many_draws(files: Files, level: str) -> None:
    made_of = children()[level]
    rate = Fraction(1, 2) if level == "schools" else Fraction(1)
    for cell, row in rows_of(read(files, level)).items():
        if row["status"] == 1:
            draws = len(BINS) * (1 if level == "schools" else len(made_of[cell]))
            assert row["count_moe90"] == count_margin(rate, draws)


def percentile(histogram: list[int], borders: tuple[int, ...], point: Fraction) -> Fraction:
    """PSEO Beta Appendix, Eq. 4, with the total over all bins, in exact arithmetic."""
    needed, before = point * sum(histogram), 0
    for count, lower, upper in zip(histogram, borders[:-1], borders[1:], strict=True):
        if needed <= before + count:
            return lower + (upper - lower) * Fraction(needed - before, count)
        before += count
    raise AssertionError


@pytest.mark.parametrize("level", LEVELS)
def test_percentiles_are_those_of_the_published_bins(files: Files, level: str) -> None:
    checked = 0
    for row in rows_of(read(files, level)).values():
        if row["status"] == 1:
            for p in (25, 50, 75):
                exact = percentile([row[b] for b in BINS], BORDERS, Fraction(p, 100))
                assert row[f"p{p}"] == math.floor(exact + Fraction(1, 2))
                checked += 1
    assert checked >= 9


# --- LEHD's layout --------------------------------------------------------------------------------------------------


def lehd_rows(files: Files) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(files["pseoe_all.simulation.csv"].decode())))


def test_the_layout_has_the_numbers_of_the_levels(files: Files) -> None:
    """Every cell of every level once, with its status, its quartiles and its count."""
    published = {level: rows_of(read(files, level)) for level in LEVELS}
    names = {"48": "earnings", "46": "families", "38": "schools", "30": "states"}
    seen = set()
    for row in lehd_rows(files):
        level = names[row["agg_level_pseo"]]
        codes = [row["institution"], row["degree_level"]]
        codes += [row["cipcode"]] if level != "schools" else []
        codes += [row["grad_cohort"]] if level in ("earnings", "families") else []
        assert row["grad_cohort_years"] == ("3" if row["degree_level"] == "05" else "5")
        for year in YEARS:
            cell = (*codes, year)
            seen.add((level, cell))
            expected = published[level][cell]
            texts = {k: "" if v is None else str(v) for k, v in expected.items()}
            assert row[f"status_y{year}_earnings"] == row[f"status_y{year}_grads_earn"] == texts["status"]
            assert [row[f"y{year}_p{q}_earnings"] for q in (25, 50, 75)] == [texts[f"p{q}"] for q in (25, 50, 75)]
            assert row[f"y{year}_grads_earn"] == texts["count"]
            assert (row[f"y{year}_ipeds_count"], row[f"status_y{year}_ipeds_count"]) == ("", "3")
    assert len(seen) == sum(len(cells_of(level)) for level in LEVELS)


def test_suppressed_cells_have_no_numbers_in_the_layout(files: Files) -> None:
    suppressed = 0
    for row in lehd_rows(files):
        for year in YEARS:
            if row[f"status_y{year}_earnings"] == "5":
                suppressed += 1
                numbers = [row[c] for c in row if c.startswith(f"y{year}_")]
                assert set(numbers) == {""}
    assert suppressed
    assert read(files, "pseoe_all").to_pylist() == [
        {c: (v or None) if c in TEXTS else int(v) if v else None for c, v in row.items()} for row in lehd_rows(files)
    ]


TEXTS = {
    *("inst_level", "institution", "degree_level", "cip_level", "cipcode", "grad_cohort"),
    *("geo_level", "geography", "ind_level", "industry"),
}


def test_the_files_pass_check_layout(files: Files, tmp_path: Path) -> None:
    for kind in ("csv", "parquet"):
        path = tmp_path / f"pseoe_all.{kind}"
        path.write_bytes(files[f"pseoe_all.simulation.{kind}"])
        actual = CliRunner().invoke(app, ["check-layout", str(path)])
        assert actual.exit_code == 0, actual.output
        assert "follows the layout" in actual.output
    path = tmp_path / "broken.csv"
    path.write_bytes(files["pseoe_all.simulation.csv"].replace(b"00100100", b"100100"))
    assert CliRunner().invoke(app, ["check-layout", str(path)]).exit_code == 1


def test_label_files_list_exactly_the_declared_codes(files: Files) -> None:
    def labels(what: str) -> dict[str, str]:
        rows = list(csv.reader(io.StringIO(files[f"label_{what}.simulation.csv"].decode())))
        assert rows[0] == [what, "label"] if what not in ("flags", "flags_ipeds_count") else ["flag", "label"]
        return dict(rows[1:])

    listed = programmes()
    states = {p["state"] for p in listed}
    named = dict(list(csv.reader(io.StringIO(INSTITUTIONS)))[1:])
    assert labels("institution") == named | {state: state for state in states}
    assert set(labels("cipcode")) == {"00", *(p["cip4"] for p in listed), *(p["cip2"] for p in listed)}
    assert labels("degree_level") == {d: schema.LABELS["degree_level"][d] for d in ("05", "18")}
    assert labels("flags") == schema.FLAGS
    assert labels("flags_ipeds_count") == schema.IPEDS_FLAGS
    assert set(labels("cip_level")) == {"A", "2", "4"}
    assert set(labels("inst_level")) == {"I", "S"}
    aggs = list(csv.DictReader(io.StringIO(files["label_agg_level_pseo.simulation.csv"].decode())))
    assert [int(a["agg_level_pseo"]) for a in aggs] == [30, 38, 46, 48]
    assert [a["by_grad_cohort"] for a in aggs] == ["0", "0", "1", "1"]


def test_the_version_line(files: Files) -> None:
    """The first and the last declared cohort; the quarter of the reservation, 15 January 2026."""
    assert files["version_pseo.simulation.txt"] == b"PSEOE US 00 2010-2013 V4.14.0 R2026Q1 discreet_r\n"


def test_years_that_are_not_declared_are_not_available(tmp_path: Path) -> None:
    office = Registrar(tmp_path / "office", graduates(60))
    domains = {**DOMAINS, "years_after": {"values": ["5"]}}
    layout = {"kind": "lehd", "area": "co", "area_code": "08"}
    files = office.published(spec(table(layout=layout), domains=domains))
    rows = list(csv.DictReader(io.StringIO(files["pseoe_co.simulation.csv"].decode())))
    assert len(rows) == len(cells_of("earnings")) / len(YEARS)
    for row in rows:
        assert {row[f"status_y{y}_earnings"] for y in ("1", "10")} == {"-1"}
        assert row["y1_p50_earnings"] == row["y10_grads_earn"] == ""
        assert row["status_y5_earnings"] == "1"
    assert files["version_pseo.simulation.txt"].startswith(b"PSEOE CO 08 2010-2013 ")


# --- plan, manifest, ledger, codebook -----------------------------------------------------------------------------


def test_the_manifest_lists_everything(usual: tuple[Files, Measured, Manifest]) -> None:
    files, seen, made = usual
    assert set(files) == {*made.files, "manifest.json"}
    assert not [name for name in files if "measured" in name]
    assert sorted(seen) == ["earnings~measured.simulation.parquet", "schools~measured.simulation.parquet"]
    assert {t.name: t.sum_of for t in made.tables} == {
        **{"earnings": "", "families": "earnings"},
        **{"schools": "", "states": "earnings"},
    }
    assert {t.name: t.cells for t in made.tables} == {level: len(cells_of(level)) for level in LEVELS}
    tables = {name for t in made.tables for name in t.files}
    assert tables == {f"{level}.simulation.{kind}" for level in LEVELS for kind in ("parquet", "csv")}
    assert tables | set(made.layouts) | {"codebook.json", "codebook.md"} == set(made.files)
    assert not tables & set(made.layouts)


def test_the_total_is_the_sum_of_the_measured_levels(usual: tuple[Files, Measured, Manifest]) -> None:
    _, _, made = usual
    assert made.guarantee.epsilon == Fraction(9, 2)
    assert {t.name: t.guarantee.epsilon for t in made.tables} == {
        **{"earnings": 3, "families": 3},
        **{"schools": Fraction(3, 2), "states": 3},
    }
    assert made.composition.startswith("epsilon 4.5 (2 tables")


def test_the_ledger_is_charged_the_total_and_sums_add_nothing(tmp_path: Path) -> None:
    office = Registrar(tmp_path / "office", graduates(5))
    for levels, total in (([], 3), ([FAMILIES, STATES], 3), ([FAMILIES, SCHOOLS], Fraction(9, 2))):
        opened = office.open(spec(table(levels=levels)))
        assert opened.plan().total.epsilon == total
        made = opened.run(tmp_path / f"out{len(levels)}{total}".replace("/", "-"), simulation="charged")
        assert made.guarantee.epsilon == total
        balance = opened.ledger.verify().balance("records", opened.ledger.clock().date())
        assert balance.epsilon == total


def test_the_codebook_names_every_column_of_each_file(files: Files) -> None:
    book = json.loads(files["codebook.json"])
    assert set(book["tables"]) == set(LEVELS)
    for level, about in book["tables"].items():
        assert about["files"] == [f"{level}.simulation.parquet", f"{level}.simulation.csv"]
        assert [c["name"] for c in about["columns"]] == read(files, level).column_names
        assert all(c["meaning"] for c in about["columns"])
    text = files["codebook.md"].decode()
    assert all(f"| {c} |" in text for c in ("count_moe90", "p50_low90", "bin_4"))
    assert WITHHELD in text
    assert "below 30" in text


# --- sums -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plenty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Files, Measured]]:
    """Enough graduates everywhere that every cell is published and none is suppressed."""
    folder = tmp_path_factory.mktemp("plenty")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_KEYS", str(folder / "keys"))
        patch.setenv("DISCREET_TMP", str(folder / "tmp"))
        seen = watched(patch)
        office = Registrar(folder / "office", graduates(100))
        everything = {"name": "everybody", "by": []}
        second = {"name": "second", "by": ["school", "years_after"], "sum_of": "schools"}
        levels = [FAMILIES, {**STATES, "suppress_codes": {}}, SCHOOLS, everything, second]
        yield office.published(spec(table(levels=levels, suppress_below=1))), seen


def test_a_derived_level_is_the_exact_sum_of_protected_histograms(plenty: tuple[Files, Measured]) -> None:
    files, seen = plenty
    base = {cell: np.array([row[b] for b in BINS]) for cell, row in rows_of(read(files, "earnings")).items()}
    assert np.array_equal(np.stack(list(base.values())), histograms(seen, "earnings"))
    for level in ("families", "states"):
        made_of = children()[level]
        for cell, row in rows_of(read(files, level)).items():
            assert [row[b] for b in BINS] == sum(base[child] for child in made_of[cell]).tolist()
            assert row["count"] == sum(int(base[child].sum()) for child in made_of[cell])
    everybody = rows_of(read(files, "everybody"))
    assert [everybody[()][b] for b in BINS] == sum(base.values()).tolist()
    assert "everybody" not in {name.split(".")[0] for name in seen}


def test_sum_of_takes_the_named_level(plenty: tuple[Files, Measured]) -> None:
    files, _ = plenty
    assert np.array_equal(bins_of(read(files, "second")), bins_of(read(files, "schools")))


def test_levels_agree_with_each_other_in_their_counts(plenty: tuple[Files, Measured]) -> None:
    files, _ = plenty
    totals = {level: int(np.sum(read(files, level)["count"].to_numpy())) for level in LEVELS}
    assert totals["earnings"] == totals["families"] == totals["states"]
    assert totals["schools"] != totals["earnings"]  # measured separately, with its own noise


def test_sums_over_many_files_and_pieces_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the work is cut, the numbers are the same; only the row groups of a Parquet file follow its pieces."""
    office = Registrar(tmp_path / "office", graduates(30))
    declared = spec(table(levels=[FAMILIES, STATES], layout="lehd"))
    whole = office.published(declared)
    monkeypatch.setattr("discreet.methods.histograms.PART", 5 * len(BINS))
    monkeypatch.setattr("discreet.methods.histograms.RANGE", 3)
    seen = watched(monkeypatch)
    cut = office.published(declared)
    assert cut.keys() == whole.keys()
    for name in whole.keys() - {"manifest.json"}:
        if name.endswith(".parquet"):
            one, two = (pq.read_table(pa.BufferReader(files[name])) for files in (cut, whole))
            assert one.schema == two.schema
            assert one.to_pylist() == two.to_pylist()
        else:
            assert cut[name] == whole[name]
    assert len(seen) == math.ceil(len(cells_of("earnings")) / 5)


# --- noise ----------------------------------------------------------------------------------------------------------


def p_value(noise: np.ndarray[Any, Any], rate: float) -> float:
    """χ² of integer noise against the two-sided geometric distribution, tails pooled."""
    a, top = np.exp(-rate), int(6 / rate)
    k = np.arange(-top, top + 1)
    probability = (1 - a) / (1 + a) * a ** np.abs(k)
    probability[[0, -1]] = a**top / (1 + a)
    observed = np.bincount(np.clip(noise, -top, top) + top, minlength=2 * top + 1)
    return float(stats.chisquare(observed, probability * noise.size).pvalue)


def many(cells: int) -> dict[str, Any]:
    return {"cell": {"values": [str(i) for i in range(cells)]}}


@pytest.mark.parametrize(("unit", "records"), [("record", 1), (PERSON, 3)])
def test_empty_cells_are_pure_noise_of_rate_epsilon_over_max_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: Any, records: int
) -> None:
    seen = watched(monkeypatch)
    empty = pa.table({n: pa.array([], pa.string()) for n in ("person_id", "cell", "pay")})
    office = Registrar(tmp_path / "office", empty)
    office.published(spec(table(by=["cell"], epsilon="3/2"), unit=unit, domains=many(10_000)))
    noise, rate = histograms(seen, "earnings").ravel(), 1.5 / records
    assert noise.size == 40_000
    assert p_value(noise, rate) > 1e-6
    for wrong in (0.7 * rate, 1.3 * rate, 1.5 / (4 - records)):
        assert p_value(noise, wrong) < 1e-20
    assert p_value(noise + 1, rate) < 1e-20
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 0.03  # nor do bins have each other's noise


def test_published_bins_are_the_true_ones_plus_noise_of_that_rate(tmp_path: Path) -> None:
    """From the published file alone: everywhere as many records, so that every cell is published."""
    cells, each = 2000, 30
    middle = [(a + b) // 2 for a, b in itertools.pairwise(BORDERS)]
    rows = cells * len(BINS) * each
    people = np.arange(rows).astype(str)
    names = np.repeat(np.arange(cells), len(BINS) * each).astype(str)
    pay = np.tile(np.repeat(middle, each), cells)
    records = pa.table({"person_id": people, "cell": names, "pay": pay})
    office = Registrar(tmp_path / "office", records)
    files = office.published(spec(table(by=["cell"], epsilon="2", suppress_below=1), domains=many(cells)))
    published = read(files, "earnings")
    assert set(published["status"].to_pylist()) == {1}
    noise = (bins_of(published) - each).ravel()
    assert p_value(noise, 2 / 3) > 1e-6
    for wrong in (2.0, 0.7 * 2 / 3, 1.3 * 2 / 3):
        assert p_value(noise, wrong) < 1e-20


def test_levels_with_the_same_cells_and_epsilon_have_noise_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal noise would reveal the difference of two levels, and averaging would gain nothing."""
    seen = watched(monkeypatch)
    empty = pa.table({n: pa.array([], pa.string()) for n in ("person_id", "cell", "pay")})
    office = Registrar(tmp_path / "office", empty)
    level = {"name": "again", "by": ["cell"], "epsilon": "3"}
    office.published(spec(table(by=["cell"], levels=[level]), table(name="third", by=["cell"]), domains=many(2500)))
    first, second, third = (histograms(seen, name).ravel() for name in ("earnings", "again", "third"))
    for one, two in itertools.combinations((first, second, third), 2):
        assert abs(np.corrcoef(one, two)[0, 1]) < 0.06
    for noise in (first, second, third):
        assert p_value(noise, 1.0) > 1e-6


def test_the_noise_is_that_of_the_key_and_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another seed gives independent noise."""
    seen = watched(monkeypatch)
    office = Registrar(tmp_path / "office")
    drawn = []
    for seed in ("one", "one", "two"):
        office.open(spec()).run(tmp_path / f"out{len(drawn)}", simulation=seed)
        drawn.append(histograms(seen, "earnings").ravel().copy())
    assert np.array_equal(drawn[0], drawn[1])
    assert abs(np.corrcoef(drawn[0], drawn[2])[0, 1]) < 0.3


# --- privacy --------------------------------------------------------------------------------------------------------


def test_neighbours_under_the_same_key_differ_by_the_person_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removing a person changes each level's histograms by her used records, at most max_records in L1 norm."""
    seen = watched(monkeypatch)
    others = graduates(3)
    hers: list[Record] = [("target", *record[1:6], 50_000) for record in graduates(1)][:9]
    drawn = []
    for i, records in enumerate((others, [*others, *hers])):
        office = Registrar(tmp_path / f"office{i}", records)
        office.published(spec(table(levels=[SCHOOLS, FAMILIES])))
        drawn.append({level: histograms(seen, level).copy() for level in ("earnings", "schools")})
    for level in ("earnings", "schools"):
        moved = drawn[1][level] - drawn[0][level]
        assert moved.sum() == np.abs(moved).sum() == PERSON["max_records"]
        assert set(np.flatnonzero(moved.any(axis=0))) == {2}  # 50,000 lies in the third bin
    assert np.abs(drawn[1]["earnings"] - drawn[0]["earnings"]).sum() == 3


def test_output_does_not_reveal_which_programmes_occur(tmp_path: Path) -> None:
    """Two sources that have no programme in common: the same files, rows, codes and descriptions."""
    actual = []
    for i, only in enumerate(([LARGE], [SMALL, EMPTY])):
        office = Registrar(tmp_path / f"office{i}", graduates(60, only=only))
        actual.append(office.published(spec(USUAL)))
    one, two = actual
    assert one.keys() == two.keys()
    words = [n for n in one if n.startswith(("label_", "version_", "codebook"))]
    assert len(words) == 2 + 1 + 10
    assert all(one[name] == two[name] for name in words)
    for level in LEVELS:
        assert list(rows_of(read(one, level))) == list(rows_of(read(two, level)))
        assert read(one, level).schema == read(two, level).schema
        assert one[f"{level}.simulation.csv"] != two[f"{level}.simulation.csv"]
    ids = [[[row[c] for c in schema.IDENTIFIERS] for row in lehd_rows(files)] for files in actual]
    assert ids[0] == ids[1]
    manifests = [json.loads(files["manifest.json"]) for files in actual]
    for manifest in manifests:
        manifest["files"] = sorted(manifest["files"])
        del manifest["digest"]  # of the files' digests, among others
    assert manifests[0] == manifests[1]


def test_an_empty_source_is_published_like_any_other(tmp_path: Path) -> None:
    office = Registrar(tmp_path / "office")
    files = office.published(spec(USUAL))
    for level in LEVELS:
        published = rows_of(read(files, level))
        assert list(published) == cells_of(level)


def test_records_outside_the_sample_count_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same noise with and without them: they do not displace other records either."""
    seen = watched(monkeypatch)
    inside = graduates(4)
    outside = [(*record[:6], pay) for record in graduates(4) for pay in (-1, 10**7, None)]
    sample = [{"column": "pay", "at_least": 0, "at_most": 10**6}]
    drawn = []
    for i, records in enumerate((inside, [*outside, *inside])):
        office = Registrar(tmp_path / f"office{i}", records)
        office.published(spec(table(sample=sample)))
        drawn.append(histograms(seen, "earnings").copy())
    assert np.array_equal(*drawn)


def test_programmes_that_are_not_listed_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watched(monkeypatch)
    listed = graduates(4)
    strange = [(f"Q{i}", "99999999", *record[2:]) for i, record in enumerate(listed)]
    drawn = []
    for i, records in enumerate((listed, [*listed, *strange])):
        office = Registrar(tmp_path / f"office{i}", records)
        files = office.published(spec(table(levels=[SCHOOLS])))
        assert not [name for name, content in files.items() if b"99999999" in content]
        drawn.append({level: histograms(seen, level).copy() for level in ("earnings", "schools")})
    assert all(np.array_equal(drawn[0][level], drawn[1][level]) for level in drawn[0])


# --- crashes and changed files ----------------------------------------------------------------------------------------


class Crash(BaseException):
    """Not an error: the end of the process."""


def crash_after(step: int) -> Callable[[str, int, int], None]:
    def observe(name: str, done: int, total: int) -> None:
        if name == "protect earnings" and done == step:
            raise Crash

    return observe


STEPS = 2 + len(LEVELS) + 1  # two measured levels of one span, four tables, the layout


def test_progress_is_reported(tmp_path: Path) -> None:
    reports: list[tuple[int, int]] = []

    def observe(name: str, done: int, total: int) -> None:
        if name == "protect earnings":
            reports.append((done, total))

    Registrar(tmp_path / "office").open(spec(USUAL)).run(tmp_path / "out", simulation="x", observe=observe)
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert {done for done, _ in reports} >= set(range(1, STEPS + 1))
    assert {total for _, total in reports} == {STEPS}


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_crashed_while_protecting_then_resumed(tmp_path: Path, step: int) -> None:
    office = Registrar(tmp_path / "office", graduates(40))
    expected = office.published(spec(USUAL))
    opened, out = office.open(spec(USUAL)), tmp_path / "out"
    with pytest.raises(Crash):
        opened.run(out, simulation="suite", observe=crash_after(step))
    assert not out.exists()
    opened.resume()
    actual = Registrar.files(out)
    assert actual == expected
    assert not [name for name in actual if "measured" in name]
    assert {path.name for path in tmp_path.iterdir()} == {"office", "out"}  # nothing is left beside it
    balance = opened.ledger.verify().balance("records", opened.ledger.clock().date())
    assert balance.epsilon == Fraction(9, 2)


def test_crashed_between_many_parts_then_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurements in several files, as large releases have them."""
    monkeypatch.setattr("discreet.methods.histograms.PART", 8 * len(BINS))
    office = Registrar(tmp_path / "office", graduates(40))
    expected = office.published(spec(USUAL))
    for step in (2, 6):
        opened, out = office.open(spec(USUAL)), tmp_path / f"out{step}"
        with pytest.raises(Crash):
            opened.run(out, simulation="suite", observe=crash_after(step))
        opened.resume()
        assert Registrar.files(out) == expected


@pytest.mark.parametrize("how", ["other numbers", "other bytes", "one number more"])
def test_measurements_that_were_changed_meanwhile_are_refused(tmp_path: Path, how: str) -> None:
    """What workers wrote is read again later: by then it must be what they wrote."""
    office = Registrar(tmp_path / "office", graduates(40))
    expected = office.published(spec(USUAL))
    opened, out, touched = office.open(spec(USUAL)), tmp_path / "out", []

    def tamper(name: str, done: int, total: int) -> None:
        if name == "protect earnings" and done == 2:  # both levels are measured, none is read yet
            for path in tmp_path.rglob("earnings~measured*"):
                kept = pq.read_table(path)
                counts = kept["count"].to_numpy() + 1
                if how == "other bytes":
                    path.write_bytes(path.read_bytes() + b"\0")
                else:
                    counts = np.append(counts, 5) if how == "one number more" else counts
                    pq.write_table(pa.table({"count": counts}).cast(kept.schema), path)
                touched.append(path)

    with pytest.raises(PublishError, match="is not the file that was written"):
        opened.run(out, simulation="suite", observe=tamper)
    assert len(touched) == 1
    assert not out.exists()
    opened.resume()
    assert Registrar.files(out) == expected


def test_simulated_measurements_are_marked_and_real_ones_are_not(tmp_path: Path) -> None:
    office = Registrar(tmp_path / "office", graduates(40))
    ledger = discreet.ledger(tmp_path / "real.sqlite")
    unit = {"kind": "person", "column": "person_id"}
    set_budget(ledger, "records", epsilon="10", unit=unit)
    path = office.folder / "real.yaml"
    path.write_text(json.dumps({"release": "r", "asset": "records", **spec(USUAL)}))
    made = discreet.release(path, ledger=ledger).run(tmp_path / "out")
    assert not made.simulation
    assert "earnings.parquet" in made.files
    assert "pseoe_all.csv" in made.files
    assert "version_pseo.txt" in made.files
    assert "label_institution.csv" in made.files
    assert not [name for name in made.files if "simulation" in name or "measured" in name]


def test_protected_values_carry_the_guarantee_of_their_measurements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that is written was protected under the level's own guarantee."""
    seen: dict[str, set[Fraction]] = defaultdict(set)
    written = tables.write_table

    def watch(place: Any, name: str, schema_: Any, batches: Iterator[Protected[Any]], *rest: Any, **more: Any) -> Any:
        def each() -> Iterator[Protected[Any]]:
            for batch in batches:
                seen[name].add(batch.guarantee.epsilon)
                yield batch

        return written(place, name, schema_, each(), *rest, **more)

    for package in (discreet.methods, discreet.methods.earnings, discreet.publish.lehd):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            actual = importlib.import_module(module.name)
            if hasattr(actual, "write_table"):
                monkeypatch.setattr(actual, "write_table", watch)
    Registrar(tmp_path / "office", graduates(40)).published(spec(USUAL))
    for level, epsilon in (("earnings", 3), ("families", 3), ("schools", Fraction(3, 2)), ("states", 3)):
        assert seen[level] == {epsilon}
    assert seen["pseoe_all"] == {3, Fraction(3, 2)}


# --- odd shapes -----------------------------------------------------------------------------------------------------


def test_a_table_of_one_cell(tmp_path: Path) -> None:
    office = Registrar(tmp_path / "office", graduates(10))
    files = office.published(spec(table(by=[], bins="pseo", percentiles=["12.5", "99.9"])))
    (row,) = read(files, "earnings").to_pylist()
    assert row["status"] == 1
    assert abs(row["count"] - len(graduates(10))) < 200
    assert {"p12_5", "p99_9_high90", "bin_01", "bin_21"} <= row.keys()
    assert row["p12_5"] < row["p99_9"]


@pytest.mark.parametrize("threshold", [1, 10**9])
def test_the_smallest_and_the_largest_suppression_threshold(tmp_path: Path, threshold: int) -> None:
    office = Registrar(tmp_path / "office", graduates(2))
    published = rows_of(read(office.published(spec(table(suppress_below=threshold))), "earnings")).values()
    if threshold > 1:
        assert {row["status"] for row in published} == {5}
    assert all(row["count"] >= threshold for row in published if row["status"] == 1)


def test_undeclared_codes_counted_as_other_are_added_up_as_other(tmp_path: Path) -> None:
    records = arrow(graduates(40))
    more = pa.array([["north", "south", "west", None][i % 4] for i in range(records.num_rows)])
    office = Registrar(tmp_path / "office", records.append_column("region", more))
    regions = {"values": ["north", "south"], "undeclared": {"other": "elsewhere"}}
    levels = [{"name": "regions", "by": ["region"]}, {"name": "areas", "by": ["region"], "sum_of": "earnings"}]
    declared = table(by=["school", "region"], levels=levels, suppress_below=1)
    files = office.published(spec(declared, domains={**DOMAINS, "region": regions}))
    base, sums = rows_of(read(files, "earnings")), rows_of(read(files, "regions"))
    assert list(sums) == [("north",), ("south",), ("elsewhere",)]
    for region in sums:
        mine = [row for cell, row in base.items() if cell[-1] == region[0]]
        assert sums[region]["count"] == sum(row["count"] for row in mine)
        assert [sums[region][b] for b in BINS] == [sum(row[b] for row in mine) for b in BINS]
    assert files["areas.simulation.csv"] == files["regions.simulation.csv"]


def test_a_refusal_after_the_reservation_says_that_epsilon_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It should have been refused earlier; the message must not suggest that nothing was spent."""

    def refuse(*_: object) -> None:
        raise ParameterError("a bound that nobody thought of", where="here")

    office = Registrar(tmp_path / "office", graduates(2))
    opened = office.open(spec())
    with monkeypatch.context() as patch:
        patch.setattr("discreet.methods.earnings.tables.summarise", refuse)
        with pytest.raises(PublishError, match=r"a bound that nobody thought of.*epsilon 3 is spent"):
            opened.run(tmp_path / "out", simulation="late")
    assert not (tmp_path / "out").exists()
    opened.resume()
    assert (tmp_path / "out" / "manifest.json").exists()
