"""How many draws of noise a sum has after a recoding, and which sums are blurred: against a literal count."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from discreet.methods.noise_provenance import UNKNOWN, NoiseProvenance
from support.hypothesis_profile import examples


def origin(moves: list[list[int]], measured: list[int] | None = None) -> NoiseProvenance:
    """Of each measured group, where it went."""
    starts = np.cumsum([0, *map(len, moves)])
    targets = np.array([target for targets in moves for target in targets], np.int64)
    return NoiseProvenance(starts, targets, None if measured is None else np.array(measured, np.int64))


def literal(
    moves: list[list[int]], measured: list[int] | None, parents: list[int], size: int
) -> tuple[list[int], list[bool]]:
    """Sum by sum: the measured groups with a piece in it; blurred if one of them has a piece elsewhere, too."""
    draws, blurred = [], []
    for sum_ in range(size):
        reached = [m for m, targets in enumerate(moves) if sum_ in [parents[t] for t in targets]]
        known = [1] * len(moves) if measured is None else measured
        draws.append(sum(known[m] for m in reached if known[m] != UNKNOWN))
        blurred.append(any(known[m] == UNKNOWN or {parents[t] for t in moves[m]} != {sum_} for m in reached))
    return draws, blurred


def actual(which: NoiseProvenance, parents: list[int], size: int) -> tuple[list[int], list[bool]]:
    draws, blurred = which.draws(np.array(parents, np.int64), size)
    return draws.tolist(), blurred.tolist()


def test_without_a_recoding_every_group_is_one_draw() -> None:
    assert actual(NoiseProvenance(), [0, 0, 1, 3], 4) == ([2, 1, 0, 1], [False] * 4)


def test_direct_merged_split_and_reunited() -> None:
    moves = [[0], [1], [1], [2, 3], [3, 4]]  # one stays, two merge, two are divided
    itself = [0, 1, 2, 3, 4]
    assert actual(origin(moves), itself, 5) == ([1, 2, 1, 2, 1], [False, False, True, True, True])
    assert actual(origin(moves), [0, 0, 1, 1, 2], 3) == ([3, 2, 1], [False, True, True])
    assert actual(origin(moves), [0, 0, 1, 1, 1], 2) == ([3, 2], [False, False])
    assert actual(origin(moves), [0] * 5, 1) == ([5], [False])


def test_what_nothing_became_has_no_draw() -> None:
    assert actual(origin([[0], [0]]), [0, 1], 2) == ([2, 0], [False, False])


def test_what_was_measured_may_have_several_draws_or_an_unknown_number() -> None:
    moves = [[0], [1], [2], [2]]
    assert actual(origin(moves, [3, 1, 2, UNKNOWN]), [0, 1, 2], 3) == ([3, 1, 2], [False, False, True])
    assert actual(origin(moves, [3, 1, 2, 0]), [0, 1, 2], 3) == ([3, 1, 2], [False] * 3)
    assert actual(origin([[0, 1]], [2]), [0, 0], 1) == ([2], [False])


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[list[int]], list[int] | None, list[int], int]:
    groups, size = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    targets = st.lists(st.integers(0, groups - 1), min_size=1, max_size=4, unique=True)
    moves = draw(st.lists(targets, min_size=1, max_size=8))
    known = st.lists(st.integers(UNKNOWN, 3), min_size=len(moves), max_size=len(moves))
    measured = draw(st.none() | known)
    parents = draw(st.lists(st.integers(0, size - 1), min_size=groups, max_size=groups))
    return moves, measured, parents, size


@examples(300)
@given(worlds())
def test_any_recoding_against_a_literal_count(world: tuple[list[list[int]], list[int] | None, list[int], int]) -> None:
    moves, measured, parents, size = world
    assert actual(origin(moves, measured), parents, size) == literal(moves, measured, parents, size)
