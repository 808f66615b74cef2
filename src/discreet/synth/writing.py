"""A synthetic agency of graduates, written as its confidential file and the public lists beside it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.errors import ParameterError
from discreet.synth.arrow import CODED, SCHEMA, Codes, codes
from discreet.synth.catalogue import Catalogue, catalogue
from discreet.synth.dirt import soil
from discreet.synth.fields import FIELDS, LEVELS
from discreet.synth.records import BLOCK, block
from discreet.synth.states import STATES

Progress = Callable[[int, int], None]

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
    _refuse_unless_within("rows", rows, 1, MOST_ROWS)
    _refuse_unless_within("seed", seed, 0, 2**63 - 1)
    _refuse_unless_within("batch_rows", batch_rows, 1, MOST_ROWS)
    paths = _paths(folder)
    public = catalogue(rows, seed)
    _write_public(paths, public)
    batches = _batches(rows, seed, public, codes(public, dirt), dirt)
    unfinished = paths.graduates.with_suffix(".parquet.part")  # a killed run leaves nothing that looks whole
    _write_records(unfinished, batches, rows, batch_rows, progress)
    unfinished.replace(paths.graduates)
    return paths


def _refuse_unless_within(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ParameterError(
            f"{name} is {value!r}", where="synth graduates", do=f"give a whole number from {least} to {most}"
        )


def _paths(folder: Path) -> Graduates:
    """The paths of an agency in `folder`, which is made if need be."""
    public = folder / "public"
    try:
        public.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ParameterError(
            "the output folder is a file, or lies under one", where=str(folder), do="name a folder"
        ) from error
    names = ("institutions", "programmes", "cip", "cipcodes", "degree_levels", "states")
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
        use_dictionary=list(CODED.values()),
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
    _write_csv(
        paths.institutions,
        ("institution", "label", "state"),
        ((school.code, school.label, STATES[school.state].code) for school in schools),
    )
    _write_csv(
        paths.programmes,
        ("institution", "degree_level", "cipcode", "cip4", "cip2", "state"),
        (
            (
                *(schools[school].code, LEVELS[level].code, FIELDS[field].cip6),
                *(FIELDS[field].cip4, FIELDS[field].cip2, STATES[schools[school].state].code),
            )
            for school, level, field in zip(offered.institution, offered.level, offered.field, strict=True)
        ),
    )
    _write_csv(
        paths.cip,
        ("cip6", "cip4", "cip2", "label"),
        ((field.cip6, field.cip4, field.cip2, field.label) for field in FIELDS),
    )
    families = {field.cip2: f"CIP family {field.cip2}" for field in FIELDS}
    series = {field.cip4: field.label for field in reversed(FIELDS)}  # named after its first field
    _write_csv(paths.cipcodes, ("cipcode", "label"), sorted((families | series).items()))
    _write_csv(paths.degree_levels, ("degree_level", "label"), (level[:2] for level in LEVELS))
    _write_csv(paths.states, ("state", "division", "label"), (state[:3] for state in STATES))


def _write_csv(path: Path, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
