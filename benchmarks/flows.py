"""Employment flows of a whole country: noise, correction, Parquet of the cells that are not zero.

A release of national size from records: institution × degree × family × cohort × year into 20 sectors × 51 states and
one cell without a job. Timed from the reservation to the last written file; the whole release beside it. The correction
is compared with the loop printed in PSEO Technical Appendices, A.3.2, compiled, on the same groups in the same run, and
with that loop over a list of the non-zero cells, the obvious first optimisation.
"""

from __future__ import annotations

import os
import tempfile
import time
from argparse import Namespace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet
from benchmarks._literal import listed, literal
from benchmarks._measure import Result, best_of, front, peak_rss_of
from discreet.api import set_budget
from discreet.engine.duckdb import MEMORY_ENVIRONMENT
from discreet.methods.flows.correction import RULES
from discreet.methods.flows.correction_controls import Controls, GroupControls
from discreet.methods.flows.tables import group_words
from discreet.noise.key import ReleaseKey, public_stream
from discreet.noise.keystore import FileKeyStore
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.synth.sectors import SECTORS
from discreet.synth.states import STATES
from discreet_studies.pseo.national import CELLS, National, national

SEED = 7
PIECE = 4096  # groups
SAMPLE = 2000  # groups that are also corrected by the literal loop
MEMORY = "512MB"  # for DuckDB's tables: a national file exceeds it
COLUMNS = ("institution", "degree_level", "cip2", "grad_cohort", "years_after")
SECTOR_CODES, STATE_CODES = [sector.code for sector in SECTORS], [state.code for state in STATES]
RATE = Fraction(3, 2)


def world(folder: Path, groups: int) -> None:
    """All records, and the public lists and controls."""
    country = national(groups, SEED)
    lists = [pa.array(country.codes[column]) for column in COLUMNS]
    ends = [pa.array([*SECTOR_CODES, "ZZ"]), pa.array([*STATE_CODES, "Z"])]
    kind = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([(name, kind) for name in (*COLUMNS, "industry", "state")])
    with pq.ParquetWriter(folder / "graduates.parquet", schema) as writer:
        for first in range(0, groups, PIECE):
            counts = country.counts(first, min(PIECE, groups - first))
            group, cell = np.nonzero(counts)
            times = counts[group, cell]
            keys = country.keys[first + group].repeat(times, axis=0)
            job = cell.repeat(times)
            none = job == CELLS - 1
            codes = [*keys.T, np.where(none, len(SECTOR_CODES), job // len(STATE_CODES))]
            codes.append(np.where(none, len(STATE_CODES), job % len(STATE_CODES)))
            arrays = [
                pa.DictionaryArray.from_arrays(pa.array(c.astype(np.int32)), values)
                for c, values in zip(codes, [*lists, *ends], strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    write_public(folder, country)


def write_public(folder: Path, country: National) -> None:
    texts = [[country.codes[column][i] for i in country.keys[:, place]] for place, column in enumerate(COLUMNS)]
    homes = [STATE_CODES[country.home[i]] for i in country.keys[:, 0]]
    lines = [",".join(row) for row in zip(*texts, homes, strict=True)]
    (folder / "groups.csv").write_text(",".join([*COLUMNS, "home"]) + "\n" + "\n".join(lines) + "\n")
    jobs = [
        f"{h},{s},{country.economy.hires[i, j]}" for i, h in enumerate(STATE_CODES) for j, s in enumerate(STATE_CODES)
    ]
    (folder / "jobs.csv").write_text("from_state,to_state,hires\n" + "\n".join(jobs) + "\n")
    employment = [
        f"{s},{k},{country.economy.employment[i, j]}"
        for i, k in enumerate(SECTOR_CODES)
        for j, s in enumerate(STATE_CODES)
    ]
    (folder / "employment.csv").write_text("state,industry,employment\n" + "\n".join(employment) + "\n")


def spec(folder: Path, name: str) -> dict[str, Any]:
    return {
        "release": name,
        "asset": "graduates",
        "source": {"graduates": str(folder / "graduates.parquet")},
        "unit": "record",
        "domains": {
            "group": {
                "groups": str(folder / "groups.csv"),
                "columns": list(COLUMNS),
                "coarser": {"home": ["home"], "school_family": ["institution", "cip2"]},
                "provenance": "synthetic",
            },
            "industry": {"values": SECTOR_CODES},
            "state": {"values": STATE_CODES},
        },
        "tables": [
            {
                "name": "flows",
                "method": "flows",
                "by": ["group"],
                "industry": "industry",
                "state": "state",
                "home_state": "home",
                "epsilon": "1.5",
                "correction": {
                    "job_flows": {"file": str(folder / "jobs.csv")},
                    "employment": {"file": str(folder / "employment.csv")},
                    "industry_flows": ["school_family"],
                },
                "measurements": False,
                "formats": ["parquet"],
            }
        ],
    }


def release(folder: Path, name: str) -> tuple[float, float, int]:
    """One release: seconds from the reservation to the last file, seconds in all, and rows published."""
    ledger = discreet.ledger(folder / "ledger.sqlite")
    if not (folder / "ledger.sqlite").exists():
        set_budget(ledger, "graduates", epsilon="1000000", unit="record")
    seen: dict[str, float] = {}

    def observe(step: str, done: int, total: int) -> None:
        if done == total:
            seen[step] = time.perf_counter()

    start = time.perf_counter()
    opened = discreet.release(spec(folder, name), ledger=ledger, keys=FileKeyStore(folder / "keys"))
    opened.run(folder / name, observe=observe)
    whole = time.perf_counter() - start
    parts = folder / name / "flows.parquet"
    files = [parts] if parts.is_file() else sorted(parts.glob("*.parquet"))
    return seen["write"] - seen["reserve"], whole, sum(pq.read_metadata(file).num_rows for file in files)


def once(folder: Path, name: str) -> None:
    release(folder, name)


def against_literal(groups: int) -> Result:
    """The correction alone, on one core, against the loop as printed: with random numbers given, and including their
    generation (ours by AES in counter mode, the loop's by NumPy's generator)."""
    country = national(groups, SEED)
    sample = min(SAMPLE, groups)
    flows = country.counts(0, sample)
    noise = ReleaseKey.simulation("benchmark").stream("flows", "noise", b"", "cells")
    noisy = flows + DiscreteLaplace(RATE).draw(noise, 0, flows.size).reshape(flows.shape)
    families = country.keys[:sample, 0].astype(np.int64) * len(country.codes["cip2"]) + country.keys[:sample, 2]
    industry = np.zeros((int(families.max()) + 1, len(SECTOR_CODES)), np.int64)
    np.add.at(industry, families, noisy[:, :-1].reshape(sample, len(SECTOR_CODES), -1).sum(axis=2))
    controls = Controls.of(country.economy.hires, country.economy.employment, industry, Fraction(1))
    homes = country.home[country.keys[:sample, 0]].astype(np.int64)
    group_controls = GroupControls(controls, homes, families, RATE)
    rule = RULES["published"]
    wanted = rule.words_needed(noisy)
    weights = np.stack([1 / controls.slowness(h, f) for h, f in zip(homes, families, strict=True)])
    lost = np.maximum(noisy, 0).sum(axis=1) - np.maximum(noisy.sum(axis=1), 0)
    starts = np.concatenate([[0], np.cumsum(lost)])
    stream, generator = public_stream("benchmark"), np.random.default_rng(SEED)
    words, places = group_words(stream, np.arange(sample), wanted)
    uniforms = generator.random(int(starts[-1]))
    times = best_of(
        {
            "ours": lambda: rule.correct(noisy, group_controls, words, places),
            "literal": lambda: literal(noisy, weights, uniforms, starts),
            "listed": lambda: listed(noisy, weights, uniforms, starts),
            "words": lambda: group_words(stream, np.arange(sample), wanted),
            "uniforms": lambda: generator.random(int(starts[-1])),
        },
        rounds=9,
    )
    return {
        "correction_vs_literal": round(times["literal"] / times["ours"], 2),
        "correction_vs_listed": round(times["listed"] / times["ours"], 2),
        "correction_vs_literal_with_random_numbers": round(
            (times["literal"] + times["uniforms"]) / (times["ours"] + times["words"]), 2
        ),
        "correction_us_per_group": round(times["ours"] / sample * 1e6, 2),
        "literal_us_per_group": round(times["literal"] / sample * 1e6, 2),
    }


def measure(arguments: Namespace) -> Result:
    large = 4 * arguments.groups if arguments.size == "full" else arguments.groups
    small = large // 4
    os.environ[MEMORY_ENVIRONMENT] = MEMORY
    with tempfile.TemporaryDirectory() as name:
        folders = {groups: Path(name) / str(groups) for groups in (small, large)}
        for folder in folders.values():
            folder.mkdir()
        for groups, folder in folders.items():  # in a process of its own: a child's peak begins with its parent's
            peak_rss_of(world, folder, groups)
        peak = peak_rss_of(once, folders[large], "peak")
        release(folders[small], "warm")
        timings = {groups: [release(folder, f"r{i}") for i in range(2)] for groups, folder in folders.items()}
    best = {groups: min(runs) for groups, runs in timings.items()}
    cells = large * CELLS
    return {
        "ns_per_cell": round(best[large][0] / cells * 1e9, 3),
        "release_ns_per_cell": round(min(whole for _, whole, _ in timings[large]) / cells * 1e9, 3),
        **against_literal(large),
        "growth_4x": round(best[large][0] / best[small][0], 3),
        "groups": large,
        "cells": cells,
        "rows": best[large][2],
        "protect_seconds": round(best[large][0], 3),
        "peak_rss_mib": round(peak, 1),
    }


if __name__ == "__main__":
    front(__doc__ or "", measure, groups=100_000)
