"""How fast the noise is: `python -m benchmarks.noise --json`. One thread, key stream included.

`vs_numpy` draws all cells in ranges of 2¹⁸, as a release does, ours into one buffer (NumPy's `geometric` takes none).
`vs_numpy_one_array` lets both fill new arrays of all cells; there the operating system's page faults weigh on both.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from benchmarks._measure import Result, best_of, front, seconds
from discreet.methods.counts.method import RANGE
from discreet.noise import kernels
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.discrete import DiscreteLaplace, integer_thresholds, threshold_table
from discreet.noise.samplers.laplace import Laplace
from discreet.noise.samplers.laplace_pareto import LaplacePareto
from discreet.noise.samplers.log_laplace import LogLaplace
from discreet.noise.samplers.normal import Normal
from discreet.noise.samplers.power import Power
from discreet.noise.stream import CHUNK, Stream

F = Fraction
RATE = F(3, 2)
GRID = (F(10), F(1, 100), F(10**9))


def in_ranges(n: int, draw: Callable[[int, int], object]) -> Callable[[], object]:
    """All n cells, RANGE of them at a time."""

    def run() -> None:
        for first in range(0, n, RANGE):
            draw(first, min(RANGE, n - first))

    return run


def contestants(stream: Stream, n: int) -> dict[str, Callable[[], object]]:
    """Every distribution of ours, and NumPy's insecure floating-point ones, n draws each."""
    rng = np.random.default_rng(1)
    p = float(1 - np.exp(-float(RATE)))
    counts, buffer = np.arange(n, dtype=np.int64) % 1000, np.zeros(RANGE, dtype=np.int64)
    return {
        "discrete": in_ranges(n, lambda first, m: DiscreteLaplace(RATE).draw(stream, first, m, buffer)),
        "numpy_geometric": in_ranges(n, lambda _, m: rng.geometric(p, m) - rng.geometric(p, m)),
        "capped": in_ranges(n, lambda first, m: DiscreteLaplace(F(2), 7).draw(stream, first, m, buffer)),
        "discrete_one_array": lambda: DiscreteLaplace(RATE).draw(stream, 0, n),
        "numpy_one_array": lambda: rng.geometric(p, n) - rng.geometric(p, n),
        "small_rate": lambda: DiscreteLaplace(F(1, 1000)).draw(stream, 0, n),
        "laplace": lambda: Laplace(*GRID).draw(stream, 0, n),
        "laplace_pareto": lambda: LaplacePareto(*GRID, F(5)).draw(stream, 0, n),
        "numpy_laplace": lambda: rng.laplace(size=n),
        "normal": lambda: Normal(*GRID).draw(stream, 0, n),
        "power": lambda: Power(*GRID, F(4)).draw(stream, 0, n),
        "log_laplace": lambda: LogLaplace(F(1, 21), F(10), *GRID[1:]).draw(counts, stream, 0),
    }


def opendp_seconds(n: int) -> float:
    """OpenDP's exact integer Laplace mechanism on a vector of n zeros."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    mechanism = dp.m.make_laplace(*space, scale=float(1 / RATE))
    zeros = [0] * n
    mechanism(zeros[:10])
    return min(seconds(lambda: mechanism(zeros)) for _ in range(3))


def time_by_value(stream: Stream, values: tuple[int, ...] = (0, 1, 2, 5, 10, 20, 28)) -> float:
    """Slowest over fastest time of the integer kernel on words that all give one value."""
    distribution = DiscreteLaplace(RATE).magnitude
    table = threshold_table(distribution)
    if table is None:
        return float("nan")
    bounds = [1 << 63, *integer_thresholds(distribution)]
    out = np.empty(CHUNK, dtype=np.int64)
    words = next(stream.words(0, CHUNK)).copy()
    runs: dict[str, Callable[[], object]] = {}
    for value in values:
        low, high = bounds[value + 1] + 1, bounds[value]
        mine = words.copy()
        sign = words[:, 0] & np.uint64(1 << 63)
        mine[:, 0] = sign | (words[:, 0] % np.uint64(high - low) + np.uint64(low))
        runs[str(value)] = lambda mine=mine: kernels.integers(mine, table.thresholds, table.bases, out, False)  # type: ignore[misc]
        runs[str(value)]()
        if not (np.abs(out) == value).all():
            raise RuntimeError(f"the words made for {value} give something else")
    times = best_of({name: lambda run=run: [run() for _ in range(10)] for name, run in runs.items()}, rounds=40)  # type: ignore[misc]
    return max(times.values()) / min(times.values())


def measure(arguments: Namespace) -> Result:
    """All figures; draws of the rounded distributions are a fifth of the integer ones."""
    stream = ReleaseKey.simulation("benchmark").stream("benchmark", "noise", b"", "speed")
    n = 10 * arguments.rows if arguments.size == "full" else arguments.rows
    fewer = max(n // 5, 1)
    rounds = arguments.rounds
    pair = ("discrete", "numpy_geometric", "capped", "discrete_one_array", "numpy_one_array")
    every, small = contestants(stream, n), contestants(stream, fewer)
    best = {k: v / n for k, v in best_of({k: every[k] for k in pair}, rounds).items()}
    best |= {k: v / fewer for k, v in best_of({k: v for k, v in small.items() if k not in pair}, rounds).items()}
    opendp = opendp_seconds(arguments.opendp_rows) / arguments.opendp_rows
    sparse = best_of({"sparse": lambda: DiscreteLaplace(F(14)).sparse(stream, 0, 10**12)}, rounds)["sparse"]
    return {
        "vs_numpy": round(best["numpy_geometric"] / best["discrete"], 3),
        "vs_numpy_one_array": round(best["numpy_one_array"] / best["discrete_one_array"], 3),
        "vs_opendp": round(opendp / best["discrete"], 1),
        "laplace_cost_vs_numpy": round(best["laplace"] / best["numpy_laplace"], 3),
        "laplace_pareto_cost_vs_numpy": round(best["laplace_pareto"] / best["numpy_laplace"], 3),
        "sparse_1e12_seconds": round(sparse, 4),
        "time_by_value_spread": round(time_by_value(stream), 3),
        "opendp_ns": round(opendp * 1e9, 1),
        "rows": n,
        **{f"{name}_ns": round(t * 1e9, 3) for name, t in best.items()},
    }


if __name__ == "__main__":
    front(__doc__ or "", measure, rows=10**7, opendp_rows=20_000, rounds=9)
