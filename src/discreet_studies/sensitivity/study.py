"""The study of Chetty & Friedman 2019 as one value, from which everything reported is derived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet.formatting import Observer
from discreet.privacy.exact import format_exact
from discreet.synth.atlas import BLACK, GIRLS, atlas
from discreet_studies.harness import Paper, Size
from discreet_studies.sensitivity import omissions, subgroups
from discreet_studies.sensitivity.births import SEEDS, BirthSlopes, BirthsStudy, births
from discreet_studies.sensitivity.cells import EPSILON, PLAIN, cell_statistics, observations, tracts_for
from discreet_studies.sensitivity.choosing import EpsilonChoice, epsilon_choices
from discreet_studies.sensitivity.formal import EPSILONS, PLANNED, SIZES, Cost, best_formal, costs, least_observed
from discreet_studies.sensitivity.table1 import BIRTHS, JAIL, ROWS, VarianceRow, table1


@dataclass(frozen=True)
class AtlasSize:
    """Size of the synthetic atlas."""

    children: int
    seed: int
    tracts: int
    counties: int
    states: int
    cells: int  # by race and gender, of twenty children or more


@dataclass(frozen=True)
class SensitivityStudy:
    """All numbers of the study."""

    data: AtlasSize
    table1: tuple[VarianceRow, ...]
    example: subgroups.Example | None
    envelopes: tuple[subgroups.Envelope, subgroups.Envelope]
    births: BirthsStudy
    slopes: tuple[BirthSlopes, ...]
    epsilon_choices: tuple[EpsilonChoice, ...]
    corners: tuple[subgroups.CornerShortfall, ...]
    chis: subgroups.PoolSensitivities
    counterexample: omissions.Counterexample
    growth: tuple[tuple[float, float, float], ...]
    nominal: tuple[omissions.NormalNoiseLoss, ...]
    bounded: tuple[omissions.LowerBoundNoise, ...]
    recovered: tuple[omissions.SharedDrawAttack, ...]
    costs: tuple[Cost, ...]


def study(children: int, seed: int, observe: Observer) -> SensitivityStudy:
    """Run the study; the atlas is freed as soon as possible."""
    world = atlas(children, tracts_for(children), seed)
    observe("atlas", 1, 1)
    rows = []
    for row in table1(world, seed):
        rows.append(row)
        observe("table 1", len(rows), len(ROWS))
    choices = tuple(epsilon_choices(world))
    observe("choosing epsilon", 1, 1)
    girls = cell_statistics(observations(world, BIRTHS, BLACK, GIRLS, by_group=False), world, PLAIN)
    groups = subgroups.subgroups(world)
    seen = subgroups.envelopes(groups, world)
    tracts, published = world.tracts, groups.n[groups.published]
    data = AtlasSize(
        children, seed, len(tracts), len(set(tracts.county)), len(set(tracts.state)), int(np.sum(groups.published))
    )
    del world
    observe("cells", 1, 1)
    cost: list[Cost] = []
    for done, more in enumerate(costs(groups), 1):
        cost += more
        observe("formal methods", done, len(SIZES))
    cell, short, scales = subgroups.example(groups), tuple(subgroups.corners(groups)), subgroups.chis(groups)
    del groups
    atlases = []
    for number in range(SEEDS):
        atlases.append(births(children, seed + number))
        observe("seeds", number + 1, SEEDS)
    return SensitivityStudy(
        data=data,
        table1=tuple(rows),
        example=cell,
        envelopes=seen,
        births=atlases[0],
        slopes=tuple(one.slopes for one in atlases),
        epsilon_choices=choices,
        corners=short,
        chis=scales,
        counterexample=omissions.counterexample(),
        growth=tuple(omissions.growth()),
        nominal=omissions.nominal(),
        bounded=tuple(omissions.bounded(published)),
        recovered=tuple(omissions.recovered(girls)),
        costs=tuple(cost),
    )


def facts(study: SensitivityStudy) -> Mapping[str, object]:
    """Values for the report's text, besides its tables and the study itself."""
    jail = next(row for row in study.table1 if row.printed.outcome == JAIL and row.printed.label == "White boys")
    at_eight = []
    for size in SIZES:
        best, mos = best_formal(study.costs, size, EPSILON), least_observed(study.costs, size, EPSILON)
        if best and mos:
            errors = f"{best.row.against_ols.rmse:.4f} against {mos:.4f}"
            at_eight.append(f"N ≈ {size}: {best.row.method}, {errors}")
    return {
        "data": study.data,
        "flat": jail.flat,
        "reach": np.percentile(study.envelopes[0].reach, [5, 50, 95]).tolist(),
        "planned": PLANNED,
        "at_eight": at_eight,
        "ahead": [f"{ahead} (N ≈ {size})" for size in SIZES if (ahead := _ahead(study, size))],
    }


def _ahead(study: SensitivityStudy, size: int) -> str:
    """The smallest ε from which on some formal method has a smaller error than maximum observed sensitivity; else
    empty."""
    smallest = ""
    for epsilon in reversed(EPSILONS):
        best, mos = best_formal(study.costs, size, epsilon), least_observed(study.costs, size, epsilon)
        if not (best and mos and best.row.against_ols.rmse < mos):
            break
        smallest = format_exact(epsilon)
    return smallest


def paper() -> Paper[SensitivityStudy]:
    """The study as the harness runs it."""
    from discreet_studies.sensitivity.figures import figures
    from discreet_studies.sensitivity.tables import tables
    from discreet_studies.sensitivity.verdicts import CLAIMS

    title = "Maximum observed sensitivity: reproduction of Chetty & Friedman (2019)"
    size = Size("children", 20_000_000, 100_000, "the figures", "generate")
    return Paper("sensitivity", title, size, study, tables, figures, facts, CLAIMS.of)
