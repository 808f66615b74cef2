"""The claims of Chetty & Friedman 2019, each as a test of the study's numbers. Texts: claims.yaml."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet_studies.claims import Claims, Evidence
from discreet_studies.sensitivity.cells import EPSILON
from discreet_studies.sensitivity.formal import SIZES, best_formal, least_observed
from discreet_studies.sensitivity.study import SensitivityStudy

SUBSTANTIAL = 0.8  # share of χ that remains, at most
TYPICAL = 0.95  # of cells, at least
NEARLY = 0.99  # share of χ given by corners, at least
LITTLE = 0.02  # loss of reliability
RATE = (0.9, 1.1)  # exponent of N
TIGHT = 0.5  # share of the envelope that the median cell reaches, at least
LEAST_SIZES = ("20–49", "50–99", "100 or more")
SMALL_DELTA = Fraction(1, 100)
UNTESTED: Evidence = (None, {})
CLAIMS: Claims[SensitivityStudy] = Claims("sensitivity")


@CLAIMS
def corners_plain(study: SensitivityStudy) -> Evidence:
    return _corners(study, "plain")


@CLAIMS
def corners_winsorised(study: SensitivityStudy) -> Evidence:
    return _corners(study, "winsorised")


def _corners(study: SensitivityStudy, estimator: str) -> Evidence:
    rows = [row for row in study.corners if row.sizes in LEAST_SIZES and row.estimator == estimator]
    if not rows:
        return UNTESTED
    share = 1 - sum(row.short * row.cells for row in rows) / sum(row.cells for row in rows)
    return share >= TYPICAL, {"share": share, "most": max(row.largest for row in rows)}


@CLAIMS
def chi_of_corners(study: SensitivityStudy) -> Evidence:
    factors: dict[str, tuple[float, float]] = {name: study.chis.short(name) for name in ("plain", "winsorised")}
    return max(most for _, most in factors.values()) <= 1 / NEARLY, dict(factors)


@CLAIMS
def rate(study: SensitivityStudy) -> Evidence:
    winsorised, plain = study.envelopes
    return RATE[0] <= winsorised.rate <= RATE[1], {"winsorised": winsorised, "plain": plain}


@CLAIMS
def tight(study: SensitivityStudy) -> Evidence:
    reach = float(np.median(study.envelopes[0].reach))
    return reach >= TIGHT, {"reach": reach, "factor": 1 / reach**2}


@CLAIMS
def loss(study: SensitivityStudy) -> Evidence:
    one = study.nominal[0]
    return one.delta < SMALL_DELTA, {"nominal": one.nominal, "delta": float(one.delta), "epsilon": float(one.epsilon)}


@CLAIMS
def one_draw(study: SensitivityStudy) -> Evidence:
    rows = [row for row in study.recovered if row.draws == "one for both" and row.epsilon == EPSILON]
    return (rows[0].estimates == 0, {"recovered": rows[0].estimates}) if rows else UNTESTED


@CLAIMS
def winsorising(study: SensitivityStudy) -> Evidence:
    share_left = study.chis.kept
    median = float(np.median(share_left))
    return median <= SUBSTANTIAL, {"fall": 1 - median, "rises": float(np.mean(share_left > 1))}


@CLAIMS
def unbiased(study: SensitivityStudy) -> Evidence:
    gaps = [abs(s.infused.slope - s.exact.slope) / s.infused.error for s in study.slopes]
    infused, exact = (float(np.mean([getattr(s, name).slope for s in study.slopes])) for name in ("infused", "exact"))
    return max(gaps) < 1, {"infused": infused, "exact": exact, "atlases": len(gaps), "most": max(gaps)}


@CLAIMS
def vanishes(study: SensitivityStudy) -> Evidence:
    gone = [abs(s.suppressed.slope) < 2 * s.suppressed.error for s in study.slopes]
    seen = [s.infused.slope > 2 * s.infused.error for s in study.slopes]
    mean = float(np.mean([s.suppressed.slope for s in study.slopes]))
    # Where not even the noise-infused slope is significant, nothing could vanish.
    holds = all(gone) if all(seen) else None
    return holds, {"mean": mean, "gone": sum(gone), "seen": sum(seen), "atlases": len(gone)}


@CLAIMS
def numerators(study: SensitivityStudy) -> Evidence:
    both = {"births": study.births.by_births, "girls": study.births.by_girls}
    ends = {name: (float(binned.y[0]), float(binned.y[-1])) for name, binned in both.items()}
    return all(low < high for low, high in ends.values()), dict(ends)


@CLAIMS
def sampling(study: SensitivityStudy) -> Evidence:
    parts = [(part.shares.privacy / part.shares.sampling, row) for row in study.table1 if (part := row.as_published)]
    if not parts:
        return UNTESTED
    worst, row = max(parts, key=lambda part: part[0])
    return worst < 1, {"worst": worst, "printed": row.printed}


@CLAIMS
def reliability(study: SensitivityStudy) -> Evidence:
    first = study.table1[0].as_published
    return UNTESTED if first is None else (first.fall <= LITTLE, {"first": first})


@CLAIMS
def cost(study: SensitivityStudy) -> Evidence:
    texts, worse = [], []
    for size in SIZES:
        mos, best = least_observed(study.costs, size, EPSILON), best_formal(study.costs, size, EPSILON)
        if mos and best:
            ratio = best.row.against_ols.rmse / mos
            texts.append(f"N ≈ {size}: {best.row.method} has {ratio:.2f} times the error")
            worse.append(ratio > 1)
    return (all(worse), {"methods": "; ".join(texts)}) if worse else UNTESTED
