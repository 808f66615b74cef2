"""The synthetic atlas: reproducible, with cells of all sizes, and a slope that suppression removes."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pyreadstat
import pytest
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.methods.sensitivity.utility.tradeoff import DISTRIBUTIONS, GRID
from discreet.methods.sensitivity.utility.weighted import Fit, fitted
from discreet.noise.key import ReleaseKey
from discreet.synth.arrow import CODE
from discreet.synth.atlas import (
    BLACK,
    BLOCK,
    BOYS,
    COLUMNS,
    GIRLS,
    LEAN,
    WHITE,
    Atlas,
    _arrow,
    atlas,
    block,
    generate_tracts,
    write_atlas,
)
from discreet.synth.data_errors import NULL
from discreet.synth.states import STATES
from discreet_studies.sensitivity.births import suppressed, winsorised
from discreet_studies.sensitivity.table1 import VarianceShares, decomposition

CHILDREN, TRACTS = 300_000, 1_500  # two blocks of tracts, the second one short
Floats = NDArray[np.float64]


def table(made: Atlas) -> pa.Table:
    """The children as text and numbers. A lean atlas has fewer columns."""
    rows = {name: getattr(made, name) for name in COLUMNS if len(getattr(made, name)) == len(made)}
    coded_rows = _arrow(made.tracts, made.tract, rows)
    plain = [pa.field(f.name, pa.string() if f.type == CODE else f.type) for f in coded_rows.schema]
    return coded_rows.cast(pa.schema(plain))


@pytest.fixture(scope="module")
def small() -> Atlas:
    return atlas(CHILDREN, TRACTS, 3)


def test_the_same_children_every_time_lean_or_not(small: Atlas) -> None:
    again, lean, other = atlas(CHILDREN, TRACTS, 3), atlas(CHILDREN, TRACTS, 3, lean=True), atlas(CHILDREN, TRACTS, 4)
    for name in ("tract", *COLUMNS):
        assert np.array_equal(getattr(small, name), getattr(again, name))
        assert len(getattr(lean, name)) == (CHILDREN if name in ("tract", *LEAN) else 0)
    assert np.array_equal(small.kid_rank, lean.kid_rank)
    assert np.array_equal(small.parent_rank, lean.parent_rank)
    assert not np.array_equal(small.kid_rank, other.kid_rank)
    assert small.tracts.code != other.tracts.code


def test_a_block_of_tracts_is_a_function_of_the_seed_alone(small: Atlas) -> None:
    rows = block(generate_tracts(CHILDREN, TRACTS, 3), 1, 3)
    last = small.tract >= BLOCK
    assert 0 < last.sum() < len(small)
    for name, column in rows.items():
        assert np.array_equal(column, getattr(small, name)[last])


def test_children_are_whole_and_within_bounds(small: Atlas) -> None:
    assert len(small) == small.tracts.size.sum() == CHILDREN
    assert np.array_equal(np.bincount(small.tract, minlength=TRACTS), small.tracts.size)
    assert (np.diff(small.tract) >= 0).all()
    for ranks in (small.parent_rank, small.kid_rank, small.tracts.poverty_rate, small.tracts.single_parent_share):
        assert ((ranks >= 0) & (ranks <= 1)).all()
    assert set(small.incarcerated.tolist()) == {0, 1}
    assert set(small.teen_birth[small.gender == GIRLS].tolist()) == {0, 1}
    assert set(small.teen_birth[small.gender == BOYS].tolist()) == {NULL}


def test_tracts_lie_in_counties_and_counties_in_states(small: Atlas) -> None:
    frame = small.tracts
    assert len(frame) == len(set(frame.code)) == TRACTS
    assert list(frame.code) == sorted(frame.code)
    assert set(frame.state) <= {state.code for state in STATES}
    assert {len(code) for code in frame.code} == {11}
    assert all(
        code.startswith(county) and county.startswith(state) and int(county[2:]) > 900
        for code, county, state in zip(frame.code, frame.county, frame.state, strict=True)
    )
    assert 1 < len(set(frame.state)) < len(set(frame.county)) < TRACTS / 4


def test_cells_are_of_all_sizes() -> None:
    size = generate_tracts(20_000_000, 70_000, 7).size  # the paper's scale
    assert 0.01 < (size < 20).mean() < 0.05
    assert (size > 800).mean() > 0.01
    assert size.mean() > 1.15 * np.median(size)


@pytest.mark.parametrize(
    ("children", "tracts", "seed"),
    [(0, 1, 1), (1.5, 1, 1), (True, 1, 1), (1, 0, 1), (1, 10**9, 1), (1, 1, -1)],
)
def test_what_makes_no_atlas_is_refused(children: Any, tracts: Any, seed: Any) -> None:
    with pytest.raises(ParameterError, match="Give an integer"):
        atlas(children, tracts, seed)


@pytest.mark.parametrize(("children", "tracts"), [(1, 1), (3, 50), (50, 1)])
def test_the_smallest_atlases_exist(children: int, tracts: int) -> None:
    made = atlas(children, tracts, 1)
    assert len(made) == children
    assert table(made).num_rows == children


def test_files_hold_the_same_children(small: Atlas, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    files = write_atlas(tmp_path, CHILDREN, TRACTS, 3, lambda done, of: seen.append((done, of)))
    assert pq.read_table(files.children).equals(table(small))
    assert pq.ParquetFile(files.children).metadata.num_row_groups == 2
    assert seen[-1] == (CHILDREN, CHILDREN)
    with files.tracts.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["tract"] for row in rows] == list(small.tracts.code)
    assert [row["county"] for row in rows] == list(small.tracts.county)
    assert np.abs([float(row["poverty_rate"]) for row in rows] - small.tracts.poverty_rate).max() <= 0.00005 + 1e-12
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == [
        "children.parquet",
        "genders.csv",
        "races.csv",
        "tracts.csv",
    ]


def test_tables_go_to_csv_and_stata(tmp_path: Path) -> None:
    made = table(atlas(500, 10, 1))
    pyarrow.csv.write_csv(made, tmp_path / "x.csv")
    pyreadstat.write_dta(made.to_pandas(), str(tmp_path / "x.dta"))
    kept = {name: pyarrow.string() for name in ("state", "county", "tract", "race", "gender")}
    back = pyarrow.csv.read_csv(
        tmp_path / "x.csv", convert_options=pyarrow.csv.ConvertOptions(column_types=kept, strings_can_be_null=True)
    )
    assert back.column("tract").to_pylist() == made.column("tract").to_pylist()
    assert back.column("teen_birth").to_pylist() == made.column("teen_birth").to_pylist()
    stata, _ = pyreadstat.read_dta(str(tmp_path / "x.dta"))
    assert stata["kid_rank"].tolist() == made.column("kid_rank").to_pylist()
    assert stata["tract"].tolist() == made.column("tract").to_pylist()


# What it is calibrated to: Chetty & Friedman 2019, Table 1 and Figure 3, on half of the paper's children and tracts.


@dataclass(frozen=True)
class Cells:
    """Noisy predictions at .25 of one group's tracts of 20 children or more, as the paper released them."""

    tract: NDArray[np.int64]
    n: Floats
    noisy: Floats
    error: Floats
    noise_variance: Floats
    low: Floats  # children with parents below the median

    def shares(self) -> VarianceShares:
        kept = self.n > 50
        columns = (self.noisy, self.error, self.noise_variance, self.low)
        return decomposition(*(column[kept] for column in columns))


def released(made: Atlas, rows: NDArray[np.bool_], outcome: NDArray[Any], purpose: str) -> Cells:
    """Least squares in each tract; χ by state from the corners and the removals; Normal noise, ε = 8."""
    tract, x, y = made.tract[rows], made.parent_rank[rows], outcome[rows].astype(np.float64)
    actual, start = np.unique(tract, return_index=True)
    n = np.diff(np.append(start, len(tract))).astype(np.float64)
    keep = n >= 20
    inside = np.repeat(keep, n.astype(np.int64))
    x, y, actual, n = x[inside], y[inside], actual[keep], n[keep]
    start = np.concatenate([[0], np.cumsum(n[:-1])]).astype(np.int64)
    cell = np.repeat(np.arange(len(n)), n.astype(np.int64))

    def sums(column: Floats) -> Floats:
        return np.add.reduceat(column, start)

    mean_x, mean_y = sums(x) / n, sums(y) / n
    u, v = x - mean_x[cell], y - mean_y[cell]
    spread = sums(u * u)
    slope = sums(u * v) / spread
    left = v - slope[cell] * u
    away = 0.25 - mean_x
    theta = mean_y + slope * away
    error = np.sqrt(sums(left**2) / (n - 2) * (1 / n + away**2 / spread))
    weight = 1 / n[cell] + (away / spread)[cell] * u
    local = np.maximum.reduceat(np.abs(weight * left / (1 - 1 / n[cell] - u * u / spread[cell])), start)
    for corner_x, corner_y in ((0, 0), (0, 1), (1, 0), (1, 1)):
        shift = corner_x - mean_x
        gap = corner_y - mean_y - slope * shift
        local = np.maximum(local, np.abs((1 / n + away * shift / spread) * gap / (1 + 1 / n + shift**2 / spread)))
    _, state = np.unique(np.array(made.tracts.state)[actual], return_inverse=True)
    chi = np.zeros(state.max() + 1)
    np.maximum.at(chi, state, n * local)
    noise_variance = 2 * (chi[state] / (8 * n)) ** 2
    stream = ReleaseKey.simulation("a test").stream("test", "atlas", b"", purpose)
    omega = DISTRIBUTIONS["normal"].draw(stream, 0, len(n)) * float(GRID)
    noisy = theta + np.sqrt(noise_variance) * omega
    return Cells(actual, n, noisy, error, noise_variance, sums((x < 0.5).astype(np.float64)))


@pytest.fixture(scope="module")
def half() -> Atlas:
    return atlas(10_000_000, 35_000, 7)


def slopes(made: Atlas, cells: Cells) -> tuple[Fit, Fit]:
    """Teenage births on single parents in tracts with little poverty: noise-infused, and count-suppressed."""
    mine = made.tracts.poverty_rate[cells.tract] < 0.07
    x, rate, low = made.tracts.single_parent_share[cells.tract][mine], cells.noisy[mine], cells.low[mine]
    y, kept = winsorised(rate), ~suppressed(rate, low)
    return fitted(x, y, low), fitted(x[kept], y[kept], low[kept])


def test_figure_3_suppressing_small_counts_hides_the_slope(half: Atlas) -> None:
    girls = (half.race == BLACK) & (half.gender == GIRLS)
    infused, suppressed = slopes(half, released(half, girls, half.teen_birth, "births"))
    assert abs(infused.slope - 0.136) < 2 * infused.error
    assert infused.slope > 3 * infused.error
    assert abs(suppressed.slope) < 2 * suppressed.error
    assert suppressed.cells < 0.8 * infused.cells
    assert 0.3 < infused.at(0.1) < infused.at(0.5) < 0.42  # the paper's axis


@pytest.mark.slow
@pytest.mark.parametrize(
    ("race", "gender", "outcome", "paper"),
    [
        (BLACK, GIRLS, "teen_birth", (0.71, 0.28, 0.008)),
        (WHITE, GIRLS, "teen_birth", (0.71, 0.28, 0.011)),
        (BLACK, BOYS, "incarcerated", (0.56, 0.40, 0.023)),
        (WHITE, BOYS, "incarcerated", (0.34, 0.39, 0.275)),
        (None, None, "kid_rank", (0.91, 0.09, 0.0008)),
        (BLACK, None, "kid_rank", (0.75, 0.24, 0.012)),
        (WHITE, None, "kid_rank", (0.79, 0.21, 0.003)),
    ],
)
def test_table_1_variance_shares_are_of_the_papers_size(
    half: Atlas, race: int | None, gender: int | None, outcome: str, paper: tuple[float, float, float]
) -> None:
    rows = np.ones(len(half), np.bool_)
    rows &= half.race == race if race is not None else True
    rows &= half.gender == gender if gender is not None else True
    actual = released(half, rows, getattr(half, outcome), f"{race}/{gender}/{outcome}").shares()
    assert abs(actual.signal - paper[0]) < 0.1
    assert abs(actual.sampling - paper[1]) < 0.1
    assert paper[2] / 6 < actual.privacy < 6 * paper[2]
