"""The study as tables."""

from __future__ import annotations

import numpy as np

from discreet.privacy.exact import written
from discreet.report.blocks import Table
from discreet_studies.sensitivity.births import HIDDEN, INFUSED
from discreet_studies.sensitivity.choosing import TARGETS
from discreet_studies.sensitivity.formal import EPSILONS, OLS, SIZES, rmse
from discreet_studies.sensitivity.study import Study
from discreet_studies.sensitivity.table1 import NAMES, Parted

PARTS = ("signal", "sampling", "privacy")


def table1(study: Study) -> Table:
    """Percentages: the paper's, ours as it published, ours without winsorising."""
    rows = []
    for row in study.table1:
        asked = row.asked
        paper = [f"{value:.2f}" for value in (asked.signal, asked.sampling, asked.privacy)]
        binary = ["not winsorised", "", ""] if asked.binary else None
        rows.append(
            (NAMES[asked.outcome], asked.label, *paper, *(binary or _shares(row.winsorised)), *_shares(row.plain))
        )
    kinds = ("paper", "winsorised", "plain")
    return Table("table-1", ("outcome", "children", *(f"{kind}: {part}" for kind in kinds for part in PARTS)), rows)


def _shares(found: Parted | None) -> list[str]:
    if found is None:
        return ["–"] * 3
    return [f"{100 * value:.2f}" for value in (found.shares.signal, found.shares.sampling, found.shares.privacy)]


def reliability(study: Study) -> Table:
    """Cells, χ of the median state, what reliability loses, privacy's part of the noise; as the paper published."""
    rows = []
    for row in study.table1:
        found, asked = row.as_published, row.asked
        if found is None:
            continue
        noise = found.shares.privacy / (found.shares.privacy + found.shares.sampling)
        theirs = asked.privacy / (asked.privacy + asked.sampling)
        chi = (f"{found.chi:.2f}", f"{row.plain.chi:.2f}" if row.plain else "–")
        values = (f"{found.reliability_before:.1%}", f"{found.shares.signal:.1%}", f"{noise:.1%}", f"{theirs:.1%}")
        rows.append((NAMES[asked.outcome], asked.label, f"{found.cells:,}", *chi, *values))
    names = ("χ", "χ, plain", "reliability before", "after", "privacy's part of the noise", "paper's part")
    return Table("reliability", ("outcome", "children", "cells", *names), rows)


def slopes(study: Study) -> Table:
    """A line a seed; the paper's first."""
    rows = [("the paper", *map(_fit, (INFUSED, (float("nan"), 0.0), HIDDEN)), "–", "–")]
    for one in study.slopes:
        fits = [(fit.slope, fit.error) for fit in (one.infused, one.exact, one.hidden)]
        rows.append((f"seed {one.seed}", *map(_fit, fits), f"{one.infused.cells:,}", f"{one.hidden.cells:,}"))
    each = [[getattr(one, name).slope for one in study.slopes] for name in ("infused", "exact", "hidden")]
    rows.append(
        ("mean, and spread of seeds", *(_fit((float(np.mean(e)), float(np.std(e, ddof=1)))) for e in each), "", "")
    )
    return Table(
        "figure-3-slopes", ("atlas", "noise-infused", "without noise", "count-suppressed", "cells", "left"), rows
    )


def _fit(fit: tuple[float, float]) -> str:
    return "–" if np.isnan(fit[0]) else f"{fit[0]:.3f} ({fit[1]:.3f})"


def choosing(study: Study) -> Table:
    """Misclassified cells at each ε."""
    rows = []
    for one in study.chosen:
        for p in one.points:
            values = f"{p.mse_exact**0.5:.4f}", f"{p.false_top:.1%}", f"{p.false_bottom:.1%}"
            rows.append((one.label, written(p.epsilon), *values))
    return Table(
        "choosing-epsilon", ("outcome", "ε", "root mean squared error", "false at the top", "at the bottom"), rows
    )


def needed(study: Study) -> Table:
    """The smallest ε for each accuracy."""
    rows = [
        (one.label, f"{one.cells:,}", f"{one.counties:,}", *("none" if e is None else written(e) for e in one.epsilons))
        for one in study.chosen
    ]
    heads = [f"ε for at most {written(100 * target)}%" for target in TARGETS]
    return Table("epsilon-for-accuracy", ("outcome", "cells", "counties", *heads), rows)


def corners(study: Study) -> Table:
    """By estimator and size."""
    rows = [
        (
            c.estimator,
            c.sizes,
            f"{c.cells:,}",
            f"{c.unbounded:,}",
            f"{c.short:.1%}",
            f"{c.median:.3f}",
            f"{c.largest:.2f}",
        )
        for c in study.corners
    ]
    names = ("cells", "unbounded", "corners fall short in", "exact over corners there: median", "largest")
    return Table("corners", ("estimator", "children", *names), rows)


def chis(study: Study) -> Table:
    """χ of states × races × genders: corners against exact, and what winsorising leaves."""
    rows = []
    for name in ("plain", "winsorised"):
        share, most = study.chis.short(name)
        chi = study.chis.plain if name == "plain" else study.chis.drawn_in
        rows.append((name, f"{len(chi):,}", f"{np.median(chi):.2f}", f"{chi.max():.2f}", f"{share:.1%}", f"{most:.3f}"))
    names = ("pools", "median χ", "largest χ", "corners give less in", "largest factor")
    return Table("chi", ("estimator", *names), rows)


def growth(study: Study) -> Table:
    """Without bound as x comes together."""
    rows = [(f"±{s:g}", f"{plain:.2f}", f"{drawn_in:.2f}") for s, plain, drawn_in in study.growth]
    return Table("global-sensitivity", ("x within", "exact sensitivity", "winsorised"), rows)


def nominal(study: Study) -> Table:
    """What Normal noise at nominal ε = 8 is worth."""
    what = ("estimate", "and count", "and standard error")
    rows = [
        (f"{n.numbers}: {said}", written(n.nominal), f"{float(n.delta):.3f}", f"{float(n.epsilon):.1f}")
        for n, said in zip(study.nominal, what, strict=True)
    ]
    return Table("normal-noise", ("numbers of a cell", "nominal ε", "exact δ at it", "exact ε at δ = 10⁻⁶"), rows)


def bounded(study: Study) -> Table:
    """The cost of a private lower bound on N."""
    rows = [
        (written(b.epsilon), str(b.margin), b.sizes, f"{b.cells:,}", f"{b.variance:.3f}", f"{b.over:.1%}")
        for b in study.bounded
    ]
    names = ("ε", "margin", "children", "cells", "noise variance over that by N", "noisy count above N")
    return Table("lower-bound", names, rows)


def recovered(study: Study) -> Table:
    """What one ω gives away."""
    rows = [
        (written(r.epsilon), r.draws, f"{r.counts:.1%}", f"{r.estimates:.1%}", f"{r.error:.2g}", f"{r.before:.2g}")
        for r in study.recovered
    ]
    names = ("ε", "ω of estimate and count", "counts found by rounding", "estimates found exactly")
    return Table("one-draw", (*names, "attacker's median error", "published median error"), rows)


def costs(study: Study) -> Table:
    """Root mean squared errors against the least-squares prediction."""
    rows = []
    for size in SIZES:
        names = list(dict.fromkeys(c.row.method for c in study.costs if c.size == size and c.row.method != OLS))
        for name in names:
            mine = [c for c in study.costs if c.size == size and c.row.method == name]
            errors = [rmse(study.costs, name, size, epsilon) for epsilon in EPSILONS]
            said = "yes" if mine[0].row.formal else "no"
            rows.append((str(size), f"{mine[0].cells:,}", name, said, *(f"{e:.4f}" if e else "–" for e in errors)))
    heads = ("children, about", "cells", "method", "formally private", *(f"ε = {written(e)}" for e in EPSILONS))
    return Table("guarantee-costs", heads, rows)


def promises(study: Study) -> Table:
    """Each guarantee in words, at ε = 8; how often there is no answer in the smallest cells."""
    eight = [c for c in study.costs if c.epsilon == 8 and c.size == min(c.size for c in study.costs)]
    rows = [(c.row.method, c.row.promise, f"{c.row.fallbacks:.1%}") for c in eight]
    return Table("guarantees", ("method", "promise at ε = 8", "cells without an answer"), rows)
