"""Writes a synthetic agency of employers and jobs: the confidential files and the public lists."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.synth.arrow import CODE, ID_MASK, ID_STEP, coded
from discreet.synth.data_errors import NULL
from discreet.synth.draws import Array, refuse_unless_within
from discreet.synth.files import BATCH_ROWS, Progress, agency_files, parquet_file, write_csv
from discreet.synth.industries import OWNERSHIP
from discreet.synth.lists import Code
from discreet.synth.sectors import SECTORS, Sector
from discreet.synth.workplaces.data_errors import inject, inject_into_frame, invalid_codes
from discreet.synth.workplaces.employers import BLOCK, MOST_JOBS, Employers, Purpose, employers, stream
from discreet.synth.workplaces.jobs import ATTRIBUTES, JobRows, block, block_count
from discreet.synth.workplaces.places import STRATA
from discreet.synth.workplaces.workforce import AGES, EDUCATIONS, ETHNICITIES, RACES, SEXES, mixes

FIRST_WORKPLACE = 10**9  # id of establishment 0; the others follow
WORKPLACE = ("workplace_id", "place", "sector", "ownership")
COLUMNS = {  # of each confidential file
    "jobs": ("worker_id", "workplace_id"),
    "workers": ("worker_id", *ATTRIBUTES),
    "workplaces": WORKPLACE,
    "worker_full": (*WORKPLACE, "sex", "education"),
}
IDS = ("worker_id", "workplace_id")
LISTS: dict[str, tuple[str, tuple[Code | Sector, ...]]] = {  # public list -> column, and its codes
    "sectors": ("sector", SECTORS),
    "ownership": ("ownership", OWNERSHIP),
    "sexes": ("sex", SEXES),
    "educations": ("education", EDUCATIONS),
    "ages": ("age", AGES),
    "races": ("race", RACES),
    "ethnicities": ("ethnicity", ETHNICITIES),
}
Table = dict[str, Array]


@dataclass(frozen=True)
class EmployerFiles:
    """The files of the agency: four confidential ones, and the public lists."""

    jobs: Path
    workers: Path
    workplaces: Path
    worker_full: Path
    places: Path
    sectors: Path
    ownership: Path
    sexes: Path
    educations: Path
    ages: Path
    races: Path
    ethnicities: Path


def write_employers(
    folder: Path,
    jobs: int,
    seed: int = 7,
    progress: Progress | None = None,
    *,
    data_errors: bool = True,
    batch_rows: int = BATCH_ROWS,
) -> EmployerFiles:
    """Write a synthetic agency of employers into `folder`: the same rows for the same `jobs`, `seed` and `data_errors`.

    Jobs are those of `employers(jobs, seed)`, block by block, shuffled within each block; without data errors the files
    agree with it exactly. `batch_rows`, rounded up to whole blocks, only sets the row groups and the memory used.
    """
    refuse_unless_within("synth employers", "batch_rows", batch_rows, 1, MOST_JOBS)
    frame = employers(jobs, seed)
    paths = agency_files(EmployerFiles, folder, COLUMNS)
    _write_public(paths, frame)
    lists = _lists(frame)
    known = {name: len(codes) for name, codes in lists.items()}
    workplaces: Table = {
        "workplace_id": FIRST_WORKPLACE + np.arange(len(frame)),
        "place": frame.place.copy(),
        "sector": frame.sector.copy(),
        "ownership": frame.ownership,
    }
    if data_errors:
        inject_into_frame(workplaces, known, seed)
        lists = {name: codes + invalid_codes(name) for name, codes in lists.items()}
    with ExitStack() as open_files:
        writers = {name: open_files.enter_context(_writer(getattr(paths, name), name)) for name in COLUMNS}
        step = -(-batch_rows // BLOCK) * BLOCK
        for start in range(0, len(frame), step):
            rows = {name: column[start : start + step] for name, column in workplaces.items()}
            _write_group(writers["workplaces"], rows, lists)
        for done, group in _groups(frame, workplaces, known if data_errors else None, batch_rows):
            for name, rows in group.items():
                _write_group(writers[name], rows, lists)
            if progress:
                progress(done, jobs)
    return paths


def worker_ids(numbers: Array) -> Array:
    """Worker ids: a permutation of the 44-bit numbers, so that they look unordered."""
    return ((numbers.astype(np.uint64) * np.uint64(ID_STEP)) & np.uint64(ID_MASK)).astype(np.int64)


def _lists(frame: Employers) -> dict[str, tuple[str, ...]]:
    """The declared codes of each column."""
    codes = {column: tuple(entry[0] for entry in entries) for column, entries in LISTS.values()}
    return {"place": tuple(place.code for place in frame.places)} | codes


def _groups(
    frame: Employers, workplaces: Table, known: dict[str, int] | None, batch_rows: int
) -> Iterator[tuple[int, dict[str, Table]]]:
    """Row groups of the three files of jobs and workers, with the cumulative number of jobs."""
    mixed = mixes(stream(frame.seed, Purpose.MIXES))
    waiting: dict[str, list[Table]] = {"jobs": [], "workers": [], "worker_full": []}
    done, written, last = 0, 0, block_count(frame) - 1
    for number in range(last + 1):
        jobs = block(frame, number, done, mixed)
        done += len(jobs)
        twice = inject(jobs, number, frame, known) if known else np.empty(0, dtype=np.int64)
        ids = worker_ids(jobs.first + np.arange(len(jobs)))
        workplace_id = FIRST_WORKPLACE + jobs.workplace
        waiting["jobs"].append({"worker_id": ids[jobs.holder], "workplace_id": workplace_id})
        waiting["workers"].append(_listed(jobs, ids, twice))
        waiting["worker_full"].append(_full(jobs, workplaces) | {"workplace_id": workplace_id})
        if number == last or done - written >= batch_rows:
            yield done, {name: _stacked(tables, COLUMNS[name]) for name, tables in waiting.items()}
            waiting, written = {name: [] for name in waiting}, done


def _listed(jobs: JobRows, ids: Array, twice: Array) -> Table:
    """The workers of a block in the order of their ids; duplicates have a different education the second time."""
    positions = np.concatenate([np.flatnonzero(jobs.listed), twice])
    second = np.arange(len(positions)) >= len(positions) - len(twice)
    order = np.argsort(ids[positions], kind="stable")
    positions, second = positions[order], second[order]
    columns = {name: getattr(jobs, name)[positions] for name in ATTRIBUTES}
    columns["education"][second] = (columns["education"][second] + 1) % len(EDUCATIONS)
    return columns | {"worker_id": ids[positions]}


def _full(jobs: JobRows, workplaces: Table) -> Table:
    """Jobs joined with workers, as first listed, and with workplaces; null where there is no match."""
    unknown, unlisted = jobs.workplace < 0, ~jobs.listed[jobs.holder]
    columns = {name: workplaces[name][np.maximum(jobs.workplace, 0)] for name in WORKPLACE[1:]}
    columns |= {name: getattr(jobs, name)[jobs.holder] for name in ("sex", "education")}
    for name, column in columns.items():
        column[unknown if name in WORKPLACE else unlisted] = NULL
    return columns


def _stacked(tables: list[Table], names: tuple[str, ...]) -> Table:
    return {name: np.concatenate([table[name] for table in tables]) for name in names}


def _writer(path: Path, name: str) -> AbstractContextManager[pq.ParquetWriter]:
    """A writer without a dictionary for worker ids, nearly all distinct; statistics for workplaces only, since codes
    span their list in every row group."""
    schema = pa.schema([(column, pa.int64() if column in IDS else CODE) for column in COLUMNS[name]])
    coded_columns = [column for column in COLUMNS[name] if column != "worker_id"]
    return parquet_file(path, schema, use_dictionary=coded_columns, write_statistics=["workplace_id"])


def _write_group(writer: pq.ParquetWriter, rows: Table, lists: dict[str, tuple[str, ...]]) -> None:
    columns = [pa.array(rows[name]) if name in IDS else coded(rows[name], lists[name]) for name in writer.schema.names]
    group = pa.Table.from_arrays(columns, schema=writer.schema)
    writer.write_table(group, row_group_size=max(1, group.num_rows))


def _write_public(paths: EmployerFiles, frame: Employers) -> None:
    """The public lists: the domains of all releases."""
    write_csv(
        paths.places,
        ("place", "label", "population", "state", "stratum"),
        ((at.code, at.label, at.population, at.state, STRATA[at.stratum]) for at in frame.places),
    )
    for name, (column, entries) in LISTS.items():
        write_csv(getattr(paths, name), (column, "label"), (entry[:2] for entry in entries))
