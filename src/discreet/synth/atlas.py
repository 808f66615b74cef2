"""A synthetic Opportunity Atlas: children by tract, their parents' income ranks and their outcomes.

Chetty and Friedman (2019), *A Practical Method to Reduce Privacy Loss When Disclosing Statistics Based on Small
Samples*, §III. Tracts are public: location, poverty rate, share of single parents. Children are confidential. Low rates
of teenage births go with few single parents and small cells, so that suppressing small counts removes a slope (ibid.,
Figure 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.arrays import Floats, Int64s
from discreet.synth.arrow import CODE, coded
from discreet.synth.data_errors import NULL
from discreet.synth.draws import MOST_SEED, Array, fast_generator, refuse_unless_within
from discreet.synth.files import Progress, agency_files, parquet_file, write_csv
from discreet.synth.lists import code_list, column, entries
from discreet.synth.states import STATES, population


class Race(NamedTuple):
    """A code, its label, and weights.

    These and the constants below were calibrated by trial: over five seeds at the paper's scale, Figure 3's slope is
    .139 on average with noise and .008 with suppression (the paper: .136 and .028), and Table 1's shares are of the
    paper's magnitude.
    """

    code: str
    label: str
    children: float  # logarithm, relative to White children
    children_by_hardship: float
    children_by_form: float
    children_by_chance: float
    parents: float  # logit of a parent's rank
    parents_by_hardship: float
    rank: tuple[float, ...]  # expected, of girls and boys, at parent rank .25
    births: float  # share of girls, at that rank
    jail: float  # share of boys, at that rank


RACES, GENDERS = entries("atlas_races", Race), code_list("gender")
WHITE, BLACK, GIRLS, BOYS = 0, 1, 0, 1
GROUPS = len(RACES) * len(GENDERS)  # group = race · 2 + gender

MOST_CHILDREN, MOST_TRACTS = 10**9, 10**6
BLOCK = 1_024  # tracts per random stream: part of the meaning of a seed, so not a tuning parameter
A_STATE, A_COUNTY = 400, 22  # tracts: minimum per state, average per county
FIRST_COUNTY, MOST_COUNTIES = 901, 99  # real counties have lower numbers
FIRST_TRACT = 100

SIZES, TINY, TINIER = 0.6, 0.03, 0.05  # spread of log children; share of tiny tracts; their relative size
COUNTY_SPREAD = 1.0  # of log tracts of a county
COUNTYWIDE = 0.45  # share of the variance of hardship between counties

# Logits of shares of families, at hardship h and family form f, both standard normal.
POVERTY, POVERTY_H = -2.25, 0.75
SINGLE, SINGLE_H, SINGLE_F = -1.3, 0.45, 0.8

PARENTS_SPREAD = 1.6  # standard deviation of the logit of parent rank within a cell
RANK_H, RANK_COMMON, RANK_OWN, RANK_SLOPE = (
    -0.035,
    0.035,
    0.03,
    0.3,
)  # by h, two random effects, per unit of parent rank
BIRTH_SINGLE, BIRTH_POVERTY, BIRTH_OWN = 0.145, 0.25, 0.07  # by share of single parents, poverty, random effect
JAIL_H, JAIL_OWN, JAIL_GIRLS = 0.15, 0.3, 0.1  # log-scale effects of h and of chance; ratio of girls to boys

FALL = 1.1  # rates decline linearly, per unit of parent rank by this multiple of the rate at .25; never below zero
LEAST_RATE, MOST_RATE, LEAST_RANK, MOST_RANK = 0.001, 0.75, 0.08, 0.65  # at .25, so that every rate is within 0 … 1


def _stream(seed: int, purpose: Literal["tracts", "children"], block: int = 0) -> np.random.Generator:
    """The generator of a block; a national atlas draws a hundred million numbers."""
    return fast_generator(seed, 0xA7, 1 if purpose == "tracts" else 2, block)


@dataclass(frozen=True)
class Tracts:
    """The public frame, one entry per tract in the order of codes, with the latent variables of its children."""

    code: tuple[str, ...]  # two digits of the state, three of the county, six of the tract
    poverty_rate: Floats
    single_parent_share: Floats
    hardship: Floats  # h
    form: Floats  # f
    size: Int64s  # children

    def __len__(self) -> int:
        return len(self.size)

    @cached_property
    def state(self) -> tuple[str, ...]:
        return tuple(code[:2] for code in self.code)

    @cached_property
    def county(self) -> tuple[str, ...]:
        return tuple(code[:5] for code in self.code)

    @cached_property
    def encoded(self) -> dict[str, pa.DictionaryArray]:
        """State, county and tract codes of each tract, dictionary-encoded."""
        codes = {"state": self.state, "county": self.county, "tract": self.code}
        return {name: pa.array(mine).dictionary_encode() for name, mine in codes.items()}


@dataclass(frozen=True)
class Atlas:
    """Children, tract by tract. `tract`, `race` and `gender` are positions in their lists; a lean atlas has only
    tracts and ranks. Outcomes are 0 or 1; teenage births are NULL for boys."""

    tracts: Tracts
    tract: NDArray[np.int32]
    parent_rank: Floats
    kid_rank: Floats
    race: NDArray[np.int8]
    gender: NDArray[np.int8]
    teen_birth: NDArray[np.int8]
    incarcerated: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.tract)


LEAN = ("parent_rank", "kid_rank")
COLUMNS = dict.fromkeys(LEAN, np.float64) | dict.fromkeys(("race", "gender", "teen_birth", "incarcerated"), np.int8)


def atlas(children: int, tracts: int, seed: int = 7, *, lean: bool = False) -> Atlas:
    """Generate an atlas, a function of its arguments; a lean one has the same ranks."""
    frame = generate_tracts(children, tracts, seed)
    sizes = {name: children if name in LEAN or not lean else 0 for name in COLUMNS}
    columns: dict[str, Array] = {name: np.empty(sizes[name], kind) for name, kind in COLUMNS.items()}
    done = 0
    for number in range(-(-tracts // BLOCK)):
        rows = block(frame, number, seed, lean=lean)
        for name, values in rows.items():
            columns[name][done : done + len(values)] = values
        done += len(rows["kid_rank"])
    return Atlas(frame, np.repeat(np.arange(tracts, dtype=np.int32), frame.size), **columns)


def generate_tracts(children: int, tracts: int, seed: int) -> Tracts:
    """Generate the frame: states by population, counties and tracts of all sizes, hardship partly by county."""
    refuse_unless_within("synth atlas", "children", children, 1, MOST_CHILDREN)
    refuse_unless_within("synth atlas", "tracts", tracts, 1, MOST_TRACTS)
    refuse_unless_within("synth atlas", "seed", seed, 0, MOST_SEED)
    rng = _stream(seed, "tracts")
    codes, county = _coded(tracts, rng)
    own = rng.standard_normal(tracts)
    h = np.sqrt(COUNTYWIDE) * rng.standard_normal(county[-1] + 1)[county] + np.sqrt(1 - COUNTYWIDE) * own
    f = rng.standard_normal(tracts)
    size = rng.lognormal(0.0, SIZES, tracts) * np.where(rng.random(tracts) < TINY, TINIER, 1.0)
    return Tracts(
        codes,
        _expit(POVERTY + POVERTY_H * h),
        _expit(SINGLE + SINGLE_H * h + SINGLE_F * f),
        h,
        f,
        rng.multinomial(children, size / size.sum()),
    )


def _coded(tracts: int, rng: np.random.Generator) -> tuple[tuple[str, ...], Array]:
    """Tract codes in order, and the index of each tract's county."""
    states = int(np.clip(tracts // A_STATE, 1, len(STATES)))
    chosen = np.sort(rng.choice(len(STATES), states, replace=False, p=population()))
    sizes = rng.multinomial(tracts, population()[chosen] / population()[chosen].sum())
    codes, counts = list[str](), list[int]()
    for state, size in zip(chosen, sizes, strict=True):
        weight = rng.lognormal(0.0, COUNTY_SPREAD, int(np.clip(round(size / A_COUNTY), 1, MOST_COUNTIES)))
        for number, count in enumerate(rng.multinomial(size, weight / weight.sum()), FIRST_COUNTY):
            codes += [f"{STATES[state].code}{number}{FIRST_TRACT + tract:06d}" for tract in range(count)]
            counts.append(int(count))
    return tuple(codes), np.repeat(np.arange(len(counts)), counts)


def block(frame: Tracts, number: int, seed: int, *, lean: bool = False) -> dict[str, Array]:
    """The children of one block of tracts, by group within a tract. Outcomes are drawn last: the ranks of a lean
    atlas are the same."""
    rng = _stream(seed, "children", number)
    part = slice(number * BLOCK, (number + 1) * BLOCK)
    h, f, size = frame.hardship[part], frame.form[part], frame.size[part]
    by_h, by_f, spread = (column(RACES, f"children_by_{what}") for what in ("hardship", "form", "chance"))
    mix = column(RACES, "children") + np.outer(h, by_h) + np.outer(f, by_f)
    mix = np.exp(mix + spread * rng.standard_normal((len(h), len(RACES))))
    mix = np.repeat(mix / mix.sum(axis=1, keepdims=True) / len(GENDERS), len(GENDERS), axis=1)
    rank, birth, jail = _expected(frame, part, rng)
    counts = rng.multinomial(size, mix).ravel()
    cell = np.repeat(np.arange(len(counts)), counts)  # tract · GROUPS + group
    centre = column(RACES, "parents") + np.outer(h, column(RACES, "parents_by_hardship"))
    centre = np.repeat(centre, len(GENDERS), axis=1).ravel()
    parent = _expit(centre[cell] + PARENTS_SPREAD * rng.standard_normal(len(cell)))
    beyond = parent - 0.25
    mean = rank[cell] + RANK_SLOPE * beyond
    kid = rng.random(len(cell)) ** ((1 - mean) / mean)  # in 0 … 1, with exactly this mean
    if lean:
        return {"parent_rank": parent, "kid_rank": kid}
    group = (cell % GROUPS).astype(np.int8)
    race, gender = group // len(GENDERS), group % len(GENDERS)
    less = 1 - FALL * beyond
    born = (rng.random(len(cell)) < birth[cell] * less).astype(np.int8)
    jailed = (rng.random(len(cell)) < jail[cell] * less).astype(np.int8)
    return {
        "parent_rank": parent,
        "kid_rank": kid,
        "race": race,
        "gender": gender,
        "teen_birth": np.where(gender == GIRLS, born, np.int8(NULL)),
        "incarcerated": jailed,
    }


def _expected(frame: Tracts, part: slice, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """For each tract and group, at parent rank .25: expected rank, teenage birth rate, share incarcerated."""
    h = frame.hardship[part][:, None, None]
    shape = (len(h), len(RACES), len(GENDERS))
    rank = column(RACES, "rank") + RANK_H * h + RANK_COMMON * rng.standard_normal((len(h), 1, 1))
    rank = rank + RANK_OWN * rng.standard_normal(shape)
    births = column(RACES, "births") + BIRTH_SINGLE * frame.single_parent_share[part][:, None]
    births = births + BIRTH_POVERTY * frame.poverty_rate[part][:, None] + BIRTH_OWN * rng.standard_normal(shape[:2])
    jail = column(RACES, "jail") * np.exp(JAIL_H * h[:, :, 0] + JAIL_OWN * rng.standard_normal(shape[:2]))
    birth = np.repeat(births, len(GENDERS), axis=1)  # drawn for boys too, and discarded
    jailed = jail[:, :, None] * np.array([JAIL_GIRLS, 1.0])
    return (
        np.clip(rank, LEAST_RANK, MOST_RANK).ravel(),
        np.clip(birth, LEAST_RATE, MOST_RATE).ravel(),
        np.clip(jailed, LEAST_RATE, MOST_RATE).ravel(),
    )


def _expit(logit: Array) -> Array:
    share: Array = 1 / (1 + np.exp(-logit))
    return share


@dataclass(frozen=True)
class AtlasFiles:
    """The files of an atlas: the confidential children, and the public lists."""

    children: Path
    tracts: Path
    races: Path
    genders: Path


def write_atlas(
    folder: Path, children: int, tracts: int, seed: int = 7, progress: Progress | None = None
) -> AtlasFiles:
    """Write `atlas(children, tracts, seed)` into `folder`, a block of tracts at a time."""
    frame = generate_tracts(children, tracts, seed)
    paths, done = agency_files(AtlasFiles, folder, ["children"]), 0
    columns = zip(frame.code, frame.county, frame.state, frame.poverty_rate, frame.single_parent_share, strict=True)
    lines = ((*codes, f"{poor:.4f}", f"{single:.4f}") for *codes, poor, single in columns)
    write_csv(paths.tracts, ("tract", "county", "state", "poverty_rate", "single_parent_share"), lines)
    write_csv(paths.races, ("race", "label"), (race[:2] for race in RACES))
    write_csv(paths.genders, ("gender", "label"), (gender[:2] for gender in GENDERS))
    with parquet_file(paths.children, SCHEMA) as writer:
        for number in range(-(-tracts // BLOCK)):
            rows = block(frame, number, seed)
            first = number * BLOCK
            tract = np.repeat(np.arange(first, min(first + BLOCK, tracts)), frame.size[first : first + BLOCK])
            writer.write_table(_arrow(frame, tract, rows), row_group_size=max(1, len(tract)))
            done += len(tract)
            if progress:
                progress(done, children)
    return paths


PLACES = ("state", "county", "tract")
SCHEMA = pa.schema(
    [(name, CODE) for name in (*PLACES, "race", "gender")]
    + [(name, pa.float64()) for name in LEAN]
    + [(name, pa.int8()) for name in ("teen_birth", "incarcerated")]
)


def _arrow(frame: Tracts, tract: Array, rows: dict[str, Array]) -> pa.Table:
    """Children of these tracts as Arrow columns, codes dictionary-encoded."""
    at = pa.array(tract)
    columns = {name: frame.encoded[name].take(at) for name in PLACES}
    for name, codes in (("race", RACES), ("gender", GENDERS)):
        if name in rows:
            columns[name] = coded(rows[name], tuple(code.code for code in codes))
    columns |= {name: pa.array(rows[name], mask=rows[name] == NULL) for name in rows if name not in columns}
    return pa.table({name: columns[name] for name in SCHEMA.names if name in columns})
