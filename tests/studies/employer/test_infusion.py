"""Noise infusion: its factors, its small counts, and that its files are not accepted as a release."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from discreet.errors import ParameterError, PublishError, ReleaseKeyError
from discreet.formats import COMPARATOR
from discreet.noise.key import ReleaseKey
from discreet.publish.manifest import FILE, read
from discreet_studies.employer.comparators.infusion import Infusion, mean_abs
from discreet_studies.employer.comparators.infusion_files import SUFFIX, write_comparator

F = Fraction
KEY = ReleaseKey.simulation("infusion")
S, T = F(1, 20), F(1, 4)
RAMP, UNIFORM = Infusion(S, T), Infusion(S, T, shape="uniform")
ACCEPT, REJECT = 1e-6, 1e-20


def economy(n: int = 4000, cells: int = 300) -> tuple[np.ndarray, np.ndarray, int]:
    rng = np.random.default_rng(3)
    workers = rng.poisson(rng.gamma(0.4, 6, (n, 8))).astype(np.int64)
    return workers, np.minimum(rng.geometric(0.02, n), cells - 1).astype(np.int64), cells


def mean_distortion(method: Infusion) -> Fraction:
    """E|f − 1|: s + (t−s)/3 for the ramp, (s+t)/2 for the uniform."""
    return method.s + (method.t - method.s) / (3 if method.shape == "ramp" else 2)


@pytest.mark.parametrize("method", [RAMP, UNIFORM])
def test_factors_lie_in_the_union_and_have_their_distribution(method: Infusion) -> None:
    factors = method.factors(KEY, 0, 100_000)
    away = np.abs(factors - 1)
    assert away.min() >= float(S) - 1e-15
    assert away.max() <= float(T) + 1e-15
    assert stats.binomtest(int((factors > 1).sum()), len(factors)).pvalue > ACCEPT
    place = (away - float(S)) / float(T - S)
    distributions = {"ramp": lambda v: 1 - (1 - v) ** 2, "uniform": lambda v: v}
    for shape, distribution in distributions.items():
        p = stats.kstest(place, distribution).pvalue
        assert (p > ACCEPT) if shape == method.shape else (p < REJECT)
    assert abs(away.mean() - float(mean_distortion(method))) < 0.001


def test_factors_are_permanent_and_depend_on_key_and_number_alone() -> None:
    every = RAMP.factors(KEY, 0, 70_000)
    assert np.array_equal(every[500:70_000], RAMP.factors(KEY, 500, 69_500))
    assert not np.array_equal(every, RAMP.factors(ReleaseKey.simulation("another"), 0, 70_000))
    workers = economy()[0]
    alone_in_cell = np.arange(len(workers), dtype=np.int64)
    one, two = (RAMP.publish(workers, alone_in_cell, len(alone_in_cell), KEY, table) for table in ("one", "two"))
    large = one.truth > 2
    assert np.array_equal(one.values[large], two.values[large])
    assert not np.array_equal(one.values[one.small], two.values[two.small])


def test_cells_are_sums_zeros_stay_and_small_counts_are_replaced() -> None:
    workers, cell, cells = economy()
    made, factors = RAMP.publish(workers, cell, cells, KEY, "table"), RAMP.factors(KEY, 0, len(workers))
    for c in range(cells):
        mine = cell == c
        truth, infused = workers[mine].sum(axis=0), (workers[mine] * factors[mine, None]).sum(axis=0)
        assert np.array_equal(made.truth[c], truth)
        kept = truth > 2
        assert np.allclose(made.values[c][kept], infused[kept], rtol=1e-12)
        assert np.all(made.values[c][truth == 0] == 0)
        assert np.isin(made.values[c][(truth > 0) & (truth <= 2)], (1, 2)).all()
    assert made.small.any()
    assert np.all(made.rounded()[made.truth > 0] > 0)


def test_small_counts_are_drawn_from_the_predictive_distribution() -> None:
    truth = np.repeat(np.array([0, 1, 2, 9]), (5_000, 30_000, 9_998, 7)).astype(np.int64)[:, None]
    made = RAMP.publish(truth, np.arange(len(truth), dtype=np.int64), len(truth), KEY, "small")
    ones = int((made.values[made.small] == 1).sum())
    assert made.small.sum() == 39_998
    assert stats.binomtest(ones, 39_998, 30_001 / 40_000).pvalue > ACCEPT
    assert stats.binomtest(ones, 39_998, 0.5).pvalue < REJECT
    # The draw does not depend on which small count it replaces.
    was_one = truth[:, 0] == 1
    shares = [float((made.values[mask] == 1).mean()) for mask in (was_one, truth[:, 0] == 2)]
    assert abs(shares[0] - shares[1]) < 0.03


def test_expected_error_of_a_lone_establishment_is_its_mean_distortion() -> None:
    workers = np.full((2, 1), 1000, np.int64)
    keys = [ReleaseKey.simulation(f"infusion {i}") for i in range(4000)]
    error = mean_abs(UNIFORM, workers, np.arange(2), 2, keys, "table")
    assert np.allclose(error, 1000 * float(mean_distortion(UNIFORM)), rtol=0.03)


def test_refusals() -> None:
    for given in ({"s": F(1, 4), "t": F(1, 4)}, {"s": F(1, 4), "t": F(1)}, {"s": F(0), "t": F(1, 4)}):
        with pytest.raises(ParameterError):
            Infusion(**given)
    with pytest.raises(ParameterError):
        Infusion(S, T, limit=F(1, 2))
    with pytest.raises(ParameterError):
        Infusion(S, T, shape="bell")  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        Infusion(0.05, T)  # type: ignore[arg-type]
    with pytest.raises(ReleaseKeyError):
        RAMP.factors(ReleaseKey.generate(), 0, 1)
    workers, cell, cells = economy(10)
    with pytest.raises(ParameterError):
        RAMP.publish(-workers - 1, cell, cells, KEY, "t")
    with pytest.raises(ParameterError):
        RAMP.publish(workers, cell, int(cell.max()), KEY, "t")
    with pytest.raises(ParameterError):
        RAMP.publish(workers.astype(np.float64), cell, cells, KEY, "t")  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        mean_abs(RAMP, workers, cell, cells, [], "t")


def test_a_comparators_folder_is_no_release(tmp_path: Path) -> None:
    workers, cell, cells = economy(200, 20)
    made = RAMP.publish(workers, cell, cells, KEY, "jobs")
    names = tuple(f"group{i}" for i in range(8))
    labels = {"place": pa.array([f"p{c}" for c in range(cells)])}
    files = write_comparator(tmp_path / "out", "jobs", labels, names, made, RAMP)
    assert [f.name for f in files] == [f"jobs.{SUFFIX}.csv", f"jobs.{SUFFIX}.parquet", FILE]
    said = json.loads(files[-1].read_text())
    assert said["format"] == COMPARATOR
    assert "must not be published" in said["notice"]
    assert "ours" in said["notice"]
    assert "no formal guarantee" in said["guarantee_in_words"]
    assert files[0].read_text().splitlines()[1].split(",")[1:] == [str(v) for v in made.rounded()[0]]
    with pytest.raises(PublishError, match="without any privacy guarantee, not a release"):
        read(tmp_path / "out")
    with pytest.raises(PublishError, match="already exists"):
        write_comparator(tmp_path / "out", "jobs", labels, names, made, RAMP)
    with pytest.raises(PublishError, match="differ in length"):
        write_comparator(tmp_path / "other", "jobs", labels, names[:2], made, RAMP)
    with pytest.raises(PublishError, match="cannot be used as column or file names"):
        write_comparator(tmp_path / "other", "a/b", labels, names, made, RAMP)
