"""Weights as multiples of a grid step: the treatment of each value on both engines, and the sensitivity of totals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from discreet.domain import Attribute, Domain
from discreet.engine import Engine, open_engine
from discreet.engine.observations import Observations
from discreet.engine.weighted_totals import RecordWeight, ReplicateWeight, WeightGrid, weigh_cells
from discreet.methods.hypercube.spec import Weights
from discreet.noise.key import ReleaseKey
from discreet.privacy.guarantee import Person, Record
from discreet.spec import FileSource
from support.engines import take_records
from support.hypothesis_profile import examples

DOMAIN = Domain((Attribute.flat("cell", ["a", "b", "c"], None, "cell", None, ""),))
NAN, INF = math.nan, math.inf
ODD = [1.0, 0.0, -0.0, -3.0, None, NAN, INF, -INF, 1e18, 9.3e17, 2.0**62, 2.0**63, 1e300, -1e300, 5e-324, 0.04, 0.05,
       99.96, 100.0, 100.05, 200.0, 1e17]  # fmt: skip
GRID = WeightGrid(Fraction(1, 10), 1000, 300)


def observed(above: Any = "clamp", replicates: int = 2) -> list[Any]:
    own = RecordWeight("w", "w", 0.0, 100.0, above)
    return [own, *(ReplicateWeight(f"r{i}", f"r{i}", 0.0, 100.0, weight="w") for i in range(replicates))]


def weighed(
    engine: Engine, folder: Path, table: pa.Table, *, above: Any = "clamp", grid: WeightGrid = GRID, unit: Any = None
) -> dict[int, tuple[int, ...]]:
    """By cell: n, w, d0, d1."""
    path = folder / f"{sum(1 for _ in folder.iterdir())}.parquet"  # Spark remembers what it has read
    pq.write_table(table, path)
    unit, made = unit or Record(), observed(above)
    intake = take_records(engine, FileSource(path=str(path)), folder, [DOMAIN], unit, observed=made)
    secret = ReleaseKey.simulation("t").secret("records", "t", length=16)
    cells = weigh_cells(engine, Observations(intake, unit, secret), DOMAIN, made, grid)
    assert cells.columns == ("cell", "n", "w", "d0", "d1")
    columns = [list(row.values()) for batch in engine.batches(cells) for row in batch.to_pylist()]
    return {row[0]: tuple(row[1:]) for row in columns}


def records(cells: Sequence[Any], *columns: Sequence[Any], kind: Any = None) -> pa.Table:
    """Records with a weight and two replicates."""
    kind = kind or pa.float64()
    arrays = [pa.array(list(column), kind, from_pandas=False) for column in columns]
    names = ["w", "r0", "r1"]
    who = [str(i // 3) for i in range(len(cells))]
    return pa.table({"cell": pa.array(list(cells), pa.string()), "who": who, **dict(zip(names, arrays, strict=True))})


def brute(rows: Sequence[Sequence[Any]], above: str = "clamp") -> dict[int, tuple[int, ...]]:
    """The rules, in Python."""

    def steps(value: float) -> int:
        return math.floor(min(max(value * 10.0, -1e15), 1e15) + 0.5)

    actual: dict[int, np.ndarray] = {}
    for cell, w, *replicates in rows:
        if cell not in ("a", "b", "c") or w is None or not 0 < w < INF or (above == "drop" and w > 100):
            continue
        own = min(steps(w), 1000)
        seen = [w if r is None or not math.isfinite(r) else r for r in replicates]  # without one it keeps its weight
        moved = [min(max(steps(r) - own, -300), 300) for r in seen]
        actual.setdefault(ord(cell) - 97, np.zeros(2 + len(moved), int))[:] += np.array([1, own, *moved])
    return {cell: tuple(int(x) for x in numbers) for cell, numbers in actual.items()}


def every() -> list[tuple[Any, ...]]:
    """Each odd weight with each odd replicate."""
    pairs = [(w, r) for w in ODD for r in ODD]
    return [("abcz"[i % 4] if i % 11 else None, w, r, ODD[i % len(ODD)]) for i, (w, r) in enumerate(pairs)]


@pytest.mark.parametrize("above", ["clamp", "drop"])
def test_every_odd_weight_and_replicate(engine: Engine, tmp_path: Path, above: str) -> None:
    rows = every()
    assert weighed(engine, tmp_path, records(*zip(*rows, strict=True)), above=above) == brute(rows, above)


def test_weights_are_rounded_to_the_nearest_step_and_halves_up(engine: Engine, tmp_path: Path) -> None:
    """Weights below half a step become 0: rounding them up to a step would make totals too large."""
    for weight, steps in ((5e-324, 0), (0.04, 0), (0.05, 1), (0.15, 2), (0.25, 3), (99.96, 1000), (1e6, 1000)):
        actual = weighed(engine, tmp_path, records(["a"], [weight], [weight], [0.0]))
        assert actual == {0: (1, steps, brute([("a", weight, weight)])[0][2], max(-steps, -300))}


def test_weights_around_one_add_up_to_what_they_are(engine: Engine, tmp_path: Path) -> None:
    """With mean 1: on the default grid the total is exact, on the grid 1 it is within the rounding error."""
    weights = np.random.default_rng(7).gamma(0.5, 2.0, 3000).clip(1e-6, 100.0)
    table = records("a" * len(weights), weights, weights, weights)
    step = Weights.model_validate({"column": "w", "max": "100", "epsilon": "1"}).grid
    ((_, w, *_),) = weighed(engine, tmp_path, table, grid=WeightGrid(step, int(100 / step))).values()
    assert float(w * step) == pytest.approx(weights.sum(), rel=1e-4)
    ((n, w, *_),) = weighed(engine, tmp_path, table, grid=WeightGrid(Fraction(1), 100)).values()
    assert (n, w) == (3000, int(np.floor(weights + 0.5).sum()))


def test_numbers_of_every_kind(engine: Engine, tmp_path: Path) -> None:
    whole = records("ab", [3, 200], [4, -5], [None, 2**31], kind=pa.int64())
    assert weighed(engine, tmp_path, whole) == {0: (1, 30, 10, 0), 1: (1, 1000, -300, 300)}
    texts = records("aaab", ["2.5", "x", "1e99", " 1 "], ["2.5"] * 4, ["nan", "", "1", "1e99"], kind=pa.string())
    assert weighed(engine, tmp_path, texts) == {0: (2, 1025, -300, -300), 1: (1, 10, 15, 300)}
    money = records("ab", [Decimal("2.55"), None], [Decimal("2.54")] * 2, [None, None], kind=pa.decimal128(9, 2))
    assert weighed(engine, tmp_path, money) == {0: (1, 26, -1, 0)}


def test_grids_that_are_no_power_of_ten(engine: Engine, tmp_path: Path) -> None:
    actual = weighed(engine, tmp_path, records("a", [5.0], [9.0], [0.0]), grid=WeightGrid(Fraction(5, 2), 40, 2))
    assert actual == {0: (1, 2, 2, -2)}


@pytest.mark.parametrize("other", [None, INF, 1e300, -INF])
def test_what_is_not_a_number_is_so_whatever_else_the_file_holds(
    engine: Engine, tmp_path: Path, other: float | None
) -> None:
    """An engine may decide comparisons by the least and the largest value that a file lists, which leave it out."""
    rows = [("a", NAN, 5.0, 5.0)] * 20 + [("b", 5.0, NAN, NAN)] * 20 + [("c", other, other, 1.0)]
    actual = weighed(engine, tmp_path, records(*zip(*rows, strict=True)))
    assert (actual.get(0), actual[1]) == (None, (20, 1000, 0, 0))
    assert actual.get(2) == brute(rows).get(2)


def test_some_records_of_each_unit_and_only_of_those_with_a_weight(engine: Engine, tmp_path: Path) -> None:
    """Three records each; one without a weight does not displace others."""
    two = [("a", 1.0, 1.0, 1.0), ("b", 2.0, 2.0, 2.0)]
    rows = [row for i in range(30) for row in [*two, ("c", 0.0 if i % 2 else 4.0, 4.0, 4.0)]]
    table = records(*zip(*rows, strict=True))
    actual = weighed(engine, tmp_path, table, unit=Person(column="who", max_records=2))
    n = {cell: numbers[0] for cell, numbers in actual.items()}
    assert sum(n.values()) == 60
    assert n[0] >= 15 <= n[1]  # all of those with two weights, and some of the others
    assert 0 < n[2] <= 15
    assert {cell: numbers[1] // numbers[0] for cell, numbers in actual.items()} == {0: 10, 1: 20, 2: 40}


def test_the_counts_of_check(engine: Engine, tmp_path: Path) -> None:
    table = records("a" * len(ODD), ODD, ODD, [1.0] * len(ODD))
    pq.write_table(table, tmp_path / "t.parquet")
    own, replicate, _ = made = observed()
    source = FileSource(path="t.parquet")
    read = take_records(engine, source, tmp_path, [DOMAIN], Record(), observed=made, inspect=True).table

    def counted(outcomes: dict[str, Any]) -> dict[str, int]:
        flags = read.select(**{name: fate.ifelse(1, 0) for name, fate in outcomes.items()})
        rows = [row for batch in engine.batches(flags) for row in batch.to_pylist()]
        return {name: sum(row[name] for row in rows) for name in flags.columns}

    finite = [w for w in ODD if w is not None and math.isfinite(w)]
    assert counted(own.outcomes(read)) == {
        "missing": 2,  # not a number is none
        "unreadable": sum(w == INF or w == -INF or (w is not None and w <= 0) for w in ODD),
        "outside": sum(w > 100 for w in finite),
    }
    assert counted(replicate.outcomes(read))["missing"] == len(ODD) - len(finite)
    assert "are dropped; 7 above 100 count as 100" in own.audit_line(2, 7, 7)


# --- neighbours -----------------------------------------------------------------------------------------------------

values = st.one_of(st.sampled_from(ODD), st.floats(), st.none(), st.floats(-1.0, 150.0))
record = st.tuples(st.sampled_from(["a", "b", "c", "zzz", None]), values, values, values)


@pytest.fixture(scope="module")
def duckdb() -> Iterator[Engine]:
    with open_engine("duckdb") as actual:
        yield actual


def _moved(one: dict[int, tuple[int, ...]], two: dict[int, tuple[int, ...]]) -> np.ndarray:
    """By cell and number."""
    zero = (0,) * 4
    return np.abs([np.subtract(one.get(cell, zero), two.get(cell, zero)) for cell in range(3)])


@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(record, max_size=6), record, st.sampled_from(["clamp", "drop"]))
def test_one_record_changes_one_cell_by_at_most_the_sensitivity(
    duckdb: Engine, tmp_path: Path, rows: list[Any], more: Any, above: str
) -> None:
    """n by 1, w by at most `largest`, each deviation by at most `bound`; and no record stops anything."""
    actual = [
        weighed(duckdb, tmp_path, records(*zip(*some, strict=True)) if some else records([], [], [], []), above=above)
        for some in (rows, [*rows, more])
    ]
    assert actual == [brute(rows, above), brute([*rows, more], above)]
    moved = _moved(*actual)
    assert (moved.max(axis=1) > 0).sum() <= 1
    assert (moved.sum(axis=0) <= [1, 1000, 300, 300]).all()


@examples(8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(record, max_size=5), st.lists(record, min_size=1, max_size=5))
def test_one_unit_changes_cells_by_at_most_max_records_records(
    duckdb: Engine, tmp_path: Path, rows: list[Any], mine: list[Any]
) -> None:
    who = [str(i // 2) for i in range(len(rows))]

    def table(some: list[Any], units: list[str]) -> pa.Table:
        made = records(*zip(*some, strict=True)) if some else records([], [], [], [])
        return made.set_column(1, "who", pa.array(units, pa.string()))

    unit = Person(column="who", max_records=2)
    tables = [table(rows, who), table([*rows, *mine], [*who, *["target"] * len(mine)])]
    moved = _moved(*(weighed(duckdb, tmp_path, one, unit=unit) for one in tables))
    assert (moved.sum(axis=0) <= [2, 2000, 600, 600]).all()
    usable = [row for row in mine if brute([row])]
    assert moved[:, 0].sum() == min(len(usable), 2)
