"""Raking against `ipfn` and plain NumPy: `python -m benchmarks.rake --json`. One thread.

`vs_ipfn`, `vs_numpy`: the cube of Li & Krenzke 2020 (17,280 cells, ten one-way margins), perturbed, ten cycles each;
checks, measured gaps and all else that `rake` does are in our time, and their results must equal ours. `growth_10x`:
seconds of a cube of `rows` cells (`--size full`: ten times as many) over those of ten cubes of a tenth in a row: 1 is
linear; both with six one-way margins and five cycles. Beyond 1 is what memory costs where a tenth fits into the
processor's caches. `peak_rss_mib`: of a process that only generates and rakes the larger cube, itself of `cube_mib`;
`idle_rss_mib`: of one that does the same with 10^6 cells. `seconds_1000`: 1,000 times noise from the key stream at ε=7,
cap 1, added to 182 cases, and ten cycles.
"""

from __future__ import annotations

import contextlib
import io
from argparse import Namespace
from fractions import Fraction
from math import prod

import numpy as np
from ipfn.ipfn import ipfn
from numpy.typing import NDArray

from benchmarks._measure import Result, best_of, front, peak_rss_of, seconds
from discreet.methods.hypercube.raking.rake import RakedCube, rake
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.cubes.margins import Margin

Floats = NDArray[np.float64]
SHAPE, CASES, CYCLES = (5, 4, 3, 3, 3, 2, 2, 2, 2, 2), 182, 10
DISTRIBUTION = DiscreteLaplace(Fraction(7), 1)
ROWS, FULL, LARGE_CYCLES = 10_000_000, 10, 5  # FULL times as many
TENS = (10, 10, 10, 10, 10)  # all axes of a large cube but the first


def survey() -> Floats:
    """The evaluation of Li & Krenzke 2020, §4: 182 cases in 17,280 cells, every code of every variable among them."""
    rng = np.random.default_rng(182)
    codes = [rng.choice(n, CASES, p=np.arange(n, 0, -1) / (n * (n + 1) / 2)) for n in SHAPE]
    cells = np.ravel_multi_index(codes, SHAPE)
    return np.bincount(cells, minlength=prod(SHAPE)).astype(np.float64).reshape(SHAPE)


def theirs(cube: Floats, targets: list[Floats]) -> Floats:
    """`ipfn` writes into what it is given, and counts cycles from 0."""
    places = [[i] for i in range(cube.ndim)]
    with contextlib.redirect_stdout(io.StringIO()):
        raked: Floats = ipfn(
            cube.copy(), list(targets), places, convergence_rate=0, rate_tolerance=0, max_iteration=CYCLES - 1
        ).iteration()
    return raked


def plain(cube: Floats, targets: list[Floats]) -> Floats:
    """NumPy at its best: every axis the middle one of three, `einsum` (half the time of `sum`), scaling in place."""
    raked = cube.copy()
    views = [raked.reshape(prod(SHAPE[:i]), n, -1) for i, n in enumerate(SHAPE)]
    for _ in range(CYCLES):
        for view, target in zip(views, targets, strict=True):
            np.multiply(view, (target / np.einsum("ijk->j", view))[:, None], out=view)
    return raked


def large(cells: int) -> tuple[Floats, list[Margin], list[Floats]]:
    """A cube with this many cells, and the margins of another cube."""
    shape = (cells // prod(TENS), *TENS)
    margins = [Margin.over(shape, [i]) for i in range(len(shape))]
    cube = np.random.default_rng(7).random(cells)
    shares = [np.linspace(1, 2, n) / np.linspace(1, 2, n).sum() for n in shape]
    return cube, margins, [cells / 2 * share for share in shares]


def rake_large(cells: int) -> RakedCube:
    cube, margins, targets = large(cells)
    return rake(cube, margins, targets, tolerance=0, cycles=LARGE_CYCLES)


def simulate(cases: Floats, margins: list[Margin], targets: list[Floats], runs: int) -> None:
    stream = ReleaseKey.simulation("benchmark").stream("rake", "cube", b"", "noise")
    for run in range(runs):
        noise = DISTRIBUTION.draw(stream, run * cases.size, cases.size)
        rake(cases.reshape(-1) + noise, margins, targets, tolerance=0, cycles=CYCLES)


def measure(arguments: Namespace) -> Result:
    cells = arguments.rows * (FULL if arguments.size == "full" else 1)
    idle = peak_rss_of(rake_large, 10 * prod(TENS))
    peak = peak_rss_of(rake_large, cells)  # first: a later child would inherit this process's
    cases = survey()
    margins = [Margin.over(SHAPE, [i]) for i in range(len(SHAPE))]
    targets = [margin.add_up(cases) for margin in margins]
    stream = ReleaseKey.simulation("benchmark").stream("rake", "cube", b"", "noise")
    cube = cases + DISTRIBUTION.draw(stream, 0, cases.size).reshape(SHAPE)

    def ours() -> RakedCube:
        return rake(cube, margins, targets, tolerance=0, cycles=CYCLES)

    raked = ours()
    if raked.cycles != CYCLES:
        raise RuntimeError("not all cycles were run")
    for name, other in {"ipfn": theirs(cube, targets), "NumPy": plain(cube, targets)}.items():
        if not np.allclose(raked.values, other, rtol=1e-6, atol=1e-6):
            raise RuntimeError(f"{name} finds another cube")
    best = best_of({"ours": ours, "ipfn": lambda: theirs(cube, targets), "numpy": lambda: plain(cube, targets)}, 20)
    thousand = seconds(lambda: simulate(cases, margins, targets, 1000))
    small, whole = large(cells // 10), large(cells)

    def several(of: tuple[Floats, list[Margin], list[Floats]], times: int) -> None:
        for _ in range(times):
            rake(*of, tolerance=0, cycles=LARGE_CYCLES)

    contest = {
        "small": lambda: several(small, 10),
        "whole": lambda: several(whole, 1),
    }  # what else runs meets both alike
    growth = best_of(contest, 2 if arguments.size == "full" else 8)
    return {
        "vs_ipfn": round(best["ipfn"] / best["ours"], 1),
        "vs_numpy": round(best["numpy"] / best["ours"], 1),
        "growth_10x": round(growth["whole"] / growth["small"], 2),
        "peak_rss_mib": round(peak, 1),
        "idle_rss_mib": round(idle, 1),
        "cube_mib": round(cells * 8 / 2**20, 1),
        "seconds_1000": round(thousand, 3),
        "rows": cells,
        "ours_us": round(1e6 * best["ours"], 1),
        "ipfn_us": round(1e6 * best["ipfn"], 1),
        "numpy_us": round(1e6 * best["numpy"], 1),
        "large_seconds": round(growth["whole"], 3),
        "large_ns_a_cell_and_cycle": round(1e9 * growth["whole"] / cells / LARGE_CYCLES, 2),
    }


if __name__ == "__main__":
    front(__doc__ or "", measure, rows=ROWS)
