"""What holds of 004's claims, and what does not: each a test of the study's numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet_studies.claims import Claim
from discreet_studies.sensitivity.births import HIDDEN, INFUSED
from discreet_studies.sensitivity.cells import EPSILON
from discreet_studies.sensitivity.formal import SIZES, best_formal, least_observed
from discreet_studies.sensitivity.study import Study

SUBSTANTIAL = 0.8  # of χ that is left, at most
TYPICAL = 0.95  # of cells, at least
NEARLY = 0.99  # of χ that corners find, at least
LITTLE = 0.02  # that reliability falls by
RATE = (0.9, 1.1)  # of the fall with N
TIGHT = 0.5  # of the envelope that the median cell reaches, at least
LEAST_SIZES = ("20–49", "50–99", "100 or more")
SMALL_DELTA = Fraction(1, 100)


def claims(study: Study) -> tuple[Claim, ...]:
    """All, in the order of the paper."""
    return (
        _corners(study, "plain"),
        _corners(study, "winsorised"),
        _chi_of_corners(study),
        _rate(study),
        _tight(study),
        _loss(study),
        _one_draw(study),
        _winsorising(study),
        _unbiased(study),
        _vanishes(study),
        _numerators(study),
        _sampling(study),
        _reliability(study),
        _cost(study),
    )


def _corners(study: Study, estimator: str) -> Claim:
    rows = [row for row in study.corners if row.sizes in LEAST_SIZES and row.estimator == estimator]
    claim = f"Corners typically give a cell's sensitivity (in 95% of cells of twenty or more; {estimator} line)"
    if not rows:
        return Claim(claim, "typically", "no cells", None)
    share = 1 - sum(row.short * row.cells for row in rows) / sum(row.cells for row in rows)
    most = max(row.largest for row in rows)
    return Claim(
        claim, "typically", f"in {share:.1%}; at worst the truth is {most:.2f} times as much", share >= TYPICAL
    )


def _chi_of_corners(study: Study) -> Claim:
    found = {name: study.chis.short(name) for name in ("plain", "winsorised")}
    ours = "; ".join(
        f"{name}: too small in {share:.1%} of states × races × genders, at worst by a factor {most:.3f}"
        for name, (share, most) in found.items()
    )
    claim = "Corners give χ, to within 1% everywhere"
    return Claim(claim, "not reported", ours, max(most for _, most in found.values()) <= 1 / NEARLY)


def _rate(study: Study) -> Claim:
    drawn_in, plain = study.envelopes
    ours = f"as N^−{drawn_in.rate:.2f} winsorised, N^−{plain.rate:.2f} plain ({drawn_in.label})"
    return Claim("Sensitivities fall as 1/N", "as 1/N", ours, RATE[0] <= drawn_in.rate <= RATE[1])


def _tight(study: Study) -> Claim:
    reach = float(np.median(study.envelopes[0].reach))
    ours = (
        f"the median cell's sensitivity is {reach:.0%} of χ/N, so its noise has {1 / reach**2:.1f} times the variance"
    )
    return Claim("The envelope χ/N is tight (the median cell reaches half of it)", "tight", ours, reach >= TIGHT)


def _loss(study: Study) -> Claim:
    one = study.nominal[0]
    ours = (
        f"with Normal noise δ({one.nominal}) = {float(one.delta):.3f}, and δ = 10⁻⁶ needs ε = {float(one.epsilon):.1f}"
    )
    claim = "Apart from χ, the loss of each released estimate is below ε = 8"
    return Claim(claim, "guaranteed", ours, one.delta < SMALL_DELTA)


def _one_draw(study: Study) -> Claim:
    claim = "Counts beside estimates cost 2ε together (with one ω for both, as Step 4c may be read)"
    rows = [row for row in study.recovered if row.draws == "one for both" and row.epsilon == EPSILON]
    if not rows:
        return Claim(claim, "2ε", "no cells", None)
    found = rows[0].estimates
    return Claim(claim, "2ε", f"rounding the count gives {found:.1%} of estimates exactly", found == 0)


def _winsorising(study: Study) -> Claim:
    kept = study.chis.kept
    ours = (
        f"the median χ falls by {1 - float(np.median(kept)):.0%}; it rises in {float(np.mean(kept > 1)):.0%} of pools"
    )
    claim = "Winsorising reduces χ substantially (by a fifth or more)"
    return Claim(claim, "substantially", ours, float(np.median(kept)) <= SUBSTANTIAL)


def _unbiased(study: Study) -> Claim:
    gaps = [abs(s.infused.slope - s.exact.slope) / s.infused.error for s in study.slopes]
    slope = float(np.mean([s.infused.slope for s in study.slopes]))
    exact = float(np.mean([s.exact.slope for s in study.slopes]))
    ours = f"{slope:.3f} with noise, {exact:.3f} without (means of {len(gaps)} atlases); "
    ours += f"at most {max(gaps):.2f} standard errors apart"
    return Claim("Noise does not bias the slope", f"{INFUSED[0]} ({INFUSED[1]})", ours, max(gaps) < 1)


def _vanishes(study: Study) -> Claim:
    gone = [abs(s.hidden.slope) < 2 * s.hidden.error for s in study.slopes]
    seen = [s.infused.slope > 2 * s.infused.error for s in study.slopes]
    mean = float(np.mean([s.hidden.slope for s in study.slopes]))
    ours = f"mean {mean:.3f}; not distinguishable from 0 in {sum(gone)} of {len(gone)} atlases, "
    ours += f"where the noise-infused one is distinguishable in {sum(seen)}"
    claim = "Suppressing small counts makes the slope vanish"
    # Where not even the noise-infused slope is seen, there is nothing that could vanish.
    return Claim(claim, f"{HIDDEN[0]} ({HIDDEN[1]})", ours, all(gone) if all(seen) else None)


def _numerators(study: Study) -> Claim:
    rates = {
        name: (float(b.y[0]), float(b.y[-1]))
        for name, b in (("births", study.births.by_births), ("girls", study.births.by_girls))
    }
    ours = "; ".join(f"by {name}: from {low:.1%} to {high:.1%}" for name, (low, high) in rates.items())
    claim = "Rates are low where few births, and where few girls, are counted"
    return Claim(claim, "rising, both panels", ours, all(low < high for low, high in rates.values()))


def _sampling(study: Study) -> Claim:
    parts = [(row.asked, p.shares) for row in study.table1 if (p := row.as_published)]
    claim = "In every row of Table 1 the noise of privacy is smaller than sampling error"
    if not parts:
        return Claim(claim, "always", "no row has cells enough", None)
    asked, worst = max(parts, key=lambda part: part[1].privacy / part[1].sampling)
    ours = f"at most {worst.privacy / worst.sampling:.0%} of it ({asked.label}, {asked.outcome})"
    return Claim(claim, "always", ours, all(s.privacy < s.sampling for _, s in parts))


def _reliability(study: Study) -> Claim:
    first = study.table1[0].as_published
    claim = "The reliability of Black girls' teenage birth rates falls very slightly (by two points or less)"
    if first is None:
        return Claim(claim, "71.8% to 71.0%", "no cells", None)
    ours = f"{first.reliability_before:.1%} to {first.shares.signal:.1%}"
    return Claim(claim, "71.8% to 71.0%", ours, first.fall <= LITTLE)


def _cost(study: Study) -> Claim:
    claim = "Formal privacy offers no practical path to such estimates (at ε = 8 every formal method errs more)"
    said, worse = [], []
    for size in SIZES:
        mos, best = least_observed(study.costs, size, EPSILON), best_formal(study.costs, size, EPSILON)
        if mos and best:
            ratio = best.row.against_ols.rmse / mos
            said.append(f"N ≈ {size}: {best.row.method} errs {ratio:.2f} times as much")
            worse.append(ratio > 1)
    return Claim(claim, "global sensitivity is infinite", "; ".join(said) or "no cells", all(worse) if worse else None)
