"""The coarse cell of each fine cell, compared with a brute force over all codes."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import domain as domain_module
from discreet.domain import Attribute, Domain, coarsening
from discreet.domain.codelists import from_groups, from_hierarchy
from support.hypothesis_profile import examples

properties = examples(80)


def nested(name: str, parents: list[int], other: str | None = None) -> tuple[Attribute, Attribute]:
    """A fine attribute with one category per code, and a coarser one of the same codes."""
    codes = [(f"{name}{i}",) for i in range(len(parents))]
    order = list(dict.fromkeys(parents))
    fine = Attribute(f"{name}_fine", (f"{name}_fine",), (name,), tuple(codes), {c: i for i, c in enumerate(codes)})
    coarse = Attribute(
        f"{name}_coarse",
        (f"{name}_coarse",),
        (name,),
        tuple((f"g{p}",) for p in order),
        {c: order.index(p) for c, p in zip(codes, parents, strict=True)},
    )
    return replace(fine, other=other), replace(coarse, other=other)


def code_of(attribute: Attribute, value: str) -> int | None:
    """The category of a source value, as in a release."""
    actual = attribute.lookup.get((value,))
    return attribute.other_code if actual is None else actual


pairs = st.lists(st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.booleans()), max_size=3)
kept = st.sets(st.integers(0, 2))


@properties
@given(pairs, kept, st.randoms(use_true_random=False))
def test_parents_and_children_against_every_record(made: list[tuple[list[int], bool]], keep: set[int], luck) -> None:  # type: ignore[no-untyped-def]
    """Every possible record is assigned to its fine and its coarse cell: the first determines the second."""
    both = [nested(f"x{i}", parents, "other" if other else None) for i, (parents, other) in enumerate(made)]
    fine = Domain(tuple(a for a, _ in both))
    places = [i for i in range(len(both)) if i in keep]
    luck.shuffle(places)  # a coarse domain may have its attributes in any order, and may leave some out
    coarse = Domain(tuple(both[i][1] for i in places))
    actual = coarsening(fine, coarse)
    assert actual is not None
    parents = actual.parents(np.arange(fine.cells))
    seen = {}
    values = [[*(key[0] for key in a.lookup), *(["strange"] if a.other is not None else [])] for a, _ in both]
    for record in itertools.product(*values):
        cell = fine.number([code_of(a, v) for (a, _), v in zip(both, record, strict=True)])  # type: ignore[misc]
        seen[cell] = coarse.number([code_of(both[i][1], record[i]) for i in places])  # type: ignore[misc]
    assert sorted(seen) == list(range(fine.cells))
    assert parents.tolist() == [seen[cell] for cell in range(fine.cells)]
    sizes = Counter(seen.values())
    assert actual.children().tolist() == [sizes[cell] for cell in range(coarse.cells)]
    assert actual.children().sum() == fine.cells


@properties
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_within_is_a_function_or_none(one: list[int], two: list[int]) -> None:
    """Two groupings of the same codes: one lies within the other iff equal in the first means equal in the second."""
    size = min(len(one), len(two))
    first, second = nested("x", one[:size])[1], nested("x", two[:size])[1]
    implied: dict[int, set[int]] = {}
    for a, b in zip(one[:size], two[:size], strict=True):
        implied.setdefault(a, set()).add(b)
    actual = first.within(second)
    if any(len(targets) > 1 for targets in implied.values()):
        assert actual is None
    else:
        assert actual is not None
        names = {int(key[0][1:]): i for i, key in enumerate(second.categories)}
        expected = [names[next(iter(implied[int(key[0][1:])]))] for key in first.categories]
        assert actual.tolist() == expected


def test_other_is_in_other() -> None:
    fine, coarse = nested("x", [0, 0, 1], "other")
    assert fine.within(coarse).tolist() == [0, 0, 1, 2]  # type: ignore[union-attr]
    assert fine.within(fine).tolist() == [0, 1, 2, 3]  # type: ignore[union-attr]


@pytest.mark.parametrize("other", ["fine", "coarse"])
def test_attributes_that_treat_undeclared_values_differently_do_not_nest(other: str) -> None:
    fine, coarse = nested("x", [0, 0, 1])
    fine, coarse = (replace(fine, other="other"), coarse) if other == "fine" else (fine, replace(coarse, other="other"))
    assert fine.within(coarse) is None


def test_attributes_of_another_column_width_or_list_are_not_coarser() -> None:
    fine, coarse = nested("x", [0, 0, 1])
    assert fine.within(coarse) is not None
    assert coarse.within(fine) is None
    assert fine.within(replace(coarse, source=("y",))) is None
    assert fine.within(replace(coarse, width=2)) is None
    fewer = {key: code for key, code in coarse.lookup.items() if key != ("x0",)}
    assert fine.within(replace(coarse, lookup=fewer)) is None  # a code that one of them drops
    assert fine.within(replace(coarse, lookup={**coarse.lookup, ("x9",): 0})) is None


def test_an_attribute_that_is_not_coarser_gives_no_coarsening() -> None:
    fine, coarse = nested("x", [0, 0, 1])
    other, _ = nested("y", [0, 1])
    assert coarsening(Domain((fine,)), Domain((coarse, other))) is None
    assert coarsening(Domain((coarse,)), Domain((fine,))) is None
    assert coarsening(Domain((fine, other)), Domain((coarse,))) is not None


def test_everything_adds_up_to_one_cell() -> None:
    fine, _ = nested("x", [0, 1, 2])
    total = coarsening(Domain((fine,)), Domain(()))
    assert total is not None
    assert total.children().tolist() == [3]
    assert total.parents(np.arange(3)).tolist() == [0, 0, 0]
    one = coarsening(Domain(()), Domain(()))
    assert one is not None
    assert one.children().tolist() == [1]


def test_children_are_counted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    fine, coarse = nested("x", [0, 0, 1, 1, 1])
    other, _ = nested("y", [0, 1, 2])
    actual = coarsening(Domain((other, fine)), Domain((coarse,)))
    assert actual is not None
    whole = actual.children().tolist()
    monkeypatch.setattr(domain_module, "_CHUNK", 4)
    assert actual.children().tolist() == whole == [6, 9]


def test_levels_of_a_hierarchy_and_coarser_groups_add_up(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("inst,cip,family,state\n1,a,A,x\n1,b,A,x\n2,a,A,x\n3,c,B,y\n")
    shown = {"programme": ["inst", "cip"], "families": ["state", "family"], "inst": ["inst"]}
    fine, families, inst = from_groups("programme", path, shown, ["i", "c"], None, "here")
    years = Attribute.flat("years", ["1", "5"], None, "years", None, "")
    actual = coarsening(Domain((fine, years)), Domain((years, families)))
    assert actual is not None
    assert actual.coarse.columns == ("years", "state", "family")
    assert actual.children().tolist() == [3, 1, 3, 1]
    assert actual.parents(np.arange(8)).tolist() == [0, 2, 0, 2, 0, 2, 1, 3]
    assert coarsening(Domain((families,)), Domain((inst,))) is None  # neither lies in the other
    path.write_text("block,tract\n1a,1\n1b,1\n2a,2\n")
    block, tract = from_hierarchy(path, ["block", "tract"], "code", "other", "", "geo")
    down = coarsening(Domain((block, years)), Domain((tract,)))
    assert down is not None
    assert down.children().tolist() == [4, 2, 2]


def test_a_category_without_codes_has_no_parent() -> None:
    """It would be missing from every coarser cell, so the domains do not nest."""
    fine, coarse = nested("x", [0, 0, 1])
    unreachable = replace(fine, categories=(*fine.categories, ("never",)))
    actual = unreachable.within(coarse)
    assert actual is None or (actual >= 0).all()
