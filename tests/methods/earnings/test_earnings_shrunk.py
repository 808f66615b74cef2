"""The estimator `shrunk` end to end: the same noisy bins, other percentiles, the same limits and suppression."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from discreet.domain.bins import Bins
from discreet.errors import DiscreetError
from discreet.methods.earnings.shrinkage import estimate
from discreet.post.percentiles import percentiles, to_dollars
from support.earnings import BORDERS, Registrar, graduates, read, spec, table

LEVELS = [
    {"name": "families", "by": ["family", "grad_cohort", "years_after"]},
    {"name": "schools", "by": ["school", "years_after"], "epsilon": "1"},
]
SHRUNK = {"estimator": "shrunk", "borrow_from": [["years_after"], ["school", "years_after"]]}


def released(folder: Path, **changes: Any) -> dict[str, pa.Table]:
    """Published under the same key: the noise is that of the release's name, parameters and cells."""
    office = Registrar(folder, graduates(60))
    office.open(spec(table(levels=LEVELS, **changes))).run(folder / "out", simulation="shrunk")
    files = Registrar.files(folder / "out")
    return {name: read(files, name) for name in ("earnings", "families", "schools")}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    folder = tmp_path_factory.mktemp("shrunk")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_KEYS", str(folder / "keys"))
        patch.setenv("DISCREET_TMP", str(folder / "tmp"))
        return released(folder / "office", **SHRUNK)


@pytest.mark.parametrize("level", ["earnings", "families", "schools"])
def test_rules_of_what_is_published(tables: dict[str, pa.Table], level: str) -> None:
    kept = [row for row in tables[level].to_pylist() if row["status"] == 1]
    assert len(kept) > 2
    for row in kept:
        assert row["p25"] <= row["p50"] <= row["p75"]
        for p in ("p25", "p50", "p75"):
            assert row[f"{p}_low90"] <= row[p] <= row[f"{p}_high90"]
        assert row["count"] == sum(value for name, value in row.items() if name.startswith("bin_"))
    hidden = [row for row in tables[level].to_pylist() if row["status"] == 5]
    first = tables[level].column_names.index("count")
    assert all(value is None for row in hidden for value in list(row.values())[first:])


def test_it_differs_from_the_published_rule(tables: dict[str, pa.Table]) -> None:
    """From the bins that are published one can compute the published rule's percentiles: these are others."""
    kept = tables["earnings"].filter(pc.equal(tables["earnings"]["status"], 1))
    bins = np.stack([kept[name].to_numpy() for name in kept.column_names if name.startswith("bin_")], axis=1)
    raw = to_dollars(percentiles(np.ascontiguousarray(bins), Bins(BORDERS), (Fraction(1, 2),)))[:, 0]
    ours = kept["p50"].to_numpy()
    assert (raw != ours).any()
    inside = (kept["p50_low90"].to_numpy() <= raw) & (raw <= kept["p50_high90"].to_numpy())
    assert inside.all()  # the limits are those of the histogram, whoever estimates


def test_families_must_consist_of_whole_cells(tmp_path: Path) -> None:
    office = Registrar(tmp_path / "office", graduates(2))
    for similar in ([["grad_cohort", "school"]], [["school", "years_after"], ["years_after"]], [["nobody"]]):
        with pytest.raises(DiscreetError) as refusal:
            office.open(spec(table(by=["programme4", "years_after"], estimator="shrunk", borrow_from=similar))).plan()
        assert "\n" not in str(refusal.value)
        assert "borrow_from" in refusal.value.where
    with pytest.raises(DiscreetError, match="`borrow_from` is for the estimator shrunk"):
        office.open(spec(table(borrow_from=[["years_after"]]))).plan()


def test_the_estimator_needs_two_bins(tmp_path: Path) -> None:
    office = Registrar(tmp_path / "office", graduates(2))
    with pytest.raises(DiscreetError, match="needs two bins or more"):
        office.open(spec(table(estimator="shrunk", bins={"edges": [1, 100]}))).plan()


def borrowed(office: Registrar, out: Path, declared: dict[str, Any]) -> list[list[np.ndarray[Any, Any]]]:
    """The families that each level hands to the estimator."""
    seen: list[list[np.ndarray[Any, Any]]] = []

    def look(histograms: Any, families: Any, *rest: Any) -> Any:
        seen.append(list(families))
        return estimate(histograms, families, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discreet.methods.earnings.tables.estimate", look)
        office.open(declared).run(out, simulation="families")
    return seen


def test_families_are_those_declared(tmp_path: Path) -> None:
    office = Registrar(tmp_path / "office", graduates(3))
    level = {"name": "schools", "by": ["school", "years_after"]}
    actual = borrowed(office, tmp_path / "out", spec(table(levels=[level], **SHRUNK)))
    years = np.arange(3)
    schools = np.array([0, 0, 0, 1, 2, 3])  # of the six programmes, in the order of the list
    cells = [(s, y) for s in schools for _ in range(2) for y in years]
    assert actual[0][0].tolist() == [y for _, y in cells]
    assert actual[0][1].tolist() == [s * 3 + y for s, y in cells]
    assert actual[1][0].tolist() == [*years] * 4
    assert actual[1][1].tolist() == list(range(12))  # a school is a family of its own


def test_a_wider_family_is_that_of_the_narrower_one(tmp_path: Path) -> None:
    """Two lists read one column of the records. The impossible cell (lo, 2016) lies in C, and so in H: not in L, as the
    other list would have it."""
    office = Registrar(tmp_path / "office", graduates(3))
    codes = ("2010", "2013", "2016", "2019")
    (office.folder / "fine.csv").write_text("f2,n2,w2\n" + "".join(map("{},{},{}\n".format, codes, "ABCD", "LLHH")))
    halves = ("lo", "lo", "hi", "hi")
    (office.folder / "half.csv").write_text("c,half\n" + "".join(map("{},{}\n".format, codes, halves)))
    domains = {
        "fine": {"hierarchy": "fine.csv", "levels": ["f2", "n2", "w2"], "column": "grad_cohort"},
        "halves": {"hierarchy": "half.csv", "levels": ["c", "half"], "column": "grad_cohort"},
    }
    declared = table(by=["half", "f2"], estimator="shrunk", borrow_from=[["w2"], ["n2"]], suppress_below=1)
    ((wide, narrow),) = borrowed(office, tmp_path / "out", spec(declared, domains=domains))
    assert narrow.tolist() == [0, 1, 2, 3] * 2
    assert wide.tolist() == [0, 0, 1, 1] * 2


def test_what_families_are_and_what_codes_mean_is_bound(tmp_path: Path) -> None:
    office = Registrar(tmp_path / "office", graduates(2))

    def digest(**more: Any) -> str:
        return office.open(spec(table(estimator="shrunk", borrow_from=[["school"]], **more))).spec.digest()

    plain, laid_out = digest(), digest(layout="lehd")
    text = (office.folder / "institutions.csv").read_text()
    (office.folder / "institutions.csv").write_text(text.replace("Birch", "Beech"))
    assert digest() == plain  # labels are published with a layout only
    assert digest(layout="lehd") != laid_out
    programmes = (office.folder / "programmes.csv").read_text()
    (office.folder / "programmes.csv").write_text(programmes.replace("18,52.0203", "17,52.0203"))
    assert digest() != plain
