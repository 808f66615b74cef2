"""Tabulation against plain Python, on clean and on hostile records."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from discreet.domain import Domain
from discreet.domain.bins import Bins
from discreet.engine.derived_values import BinnedValue
from discreet.engine.duckdb import duckdb_engine
from discreet.engine.intake.normalise import texts
from discreet.engine.tabulate import bound_contributions, count_cells
from discreet.methods.earnings.spec import SampleRule
from discreet.methods.histograms import histogram_domain
from discreet.noise.key import Secret
from discreet.privacy.guarantee import Person, Record, Unit
from discreet.spec import GroupsDomain, HierarchyDomain, ValuesDomain
from support.engines import take_records
from support.hypothesis_profile import examples

KEY = bytes(range(16))
A = ValuesDomain(values=["x", "y"]).attributes("a", Path())[0]
B = ValuesDomain(values=["1", "2", "3"], undeclared="other").attributes("b", Path())[0]
DOMAIN = Domain((A, B))
Rows = list[tuple[str | None, str | None, str | None]]


def tabulate(
    rows: Rows, unit: Unit, domain: Domain = DOMAIN, key: bytes = KEY, counted: bool = False
) -> dict[int, int]:
    table = pa.table({n: pa.array([r[i] for r in rows], pa.string()) for i, n in enumerate(("who", "a", "b"))})
    with duckdb_engine() as engine:
        source = take_records(engine, table, Path(), [domain], unit, counted=counted).table
        kept = bound_contributions(engine, source, [domain], unit, Secret(key))
        return {
            cell: n
            for batch in engine.batches(count_cells(engine, kept, domain))
            for cell, n in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        }


def brute(rows: Rows) -> dict[int, int]:
    """Cells by hand: undeclared or missing a is dropped, undeclared or missing b is other."""
    counts: Counter[int] = Counter()
    for _, a, b in rows:
        if a in ("x", "y"):
            counts[("x", "y").index(a) * 4 + (("1", "2", "3").index(b) if b in ("1", "2", "3") else 3)] += 1
    return dict(counts)


values = st.one_of(st.none(), st.sampled_from(["x", "y", "1", "2", "3", "", " x", "X", "'; --", "ü"]))
people = st.one_of(st.none(), st.sampled_from(["p", "q", "r", "", "p1", "1"]))
records = st.lists(st.tuples(people, values, values), max_size=25)
engine_settings = examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(records)
@engine_settings
def test_records_are_counted_as_by_hand(rows: Rows) -> None:
    assert tabulate(rows, Record()) == tabulate(rows, Record(), counted=True) == brute(rows)


@given(records, st.integers(1, 4))
@engine_settings
def test_one_person_changes_the_table_by_at_most_max_records(rows: Rows, k: int) -> None:
    """The sensitivity that the noise is scaled to, on neighbouring data: with and without one person."""
    unit = Person(column="who", max_records=k)
    everyone = tabulate(rows, unit)
    for person in {who for who, _, _ in rows if who is not None}:
        without = tabulate([row for row in rows if row[0] != person], unit)
        moved = sum(abs(everyone.get(c, 0) - without.get(c, 0)) for c in everyone.keys() | without.keys())
        assert moved <= k
        assert all(everyone.get(c, 0) >= n for c, n in without.items())  # nobody else's records moved


@given(records)
@engine_settings
def test_nobody_loses_records_within_the_bound(rows: Rows) -> None:
    named = [row for row in rows if row[0] is not None]
    assert tabulate(rows, Person(column="who", max_records=100)) == brute(named)


def test_exactly_max_records_are_used_of_those_who_have_more() -> None:
    rows: Rows = [("p", "x", str(i % 3 + 1)) for i in range(50)] + [("q", "y", "1")]
    assert sum(tabulate(rows, Person(column="who", max_records=7)).values()) == 8


def test_the_selection_depends_on_the_key_and_not_on_the_order() -> None:
    rows: Rows = [("p", a, b) for a in ("x", "y") for b in ("1", "2", "3")]
    unit = Person(column="who", max_records=3)
    assert tabulate(rows, unit) == tabulate(rows[::-1], unit)
    choices = {tuple(sorted(tabulate(rows, unit, key=bytes([i] * 16)).items())) for i in range(12)}
    assert len(choices) > 3


def test_the_selection_is_uniform() -> None:
    """Over many persons each of six distinct records is sampled equally often: 400·3/6 = 200 times, ± 5 sd."""
    rows: Rows = [(f"p{i}", a, b) for i in range(400) for a in ("x", "y") for b in ("1", "2", "3")]
    counts = tabulate(rows, Person(column="who", max_records=3))
    assert sum(counts.values()) == 1200
    assert all(abs(n - 200) < 50 for n in counts.values())
    assert len(set(counts.values())) > 1


def test_records_that_every_table_drops_displace_no_others() -> None:
    rows: Rows = [("p", "x", "1")] * 2 + [("p", "undeclared", "1")] * 6 + [("q", None, "1")] * 9
    assert tabulate(rows, Person(column="who", max_records=2)) == {0: 2}


def test_numbers_are_padded_to_codes() -> None:
    state = ValuesDomain(values=["01", "10", "123"], width=2).attributes("a", Path())[0]
    for values in ([1, 10, 123, 2], [1.0, 10.0, 123.0, 1.5], ["1", "10", "123", "0"]):
        with duckdb_engine() as engine:
            table = take_records(engine, pa.table({"a": values}), Path(), [Domain((state,))], Record()).table
            rows = bound_contributions(engine, table, [Domain((state,))], Record(), Secret(KEY))
            (batch,) = engine.batches(count_cells(engine, rows, Domain((state,))))
            assert batch.column(1).to_pylist() == [1, 1, 1]


def test_equal_text_in_other_columns_is_another_record() -> None:
    """The ranked text of a record is unambiguous: ("1", "11") is not ("11", "1")."""
    both = Domain(tuple(ValuesDomain(values=["1", "11"]).attributes(n, Path())[0] for n in ("a", "b")))
    seen = set()
    for i in range(16):
        seen |= tabulate(
            [("p", "1", "11"), ("p", "11", "1")], Person(column="who", max_records=1), both, bytes([i] * 16)
        ).keys()
    assert seen == {1, 2}


def test_hierarchies_and_groups(tmp_path: Path) -> None:
    (tmp_path / "geo.csv").write_text("b,region\n1,north\n2,north\n3,south\n")
    (tmp_path / "pairs.csv").write_text("a,b\nx,1\ny,3\ny,9\n")
    region = HierarchyDomain(hierarchy="geo.csv", levels=["b", "region"]).attributes("geo", tmp_path)[1]
    pairs = GroupsDomain(groups="pairs.csv", columns=["a", "b"], provenance="test").attributes("pair", tmp_path)[0]
    rows: Rows = [("p", "x", "1"), ("p", "x", "2"), ("p", "y", "3"), ("p", "y", "4"), ("p", "x", "3")]
    assert tabulate(rows, Record(), Domain((region,))) == {0: 2, 1: 2}
    assert tabulate(rows, Record(), Domain((pairs,))) == {0: 1, 1: 1}


def test_no_attribute_is_the_total() -> None:
    for counted in (False, True):
        assert tabulate([("p", "x", None)] * 3, Record(), Domain(()), counted=counted) == {0: 3}
        assert tabulate([], Record(), Domain(()), counted=counted) == {0: 0}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-3.0, "-3"),
        (2.5, "2.5"),
        (None, None),
        (-0.0, "0"),
        (0.001, "0.001"),
        (-9999999.5, "-9999999.5"),
        (9007199254740991.0, "9007199254740991"),
        # Engines write these differently, so they are no codes.
        (float("nan"), None),
        (float("inf"), None),
        (float("-inf"), None),
        (1e300, None),
        (0.0009, None),
        (10000000.5, None),
    ],
)
def test_doubles_as_codes_never_stop_a_release(value: Any, text: str | None) -> None:
    codes = pa.array([value], pa.float64(), from_pandas=False)
    assert texts(codes).to_pylist() == [text]
    declared = Domain(tuple(ValuesDomain(values=[text or "nan", "inf"], undeclared="drop").attributes("x", Path())))
    with duckdb_engine() as engine:
        table = take_records(engine, pa.table({"x": codes}), Path(), [declared], Record()).table
        rows = bound_contributions(engine, table, [declared], Record(), Secret(KEY))
        actual = [n for batch in engine.batches(count_cells(engine, rows, declared)) for n in batch["cell"].to_pylist()]
        assert actual == ([] if text is None else [0])


def test_a_record_is_useful_if_any_bin_has_it() -> None:
    """Two tables with different samples: a record in only one of them is not useless."""
    bins = Bins((0, 10, 20))
    made = [
        BinnedValue(name, "v", bins, (SampleRule(column="v", at_least=least).holds,))
        for name, least in (("x", 15), ("y", 1000))
    ]
    domains = [histogram_domain(Domain(()), binned.name, bins.count) for binned in made]
    source = pa.table({"who": [f"p{i // 2}" for i in range(400)], "v": [5, 17] * 200})
    for order in ([0, 1], [1, 0]):
        with duckdb_engine() as engine:
            unit, chosen = Person(column="who", max_records=1), [domains[i] for i in order]
            table = take_records(engine, source, Path(), chosen, unit, made).table
            rows = bound_contributions(engine, table, chosen, unit, Secret(KEY), [made[i] for i in order])
            (batch,) = engine.batches(count_cells(engine, rows, domains[0]))
            assert batch.column("n").to_pylist() == [200]
