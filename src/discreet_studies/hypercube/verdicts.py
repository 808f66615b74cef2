"""What holds of 002's claims, and what does not: each a test of the study's numbers."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from discreet.post.cubes.margins import Floats
from discreet_studies.claims import Claim
from discreet_studies.hypercube import printed
from discreet_studies.hypercube.explained import Explained, as_in_the_paper, gap_of_selection
from discreet_studies.hypercube.perturbation import rounded
from discreet_studies.hypercube.simulation import PATIENCE, TOLERANCES, Estimated
from discreet_studies.hypercube.study import Study
from discreet_studies.hypercube.tables import befores

MET = 5e-4  # prints as 0.000
BARELY = 0.05  # of a variance
FAR = 3.0  # standard errors
HIGH = slice(4, None)  # five variables and more


def claims(study: Study) -> tuple[Claim, ...]:
    """All, in the order of the paper."""
    return (
        _table2(study),
        _both_signs(study),
        _delta(study),
        _weighted(study),
        _chance(study),
        _variance(study),
        _unchanged(study),
        _patience(study),
        _selected(study),
        _ones(study),
        _falling(study),
        _barely(study),
        _clipped(study),
        _best(study),
    )


def _table2(study: Study) -> Claim:
    right = sum(one.right for one in study.table2)
    ours = f"{right} of {len(study.table2)} probabilities agree to every printed digit, as those of one sign"
    return Claim("Table 2", "8 probabilities", ours, right == len(study.table2))


def _both_signs(study: Study) -> Claim:
    one = study.table2[1]
    both = 2 * float(one.exact)
    ours = f"{both:.1%}: the table's {one.printed} is that of +1 alone"
    claim = "A count goes up or down by 1 with probability 10.3% (ε = 2, cap 7)"
    return Claim(claim, "10.3%", ours, round(100 * both, 1) == 10.3)


def _delta(study: Study) -> Claim:
    loss = study.losses[0]
    ours = f"{float(loss.found):.3e}, by going over all outputs; a record that changes its cell: "
    ours += f"{float(study.losses[-1].found):.3e} at 2ε"
    holds = loss.equal and Decimal(rounded(loss.found, printed.DELTA)) == Decimal(printed.DELTA)
    return Claim("δ is the probability at the cap (one record more or less)", printed.DELTA, ours, holds)


def _weighted(study: Study) -> Claim:
    found = sum(one.attacked == one.truth for one in study.records)
    empty = sum(one.attacked.constant == one.attacked.multiple == 0 for one in study.records)
    ours = f"total − w̄·count is W − w̄·n without noise in {found} of {len(study.records)} records; "
    ours += f"it is 0 in {empty}, which are the empty ones; the total alone tells W up to multiples of w̄"
    return Claim("Noise of the count times w̄ protects the total", "(ε, δ)", ours, found == 0)


def _chance(study: Study) -> Claim:
    change = float(study.chance.change)
    ours = f"{change:.3%}, {study.chance.changed:.1f} cells of {study.chance.cells:,}"
    claim = "At ε = 7 and cap 1 a cell changes with probability 23.5%"
    return Claim(claim, "23.5%", ours, abs(change - float(printed.CHANCE)) < MET)


def _variance(study: Study) -> Claim:
    ours = f"{study.chance.variance:.7f}; with 23.5% it would be {printed.CHANCE}"
    return Claim("and the noise has variance .00182", printed.VARIANCE, ours, _agrees(study.chance.variance))


def _agrees(variance: float) -> bool:
    return f"{variance:.5f}" == printed.VARIANCE


def _unchanged(study: Study) -> Claim:
    ours = f"all {sum(printed.SHAPE)} cells stay with probability {study.chance.margins_unchanged:.1%}; so the noise "
    ours += f"would protect them little: δ = {float(study.chance.delta):.1e}"
    claim = "The same noise would most likely leave all one-way tables unchanged"
    return Claim(claim, "most likely", ours, study.chance.margins_unchanged > 0.5)


def _patience(study: Study) -> Claim:
    shares = [study.longer.share(cycles) for cycles in PATIENCE]
    ours = "; ".join(f"{cycles}: {share:.0%}" for cycles, share in zip(PATIENCE, shares, strict=True))
    ours = (
        f"runs within {TOLERANCES[0]:g} after so many cycles: {ours}; {1 - shares[-1]:.0%} are not after {PATIENCE[-1]}"
    )
    return Claim("Raking that has not converged may do so with more cycles", "may", ours, shares[-1] > shares[0])


def _selected(study: Study) -> Claim:
    expected = befores(study.exact)
    z = gap_of_selection(study.simulated.raked, expected)
    kept = as_in_the_paper(study.simulated.raked)
    ours = f"the mean of all runs is {expected[0]:.3f}, {expected[1]:.3f}; the published ones are {z[0]:+.1f} and "
    ours += f"{z[1]:+.1f} standard errors from it; ours that converge (at {kept.tolerance:.1e}): "
    ours += f"{kept.before.mean[0]:.3f}, {kept.before.mean[1]:.3f}"
    claim = "Runs that converge have the noise of all runs (ours; one- and two-way tables, within 3 standard errors)"
    return Claim(claim, f"{printed.WITHOUT[0]}, {printed.WITHOUT[1]}", ours, bool(np.abs(z[:2]).max() < FAR))


def _ones(study: Study) -> Claim:
    row = as_in_the_paper(study.simulated.raked)
    ours = f"{row.after.mean[0]:.1e} in the {row.converged} of {row.runs:,} runs that converge at {row.tolerance:.1e}"
    claim = "Raking reduces the noise in one-way tables to nothing, where it converges"
    return Claim(claim, printed.WITH[0], ours, _or_none(row.converged, bool(row.after.mean[0] < MET)))


def _falling(study: Study) -> Claim:
    row = as_in_the_paper(study.simulated.raked)
    gains = 1 - row.after.mean[1:4] / row.before.mean[1:4]
    best = 1 - _same(study, row)[1:4] / row.before.mean[1:4]
    ours = f"{_percents(gains)} raked, {_percents(best)} by least squares in the same runs"
    falls = bool((np.diff(gains) < 0).all() and gains[0] > 0)
    claim = "Noise falls less, the more variables a table has (two-, three-, four-way tables)"
    return Claim(claim, ", ".join(printed.REDUCTION[1:4]), ours, _or_none(row.converged, falls))


def _barely(study: Study) -> Claim:
    row = as_in_the_paper(study.simulated.raked)
    change = row.after.mean[HIGH] / row.before.mean[HIGH] - 1
    best = _same(study, row)[HIGH] / row.before.mean[HIGH] - 1
    ours = f"raked {change.min():+.0%} to {change.max():+.0%}; least squares, the same runs, {best.min():+.0%} to "
    ours += f"{best.max():+.1%}"
    rows = [as_in_the_paper(one.raked) for one in study.cases[1:] if one.raked.reading <= TOLERANCES[-1]]
    five = [float(row.after.mean[4] / row.before.mean[4] - 1) for row in rows if row.converged > 1]
    ours += f"; five variables on other cases: raked {min(five):+.0%} to {max(five):+.0%}" if five else ""
    claim = "Tables of five variables and more are barely changed (within 5%)"
    return Claim(claim, "0.0%", ours, _or_none(row.converged, bool(np.abs(change).max() <= BARELY)))


def _clipped(study: Study) -> Claim:
    made, row = study.simulated, as_in_the_paper(study.simulated.raked)
    cut = Estimated.of(made.clipped.after).mean[1:4]
    kept, shown = row.after.mean[1:4], np.array(printed.WITH[1:4], np.float64)
    nearer = bool((np.abs(shown - kept) < np.abs(shown - cut)).all())
    ours = f"raking leaves {_numbers(kept)} where it keeps them, {_numbers(cut)} where they are clipped first and "
    ours += f"{made.clipped.share(row.tolerance):.0%} of runs converge: which suggests that they were "
    ours += "kept" if nearer else "clipped, or says nothing"
    claim = "Negative cells were kept (our reading; two- to four-way tables, with calibration)"
    return Claim(claim, ", ".join(printed.WITH[1:4]), ours, _or_none(row.converged, nearer))


def _best(study: Study) -> Claim:
    row = as_in_the_paper(study.simulated.raked)
    mine = _same(study, row)
    ours = ", ".join(f"{a:.3f} against {b:.3f}" for a, b in zip(row.after.mean[1:4], mine[1:4], strict=True))
    claim = "Raking leaves no more noise than least squares do (ours; two- to four-way, the same converged runs)"
    holds = bool((row.after.mean[1:4] <= mine[1:4]).all())
    return Claim(claim, "not compared", ours, _or_none(row.converged, holds))


def _same(study: Study, row: Explained) -> Floats:
    """Least squares in the runs whose raking converged."""
    return study.simulated.least_squares_where(row.tolerance).mean


def _or_none(runs: int, holds: bool) -> bool | None:
    """Nothing is tested where no two runs converge."""
    return holds if runs > 1 else None


def _numbers(values: Floats) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


def _percents(values: Floats) -> str:
    return ", ".join(f"{value:.1%}" for value in values)
