"""Tables of a cube: added up over any axes, in any order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from discreet.post.cubes.margins import Margin, marginalise
from support.hypothesis_profile import examples

properties = examples(150)
shapes = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@properties
@given(shapes, st.data())
def test_added_up_over_all_axes_but_some(shape: list[int], data: st.DataObject) -> None:
    kept = data.draw(st.sets(st.integers(0, len(shape) - 1)))
    cube = np.random.default_rng(len(shape)).integers(-50, 50, shape).astype(float)
    actual = marginalise(cube, kept)
    assert np.array_equal(actual, cube.sum(axis=tuple(i for i in range(len(shape)) if i not in kept)))
    assert np.array_equal(actual.reshape(-1), Margin.over(shape, sorted(kept)).add_up(cube))
