"""Checks before any budget is spent: the size of the cube, noise of variance 0, infeasible controls."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import DiscreetError, DomainError, GuaranteeError, SpecError
from discreet.methods.hypercube.control_feasibility import inconsistent_pairs, infeasible_totals
from discreet.methods.hypercube.rounding.controlled_rounding import non_decomposable
from discreet.methods.protocol import refuse_taken_columns
from discreet.post.cubes.variance import MOST_EFFECTS

if TYPE_CHECKING:
    from discreet.methods.hypercube.design import CubeDesign, PreparedControl

DENSE_LIMIT = 1 << 34
MEMORY_LIMIT = 1 << 28  # cells, or rows of a sparse cube, in memory
DEVIATIONS_LIMIT = 1 << 28
NOISE_LIMIT = 10**11  # standard deviation × cells, up to which integers are rounded exactly
CLOSE = 1e-6  # relative: public totals that differ by less are consistent


def check(design: CubeDesign) -> None:
    """Refuses what could not be completed. Uses declarations and public files only."""
    _check_size(design)
    _check_noise(design)
    _check_names(design)
    _ = design.guarantee
    _check_controls(design)
    if design.spec.integers:
        _check_integers(design)


def _check_size(design: CubeDesign) -> None:
    cells, dense = design.domain.cells, design.spec.form == "dense"
    if dense and cells > DENSE_LIMIT:
        sparse = design.spec.weights is None or design.average is not None
        raise GuaranteeError(
            f"{cells:,} cells are too many for a dense cube, at most {DENSE_LIMIT:,}",
            where=design.where,
            do="write `form: sparse`: the same distribution, but only non-zero rows are written"
            if sparse and not design.spec.integers
            else "leave out variables, or use coarser ones: weighted totals and `integers` have no sparse form",
        )
    rows = cells if dense else design.noisy_rows
    if design.in_memory and rows > MEMORY_LIMIT:
        raise DomainError(
            f"{rows:,} {'cells' if dense else 'rows of noise'} exceed the {MEMORY_LIMIT:,} that can be calibrated in "
            "memory",
            where=design.where,
            do="publish it without `controls`, `integers` and sampling variances, or with fewer cells",
        )
    numbers = max((table.coarse.cells for table in design.deviation_tables), default=0) * design.replicates
    if numbers > DEVIATIONS_LIMIT:
        raise DomainError(
            f"{numbers:,} deviations of replicates are too many, at most {DEVIATIONS_LIMIT:,}",
            where=f"{design.where}, replicates",
            do="name small `tables`, through which a variance function is fitted",
        )


def _check_noise(design: CubeDesign) -> None:
    """Refuses an epsilon so large that the noise variance is 0 in double precision: least squares divide by it."""
    distributions = {"the cube": design.distribution} if design.controls else {}
    distributions |= {
        f"control {control.spec.name}": control.distribution
        for control in design.controls
        if control.distribution is not None
    }
    for what, distribution in distributions.items():
        if distribution.variance() == 0:
            raise GuaranteeError(
                f"the epsilon of {what} is so large that the variance of its noise is 0 in double precision",
                where=design.where,
                do="lower it: already at epsilon / sensitivity = 40, fewer than one number in 10^17 has non-zero noise",
            )


def _check_names(design: CubeDesign) -> None:
    for domain, names in (
        (design.domain, design.columns),
        *((c.cells.coarse, design.control_columns) for c in design.controls),
    ):
        refuse_taken_columns(names, domain, design.where)


def _check_integers(design: CubeDesign) -> None:
    """Refuses rounding that cannot keep the controls, or sums of noise beyond exact arithmetic."""
    if (problem := non_decomposable([c.margin for c in design.controls])) is not None:
        raise SpecError(
            f"integers cannot keep these controls: {problem.detail}",
            where=f"tables.{design.name}.integers",
            do="leave out a control, or `integers`",
        )
    noise = design.distribution.variance() ** 0.5 * design.largest_noise_unit * design.domain.cells
    if noise > NOISE_LIMIT:
        raise SpecError(
            f"the noise of all cells may add up to {noise:.1e}, but integers are rounded exactly only up to "
            f"{NOISE_LIMIT:.0e}",
            where=f"tables.{design.name}.integers",
            do="leave `integers` out, raise epsilon, lower `max`, or use fewer cells",
        )


def _check_controls(design: CubeDesign) -> None:
    """Refuses too many controls, and infeasible public totals. Totals are compared in pairs: three tables may still be
    the margins of no non-negative cube."""
    if sum(2 ** len(c.margin.axes) for c in design.controls if c.margin.ungrouped) > MOST_EFFECTS:
        raise SpecError(
            "the controls have too many variables: at most 16 in one control, fewer if there are several",
            where=f"tables.{design.name}.controls",
            do="leave the largest out",
        )
    public = [(control, control.public) for control in design.controls if control.public is not None]
    for control, totals in public:
        if problems := infeasible_totals([control.margin], [totals], CLOSE):
            if not totals.any():
                raise _refused(
                    control, "every total is 0", "correct `value`, the name of the column of totals, or leave it out"
                )
            codes = _codes(control, problems[0].cell, range(len(control.margin.axes)))
            raise _refused(control, f"{codes}: {problems[0].detail}", "correct the total")
    for (a, first), (b, second) in combinations(public, 2):
        if problems := inconsistent_pairs([a.margin, b.margin], [first, second], CLOSE):
            places = [i for i, place in enumerate(a.margin.places) if place in b.margin.places]
            at = f"where {_codes(a, problems[0].cell, places)}, " if places else ""
            raise _refused(
                a,
                f"is inconsistent with control {b.spec.name}, file {b.spec.file}: {at}{problems[0].detail}",
                "make both add up to the same sums (same year, same population, unrounded), or leave one of them out",
            )


def _codes(control: PreparedControl, cell: int, places: list[int] | range) -> str:
    """A cell of a control, described by the codes of its file."""
    domain = control.cells.coarse
    keys = dict(zip(domain.columns, (codes.to_pylist()[0] for codes in domain.describe(np.array([cell]))), strict=True))
    names = [column for i in places for column in domain.attributes[i].columns]
    return ", ".join(f"{name} is {keys[name]}" for name in names) or "in total"


def _refused(control: PreparedControl, what: str, do: str) -> DiscreetError:
    return DomainError(what, where=f"control {control.spec.name}, file {control.spec.file}", do=do)
