"""Privacy units: which unit implies which, and their descriptions."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from discreet.errors import ParameterError
from discreet.privacy.guarantee import Establishment, Job, Person, Record, Unit, WholeEstablishment, meet
from support.hypothesis_profile import examples

properties = examples(40)

ADAPTER: TypeAdapter[Any] = TypeAdapter(Unit)
columns = st.sampled_from(["p", "q"])
counts = st.none() | st.integers(1, 4)
alphas = st.sampled_from([Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(3)])
establishments = st.builds(Establishment, column=columns, alpha=alphas, adversary=st.sampled_from(["strong", "weak"]))
units = st.one_of(
    st.builds(Record),
    *(st.builds(kind, column=columns, max_records=counts) for kind in (Person, Job, WholeEstablishment)),
    establishments,
)


def same(one: Any, two: Any) -> bool:
    """Equal as promises: how many records are kept is how the promise is kept, not what is promised."""
    return one.implies(two) and two.implies(one)


@properties
@given(units)
def test_a_unit_implies_itself(unit: Any) -> None:
    assert unit.implies(unit)


@properties
@given(units, units, units)
def test_implication_is_transitive(a: Any, b: Any, c: Any) -> None:
    if a.implies(b) and b.implies(c):
        assert a.implies(c)


@properties
@given(units, units)
def test_implication_is_antisymmetric_up_to_max_records(a: Any, b: Any) -> None:
    if same(a, b):
        ignored = {"max_records"}
        assert a.model_dump(exclude=ignored) == b.model_dump(exclude=ignored)


@properties
@given(units, units)
def test_meet_is_what_both_imply_and_commutes(a: Any, b: Any) -> None:
    both = meet(a, b)
    assert meet(b, a) == both
    if both is not None:
        assert a.implies(both)
        assert b.implies(both)


@properties
@given(units, units, units)
def test_meet_is_the_strongest_such_unit(a: Any, b: Any, c: Any) -> None:
    if a.implies(c) and b.implies(c):
        both = meet(a, b)
        assert both is not None
        assert both.implies(c)


@properties
@given(units)
def test_meet_is_idempotent(unit: Any) -> None:
    assert meet(unit, unit) == unit


@properties
@given(units, units, units)
def test_meet_is_associative(a: Any, b: Any, c: Any) -> None:
    left, right = meet(a, b), meet(b, c)
    assert (left and meet(left, c)) == (right and meet(a, right))


@properties
@given(units, units)
def test_a_stronger_unit_is_absorbed(a: Any, b: Any) -> None:
    if a.implies(b):
        both = meet(a, b)
        assert both is not None
        assert same(both, b)


@properties
@given(establishments, establishments)
def test_alpha_neighbours_nest(a: Establishment, b: Establishment) -> None:
    """α ≤ α′: every α-neighbour is an α′-neighbour, so a promise at α′ holds at α, never the other way round."""
    fits = a.column == b.column and b.alpha <= a.alpha
    assert a.implies(b) == (fits and (a.adversary, b.adversary) != ("weak", "strong"))


def test_weak_does_not_imply_strong() -> None:
    weak = Establishment(column="e", alpha="0.1", adversary="weak")
    strong = Establishment(column="e", alpha="0.1", adversary="strong")
    assert strong.implies(weak)
    assert not weak.implies(strong)
    assert meet(weak, strong) == weak


def test_nothing_is_converted_by_assumption() -> None:
    kinds = [
        Record(),
        Person(column="x", max_records=1),
        Job(column="x", max_records=1),
        WholeEstablishment(column="x", max_records=1),
        Establishment(column="x", alpha=1, adversary="strong"),
    ]
    for a in kinds:
        for b in kinds:
            assert a.implies(b) == (a is b)
            assert (meet(a, b) is None) == (a is not b)


def test_other_columns_are_other_units() -> None:
    assert not Person(column="p").implies(Person(column="q"))
    assert meet(Person(column="p", max_records=1), Person(column="q", max_records=1)) is None
    assert meet(*(Establishment(column=c, alpha=1, adversary="weak") for c in "pq")) is None


def test_meet_keeps_the_larger_number_of_records() -> None:
    small, large = Person(column="p", max_records=2), Person(column="p", max_records=5)
    assert meet(small, large) == meet(large, small) == large


def test_records_are_the_sensitivity() -> None:
    assert Record().records == 1
    assert Person(column="p", max_records=3).records == 3
    with pytest.raises(ParameterError, match="max_records"):
        _ = Job(column="p").records


@properties
@given(units)
def test_units_survive_json(unit: Any) -> None:
    assert ADAPTER.validate_json(ADAPTER.dump_json(unit)) == unit


@properties
@given(units)
def test_the_neighbouring_relation_names_column_and_contribution_bound(unit: Any) -> None:
    words = unit.relation("add-remove")
    assert unit.entity is None or f"column {unit.entity}" in words
    assert unit.entity is None or f"column {unit.entity}" in unit.in_words()
    if getattr(unit, "max_records", None):
        assert f", at most {unit.max_records} used)" in words


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": "person"},
        {"kind": "person", "column": "p", "max_records": 0},
        {"kind": "person", "column": "p", "max_records": -1},
        {"kind": "person", "column": "p", "max_records": "2"},
        {"kind": "person", "column": "p", "max_records": 2.0},
        {"kind": "person", "column": "p", "max_records": True},
        {"kind": "person", "column": "p", "max_records": 1, "alpha": "1"},
        {"kind": "household", "column": "p", "max_records": 1},
        {"kind": "record", "column": "p"},
        {"column": "p", "max_records": 1},
        {"kind": "establishment", "column": "e", "adversary": "weak"},
        {"kind": "establishment", "column": "e", "alpha": "0.1"},
        {"kind": "establishment", "column": "e", "alpha": 0.1, "adversary": "weak"},
        {"kind": "establishment", "column": "e", "alpha": "0", "adversary": "weak"},
        {"kind": "establishment", "column": "e", "alpha": "-1", "adversary": "weak"},
        {"kind": "establishment", "column": "e", "alpha": "1", "adversary": "curious"},
    ],
)
def test_bad_units_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(bad)


def test_units_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Person(column="p", max_records=1).max_records = 9  # type: ignore[misc]
