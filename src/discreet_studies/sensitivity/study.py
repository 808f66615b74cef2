"""The study of 004 as one value: everything that is reported is a function of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.synth.atlas import BLACK, GIRLS, atlas
from discreet_studies import Observer
from discreet_studies.sensitivity.births import SEEDS, Births, Slopes, births
from discreet_studies.sensitivity.cells import PLAIN, measured, observations, tracts_for
from discreet_studies.sensitivity.choosing import Chosen, chosen
from discreet_studies.sensitivity.fine import (
    Chis,
    Corners,
    Envelope,
    Example,
    chis,
    corners,
    envelopes,
    example,
    fine,
)
from discreet_studies.sensitivity.formal import SIZES, Cost, costs
from discreet_studies.sensitivity.table1 import BIRTHS, ROWS, Row, table1
from discreet_studies.sensitivity.unsaid import (
    Bounded,
    Counterexample,
    Nominal,
    Recovered,
    bounded,
    counterexample,
    growth,
    nominal,
    recovered,
)


@dataclass(frozen=True)
class Data:
    """What was invented."""

    children: int
    seed: int
    tracts: int
    counties: int
    states: int
    cells: int  # by race and gender, of twenty children or more


@dataclass(frozen=True)
class Study:
    """All numbers."""

    data: Data
    table1: tuple[Row, ...]
    example: Example | None
    envelopes: tuple[Envelope, Envelope]
    births: Births
    slopes: tuple[Slopes, ...]
    chosen: tuple[Chosen, ...]
    corners: tuple[Corners, ...]
    chis: Chis
    counterexample: Counterexample
    growth: tuple[tuple[float, float, float], ...]
    nominal: tuple[Nominal, ...]
    bounded: tuple[Bounded, ...]
    recovered: tuple[Recovered, ...]
    costs: tuple[Cost, ...]


def study(children: int, seed: int, observe: Observer) -> Study:
    """All of it; the atlas is kept only as long as it is needed."""
    made = atlas(children, tracts_for(children), seed)
    observe("atlas", 1, 1)
    rows = []
    for row in table1(made, seed):
        rows.append(row)
        observe("table 1", len(rows), len(ROWS))
    picked = tuple(chosen(made))
    observe("choosing epsilon", 1, 1)
    girls = measured(observations(made, BIRTHS, BLACK, GIRLS, by_group=False), made, PLAIN)
    found = fine(made)
    seen = envelopes(found, made)
    tracts, published = made.tracts, found.n[found.published]
    data = Data(
        children, seed, len(tracts), len(set(tracts.county)), len(set(tracts.state)), int(np.sum(found.published))
    )
    del made
    observe("cells", 1, 1)
    cost: list[Cost] = []
    for done, more in enumerate(costs(found), 1):
        cost += more
        observe("formal methods", done, len(SIZES))
    cell, short, scales = example(found), tuple(corners(found)), chis(found)
    del found
    atlases = []
    for number in range(SEEDS):
        atlases.append(births(children, seed + number))
        observe("seeds", number + 1, SEEDS)
    return Study(
        data=data,
        table1=tuple(rows),
        example=cell,
        envelopes=seen,
        births=atlases[0],
        slopes=tuple(one.slopes for one in atlases),
        chosen=picked,
        corners=short,
        chis=scales,
        counterexample=counterexample(),
        growth=tuple(growth()),
        nominal=nominal(),
        bounded=tuple(bounded(published)),
        recovered=tuple(recovered(girls)),
        costs=tuple(cost),
    )
