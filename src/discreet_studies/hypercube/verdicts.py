"""The claims of Li & Krenzke 2020, each as a test of the study's numbers. Texts: claims.yaml."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from discreet.post.cubes.margins import Floats
from discreet_studies.claims import Claims, Evidence
from discreet_studies.hypercube import printed
from discreet_studies.hypercube.perturbation import rounded
from discreet_studies.hypercube.simulation import PATIENCE, TOLERANCES, MeanEstimate, variances_before
from discreet_studies.hypercube.study import HypercubeStudy
from discreet_studies.hypercube.tolerance_search import ToleranceResult, at_paper_share, gap_of_selection

MET = 5e-4  # prints as 0.000
BARELY = 0.05  # of a variance
FAR = 3.0  # standard errors
MIDDLE, HIGH = slice(1, 4), slice(4, None)  # two to four variables; five and more
CLAIMS: Claims[HypercubeStudy] = Claims("hypercube")


@CLAIMS
def table_2(study: HypercubeStudy) -> Evidence:
    right = sum(one.right for one in study.table2)
    return right == len(study.table2), {"right": right, "all": len(study.table2)}


@CLAIMS
def both_signs(study: HypercubeStudy) -> Evidence:
    one = study.table2[1]
    both = 2 * float(one.exact)
    return round(100 * both, 1) == 10.3, {"both": both, "printed": one.printed}


@CLAIMS
def delta(study: HypercubeStudy) -> Evidence:
    loss = study.losses[0]
    holds = loss.equal and Decimal(rounded(loss.by_enumeration, printed.DELTA)) == Decimal(printed.DELTA)
    return holds, {"least": float(loss.by_enumeration), "moved": float(study.losses[-1].by_enumeration)}


@CLAIMS
def weighted(study: HypercubeStudy) -> Evidence:
    exposed = sum(one.attack_result == one.truth for one in study.records)
    empty = sum(one.attack_result.constant == one.attack_result.multiple == 0 for one in study.records)
    return exposed == 0, {"exposed": exposed, "empty": empty, "all": len(study.records)}


@CLAIMS
def chance(study: HypercubeStudy) -> Evidence:
    change = float(study.chance.change)
    return abs(change - float(printed.CHANCE)) < MET, {"change": change, "noise": study.chance}


@CLAIMS
def variance(study: HypercubeStudy) -> Evidence:
    variance = study.chance.variance
    return f"{variance:.5f}" == printed.VARIANCE, {"variance": variance, "chance": printed.CHANCE}


@CLAIMS
def unchanged(study: HypercubeStudy) -> Evidence:
    noise = study.chance
    return noise.margins_unchanged > 0.5, {"noise": noise, "cells": sum(printed.SHAPE), "delta": float(noise.delta)}


@CLAIMS
def patience(study: HypercubeStudy) -> Evidence:
    shares = [study.cycles_needed.share(cycles) for cycles in PATIENCE]
    text = "; ".join(f"{cycles}: {share:.0%}" for cycles, share in zip(PATIENCE, shares, strict=True))
    values = {"tolerance": TOLERANCES[0], "shares": text, "rest": 1 - shares[-1], "most": PATIENCE[-1]}
    return shares[-1] > shares[0], values


@CLAIMS
def selected(study: HypercubeStudy) -> Evidence:
    expected = variances_before(study.exact)
    z, row = gap_of_selection(study.simulated.raked, expected), at_paper_share(study.simulated.raked)
    return np.abs(z[:2]).max() < FAR, {"expected": expected, "z": z, "kept": row}


@CLAIMS
def nothing_left(study: HypercubeStudy) -> Evidence:
    row = at_paper_share(study.simulated.raked)
    return _or_none(row, row.after.mean[0] < MET), {"left": row.after.mean[0], "row": row}


@CLAIMS
def falling(study: HypercubeStudy) -> Evidence:
    row, same = _with_least_squares(study)
    gains = 1 - row.after.mean[MIDDLE] / row.before.mean[MIDDLE]
    best = 1 - same[MIDDLE] / row.before.mean[MIDDLE]
    holds = _or_none(row, (np.diff(gains) < 0).all() and gains[0] > 0)
    return holds, {"gains": _listed(gains, ".1%"), "best": _listed(best, ".1%")}


@CLAIMS
def barely(study: HypercubeStudy) -> Evidence:
    row, same = _with_least_squares(study)
    change, best = (values[HIGH] / row.before.mean[HIGH] - 1 for values in (row.after.mean, same))
    rows = [at_paper_share(one.raked) for one in study.cases[1:] if one.raked.paper_share_tolerance <= TOLERANCES[-1]]
    five = [float(one.after.mean[4] / one.before.mean[4] - 1) for one in rows if one.converged > 1]
    others = f"; five variables on other cases: raked {min(five):+.0%} to {max(five):+.0%}" if five else ""
    ends = {name: (values.min(), values.max()) for name, values in (("change", change), ("best", best))}
    return _or_none(row, np.abs(change).max() <= BARELY), ends | {"others": others}


@CLAIMS
def clipped(study: HypercubeStudy) -> Evidence:
    clipped_runs, row = study.simulated.clipped, at_paper_share(study.simulated.raked)
    cut, unclipped = MeanEstimate.of(clipped_runs.after).mean[MIDDLE], row.after.mean[MIDDLE]
    shown = np.array(printed.WITH[MIDDLE], np.float64)
    nearer = (np.abs(shown - unclipped) < np.abs(shown - cut)).all()
    interpretation = "kept" if nearer else "clipped, or is inconclusive"
    values = {"kept": _listed(unclipped, ".3f"), "cut": _listed(cut, ".3f"), "share": clipped_runs.share(row.tolerance)}
    return _or_none(row, nearer), values | {"interpretation": interpretation}


@CLAIMS
def best(study: HypercubeStudy) -> Evidence:
    row, same = _with_least_squares(study)
    raked = row.after.mean[MIDDLE]
    pairs = ", ".join(f"{a:.3f} against {b:.3f}" for a, b in zip(raked, same[MIDDLE], strict=True))
    return _or_none(row, (raked <= same[MIDDLE]).all()), {"pairs": pairs}


def _with_least_squares(study: HypercubeStudy) -> tuple[ToleranceResult, Floats]:
    """The runs whose raking converged, and the variances that least squares leaves in the same runs."""
    row = at_paper_share(study.simulated.raked)
    return row, study.simulated.least_squares_where(row.tolerance).mean


def _or_none(row: ToleranceResult, holds: bool | np.bool_) -> bool | None:
    """None (not tested) where fewer than two runs converge."""
    return bool(holds) if row.converged > 1 else None


def _listed(values: Floats, form: str) -> str:
    return ", ".join(format(value, form) for value in values)
