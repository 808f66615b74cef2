"""A synthetic agency of graduates, written as its confidential file and the public lists beside it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.errors import ParameterError
from discreet.synth.arrow import CODED, SCHEMA, Codes, codes
from discreet.synth.data_errors import soil
from discreet.synth.education.catalogue import Catalogue, catalogue
from discreet.synth.education.fields import FIELDS, LEVELS
from discreet.synth.education.recoding import OVERRIDES, completions, crosswalk, programmes_new, series_new
from discreet.synth.education.records import BLOCK, block
from discreet.synth.limits import MOST_SEED, refuse_unless_within
from discreet.synth.sectors import SECTORS
from discreet.synth.states import STATES

Progress = Callable[[int, int], None]

PROGRAMME = ("institution", "degree_level", "cipcode", "cip4", "cip2", "state")
BATCH_ROWS = 1 << 20
MOST_ROWS = 10**12  # person ids have 44 bits


@dataclass(frozen=True)
class Graduates:
    """Where everything was written: the confidential records, and what is public without them."""

    graduates: Path
    institutions: Path
    programmes: Path
    cip: Path
    cipcodes: Path
    degree_levels: Path
    states: Path
    sectors: Path
    job_flows: Path
    employment: Path
    completions: Path
    crosswalk: Path
    overrides: Path
    programmes_new: Path
    cipcodes_new: Path


def graduates(
    folder: Path,
    rows: int,
    seed: int = 7,
    progress: Progress | None = None,
    *,
    dirt: bool = True,
    batch_rows: int = BATCH_ROWS,
) -> Graduates:
    """Write a synthetic graduates agency into `folder`: the same rows for the same `rows`, `seed` and `dirt`.

    `batch_rows`, rounded up to whole blocks, only sets the row groups and the memory used.
    """
    for name, value, least, most in (
        ("rows", rows, 1, MOST_ROWS),
        ("seed", seed, 0, MOST_SEED),
        ("batch_rows", batch_rows, 1, MOST_ROWS),
    ):
        refuse_unless_within("synth graduates", name, value, least, most)
    paths = _paths(folder)
    public = catalogue(rows, seed)
    _write_public(paths, public)
    _write_controls(paths, public)
    _write_recoding(paths, public, rows, seed)
    batches = _batches(rows, seed, public, codes(public, dirt), dirt)
    unfinished = paths.graduates.with_suffix(".parquet.part")  # a killed run leaves nothing that looks whole
    _write_records(unfinished, batches, rows, batch_rows, progress)
    unfinished.replace(paths.graduates)
    return paths


def public_folder(folder: Path) -> Path:
    """Where the public lists of an agency in `folder` go; both are made if need be."""
    public = folder / "public"
    try:
        public.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ParameterError(
            "the output folder is a file, or lies under one", where=str(folder), do="name a folder"
        ) from error
    return public


def _paths(folder: Path) -> Graduates:
    public = public_folder(folder)
    _, *names = (field.name for field in fields(Graduates))
    return Graduates(folder / "graduates.parquet", *(public / f"{name}.csv" for name in names))


def _batches(rows: int, seed: int, public: Catalogue, lists: Codes, dirt: bool) -> Iterator[pa.RecordBatch]:
    """The records, block by block."""
    for number, start in enumerate(range(0, rows, BLOCK)):
        drawn = block(number, min(BLOCK, rows - start), seed, public)
        if dirt:
            soil(drawn, number, seed, lists.known)
        yield lists.batch(drawn)


def _write_records(
    path: Path, batches: Iterable[pa.RecordBatch], rows: int, batch_rows: int, progress: Progress | None
) -> None:
    """Stream batches into row groups; the Arrow schema is left out, so codes read back as plain strings."""
    done, waiting = 0, list[pa.RecordBatch]()
    with pq.ParquetWriter(
        path,
        SCHEMA,
        compression="snappy",
        use_dictionary=[*CODED.values(), "industry"],
        write_statistics=["earnings"],  # unsorted codes span their whole list in every row group anyway
        store_schema=False,
    ) as writer:
        for batch in batches:
            waiting.append(batch)
            done += batch.num_rows
            if done == rows or sum(held.num_rows for held in waiting) >= batch_rows:
                group = pa.Table.from_batches(waiting)
                writer.write_table(group, row_group_size=group.num_rows)
                waiting.clear()
                if progress:
                    progress(done, rows)


def _write_public(paths: Graduates, public: Catalogue) -> None:
    """The lists that are public without the data: the domains of every release."""
    schools, offered = public.institutions, public.programmes
    write_csv(
        paths.institutions,
        ("institution", "label", "state"),
        ((school.code, school.label, STATES[school.state].code) for school in schools),
    )
    write_csv(
        paths.programmes,
        PROGRAMME,
        (
            (
                *(schools[school].code, LEVELS[level].code, FIELDS[field].cip6),
                *(FIELDS[field].cip4, FIELDS[field].cip2, STATES[schools[school].state].code),
            )
            for school, level, field in zip(offered.institution, offered.level, offered.field, strict=True)
        ),
    )
    write_csv(
        paths.cip,
        ("cip6", "cip4", "cip2", "label"),
        ((field.cip6, field.cip4, field.cip2, field.label) for field in FIELDS),
    )
    families = {field.cip2: f"CIP family {field.cip2}" for field in FIELDS}
    series = {field.cip4: field.label for field in reversed(FIELDS)}  # named after its first field
    write_csv(paths.cipcodes, ("cipcode", "label"), sorted((families | series).items()))
    write_csv(paths.degree_levels, ("degree_level", "label"), (level[:2] for level in LEVELS))
    write_csv(paths.states, ("state", "division", "label"), (state[:3] for state in STATES))
    write_csv(paths.sectors, ("industry", "label"), (sector[:2] for sector in SECTORS))


def _write_controls(paths: Graduates, public: Catalogue) -> None:
    """Hires from the agency's states to any, and employment: by these the likelier flows are known."""
    homes = sorted({school.state for school in public.institutions})
    write_csv(
        paths.job_flows,
        ("from_state", "to_state", "hires"),
        (
            (STATES[home].code, state.code, hires)
            for home in homes
            for state, hires in zip(STATES, public.economy.hires[home], strict=True)
        ),
    )
    write_csv(
        paths.employment,
        ("state", "industry", "employment"),
        (
            (state.code, sector.code, employed)
            for state, column in zip(STATES, public.economy.employment.T, strict=True)
            for sector, employed in zip(SECTORS, column, strict=True)
        ),
    )


def _write_recoding(paths: Graduates, public: Catalogue, rows: int, seed: int) -> None:
    """What a change of classification needs: its codes, the history of awards, the programmes that result."""
    write_csv(paths.crosswalk, ("old6", "new6", "action"), crosswalk())
    write_csv(paths.overrides, ("from", "to", "share"), OVERRIDES)
    write_csv(
        paths.completions,
        ("institution", "degree_level", "grad_cohort", "cipcode6", "awards"),
        completions(public, rows, seed),
    )
    write_csv(paths.programmes_new, PROGRAMME, programmes_new(public))
    write_csv(paths.cipcodes_new, ("cipcode", "label"), series_new())


def write_csv(path: Path, header: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
