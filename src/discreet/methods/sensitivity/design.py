"""A declared table of estimates, resolved: its statistic, grid, noise, privacy loss, and published cells."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np

from discreet.domain import Coarsening, Domain, coarsening
from discreet.engine.spans import Int64s
from discreet.errors import DomainError, GuaranteeError, SpecError
from discreet.methods.protocol import refuse_taken_columns
from discreet.methods.sensitivity import wording
from discreet.methods.sensitivity.kernel import EstimateKernel, stepped
from discreet.methods.sensitivity.noise import EstimateNoise, public_sizes
from discreet.methods.sensitivity.spec import PublicSizes, Sensitivity
from discreet.methods.sensitivity.statistic import search, statistic
from discreet.methods.sensitivity.statistics import Search, Statistic
from discreet.methods.sensitivity.statistics.winsorised import WinsorisedLine
from discreet.privacy.gaussian import true_epsilon
from discreet.privacy.guarantee import Guarantee, Unit
from discreet.publish.description import Kinds
from discreet.publish.stata import LONGEST_TEXT
from discreet.spec import Release

MOST_CELLS = 1 << 30
FINENESS = 6  # digits of the default grid below the statistic's natural size
FARTHEST = 2**34  # grid steps of the natural size; χ may be up to 2^16 times larger
SMALLEST = Fraction(1, 2**40)  # epsilon
MOST_POINTS = 10**6  # grid points per cell


@dataclass(frozen=True)
class EstimateDesign:
    """A declared table of estimates; an inconsistent declaration is refused."""

    spec: Sensitivity
    domain: Domain
    groups: Coarsening
    unit: Unit
    base: Path

    @classmethod
    def of(cls, release: Release, table: Sensitivity) -> EstimateDesign:
        domain = table.cells(release)
        coarse = coarsening(domain, table.grouped(release))
        if coarse is None:
            raise SpecError(
                "every cell must lie in one group",
                where=f"tables.{table.name}.groups",
                do="use attributes of `by`, or coarser levels of them",
            )
        return cls(table, domain, coarse, release.unit, release.base)

    def __post_init__(self) -> None:
        if self.unit.entity is not None and getattr(self.unit, "max_records", None) != 1:
            raise GuaranteeError(
                "sensitivities cover one record: a unit with several records is not protected",
                where=f"table {self.name}",
                do="state max_records: 1 (one record per unit is used), or `unit: record`",
            )
        if self.domain.cells > MOST_CELLS:
            raise GuaranteeError(
                f"{self.domain.cells:,} cells are too many to visit one by one",
                where=f"table {self.name}",
                do="publish fewer",
            )
        refuse_taken_columns(self.columns, self.domain, f"table {self.name}")
        if "dta" in self.spec.formats and _longest(self.domain) > LONGEST_TEXT:
            raise DomainError("a code is too long for Stata", where=f"table {self.name}", do="omit `dta`")
        self._check_size()
        _ = self.search, self.sizes, self.chosen, self.guarantee

    def _check_size(self) -> None:
        """Refuses a declaration whose grid or search is too fine, or ε too small."""
        where = f"table {self.name}"
        if self.spec.epsilon < SMALLEST:
            raise GuaranteeError("epsilon is below 2^-40", where=where, do="choose a larger epsilon")
        if self.statistic.scale * self.steps > FARTHEST:
            raise DomainError(
                f"a {self.statistic.name} with these bounds spans more than 2^34 grid steps",
                where=where,
                do="declare a coarser `grid`, or variables in larger units, such as thousands",
            )
        points = 2 if self.search.kind == "corners" else self.search.points if self.search.kind == "grid" else 1
        if points ** len(self.statistic.variables) > MOST_POINTS:
            raise SpecError(
                "the grid has more than a million points per cell", where=f"tables.{self.name}.search", do="use fewer"
            )

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def kinds(self) -> Kinds:
        """The file formats of a table."""
        return tuple(self.spec.formats)

    @cached_property
    def statistic(self) -> Statistic:
        return statistic(self.spec, self.base)

    @cached_property
    def search(self) -> Search:
        return search(self.spec, self.statistic)

    @cached_property
    def steps(self) -> int:
        """Grid steps per unit of measure: declared, or a step of 10⁻⁶ of the statistic's natural size."""
        if self.spec.grid is not None:
            return self.spec.grid.denominator
        digits = max(FINENESS - int(np.floor(np.log10(self.statistic.scale))), 0)
        return int(10**digits)

    @cached_property
    def quantities(self) -> tuple[str, ...]:
        """The noisy quantities of each cell, each with its own ε."""
        if self.spec.publish is None:
            return ("estimate", *(["error"] if self.statistic.has_error else []), "count")
        if "error" in self.spec.publish and not self.statistic.has_error:
            raise SpecError(
                f"a {self.statistic.name} has no standard error here",
                where=f"tables.{self.name}.publish",
                do="omit it",
            )
        return tuple(self.spec.publish)

    @property
    def errors(self) -> bool:
        return "error" in self.quantities

    @cached_property
    def noise(self) -> EstimateNoise:
        size = "public" if isinstance(self.spec.cell_size, PublicSizes) else self.spec.cell_size
        return EstimateNoise(self.spec.noise, self.spec.epsilon, self.spec.decay, size, self.part("bound"))

    def part(self, claim: str) -> Fraction | None:
        """The part of δ for one of the events among which it is divided."""
        claims = self.spec.claims
        return None if self.spec.delta is None or claim not in claims else self.spec.delta / len(claims)

    @cached_property
    def sizes(self) -> Int64s | None:
        """Public numbers of records, by cell."""
        sizes = self.spec.cell_size
        return public_sizes(sizes, self.domain, self.base) if isinstance(sizes, PublicSizes) else None

    @cached_property
    def chosen(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The attributes in `only`, with the codes of the published cells."""
        selected = []
        for name, codes in self.spec.only.items():
            where = f"tables.{self.name}.only.{name}"
            place = next((i for i, a in enumerate(self.domain.attributes) if a.name == name), None)
            if place is None:
                raise SpecError(f"{name!r} is not in `by`", where=where, do=f"use one of {', '.join(self.spec.by)}")
            attribute = self.domain.attributes[place]
            known = {key[0]: i for i, key in enumerate(attribute.published)} if len(attribute.columns) == 1 else {}
            if undeclared := next((code for code in codes if code not in known), None):
                raise SpecError(
                    f"{undeclared!r} is not a category of {name!r}", where=where, do="use declared categories"
                )
            selected.append((place, tuple(known[code] for code in codes)))
        return tuple(selected)

    @cached_property
    def charged(self) -> Fraction:
        """The total ε of a cell's quantities."""
        if self.spec.noise == "laplace":
            return self.spec.epsilon * len(self.quantities)
        return true_epsilon([self.spec.epsilon] * len(self.quantities), self.part("normal") or Fraction(0))

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee of all quantities of a cell together, with its caveats."""
        excluded = self.spec.infinite_influence == "exclude"
        caveats = [wording.CHI, wording.ROUNDED, wording.UNDEFINED if excluded else wording.REFUSED_INFINITE]
        caveats += [] if self.search.kind == "exact" else [wording.searched(self.search, self.statistic)]
        caveats += [wording.WINSORISED] if self.errors and isinstance(self.statistic, WinsorisedLine) else []
        caveats += {"bound": [], "true": [wording.TRUE_SIZE], "public": [wording.PUBLIC_SIZE]}[self.noise.size]
        by_true_count = self.spec.suppress_below is not None and self.spec.suppress_below.on == "true"
        caveats += [wording.TRUE_COUNT_SUPPRESSION] if by_true_count else []
        delta = self.spec.delta or Fraction(0)
        return Guarantee(unit=self.unit, epsilon=self.charged, delta=delta, caveats=tuple(caveats))

    @property
    def least(self) -> int:
        """Records that a cell needs to count towards χ: with fewer it is not published, or only with a probability that
        is part of δ."""
        if self.spec.suppress_below is None:
            return 1
        if self.spec.suppress_below.on == "true":
            return self.spec.suppress_below.count
        rare = self.part("small")
        return 1 if rare is None else max(self.spec.suppress_below.count - self.noise.counting.margin(1 - 2 * rare), 1)

    @property
    def columns(self) -> tuple[str, ...]:
        """The published columns of a cell, without its codes."""
        nothing = np.zeros(0, np.int64)
        return self.kernel(nothing, nothing).columns

    def kernel(self, chi: Int64s, chi_error: Int64s) -> EstimateKernel:
        """The kernel that draws the noise, given its scales χ."""
        return EstimateKernel(
            table=self.name,
            domain=self.domain,
            groups=self.groups,
            noise=self.noise,
            quantities=self.quantities,
            steps=self.steps,
            empty=int(stepped(np.array([self.statistic.empty]), self.steps)[0]),
            parameters=self.statistic.parameters,
            chi=chi,
            chi_error=chi_error,
            suppress_below=None if self.spec.suppress_below is None else self.spec.suppress_below.count,
            suppress_by_true_count=self.spec.suppress_below is not None and self.spec.suppress_below.on == "true",
            sizes=self.sizes,
            chosen=self.chosen,
        )


def _longest(domain: Domain) -> int:
    """Bytes of the longest published code."""
    return max((len(code.encode()) for a in domain.attributes for key in a.published for code in key), default=0)
