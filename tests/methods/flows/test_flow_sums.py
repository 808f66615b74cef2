"""Sums of flows whose groups were recoded: which margins are known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.domain import Attribute, Coarsening, Domain
from discreet.methods.flows.sums import FlowSums, SumShape
from discreet.methods.noise_provenance import NoiseProvenance
from discreet.post.summary import margins

STATES, INDUSTRIES = 2, 3


def attribute(name: str, *codes: str) -> Attribute:
    keys = tuple((code,) for code in codes)
    return Attribute(name, (name,), (name,), keys, {key: i for i, key in enumerate(keys)})


def rows(origin: NoiseProvenance) -> dict[str, list[object]]:
    """Of two groups with different homes, added up to one number."""
    groups, home = Domain((attribute("group", "a", "b"),)), Domain((attribute("home", "06", "44"),))
    everybody = Domain(())
    shape = SumShape(
        "all", (), everybody, everybody, Coarsening(groups, everybody, ()), np.zeros(STATES * INDUSTRIES, np.int64)
    )
    homes = Coarsening(groups, home, ((0, np.array([0, 1])),))
    sums = FlowSums(shape, np.tile(np.arange(STATES), INDUSTRIES), homes, np.array([0, 1]), origin)
    flows = np.arange(14).reshape(2, 7)
    sums.add(0, flows, flows - 3)
    (arrays,) = sums.rows(Fraction(1), None)
    names = [column.name for column in shape.columns(home=True, suppressed=False)]
    return {name: array.to_pylist() for name, array in zip(names, arrays, strict=True)}


def margin(draws: int) -> int:
    return int(margins(Fraction(1), np.array([draws]))[0])


def test_two_measured_groups() -> None:
    actual = rows(NoiseProvenance())
    assert actual["employed_moe90"] == [margin(2 * STATES * INDUSTRIES)]
    assert actual["in_state_moe90"] == [margin(2 * INDUSTRIES)]
    assert actual["marginal_moe90"] == [margin(2)]
    assert actual["employed"] == [sum(range(14)) - 6 - 13]
    assert actual["in_state"] == [0 + 2 + 4 + 8 + 10 + 12]


def test_one_measured_group_that_was_divided_between_two_homes() -> None:
    """All employment is known again where the parts meet; what lies in the state depends on the division."""
    actual = rows(NoiseProvenance(np.array([0, 2]), np.array([0, 1])))
    assert actual["employed_moe90"] == [margin(STATES * INDUSTRIES)]
    assert actual["in_state_moe90"] == [None]
    assert actual["in_state"] != [None]
    assert actual["marginal_moe90"] == [margin(1)]
