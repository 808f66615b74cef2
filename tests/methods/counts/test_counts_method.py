"""Counts end to end: the noise has the stated distribution, and neighbouring releases differ as stated."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import discreet
from discreet.api import set_budget
from discreet.domain import Domain
from discreet.engine.spans import Span
from discreet.errors import DomainError, GuaranteeError, ParameterError
from discreet.methods.counts.method import RANGE, CountsMethod
from discreet.methods.counts.spec import Counts
from discreet.privacy.guarantee import Establishment, Person, Record, WholeEstablishment
from discreet.spec import ValuesDomain
from support.agency import Agency, graduates

CELLS = 200 * 200


def simulate(
    folder: Path, unit: Any, budget_unit: Any, table: pa.Table, seed: str, **options: Any
) -> np.ndarray[Any, Any]:
    """The counts of a simulated release over a 200 × 200 domain."""
    folder.mkdir(parents=True)
    ledger = discreet.ledger(folder / "l.sqlite")
    set_budget(ledger, "a", epsilon="100", unit=budget_unit, kind="simulation")
    codes = [str(i) for i in range(200)]
    spec = {
        "release": "r",
        "asset": "a",
        "unit": unit,
        "domains": {"x": {"values": codes}, "y": {"values": codes}},
        "tables": [{"name": "t", "method": "counts", "by": ["x", "y"], "epsilon": "1.5", **options}],
    }
    discreet.release(spec, frame=table, ledger=ledger).run(folder / "out", simulation=seed)
    read = pq.read_table(folder / "out" / "t.simulation.parquet")
    counts = np.zeros(CELLS, np.int64)
    cells = read["x"].cast(pa.string()).to_numpy().astype(int) * 200 + read["y"].cast(pa.string()).to_numpy().astype(
        int
    )
    counts[cells] = read["count"].to_numpy()
    return counts


def p_value(noise: np.ndarray[Any, Any], rate: float) -> float:
    """χ² of integer noise against the two-sided geometric distribution, tails pooled."""
    a, top = np.exp(-rate), int(8 / rate)
    k = np.arange(-top, top + 1)
    probability = (1 - a) / (1 + a) * a ** np.abs(k)
    probability[[0, -1]] = a**top / (1 + a)
    observed = np.bincount(np.clip(noise, -top, top) + top, minlength=2 * top + 1)
    pooled = probability * noise.size >= 5
    if not pooled.all():
        probability = np.append(probability[pooled], probability[~pooled].sum())
        observed = np.append(observed[pooled], observed[~pooled].sum())
    return float(stats.chisquare(observed, probability * noise.size).pvalue)


EMPTY = pa.table({"x": pa.array([], pa.string()), "y": pa.array([], pa.string()), "who": pa.array([], pa.string())})
PERSON = ({"person": "who", "max_records": 3}, {"kind": "person", "column": "who"})


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_an_empty_file_is_published_as_pure_noise_of_the_stated_distribution(tmp_path: Path, form: str) -> None:
    noise = simulate(tmp_path / "a", "record", "record", EMPTY, "distribution", form=form)
    assert p_value(noise, 1.5) > 1e-6
    for wrong in (0.7 * 1.5, 1.3 * 1.5):
        assert p_value(noise, wrong) < 1e-20
    assert p_value(noise + 1, 1.5) < 1e-20


def test_epsilon_is_the_cost_of_a_person_so_the_noise_grows_with_max_records(tmp_path: Path) -> None:
    noise = simulate(tmp_path / "a", *PERSON, EMPTY, "distribution")
    assert p_value(noise, 1.5 / 3) > 1e-6
    assert p_value(noise, 1.5) < 1e-20


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_neighbours_under_the_same_key_differ_by_the_person_alone(tmp_path: Path, form: str) -> None:
    """The noise is the cell's own: removing a person changes her cells by her used records, and nothing else."""
    rows = [(str(i % 7), str(i % 11), f"p{i % 40}") for i in range(200)] + [(str(i), "5", "target") for i in range(9)]
    full = pa.table(dict(zip(("x", "y", "who"), map(list, zip(*rows, strict=True)), strict=True)))
    without = full.slice(0, 200)
    one, two = (
        simulate(tmp_path / str(i), *PERSON, table, "neighbours", form=form) for i, table in enumerate((full, without))
    )
    moved = one - two
    assert moved.sum() == 3
    assert np.abs(moved).sum() == 3
    assert set(np.flatnonzero(moved)) <= {x * 200 + 5 for x in range(9)}


def test_the_distribution_satisfies_the_guarantee_for_every_shift() -> None:
    """P(k)/P(k − s) ≤ e^(ε·s/max_records) for every k and 1 ≤ s ≤ max_records, on the exact tails."""
    method = CountsMethod(Counts(name="t", by=[], epsilon="1.5"), Domain(()), Person(column="who", max_records=3))
    tail = [1.0, *(float(method.distribution.tail(m)) for m in range(1, 40))]
    mass = np.array([tail[0] - tail[1], *((tail[m] - tail[m + 1]) / 2 for m in range(1, 38))])
    for shift in (1, 2, 3):
        for k in range(-20, 21):
            ratio = mass[abs(k)] / mass[abs(k - shift)]
            assert ratio <= np.exp(1.5 * shift / 3) * (1 + 1e-9)
    assert mass[5] / mass[8] == pytest.approx(np.exp(1.5))  # and the bound is attained


def test_units_that_geometric_noise_cannot_protect_are_refused() -> None:
    spec = Counts(name="t", by=[], epsilon="1")
    with pytest.raises(GuaranteeError, match="not the size of an establishment"):
        CountsMethod(spec, Domain(()), Establishment(column="e", alpha="0.1", adversary="weak"))
    whole = CountsMethod(spec, Domain(()), WholeEstablishment(column="e", max_records=50))
    assert whole.distribution.rate == Fraction(1, 50)
    with pytest.raises(ParameterError):
        CountsMethod(Counts(name="t", by=[], epsilon="1e-20"), Domain(()), Record())


def test_an_attribute_may_not_take_a_published_column_name() -> None:
    domain = Domain(tuple(ValuesDomain(values=["1"]).attributes("count", Path())))
    with pytest.raises(DomainError, match="called 'count' already"):
        CountsMethod(Counts(name="t", by=["count"], epsilon="1"), domain, Record())


def test_dense_tables_too_large_to_enumerate_are_offered_the_sparse_form() -> None:
    attributes = tuple(
        ValuesDomain(values=[str(i) for i in range(5000)]).attributes(name, Path())[0] for name in ("a", "b", "c")
    )
    with pytest.raises(GuaranteeError, match="form: sparse"):
        CountsMethod(Counts(name="t", by=["a", "b", "c"], epsilon="14"), Domain(attributes), Record())
    CountsMethod(Counts(name="t", by=["a", "b", "c"], epsilon="14", form="sparse"), Domain(attributes), Record())


def test_rounded_and_nonnegative_are_published_with_the_noisy_count(agency: Agency) -> None:
    table = {"name": "t", "method": "counts", "by": ["state"], "epsilon": "1", "nonnegative": True, "round_to": 5}
    agency.write(graduates().slice(0, 0))
    agency.release(tables=[table]).run(agency.folder / "out")
    read = pq.read_table(agency.folder / "out" / "t.parquet").to_pydict()
    assert read["count_nonnegative"] == [max(c, 0) for c in read["count"]]
    assert all(r % 5 == 0 and abs(r - c) <= 2 for r, c in zip(read["count_rounded"], read["count"], strict=True))
    assert len(set(read["moe90"])) == 1


def test_a_large_sparse_domain_end_to_end(tmp_path: Path) -> None:
    """10¹² cells, a handful occupied: only non-zero rows are written, all of them near the truth."""
    ledger = discreet.ledger(tmp_path / "l.sqlite")
    set_budget(ledger, "a", epsilon="100", unit="record", kind="simulation")
    codes = [str(i) for i in range(10_000)]
    spec = {
        "release": "r",
        "asset": "a",
        "unit": "record",
        "domains": {n: {"values": codes} for n in ("x", "y", "z")},
        "tables": [{"name": "t", "method": "counts", "by": ["x", "y", "z"], "epsilon": "20", "form": "sparse"}],
    }
    frame = pa.table({n: ["7", "7", "123"] for n in ("x", "y", "z")})
    discreet.release(spec, frame=frame, ledger=ledger).run(tmp_path / "out", simulation="large")
    read = pq.read_table(tmp_path / "out" / "t.simulation.parquet")
    values = read["count"].to_numpy()
    assert (values != 0).all()
    expected = 1e12 * 2 * np.exp(-20) / (1 + np.exp(-20))  # 4,122 cells with noise
    assert abs(len(values) - expected) < 6 * expected**0.5 + 2
    rows = {tuple(r.values())[:3]: r["count"] for r in read.to_pylist()}
    assert rows[("7", "7", "7")] == 2
    assert rows[("123", "123", "123")] == 1


@pytest.mark.parametrize("epsilon", ["100", "1400", "2000", "1000000"])
def test_sparse_ranges_exist_at_any_epsilon(epsilon: str) -> None:
    domain = Domain(tuple(ValuesDomain(values=["1", "2"]).attributes("a", Path())))
    method = CountsMethod(Counts(name="t", by=["a"], epsilon=epsilon, form="sparse"), domain, Record())
    assert method._cells_for(RANGE) == 2
    assert [list(spans) for spans in method.spans] == [[Span(0, 0, 2)]]
    assert "noise alone" in method.noise()
