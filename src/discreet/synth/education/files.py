"""Writes a synthetic agency of graduates: the confidential file and the public lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from discreet.synth.arrow import CODED, SCHEMA, Codes, codes
from discreet.synth.data_errors import inject
from discreet.synth.draws import MOST_SEED, refuse_unless_within
from discreet.synth.education.catalogue import EducationCatalogue, generate_catalogue
from discreet.synth.education.fields import FIELDS, LEVELS
from discreet.synth.education.recoding import OVERRIDES, completions, crosswalk, programmes_new, series_new
from discreet.synth.education.records import BLOCK, block
from discreet.synth.files import BATCH_ROWS, Progress, agency_files, parquet_file, write_csv
from discreet.synth.sectors import SECTORS
from discreet.synth.states import STATES

PROGRAMME = ("institution", "degree_level", "cipcode", "cip4", "cip2", "state")
MOST_ROWS = 10**12  # person ids have 44 bits


@dataclass(frozen=True)
class Graduates:
    """The files of the agency: the confidential records, and the public lists."""

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
    data_errors: bool = True,
    batch_rows: int = BATCH_ROWS,
) -> Graduates:
    """Write a synthetic graduates agency into `folder`: the same rows for the same `rows`, `seed` and `data_errors`.

    `batch_rows`, rounded up to whole blocks, only sets the row groups and the memory used.
    """
    for name, value, least, most in (
        ("rows", rows, 1, MOST_ROWS),
        ("seed", seed, 0, MOST_SEED),
        ("batch_rows", batch_rows, 1, MOST_ROWS),
    ):
        refuse_unless_within("synth graduates", name, value, least, most)
    paths = agency_files(Graduates, folder, ["graduates"])
    public = generate_catalogue(rows, seed)
    for name, (header, lines) in _public(public, rows, seed).items():
        write_csv(getattr(paths, name), header, lines)
    batches = _batches(rows, seed, public, codes(public, data_errors), data_errors)
    _write_records(paths.graduates, batches, rows, batch_rows, progress)
    return paths


def _batches(
    rows: int, seed: int, public: EducationCatalogue, lists: Codes, data_errors: bool
) -> Iterator[pa.RecordBatch]:
    """The records, block by block."""
    for number, start in enumerate(range(0, rows, BLOCK)):
        drawn = block(number, min(BLOCK, rows - start), seed, public)
        if data_errors:
            inject(drawn, number, seed, lists.known)
        yield lists.batch(drawn)


def _write_records(
    path: Path, batches: Iterable[pa.RecordBatch], rows: int, batch_rows: int, progress: Progress | None
) -> None:
    """Stream batches into row groups. Statistics for `earnings` only: codes are unsorted and span their lists."""
    done, waiting = 0, list[pa.RecordBatch]()
    coded = [*CODED.values(), "industry"]
    with parquet_file(path, SCHEMA, use_dictionary=coded, write_statistics=["earnings"]) as writer:
        for batch in batches:
            waiting.append(batch)
            done += batch.num_rows
            if done == rows or sum(batch.num_rows for batch in waiting) >= batch_rows:
                group = pa.Table.from_batches(waiting)
                writer.write_table(group, row_group_size=group.num_rows)
                waiting.clear()
                if progress:
                    progress(done, rows)


def _public(
    public: EducationCatalogue, rows: int, seed: int
) -> dict[str, tuple[tuple[str, ...], Iterable[Iterable[object]]]]:
    """The public files, header and rows by name: domains of all releases; hires and employment, the control totals of
    flows; and for a change of classification its crosswalk, the history of awards and the resulting programmes.
    """
    schools, offered = public.institutions, public.programmes
    families = {field.cip2: f"CIP family {field.cip2}" for field in FIELDS}
    series = {field.cip4: field.label for field in reversed(FIELDS)}  # named after its first field
    programmes = (
        (
            *(schools[school].code, LEVELS[level].code, FIELDS[field].cip6),
            *(FIELDS[field].cip4, FIELDS[field].cip2, STATES[schools[school].state].code),
        )
        for school, level, field in zip(offered.institution, offered.level, offered.field, strict=True)
    )
    flows = (
        (STATES[home].code, state.code, hires)
        for home in sorted({school.state for school in schools})
        for state, hires in zip(STATES, public.economy.hires[home], strict=True)
    )
    employment = (
        (state.code, sector.code, employed)
        for state, column in zip(STATES, public.economy.employment.T, strict=True)
        for sector, employed in zip(SECTORS, column, strict=True)
    )
    awards = "institution", "degree_level", "grad_cohort", "cipcode6", "awards"
    return {
        "institutions": (("institution", "label", "state"), ((s.code, s.label, STATES[s.state].code) for s in schools)),
        "programmes": (PROGRAMME, programmes),
        "cip": (("cip6", "cip4", "cip2", "label"), ((f.cip6, f.cip4, f.cip2, f.label) for f in FIELDS)),
        "cipcodes": (("cipcode", "label"), sorted((families | series).items())),
        "degree_levels": (("degree_level", "label"), (level[:2] for level in LEVELS)),
        "states": (("state", "division", "label"), (state[:3] for state in STATES)),
        "sectors": (("industry", "label"), (sector[:2] for sector in SECTORS)),
        "job_flows": (("from_state", "to_state", "hires"), flows),
        "employment": (("state", "industry", "employment"), employment),
        "crosswalk": (("old6", "new6", "action"), crosswalk()),
        "overrides": (("from", "to", "share"), OVERRIDES),
        "completions": (awards, completions(public, rows, seed)),
        "programmes_new": (PROGRAMME, programmes_new(public)),
        "cipcodes_new": (("cipcode", "label"), series_new()),
    }
