"""Rows of the study's tables; `tables.yaml` has their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from discreet.privacy.exact import format_exact
from discreet_studies.sensitivity.births import INFUSED, SUPPRESSED
from discreet_studies.sensitivity.choosing import TARGETS
from discreet_studies.sensitivity.formal import EPSILONS, OLS, SIZES, rmse
from discreet_studies.sensitivity.study import SensitivityStudy
from discreet_studies.sensitivity.table1 import Decomposition

PARTS = ("signal", "sampling", "privacy")
COLUMNS = ("atlas", "infused", "exact", "suppressed", "cells", "left")
Row = dict[str, object]


def tables(study: SensitivityStudy) -> Mapping[str, Iterable[object]]:
    """Rows by table name."""
    chis = {"plain": study.chis.plain, "winsorised": study.chis.winsorised}
    released = ("estimate", "and count", "and standard error")
    smallest = min((c.size for c in study.costs), default=0)
    return {
        "table-1": [
            {
                "printed": row.printed,
                "winsorised": _shares("winsorised", row.winsorised, row.printed.binary),
                "plain": _shares("plain", row.plain),
            }
            for row in study.table1
        ],
        "reliability": _reliability(study),
        "figure-3-slopes": _slopes(study),
        "choosing-epsilon": [
            {"one": one, "point": point, "error": point.mse_exact**0.5}
            for one in study.epsilon_choices
            for point in one.points
        ],
        "epsilon-for-accuracy": [
            {
                "one": one,
                "needed": {
                    f"ε for at most {format_exact(100 * target)}%": "none" if e is None else format_exact(e)
                    for target, e in zip(TARGETS, one.epsilons, strict=True)
                },
            }
            for one in study.epsilon_choices
        ],
        "corners": study.corners,
        "chi": [
            {"name": name, "pools": len(chi), "median": float(np.median(chi)), "largest": float(chi.max())}
            | {"short": study.chis.short(name)}
            for name, chi in chis.items()
        ],
        "global-sensitivity": [dict(zip(("spread", "plain", "winsorised"), row, strict=True)) for row in study.growth],
        "normal-noise": [
            {"one": one, "released": what, "delta": float(one.delta), "epsilon": float(one.epsilon)}
            for one, what in zip(study.nominal, released, strict=True)
        ],
        "lower-bound": study.bounded,
        "one-draw": study.recovered,
        "guarantee-costs": _costs(study),
        "guarantees": [c for c in study.costs if c.epsilon == 8 and c.size == smallest],
    }


def _shares(kind: str, parts: Decomposition | None, binary: bool = False) -> Mapping[str, str]:
    """Shares in percent."""
    texts = ["not winsorised", "", ""] if binary else ["–"] * 3
    if parts and not binary:
        texts = [f"{100 * getattr(parts.shares, part):.2f}" for part in PARTS]
    return {f"{kind}: {part}": text for part, text in zip(PARTS, texts, strict=True)}


def _reliability(study: SensitivityStudy) -> list[Row]:
    """Cells, χ of the median state, loss of reliability, and privacy's share of the noise, winsorised as in the
    paper."""
    return [
        {
            "row": row,
            "published": published,
            "plain": row.plain and row.plain.chi,
            "noise": published.shares.privacy / (published.shares.privacy + published.shares.sampling),
            "theirs": row.printed.privacy / (row.printed.privacy + row.printed.sampling),
        }
        for row in study.table1
        if (published := row.as_published)
    ]


def _slopes(study: SensitivityStudy) -> list[Row]:
    """The paper's slopes, one line per seed, then means and standard deviations over seeds."""
    rows: list[tuple[str, ...]] = [("the paper", _fit(*INFUSED), "–", _fit(*SUPPRESSED), "–", "–")]
    for one in study.slopes:
        fits = (_fit(fit.slope, fit.error) for fit in (one.infused, one.exact, one.suppressed))
        rows.append((f"seed {one.seed}", *fits, f"{one.infused.cells:,}", f"{one.suppressed.cells:,}"))
    each = [[getattr(one, name).slope for one in study.slopes] for name in ("infused", "exact", "suppressed")]
    spreads = (_fit(float(np.mean(slopes)), float(np.std(slopes, ddof=1))) for slopes in each)
    rows.append(("mean (standard deviation) over seeds", *spreads, "", ""))
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def _fit(slope: float, error: float) -> str:
    return f"{slope:.3f} ({error:.3f})"


def _costs(study: SensitivityStudy) -> list[Row]:
    """Root mean squared errors against the least-squares prediction."""
    rows = {}
    for c in study.costs:
        if c.row.method != OLS:
            errors = {f"ε = {format_exact(e)}": rmse(study.costs, c.row.method, c.size, e) for e in EPSILONS}
            known = {"size": c.size, "cells": c.cells, "method": c.row.method, "formal": c.row.formal}
            rows[SIZES.index(c.size), c.row.method] = known | {"errors": errors}
    return list(rows.values())
