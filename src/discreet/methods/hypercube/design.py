"""The design of a declared cube: its noise distributions, its controls, and the privacy guarantee of each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from math import isfinite
from pathlib import Path
from typing import Literal

import numpy as np

from discreet.arrays import Floats, Int64s
from discreet.domain import Attribute, Coarsening, Domain, coarsening
from discreet.errors import DomainError, GuaranteeError, SpecError
from discreet.formatting import plural
from discreet.methods.hypercube import limits, wording
from discreet.methods.hypercube.spec import AverageWeightNoise, Control, Hypercube
from discreet.methods.protocol import distribution_of, refuse_unless_records
from discreet.methods.public_cells import listed
from discreet.noise.interval_arithmetic import few_digits_above
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.cubes.margins import Margin
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Guarantee, Unit
from discreet.publish.description import Kinds
from discreet.spec import Release

LARGEST_TOTAL = 1e15


@dataclass(frozen=True)
class PreparedControl:
    """A control with its cells, noise distribution or public totals."""

    spec: Control
    name: str  # of its table
    cells: Coarsening
    distribution: DiscreteLaplace | None  # None: exact or public
    public: Floats | None = None

    @cached_property
    def margin(self) -> Margin:
        return Margin.of(self.cells, self.name)

    @property
    def kind(self) -> Literal["measured", "public", "exact"]:
        return "public" if self.public is not None else "exact" if self.distribution is None else "measured"


@dataclass(frozen=True)
class CubeDesign:
    """A declared cube; inconsistent declarations are refused."""

    spec: Hypercube
    unit: Unit
    domain: Domain
    control_domains: Mapping[str, Domain]  # by the name of each control's table
    variance_domains: Sequence[Domain]
    strata_domain: Domain | None
    base: Path
    levels: Mapping[str, Attribute]  # every attribute of the release, for queries by coarser ones

    @classmethod
    def of(cls, release: Release, table: Hypercube) -> CubeDesign:
        cells, controls = table.cells(release), table.control_domains(release)
        variances, strata, attributes = table.variance_tables(release), table.strata(release), release.attributes
        return cls(table, release.unit, cells, controls, variances, strata, release.base, attributes)

    def __post_init__(self) -> None:
        refuse_unless_records(self.unit, self.where)
        limits.check(self)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def where(self) -> str:
        return f"table {self.name}"

    @property
    def kinds(self) -> Kinds:
        return tuple(self.spec.formats)

    @property
    def average(self) -> AverageWeightNoise | None:
        """The average-weight noise of totals, if declared."""
        weights = self.spec.weights
        return None if weights is None or not isinstance(weights.noise, AverageWeightNoise) else weights.noise

    @property
    def step(self) -> Fraction:
        """One step of the measure: 1 for counts, the grid for weighted totals."""
        return Fraction(1) if self.spec.weights is None else self.spec.weights.grid

    @property
    def in_memory(self) -> bool:
        """Whether the perturbed cube is post-processed in memory before it is published."""
        fitted = self.spec.variance_source is not None and bool(self.spec.variance_source.tables)
        return bool(self.spec.controls) or self.spec.integers or fitted

    @property
    def columns(self) -> tuple[str, ...]:
        """The published numeric columns of the cube."""
        columns = ["count"] if self.spec.epsilon is not None else []
        columns += ["total"] if self.spec.weights is not None else []
        columns += ["calibrated"] if self.calibrates_cells else []
        return (*columns, *(["whole"] if self.spec.integers else []))

    @property
    def calibrates_cells(self) -> bool:
        """Whether calibrated values are published by cell. Calibration changes all cells of a sparse cube, including
        those without a row, so there the tables of the controls publish the changes."""
        return bool(self.spec.controls) and self.spec.form == "dense"

    @property
    def control_columns(self) -> tuple[str, ...]:
        """The published numeric columns of a control."""
        return ("total",) if self.spec.form == "dense" else ("total", "step")

    # --- noise ------------------------------------------------------------------------------------------------------

    @cached_property
    def count_distribution(self) -> DiscreteLaplace | None:
        if self.spec.epsilon is None:
            return None
        return self._distribution("epsilon / max_records", self.spec.epsilon / self.unit.records, self.spec.cap)

    @cached_property
    def total_distribution(self) -> DiscreteLaplace | None:
        """The noise of weighted totals in steps of the grid, where they are measured with their own epsilon."""
        weights = self.spec.weights
        if weights is None or weights.epsilon is None:
            return None
        cap = None if weights.cap is None else int(weights.cap // weights.grid)
        return self._distribution("weights.epsilon", weights.epsilon / self.l1_sensitivity, cap)

    @property
    def l1_sensitivity(self) -> int:
        """L1 sensitivity of the measure: the sum of changes over all cells by one unit, in steps."""
        return self.unit.records * (1 if self.spec.weights is None else self.spec.weights.largest)

    def _distribution(self, what: str, rate: Fraction, cap: int | None) -> DiscreteLaplace:
        return distribution_of(rate, self.where, what, cap)

    @property
    def distribution(self) -> DiscreteLaplace:
        """The noise of the measure, before it is scaled by an average weight."""
        distribution = self.total_distribution or self.count_distribution
        if distribution is None:
            raise GuaranteeError("the cube has no noise", where=self.where, do="declare epsilon")
        return distribution

    @cached_property
    def noisy_rows(self) -> int:
        """Expected number of cells with non-zero noise."""
        return round(self.domain.cells * float(self.distribution.tail(1)))

    # --- controls ---------------------------------------------------------------------------------------------------

    @cached_property
    def controls(self) -> tuple[PreparedControl, ...]:
        return tuple(self._control(control) for control in self.spec.controls)

    def _control(self, control: Control) -> PreparedControl:
        name = f"{self.name}_{control.name}"
        cells = self._coarser(self.control_domains[name], f"tables.{self.name}.controls.{control.name}.by")
        distribution = None
        if control.epsilon is not None:
            scale = self.unit.records if self.average is not None else self.l1_sensitivity
            distribution = self._distribution(f"controls.{control.name}.epsilon", control.epsilon / scale, control.cap)
        public = None if control.file is None else self._public(control, cells.coarse)
        return PreparedControl(control, name, cells, distribution, public)

    def _coarser(self, coarse: Domain, where: str) -> Coarsening:
        cells = coarsening(self.domain, coarse)
        if cells is None:
            raise SpecError(
                "is not a coarsening of the cube: its cells are not unions of the cube's cells",
                where=where,
                do=f"name variables of the cube ({', '.join(self.spec.by)}), or coarser levels of them",
            )
        return cells

    def _public(self, control: Control, domain: Domain) -> Floats:
        """Public totals, one for each cell; zeros must be listed."""
        path, totals = self.base / str(control.file), np.full(domain.cells, np.nan)

        def refused(what: str) -> DomainError:
            return DomainError(
                what,
                where=f"control {control.name}, file {control.file}",
                do="list every declared cell once, with its codes and its total, zeros included",
            )

        for line, cell, text in listed(path, domain, control.value, f"control {control.name}", refused):
            totals[cell] = _number(text)
            if not isfinite(totals[cell]) or not 0 <= totals[cell] <= LARGEST_TOTAL:
                raise refused(f"line {line} has {text[:20]!r}, which is not a total: a finite number from 0")
        if missing := int(np.isnan(totals).sum()):
            first = "/".join(
                key for a in domain.describe(np.flatnonzero(np.isnan(totals))[:1]) for key in a.to_pylist()
            )
            raise refused(f"has no line for {plural(missing, 'cell')}; the first is {first}")
        return totals

    # --- replicates -------------------------------------------------------------------------------------------------

    @property
    def replicates(self) -> int:
        """Measurements per cell for sampling variances: R deviations, or one sum of squared weights."""
        if self.spec.variance_source is None:
            return 0
        return 1 if self.spec.replicates is None else len(self.spec.replicates.names)

    @cached_property
    def deviation_tables(self) -> tuple[Coarsening, ...]:
        """The tables whose sampling variances are measured: some small ones, or the cube itself."""
        if self.spec.variance_source is None:
            return ()
        if not self.spec.variance_source.tables:
            itself = coarsening(self.domain, self.domain)
            return () if itself is None else (itself,)
        return tuple(
            self._coarser(domain, f"tables.{self.name}, table {i} of sampling variances")
            for i, domain in enumerate(self.variance_domains, start=1)
        )

    @property
    def bound(self) -> int:
        """Bound on one record's contribution to a deviation, in steps of the grid: on |replicate weight − weight|, or
        on w²/max for squared weights."""
        if self.spec.replicates is not None:
            return max(int(self.spec.replicates.bound // self.step), 1)
        return 0 if self.spec.weights is None else self.spec.weights.largest

    @cached_property
    def deviation_distribution(self) -> DiscreteLaplace | None:
        """The noise of deviations: one record changes R of them in each table by at most `bound`, so their joint L1
        sensitivity is tables · R · bound · records of a unit."""
        if self.spec.variance_source is None:
            return None
        sensitivity = len(self.deviation_tables) * self.replicates * self.bound * self.unit.records
        return self._distribution(
            "epsilon of sampling variances", self.spec.variance_source.epsilon / sensitivity, None
        )

    # --- strata -----------------------------------------------------------------------------------------------------

    @cached_property
    def strata(self) -> Coarsening | None:
        """The strata of observed average weights; one for all cells if none are named."""
        if self.strata_domain is None or self.average is None or self.average.weight != "observed":
            return None
        return self._coarser(self.strata_domain, f"tables.{self.name}.weights.noise.average.strata")

    @property
    def public_average(self) -> int | None:
        """A public average weight in steps of the grid."""
        if self.average is None or self.average.weight == "observed":
            return None
        return max(round(self.average.weight / self.step), 1)

    @property
    def largest_noise_unit(self) -> float:
        """Upper bound on the measure's value of one unit of noise."""
        weights = self.spec.weights
        if self.average is None or weights is None:
            return float(self.step)
        return float(weights.max if self.public_average is None else self.public_average * self.step)

    # --- guarantees -------------------------------------------------------------------------------------------------

    def _guarantee(
        self, epsilon: Fraction, distribution: DiscreteLaplace, shift: int, caveats: tuple[str, ...] = ()
    ) -> Guarantee:
        """The guarantee of numbers with L1 sensitivity `shift`. δ is the mass of the `shift` topmost noise values below
        the cap (Li & Krenzke 2020, §3.2, for one record)."""
        delta = Fraction(0)
        if distribution.cap is not None:
            if shift > 2 * distribution.cap:
                raise GuaranteeError(
                    f"the cap {distribution.cap:,} is too small: one unit changes the numbers by up to {shift:,} and "
                    "would always be detected",
                    where=self.where,
                    do="raise the cap, or lower `max_records`",
                )
            delta = min(few_digits_above(lambda: distribution.delta(shift)), Fraction(1))
        weighted = () if self.spec.weights is None else (wording.WEIGHTS,)
        return Guarantee(unit=self.unit, epsilon=epsilon, delta=delta, caveats=(*caveats, *weighted))

    def control_guarantee(self, control: PreparedControl) -> Guarantee:
        """The guarantee of the totals of a control."""
        if control.distribution is None or control.spec.epsilon is None:
            exact = (wording.exact(control.spec.by),) if control.public is None else ()
            return Guarantee(unit=self.unit, epsilon=Fraction(0), caveats=exact)
        shift = self.unit.records if self.average is not None else self.l1_sensitivity
        return self._guarantee(control.spec.epsilon, control.distribution, shift, self._averaged)

    def table_guarantee(self, control: PreparedControl) -> Guarantee:
        """The guarantee of the published table of a control: with its steps, which use all measurements, that of
        all."""
        return self.control_guarantee(control) if self.spec.form == "dense" else self.guarantee

    @property
    def _averaged(self) -> tuple[str, ...]:
        """The caveats of average-weight noise."""
        if self.average is None:
            return ()
        return (wording.AVERAGE,) if self.strata is None else (wording.AVERAGE, wording.OBSERVED)

    @property
    def cube_guarantee(self) -> Guarantee:
        """The guarantee of the perturbed cube, before calibration."""
        parts = []
        if self.count_distribution is not None and self.spec.epsilon is not None:
            parts.append(self._guarantee(self.spec.epsilon, self.count_distribution, self.unit.records, self._averaged))
        weights = self.spec.weights
        if self.total_distribution is not None and weights is not None and weights.epsilon is not None:
            parts.append(self._guarantee(weights.epsilon, self.total_distribution, self.l1_sensitivity))
        return reduce(Guarantee.compose_sequential, parts)

    @property
    def deviation_guarantee(self) -> Guarantee | None:
        if self.deviation_distribution is None or self.spec.variance_source is None:
            return None
        return self._guarantee(self.spec.variance_source.epsilon, self.deviation_distribution, 1)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee of all parts together, by sequential composition."""
        parts = [
            self.cube_guarantee,
            *(self.control_guarantee(control) for control in self.controls),
            self.deviation_guarantee,
        ]
        return reduce(Guarantee.compose_sequential, (part for part in parts if part is not None))

    def composes(self) -> str:
        """How the guarantee composes, as text."""
        parts = []
        if self.spec.epsilon is not None:
            parts.append(f"counts {format_exact(self.spec.epsilon)}")
        if self.spec.weights is not None and self.spec.weights.epsilon is not None:
            parts.append(f"weighted totals {format_exact(self.spec.weights.epsilon)}")
        parts += [f"control {c.spec.name} {format_exact(c.spec.epsilon)}" for c in self.controls if c.spec.epsilon]
        if self.spec.variance_source is not None:
            parts.append(f"sampling variances {format_exact(self.spec.variance_source.epsilon)}")
        total = f"ε = {format_exact(self.guarantee.epsilon)}"
        return (
            f"parallel composition over disjoint cells; sequential over {' + '.join(parts)}: {total}"
            if len(parts) > 1
            else (f"parallel composition over disjoint cells: {total} for the whole cube")
        )

    def coarser_levels(self) -> list[tuple[Attribute, int, Int64s]]:
        """Attributes of the release that group codes of the cube: each with the cube's axis and the group of each
        code."""
        levels = []
        for place, fine in enumerate(self.domain.attributes):
            for coarse in self.levels.values():
                groups = None if coarse.name == fine.name else fine.within(replace(coarse, hierarchy=""))
                if groups is not None and coarse.size < fine.size:
                    levels.append((coarse, place, groups))
        return levels


def _number(text: str) -> float:
    try:
        return float(text) if "_" not in text else float("nan")
    except ValueError:
        return float("nan")
