"""Domains: the numbering of cells, and their codes."""

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.domain import MAX_CELLS, Attribute, Domain
from discreet.errors import DomainError
from support.hypothesis_profile import examples

properties = examples(60)


def attribute(name: str, size: int, other: str | None = None, column: str | None = None) -> Attribute:
    return Attribute.flat(name, [f"{i:02}" for i in range(size)], None, column or name, other, "here")


def domain(sizes: list[int], others: list[bool] | None = None) -> Domain:
    others = others or [False] * len(sizes)
    pairs = zip(sizes, others, strict=True)
    return Domain(tuple(attribute(f"a{i}", n, "other" if o else None) for i, (n, o) in enumerate(pairs)))


shapes = st.lists(st.tuples(st.integers(1, 6), st.booleans()), max_size=4).map(
    lambda pairs: domain([n for n, _ in pairs], [o for _, o in pairs])
)


@properties
@given(shapes, st.data())
def test_number_and_codes_are_inverse(space: Domain, data: st.DataObject) -> None:
    cell = data.draw(st.integers(0, space.cells - 1))
    assert space.number(space.codes(cell)) == cell
    codes = tuple(data.draw(st.integers(0, size - 1)) for size in space.shape)
    assert space.codes(space.number(codes)) == codes


@properties
@given(shapes)
def test_cells_are_numbered_in_lexicographic_order_without_gaps(space: Domain) -> None:
    codes = [space.codes(cell) for cell in range(space.cells)]
    assert codes == sorted(codes)
    assert len(set(codes)) == space.cells == prod(space.shape)
    assert codes == [tuple(map(int, index)) for index in np.ndindex(space.shape)]


@properties
@given(shapes, st.data())
def test_numbers_outside_are_refused(space: Domain, data: st.DataObject) -> None:
    for cell in (-1, space.cells, space.cells + 7):
        with pytest.raises(DomainError, match="outside"):
            space.codes(cell)
    if space.shape:
        i = data.draw(st.integers(0, len(space.shape) - 1))
        codes = [0] * len(space.shape)
        for wrong in (-1, space.shape[i]):
            codes[i] = wrong
            with pytest.raises(DomainError, match="outside"):
                space.number(codes)


def test_one_code_per_attribute() -> None:
    with pytest.raises(ValueError, match=r"shorter|longer"):
        domain([2, 2]).number([0])


def test_the_total_is_a_domain_of_one_cell() -> None:
    space = Domain(())
    assert (space.cells, space.shape, space.columns, space.codes(0), space.number(())) == (1, (), (), (), 0)


@properties
@given(shapes)
def test_code_arrays_agree_with_codes(space: Domain) -> None:
    cells = np.arange(space.cells, dtype=np.int64)[::-1].copy()
    columns = [array.to_pylist() for array in space.code_arrays(cells)]
    for row, cell in enumerate(cells.tolist()):
        words = [a.published[c] for a, c in zip(space.attributes, space.codes(cell), strict=True)]
        assert [column[row] for column in columns] == [text for key in words for text in key]


@given(st.lists(st.integers(2, 2**9), min_size=5, max_size=8), st.data())
def test_numbering_holds_up_to_the_largest_int64(sizes: list[int], data: st.DataObject) -> None:
    while prod(sizes) > MAX_CELLS:
        sizes.pop()
    space = domain(sizes)
    cell = data.draw(st.sampled_from([0, space.cells - 1]) | st.integers(0, space.cells - 1))
    assert space.number(space.codes(cell)) == cell
    row = [array[0].as_py() for array in space.code_arrays(np.array([cell], np.int64))]
    assert row == [f"{code:02}" for code in space.codes(cell)]


def test_more_cells_than_int64_are_refused_with_the_sizes_and_a_remedy() -> None:
    assert domain([2] * 62).cells == 2**62
    with pytest.raises(DomainError) as caught:
        domain([2] * 63)
    text = str(caught.value)
    for part in ("9.22e+18", "2 a0", "by a0, a1", "Cross fewer attributes"):
        assert part in text


def test_far_more_cells_than_int64_are_refused_too() -> None:
    with pytest.raises(DomainError, match="more than"):
        domain([10] * 400)


def test_a_column_is_published_once() -> None:
    a = attribute("a", 2)
    with pytest.raises(DomainError, match="'a' would be published twice"):
        Domain((a, a))
    groups = Attribute("g", ("x", "a"), ("x", "a"), (("1", "2"),), {("1", "2"): 0})
    with pytest.raises(DomainError, match="'a' would be published twice"):
        Domain((groups, a))


# --- attributes ---------------------------------------------------------------------------------------------------


def test_other_comes_last() -> None:
    a = attribute("a", 3, "rest")
    assert (a.size, a.other_code, a.published[-1]) == (4, 3, ("rest",))
    assert a.dictionary(0).to_pylist() == ["00", "01", "02", "rest"]
    assert "counted as 'rest'" in a.summary()
    b = attribute("b", 3)
    assert (b.size, b.other_code) == (3, None)
    assert "dropped" in b.summary()


def test_other_of_groups_fills_every_column() -> None:
    g = Attribute("g", ("x", "y"), ("x", "y"), (("1", "2"),), {("1", "2"): 0}, other="rest")
    assert g.published == (("1", "2"), ("rest", "rest"))
    assert g.dictionary(1).to_pylist() == ["2", "rest"]


def test_an_attribute_needs_categories_each_once() -> None:
    with pytest.raises(DomainError, match="no categories"):
        attribute("a", 0)
    with pytest.raises(DomainError, match="lists 'x' twice") as caught:
        Attribute.flat("a", ["x", "y", "x"], None, "a", None, "")
    assert caught.value.where == "domain a"


def test_other_is_not_a_category() -> None:
    with pytest.raises(DomainError, match="both as a category"):
        Attribute.flat("a", ["x", "other"], None, "a", "other", "")
    with pytest.raises(DomainError, match="both as a category"):
        Attribute("g", ("x", "y"), ("x", "y"), (("1", "rest"),), {("1", "rest"): 0}, other="rest")


# --- the digest ---------------------------------------------------------------------------------------------------

texts = st.text(st.sampled_from('ab"[],\\/ é0'), max_size=3)


@st.composite
def declarations(draw: st.DrawFn) -> dict[str, Any]:
    codes = draw(st.lists(texts, min_size=1, max_size=3, unique=True))
    return {
        "name": draw(st.sampled_from(["n", "m"])),
        "codes": codes,
        "column": draw(texts),
        "other": draw(st.none() | texts.filter(lambda t: t not in codes)),
    }


def built(declaration: dict[str, Any]) -> Domain:
    return Domain((Attribute.flat(labels=None, provenance="", **declaration),))


@properties
@given(declarations(), declarations())
def test_equal_digests_mean_equal_declarations(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert (built(one).digest() == built(two).digest()) == (one == two)


BASE: dict[str, Any] = {"name": "n", "codes": ["1", "2"], "column": "c", "other": None}


@pytest.mark.parametrize(
    "change",
    [
        {"name": "m"},
        {"codes": ["2", "1"]},
        {"codes": ["1", "2", "3"]},
        {"codes": ["1"]},
        {"codes": ["1", "02"]},
        {"codes": ["1", "2 "]},
        {"codes": ["12"]},
        {"codes": ["1"], "other": "2"},
        {"other": "other"},
        {"other": "rest"},
        {"column": "d"},
    ],
)
def test_any_change_of_a_declaration_changes_the_digest(change: dict[str, Any]) -> None:
    assert built({**BASE, **change}).digest() != built(BASE).digest()


def test_what_a_code_is_mapped_to_is_part_of_the_digest() -> None:
    def level(parent: int) -> Domain:
        lookup = {("a",): 0, ("b",): 1, ("c",): parent}
        return Domain((Attribute("d", ("d",), ("code",), (("A",), ("B",)), lookup),))

    assert level(0).digest() != level(1).digest()


def test_the_order_and_grouping_of_attributes_are_part_of_the_digest() -> None:
    a, b = attribute("a", 2), attribute("b", 2)
    digests = {Domain(x).digest() for x in ((a, b), (b, a), (a,), (b,), ())}
    assert len(digests) == 5


def test_labels_and_provenance_are_part_of_the_digest_because_they_are_published() -> None:
    plain = Attribute.flat("a", ["1"], None, "a", None, "")
    labelled = Attribute.flat("a", ["1"], ["one"], "a", None, "IPEDS")
    elsewhere = Attribute.flat("a", ["1"], ["one"], "a", None, "BLS")
    assert len({Domain((a,)).digest() for a in (plain, labelled, elsewhere)}) == 3


def test_a_duplicate_in_a_long_list_is_detected_quickly() -> None:
    import signal

    def late(*_: object) -> None:
        raise TimeoutError

    codes = [str(i) for i in range(40_000)]
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 1.5)
    try:
        with pytest.raises(DomainError, match="twice"):
            Attribute.flat("a", [*codes, codes[-1]], None, "a", None, "")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
