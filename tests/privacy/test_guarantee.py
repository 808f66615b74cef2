"""Guarantees: the laws of composition, and the sentence that states them."""

from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from discreet.errors import DiscreetError, GuaranteeError
from discreet.privacy.guarantee import (
    INFORMAL,
    Establishment,
    Guarantee,
    Job,
    Person,
    Record,
    Unit,
    WholeEstablishment,
    compose,
    meet,
)
from support.hypothesis_profile import examples

properties = examples(40)

epsilons = st.fractions(0, 20, max_denominator=100)
deltas = st.just(Fraction(0)) | st.fractions(0, 1, max_denominator=10**6)
caveats = st.lists(st.sampled_from(["weights", "controls", "strict"]), max_size=2, unique=True).map(tuple)
alphas = st.sampled_from([Fraction(1, 10), Fraction(1, 5)])
person = st.builds(Person, column=st.just("p"), max_records=st.integers(1, 4))
establishment = st.builds(
    Establishment, column=st.just("e"), alpha=alphas, adversary=st.sampled_from(["strong", "weak"])
)
ADD_REMOVE = st.just("add-remove")
neighbour_kinds = st.sampled_from(["add-remove", "substitution"])


def guarantees(unit: Any, neighbours: Any = ADD_REMOVE) -> st.SearchStrategy[Guarantee]:
    return st.builds(Guarantee, unit=unit, epsilon=epsilons, delta=deltas, neighbours=neighbours, caveats=caveats)


of_person, of_establishment = guarantees(person), guarantees(establishment)
any_of_person = guarantees(person, neighbour_kinds)


def plain(guarantee: Guarantee) -> tuple[Any, ...]:
    """Everything but the order of the caveats."""
    return guarantee.unit, guarantee.epsilon, guarantee.delta, guarantee.neighbours, set(guarantee.caveats)


@properties
@given(st.one_of(st.tuples(any_of_person, any_of_person), st.tuples(of_establishment, of_establishment)))
def test_sequential_composition_commutes(pair: tuple[Guarantee, Guarantee]) -> None:
    a, b = pair
    assert plain(a.compose_sequential(b)) == plain(b.compose_sequential(a))


@properties
@given(st.one_of(st.tuples(*[of_person] * 3), st.tuples(*[of_establishment] * 3)))
def test_sequential_composition_is_associative(three: tuple[Guarantee, Guarantee, Guarantee]) -> None:
    a, b, c = three
    assert (
        a.compose_sequential(b).compose_sequential(c) == a.compose_sequential(b.compose_sequential(c)) == compose(three)
    )


@properties
@given(any_of_person, any_of_person, any_of_person)
def test_epsilon_is_associative_even_across_neighbours(a: Guarantee, b: Guarantee, c: Guarantee) -> None:
    assert (
        a.compose_sequential(b).compose_sequential(c).epsilon == a.compose_sequential(b.compose_sequential(c)).epsilon
    )


@properties
@given(of_person, of_person)
def test_epsilon_and_delta_add(a: Guarantee, b: Guarantee) -> None:
    both = a.compose_sequential(b)
    assert both.epsilon == a.epsilon + b.epsilon
    assert both.delta == min(1, a.delta + b.delta)
    assert both.unit == meet(a.unit, b.unit)


@properties
@given(any_of_person, any_of_person)
def test_composition_never_costs_less_than_a_part(a: Guarantee, b: Guarantee) -> None:
    both = a.compose_sequential(b)
    assert both.epsilon >= max(a.epsilon, b.epsilon)
    assert both.delta >= max(a.delta, b.delta)


@properties
@given(any_of_person, any_of_person)
def test_caveats_are_united_without_doubles_in_order(a: Guarantee, b: Guarantee) -> None:
    united = a.compose_sequential(b).caveats
    assert set(united) == set(a.caveats) | set(b.caveats)
    assert len(united) == len(set(united))
    assert united[: len(a.caveats)] == a.caveats


@properties
@given(of_establishment, of_establishment)
def test_establishments_compose_at_the_smallest_alpha_for_the_weaker_adversary(a: Guarantee, b: Guarantee) -> None:
    both = a.compose_sequential(b)
    assert both.alpha == min(a.unit.alpha, b.unit.alpha)  # type: ignore[union-attr]
    weak = "weak" in {a.unit.adversary, b.unit.adversary}  # type: ignore[union-attr]
    assert both.unit.adversary == ("weak" if weak else "strong")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("one", "two"),
    list(
        combinations(
            [
                Record(),
                Person(column="p", max_records=1),
                Person(column="q", max_records=1),
                Job(column="p", max_records=1),
                WholeEstablishment(column="p", max_records=1),
                Establishment(column="p", alpha="0.1", adversary="strong"),
                Establishment(column="q", alpha="0.1", adversary="strong"),
            ],
            2,
        )
    ),
)
@pytest.mark.parametrize("how", ["compose_sequential", "compose_parallel"])
def test_other_units_do_not_compose(one: Unit, two: Unit, how: str) -> None:
    a, b = Guarantee(unit=one, epsilon=1), Guarantee(unit=two, epsilon=1)
    with pytest.raises(GuaranteeError, match="no rule composes") as caught:
        getattr(a, how)(b)
    assert one.in_words() in str(caught.value)
    assert two.in_words() in str(caught.value)


def brute_force(parts: list[Guarantee], k: int, what: str) -> Fraction:
    """An entity touches any k parts: the worst choice."""
    size = min(k, len(parts))
    return max(sum((getattr(p, what) for p in some), Fraction(0)) for some in combinations(parts, size))


@properties
@given(st.lists(of_person, min_size=1, max_size=5))
def test_parallel_composition_is_the_k_largest(parts: list[Guarantee]) -> None:
    first, *others = parts
    both = first.compose_parallel(*others)
    k = max(p.unit.records for p in parts)
    assert both.unit.records == k
    assert both.epsilon == brute_force(parts, k, "epsilon")
    assert both.delta == min(1, brute_force(parts, k, "delta"))
    assert set(both.caveats) == {c for p in parts for c in p.caveats}


@properties
@given(st.lists(guarantees(st.builds(Record)) | of_establishment, min_size=1, max_size=4), st.randoms())
def test_a_record_or_establishment_lies_in_one_part(parts: list[Guarantee], random: Any) -> None:
    parts = [p for p in parts if type(p.unit) is type(parts[0].unit)]
    both = parts[0].compose_parallel(*parts[1:])
    assert both.epsilon == max(p.epsilon for p in parts)
    assert both.delta == max(p.delta for p in parts)
    random.shuffle(parts)
    assert plain(parts[0].compose_parallel(*parts[1:])) == plain(both)


@properties
@given(st.lists(of_person, min_size=2, max_size=4))
def test_parallel_never_costs_more_than_sequential(parts: list[Guarantee]) -> None:
    beside, then = parts[0].compose_parallel(*parts[1:]), compose(parts)
    assert beside.epsilon <= then.epsilon
    assert beside.delta <= then.delta


@properties
@given(any_of_person, any_of_person)
def test_parallel_composition_under_substitution_is_refused(a: Guarantee, b: Guarantee) -> None:
    if "substitution" in (a.neighbours, b.neighbours):
        with pytest.raises(GuaranteeError, match="parallel"):
            a.compose_parallel(b)
    else:
        assert a.compose_parallel(b).neighbours == "add-remove"


def test_pseo_example_per_person_up_to_max_records() -> None:
    """DECISIONS, PSEO: parallel over disjoint cells per record, per person only up to max_records."""
    record = [Guarantee(unit=Record(), epsilon="1.5") for _ in range(4)]
    assert record[0].compose_parallel(*record[1:]).epsilon == Fraction(3, 2)
    two = [Guarantee(unit=Person(column="p", max_records=2), epsilon="1.5") for _ in range(4)]
    assert two[0].compose_parallel(*two[1:]).epsilon == 3
    assert two[0].compose_parallel(*two[1:]).as_substitution().epsilon == 6


def test_unstated_max_records_allows_no_parallel_composition() -> None:
    stated = Guarantee(unit=Person(column="p", max_records=2), epsilon=1)
    unstated = Guarantee(unit=Person(column="p"), epsilon=1)
    with pytest.raises(DiscreetError):
        unstated.compose_parallel(unstated)
    for order in ((stated, unstated, stated), (unstated, stated, stated)):
        try:
            cost = order[0].compose_parallel(*order[1:]).epsilon
        except DiscreetError:
            continue
        assert cost == 3  # an unbounded entity may lie in every part


@properties
@given(any_of_person)
def test_substitution_doubles_and_carries_delta(a: Guarantee) -> None:
    out = a.as_substitution()
    assert out.as_substitution() == out
    assert (out.unit, out.caveats, out.neighbours) == (a.unit, a.caveats, "substitution")
    if a.neighbours == "substitution":
        assert out == a
        return
    assert out.epsilon == 2 * a.epsilon
    if not a.delta:
        assert out.delta == 0
    elif out.delta < 1:
        needed = arb(fmpq(a.delta.numerator, a.delta.denominator)) * (
            1 + arb(fmpq(a.epsilon.numerator, a.epsilon.denominator)).exp()
        )
        got = arb(fmpq(out.delta.numerator, out.delta.denominator))
        assert not got < needed
        assert not got > needed * (1 + arb(10) ** -12)


def test_substitution_with_a_huge_epsilon_is_delta_one() -> None:
    huge = Guarantee(unit=Record(), epsilon=10**7, delta="1e-9")
    assert huge.as_substitution().delta == 1


@properties
@given(any_of_person, st.integers(1, 4) | st.none(), neighbour_kinds)
def test_a_cost_is_charged_for_the_budgets_unit(a: Guarantee, k: int | None, neighbours: Any) -> None:
    unit = Person(column="p", max_records=k)
    if neighbours == "add-remove" and a.neighbours == "substitution":
        with pytest.raises(GuaranteeError, match="cannot be charged"):
            a.for_budget(unit, neighbours)
        return
    cost = a.for_budget(unit, neighbours)
    assert (cost.unit, cost.neighbours) == (unit, neighbours)
    assert cost.epsilon == a.epsilon * (2 if neighbours != a.neighbours else 1)


def test_a_weaker_guarantee_is_not_charged_to_a_stronger_budget() -> None:
    def unit(alpha: str, adversary: Any) -> Establishment:
        return Establishment(column="e", alpha=alpha, adversary=adversary)

    cost = Guarantee(unit=unit("0.1", "strong"), epsilon=1)
    assert cost.for_budget(unit("0.05", "weak"), "add-remove").epsilon == 1
    with pytest.raises(GuaranteeError, match="cannot be charged"):
        cost.for_budget(unit("0.2", "strong"), "add-remove")
    with pytest.raises(GuaranteeError, match="cannot be charged"):
        Guarantee(unit=unit("0.1", "weak"), epsilon=1).for_budget(unit("0.1", "strong"), "add-remove")
    with pytest.raises(GuaranteeError, match="same unit"):
        cost.for_budget(Record(), "add-remove")


@properties
@given(any_of_person)
def test_guarantees_survive_json(a: Guarantee) -> None:
    assert Guarantee.model_validate_json(a.model_dump_json()) == a


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 0.5},
        {"epsilon": "-1"},
        {"epsilon": "1", "delta": "-0.1"},
        {"epsilon": "1", "delta": "1.1"},
        {"epsilon": "1", "delta": 1e-6},
        {"epsilon": "1", "neighbours": "hamming"},
        {"epsilon": "1", "rho": "1"},
        {},
    ],
)
def test_bad_guarantees_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Guarantee.model_validate({"unit": {"kind": "record"}, **bad})


def test_a_guarantee_needs_a_unit() -> None:
    with pytest.raises(ValidationError, match="unit"):
        Guarantee.model_validate({"epsilon": "1"})


def test_the_sentence_states_parameters_unit_and_neighbouring_relation() -> None:
    words = Guarantee(unit=Person(column="pid", max_records=2), epsilon="3/2", delta="1e-6").in_words()
    assert words == (
        "Satisfies (1.5, 0.000001)-differential privacy for all records of one person (column pid, at most 2 used), "
        "under adding or removing that person: the probability of any set of published outputs changes by a factor of "
        "at most e^1.5, up to an additional 0.000001."
    )
    words = Guarantee(unit=Record(), epsilon=1, neighbours="substitution").in_words()
    assert words.startswith("Satisfies (1, 0)-differential privacy for one record")
    assert "under replacing it by another" in words
    assert "additional" not in words


@pytest.mark.parametrize("neighbours", ["add-remove", "substitution"])
@pytest.mark.parametrize("adversary", ["strong", "weak"])
def test_establishments_within_alpha_have_a_restricted_neighbouring_relation(adversary: Any, neighbours: Any) -> None:
    unit = Establishment(column="e", alpha="0.1", adversary=adversary)
    words = Guarantee(unit=unit, epsilon=2, neighbours=neighbours).in_words()
    assert f"(column e, {adversary} adversary), under a restricted neighbouring relation" in words
    assert ("gains or loses" in words) == (neighbours == "add-remove")
    assert "within a factor 1+0.1 of its size" in words
    assert ("of each kind of worker" in words) == (adversary == "weak")
    assert "larger changes are protected less" in words


def test_what_is_not_differentially_private_does_not_claim_to_be() -> None:
    words = Guarantee(unit=Record(), epsilon=1, caveats=(f"{INFORMAL}exact totals.", "Another.")).in_words()
    assert words.startswith("Not differentially private: were it not for what the caveats name, it would satisfy")
    assert "Satisfies" not in words
    assert "outputs would change by" in words


def test_only_establishments_within_alpha_have_one() -> None:
    assert Guarantee(unit=Record(), epsilon=1).alpha is None
    assert Guarantee(unit=Establishment(column="e", alpha="0.1", adversary="weak"), epsilon=1).alpha == Fraction(1, 10)


def test_composing_nothing_is_no_guarantee() -> None:
    with pytest.raises(TypeError):
        compose([])
