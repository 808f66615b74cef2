"""`discreet estimate`, `tradeoff` and `envelope`, as typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pyreadstat
import pytest
import yaml
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.errors import DiscreetError, ParameterError, PublishError, SourceError, SpecError
from support.repository import SHARED
from support.sensitivity import AtlasAgency, children

MOS = SHARED / "mos-example/private_data_by_cells.dta"


def typed(*words: str) -> str:
    """What a command prints; its refusal is raised."""
    result = CliRunner().invoke(app, list(words))
    if isinstance(result.exception, DiscreetError):
        raise result.exception
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


@pytest.fixture
def stata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records as Stata writes them."""
    monkeypatch.setenv("DISCREET_KEYS", str(tmp_path / "keys"))
    path = tmp_path / "children.dta"
    children().to_pandas().astype({"tract": str, "treated": str, "child": str}).to_stata(path, write_index=False)
    return path


def options(data: Path, **changes: str | None) -> list[str]:
    given: dict[str, Any] = {
        "statistic": "prediction",
        "y": "kid_rank",
        "x": "parent_rank",
        "at": "0.25",
        "by": "tract=000,101,202,003,104,205",
        "bounds": "parent_rank=0:1",
        "epsilon": "8",
        "delta": "0.000001",
        "budget": "24",
        "out": str(data.parent / "released"),
        "ledger": str(data.parent / "discreet-ledger.sqlite"),
        **changes,
    }
    words = [word for name, value in given.items() if value is not None for word in (f"--{name}", value)]
    return ["estimate", str(data), *words, "--bounds", "kid_rank=0:1"]


def test_one_command_from_a_stata_file_to_a_stata_file(stata: Path) -> None:
    said = typed(*options(stata))
    assert "epsilon 24, delta 0.000001" in said
    assert "Caveat: Not differentially private" in said
    frame, _ = pyreadstat.read_dta(str(stata.parent / "released/prediction.dta"))
    assert frame["tract"].tolist() == ["000", "101", "202", "003", "104", "205"]
    assert np.isfinite(frame["estimate"]).all()
    declared = yaml.safe_load((stata.parent / "released.yaml").read_text())
    assert declared["tables"][0]["statistic"] == {
        "name": "prediction",
        "x": "parent_rank",
        "y": "kid_rank",
        "at": "0.25",
    }
    again = discreet.release(stata.parent / "released.yaml").plan()
    assert again.total.epsilon == 24


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({"bounds": "kid_rank=0:1"}, SpecError, "'parent_rank' has no bounds"),
        ({"bounds": "parent_rank=0"}, SpecError, "are not bounds"),
        ({"bounds": "parent_rank"}, SpecError, "cannot read 'parent_rank'"),
        ({"by": "tract=9..1"}, SpecError, "not a range of codes"),
        ({"at": "25"}, SpecError, "outside the bounds of 'parent_rank', 0 … 1"),
        ({"unit": "person"}, SpecError, "is not a unit"),
        ({"bounds": "other=0:1"}, SpecError, "is neither x nor y"),
        ({"x": None}, SpecError, "needs an x"),
        ({"delta": None}, SpecError, "'delta' is missing"),
        ({"epsilon": "eight"}, SpecError, "expected an exact number"),
        ({"statistic": "medain"}, SpecError, "unknown statistic 'medain'"),
        ({"budget": "23"}, SpecError, "budget: 23 is below the cost of this release, 24"),
        ({"x": "nothing", "bounds": "nothing=0:1"}, SourceError, "no column 'nothing'"),
    ],
)
def test_refusals_leave_nothing_behind(
    stata: Path, changes: dict[str, str | None], kind: type[DiscreetError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        typed(*options(stata, **changes))
    assert not (stata.parent / "released").exists()
    assert not (stata.parent / "released.yaml").exists()
    ledger = discreet.ledger(stata.parent / "discreet-ledger.sqlite")
    assert not ledger.store.exists() or not ledger.chain().releases()


def test_a_second_release_needs_a_larger_budget(stata: Path) -> None:
    typed(*options(stata))
    with pytest.raises(SpecError, match="below the cost of this release, 24, plus 24 spent before"):
        typed(*options(stata, out=str(stata.parent / "again")))
    typed(*options(stata, out=str(stata.parent / "again"), budget="48"))
    assert len(discreet.ledger(stata.parent / "discreet-ledger.sqlite").chain().releases()) == 2


def test_codes_that_match_nothing_give_a_sanity_warning(stata: Path) -> None:
    """The warning uses the released counts only."""
    assert "about 0 everywhere" in typed(*options(stata, by="tract=7,8,9"))
    looked = typed(*options(stata, by="tract=7,8,9", out=str(stata.parent / "x")), "--check")
    assert "is the code list right?" in looked
    assert not (stata.parent / "x.yaml").exists()


def test_medians(stata: Path) -> None:
    typed(*options(stata, statistic="median", x=None, at=None, bounds=None, budget="16"))
    assert (stata.parent / "released/median.dta").exists()


def test_an_existing_folder_is_not_written_into(stata: Path) -> None:
    (stata.parent / "released").mkdir()
    with pytest.raises(PublishError, match="exists already"):
        typed(*options(stata))


@pytest.mark.skipif(not MOS.exists(), reason="the authors' example is not beside this clone")
def test_the_authors_example_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCREET_KEYS", str(tmp_path / "keys"))
    words = options(MOS, by="cell=1..111", out=str(tmp_path / "released"), ledger=str(tmp_path / "ledger.sqlite"))
    typed(*words)
    table = pq.read_table(tmp_path / "released/prediction.parquet")
    frame, _ = pyreadstat.read_dta(str(MOS))
    for row in table.to_pylist()[20:60]:
        mine = frame[frame["cell"] == int(row["cell"])]
        slope, height = np.polyfit(mine["parent_rank"], mine["kid_rank"], 1)
        assert abs(row["estimate"] - height - 0.25 * slope) < 12 * row["noise_sd"]


# --- tradeoff -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [{}, {"groups": ["state"]}, {"by": ["state"], "groups": ["state"]}])
def test_tradeoff_on_an_earlier_release(tmp_path: Path, groups: dict[str, Any]) -> None:
    atlas = AtlasAgency(tmp_path / "atlas")
    atlas.run(**groups)
    said = typed(
        *("tradeoff", "--release", str(atlas.folder / "out"), "--epsilons", "1,8", "--target-mse", "0.0001"),
        *("--share", "0.5"),
        *("--out", str(tmp_path / "curve")),
    )
    assert "The target accuracy needs ε = " in said
    frame = pd.read_csv(tmp_path / "curve/tradeoff.csv")
    chosen = frame[~frame["epsilon"].isin([1, 8])]["mse_exact"].item()
    assert 0.00009 < chosen <= 0.0001
    assert frame["mse_exact"].is_monotonic_decreasing
    picture = (tmp_path / "curve/tradeoff.svg").read_text()
    assert picture.startswith("<svg")
    assert "bottom 50%" in picture
    with pytest.raises(PublishError, match="already"):
        typed("tradeoff", "--release", str(atlas.folder / "out"), "--share", "0.5", "--out", str(tmp_path / "curve"))


def test_tradeoff_on_a_public_file(tmp_path: Path) -> None:
    path = tmp_path / "public.csv"
    path.write_text("estimate,count,county\n" + "".join(f"{i / 50},{20 + i},{i % 2}\n" for i in range(50)))
    words = ["tradeoff", "--public", str(path), "--epsilons", "4", "--area", "county", "--out", str(tmp_path / "c")]
    with pytest.raises(ParameterError, match="--provenance"):
        typed(*words)
    with pytest.raises(ParameterError, match="--chi"):
        typed(*words, "--provenance", "a census")
    with pytest.raises(ParameterError, match="--share"):
        typed(*words, "--share", "0.7")
    assert "a census" in typed(*words, "--provenance", "a census", "--chi", "3", "--target-misclassification", "0.5")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs exactly one input that is not confidential"),
        (["--synthetic", "--public", "x.csv"], "needs exactly one input"),
        (["--release", "nowhere"], "no manifest"),
        (["--public", "nowhere.csv", "--provenance", "p", "--chi", "1"], "not readable"),
        (["--synthetic", "--distribution", "cauchy"], "--distribution"),
        (["--synthetic", "--epsilons", "1,x"], "expected an exact number"),
    ],
)
def test_tradeoff_refuses(tmp_path: Path, words: list[str], said: str) -> None:
    with pytest.raises(DiscreetError, match=said):
        typed("tradeoff", *words, "--out", str(tmp_path / "curve"))


# --- envelope -------------------------------------------------------------------------------------------------------


def test_envelope_is_confidential(tmp_path: Path) -> None:
    atlas = AtlasAgency(tmp_path / "atlas")
    atlas.open()
    spec, out = str(atlas.folder / "release.yaml"), tmp_path / "private"
    said = typed("envelope", spec, "--out", str(out))
    assert "CONFIDENTIAL" in said
    assert out.stat().st_mode & 0o777 == 0o700
    for name in ("envelope.svg", "cell.svg"):
        assert "CONFIDENTIAL" in (out / name).read_text()
    with pytest.raises(PublishError, match="exists already"):
        typed("envelope", spec, "--out", str(out))
    with pytest.raises(SpecError, match="'county' is not a column of codes"):
        typed("envelope", spec, "--out", str(tmp_path / "other"), "--cell", "county=1")
    with pytest.raises(SpecError, match="--cell: cannot read"):
        typed("envelope", spec, "--out", str(tmp_path / "other"), "--cell", "101")
    typed("envelope", spec, "--out", str(tmp_path / "other"), "--cell", "tract=101")
    atlas.run()
    with pytest.raises(PublishError, match="lies in a release"):
        typed("envelope", spec, "--out", str(atlas.folder / "out/private"))
    assert not list((atlas.folder / "out").rglob("*.svg"))
