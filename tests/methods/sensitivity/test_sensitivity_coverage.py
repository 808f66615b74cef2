"""Published intervals cover what the records are a sample of, through the whole release."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from support.sensitivity import AtlasAgency

CELLS, AT = 12_000, 0.25


def sample(n: int, seed: int) -> pa.Table:
    """Cells that are samples of one population: y = .3 + .35·x + N(0, .1²)."""
    rng = np.random.default_rng(seed)
    x = rng.random(CELLS * n)
    y = 0.3 + 0.35 * x + rng.normal(0, 0.1, x.size)
    return pa.table({"tract": np.repeat(codes(), n), "parent_rank": x, "kid_rank": y})


def codes() -> list[str]:
    return [f"{i:05d}" for i in range(CELLS)]


@pytest.mark.parametrize(("n", "epsilon", "noise"), [(20, "4", "laplace"), (30, "8", "normal")])
def test_nominal_95_percent(tmp_path: Path, n: int, epsilon: str, noise: str) -> None:
    atlas = AtlasAgency(tmp_path / "atlas", sample(n, seed=n))
    (atlas.folder / "tracts.csv").write_text("tract,state\n" + "".join(f"{code},N\n" for code in codes()))
    actual = atlas.run(epsilon=epsilon, noise=noise)["mobility"]
    truth = 0.3 + 0.35 * AT
    low, high = actual["low95"].to_numpy(), actual["high95"].to_numpy()
    assert 0.94 < np.mean((low <= truth) & (truth <= high)) < 0.96
    # Intervals that leave the noise out, or take the error for known, do not.
    estimate, sampling = actual["estimate"].to_numpy(), np.maximum(actual["se_sampling"].to_numpy(), 0)
    assert np.mean(np.abs(estimate - truth) <= 1.96 * sampling) < 0.94
