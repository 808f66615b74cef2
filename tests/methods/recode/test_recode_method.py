"""Recoding of one measured table: transitions of groups, and division of their counts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.domain import Attribute, Domain
from discreet.errors import DomainError, SpecError
from discreet.methods.recode.classifications import Classifications
from discreet.methods.recode.crosswalk import read_overrides
from discreet.methods.recode.recoding import GroupCounts, Recoding, group_words
from discreet.noise.key import public_stream
from discreet.privacy.guarantee import Guarantee, Record
from discreet.publish.measurements import MeasuredAttribute, MeasuredTable
from discreet.spec.recode import Recode
from support.recoding import write_csv

PAIRS = (("a1", "a1"), ("a2", "b1"), ("b1", "b1"), ("c1", "c1"), ("c2", "c2"), ("d1", "d1"), ("d2", "c1"))
YEARS = ("2010", "2013", "2016")
OLD, NEW = ("a", "b", "c", "d"), ("d", "c", "b", "a", "e")  # a → a or b; d → c or d; nothing becomes e


def code(*codes: str) -> Attribute:
    return Attribute.flat("field", codes, None, "field", None, "made up")


def year(*years: str) -> Attribute:
    return Attribute.flat("year", years, None, "year", None, "made up")


def measured(attributes: tuple[Attribute, ...], width: int = 3, **more: Any) -> MeasuredTable:
    return MeasuredTable(
        name="t",
        method="earnings",
        attributes=tuple(
            MeasuredAttribute(name=a.name, columns=a.columns, categories=a.categories) for a in attributes
        ),
        width=width,
        about={},
        rate=Fraction(1),
        guarantee=Guarantee(unit=Record(), epsilon=Fraction(1)),
        files={},
        **more,
    )


@pytest.fixture
def base(tmp_path: Path) -> Path:
    write_csv(tmp_path / "crosswalk.csv", ("old", "new"), PAIRS)
    lines = [("a1", "2010", 3), ("a2", "2010", 1), ("a1", "2013", 5), ("d1", "2016", 1), ("d2", "2016", 1)]
    write_csv(tmp_path / "history.csv", ("code", "year", "number"), lines)
    return tmp_path


def asked(**changes: Any) -> Recode:
    declared = {
        "measurements": "kept",
        "columns": {"field": 1},
        "crosswalk": {"file": "crosswalk.csv", "old": "old", "new": "new"},
        "history": {"file": "history.csv", "old": "code", "number": "number"},
        "shares": [["year"], []],
        "smallest_weight": "1/100",
        **changes,
    }
    return Recode.model_validate({key: value for key, value in declared.items() if value is not ...})


def recoding(base: Path, old: tuple[Attribute, ...], new: tuple[Attribute, ...], **changes: Any) -> Recoding:
    return Recoding("t", measured(old), Domain(new), Classifications(asked(**changes), base))


ORDERS = [(0, 1), (1, 0)]


@pytest.mark.parametrize("order", ORDERS)
def test_groups_go_where_their_codes_go(base: Path, order: tuple[int, int]) -> None:
    """Whatever place the code has among the attributes, and whatever the order of the new list."""
    attributes, changed = (code(*OLD), year(*YEARS)), (code(*NEW), year(*YEARS))
    old, new = tuple(attributes[i] for i in order), tuple(changed[i] for i in order)
    actual = recoding(base, old, new).provenance
    assert actual.starts is not None
    assert actual.targets is not None
    before = list(itertools.product(*(a.categories for a in old)))
    after = list(itertools.product(*(a.categories for a in new)))
    becomes = {"a": {"a", "b"}, "b": {"b"}, "c": {"c"}, "d": {"c", "d"}}
    place = order.index(0)
    for m, key in enumerate(before):
        targets = [after[t] for t in actual.targets[actual.starts[m] : actual.starts[m + 1]]]
        assert {target[place][0] for target in targets} == becomes[key[place][0]]
        assert len(targets) == len(becomes[key[place][0]])
        assert {target[1 - place] for target in targets} == {key[1 - place]}


def test_shares_follow_the_finest_level_with_support(base: Path) -> None:
    actual = recoding(base, (code(*OLD), year(*YEARS)), (code(*NEW), year(*YEARS))).transitions.of
    smallest = Fraction(1, 100)

    def shares(old: str, when: str) -> tuple[int | None, list[Fraction]]:
        transition = actual[(old,), (when,)]
        return transition.level, [share for _, share in transition.destinations]

    assert shares("a", "2010") == (0, [Fraction(3, 4), Fraction(1, 4)])
    assert shares("a", "2013") == (0, [5 / (5 + smallest), smallest / (5 + smallest)])
    assert shares("a", "2016") == (1, [Fraction(8, 9), Fraction(1, 9)])
    assert shares("d", "2010") == (1, [Fraction(1, 2), Fraction(1, 2)])
    assert actual[("b",), ("2010",)].rule == "direct"


def pieces(counts: GroupCounts, size: int) -> Iterator[tuple[int, GroupCounts]]:
    return ((first, counts[first : first + size]) for first in range(0, len(counts), size))


@pytest.mark.parametrize("rule", ["multinomial", "balanced"])
@pytest.mark.parametrize("size", [1, 5, 12])
def test_counts_are_divided_to_the_unit_however_they_come(base: Path, rule: str, size: int) -> None:
    counts = np.random.default_rng(1).integers(-40, 200, (12, 3))
    asked_ = recoding(base, (code(*OLD), year(*YEARS)), (code(*NEW), year(*YEARS)), rule=rule)
    actual = asked_.recode(pieces(counts, size), "r")
    assert (actual == asked_.recode(pieces(counts, 12), "r")).all()
    cubes = counts.reshape(4, 3, 3), actual.reshape(5, 3, 3)
    assert (cubes[0].sum(axis=0) == cubes[1].sum(axis=0)).all()
    assert not cubes[1][NEW.index("e")].any()
    a, b = cubes[1][NEW.index("a")], cubes[1][NEW.index("b")]
    assert (a + b == cubes[0][OLD.index("a")] + cubes[0][OLD.index("b")]).all()
    assert (a * np.sign(cubes[0][OLD.index("a")]) >= 0).all()
    if rule == "balanced":
        assert (np.abs(a[0] - cubes[0][OLD.index("a")][0] * 0.75) < 1).all()


def test_other_releases_and_tables_divide_otherwise(base: Path) -> None:
    counts = np.full((12, 3), 50)
    old, new = (code(*OLD), year(*YEARS)), (code(*NEW), year(*YEARS))
    one = recoding(base, old, new)
    other = Recoding("u", one.old, one.new, one.files)
    actual = [one.recode(pieces(counts, 12), release) for release in ("r", "r", "s")]
    actual.append(other.recode(pieces(counts, 12), "r"))
    assert (actual[0] == actual[1]).all()
    assert (actual[0] != actual[2]).any()
    assert (actual[0] != actual[3]).any()


def test_words_of_groups_are_not_shared() -> None:
    stream = public_stream("recode", "r", "t")
    eight = group_words(stream, 3, 0, 8).tolist()
    assert len(set(eight)) == 8
    for start, end in itertools.combinations_with_replacement(range(9), 2):
        assert group_words(stream, 3, start, end).tolist() == eight[start:end]
    assert not set(eight) & set(group_words(stream, 4, 0, 8).tolist())


def test_a_table_without_the_columns_is_unchanged(base: Path) -> None:
    actual = recoding(base, (year(*YEARS),), (year(*YEARS),))
    counts = np.arange(9).reshape(3, 3)
    assert (actual.recode(pieces(counts, 3), "r") == counts).all()
    assert actual.plan_lines() == ("has none of the recoded columns: its measurements are unchanged",)


def test_the_lines_of_a_plan(base: Path) -> None:
    write_csv(base / "overrides.csv", ("from", "to", "share"), [("d", "d", "1"), ("c", "b", "1"), ("zz", "yy", "1")])
    actual = recoding(base, (code(*OLD), year(*YEARS)), (code(*NEW), year(*YEARS)), overrides="overrides.csv")
    assert set(actual.plan_lines()) >= {
        "6 codes of groups: direct",
        "3 codes of groups: override",
        "2 codes of groups: probabilistic, by the shares of year",
        "1 code of a group: probabilistic, by the shares of all records",
        "overrides without effect, because the crosswalk has one destination: c",
    }


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_column_of_shares_need_not_be_there(base: Path, wrapped: bool) -> None:
    declared = asked(overrides="overrides.csv")
    mark = "\ufeff" if wrapped else ""
    (base / "overrides.csv").write_text(f'{mark}from,to,note\n"=""d""",c,x\nd,d,y\n')
    half = Fraction(1, 2)
    assert Classifications(declared, base).overrides(("field",)) == {("d",): ((("c",), half), (("d",), half))}
    (base / "overrides.csv").write_text(f"{mark}share,from,to\n0.2,d,c\n0.8,d,d\n")
    actual = Classifications(declared, base).overrides(("field",))
    assert actual == {("d",): ((("c",), Fraction(1, 5)), (("d",), Fraction(4, 5)))}
    assert actual == read_overrides(base / "overrides.csv", share="share")


def test_a_header_alone_or_no_file(base: Path) -> None:
    files = Classifications(asked(overrides="overrides.csv"), base)
    with pytest.raises(DomainError, match="cannot be read"):
        files.overrides(("field",))
    (base / "overrides.csv").write_text("")
    with pytest.raises(DomainError, match="is empty"):
        files.overrides(("field",))
    (base / "overrides.csv").write_text("from,to,share\n")
    assert files.overrides(("field",)) == {}


def test_codes_in_two_attributes_are_refused(base: Path) -> None:
    second = Attribute.flat("second", OLD, None, "second", None, "made up")
    with pytest.raises(SpecError, match="field and second are columns of several attributes"):
        recoding(base, (code(*OLD), second), (code(*NEW), second), columns={"field": 1, "second": 1})


def test_a_table_that_cannot_be_held_is_refused(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.methods.recode.recoding.MOST_IN_MEMORY", 44)
    with pytest.raises(DomainError, match="has 45 numbers, more than the 44"):
        recoding(base, (code(*OLD), year(*YEARS)), (code(*NEW), year(*YEARS)))
    monkeypatch.setattr("discreet.methods.recode.recoding.MOST_IN_MEMORY", 45)
    recoding(base, (code(*OLD), year(*YEARS)), (code(*NEW), year(*YEARS)))


def test_draws_of_what_was_recoded_before(base: Path) -> None:
    old = measured((code(*OLD), year("2010")), draws=(1, 2, 0, 1))
    actual = Recoding("t", old, Domain((code(*NEW), year("2010"))), Classifications(asked(), base)).provenance
    draws, blurred = actual.draws(np.arange(5), 5)
    seen = {c: (int(d), bool(b)) for c, d, b in zip(NEW, draws, blurred, strict=True)}
    assert seen == {"a": (1, True), "b": (3, True), "c": (1, True), "d": (1, True), "e": (0, False)}
    assert actual.draws(np.zeros(5, np.int64), 1)[0].tolist() == [4]
