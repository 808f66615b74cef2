"""Writes the synthetic requirements survey: the confidential file and the public lists."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from discreet.synth.arrow import CODE, coded
from discreet.synth.files import Progress, parquet_file, public_folder, write_csv
from discreet.synth.occupational.occupations import BLOCK, SurveyDesign, replicated, sample
from discreet.synth.occupational.requirements import GROUPS, ORS, Requirement


@dataclass(frozen=True)
class OccupationFiles:
    """The files of the survey: the confidential sample, the public hierarchy, and a list for each requirement."""

    survey: Path
    occupations: Path
    major_groups: Path
    requirements: Path  # the list of requirements
    lists: tuple[Path, ...]  # the codes of each requirement


def write_occupations(
    folder: Path,
    rows: int,
    seed: int = 7,
    progress: Progress | None = None,
    *,
    draw: int = 0,
    requirements: tuple[Requirement, ...] = ORS,
    replicates: int = 20,
    occupations: int = 600,
) -> OccupationFiles:
    """Write the sample of `SurveyDesign(rows, seed, …)` into `folder`, in batches of quotes."""
    design = SurveyDesign(rows, seed, requirements, replicates, occupations)
    public, listed, done = public_folder(folder), design.listed, 0
    names = ("occupations", "major_groups", "requirements", *(one.name for one in requirements))
    first, second, third, *lists = (public / f"{name}.csv" for name in names)
    paths = OccupationFiles(folder / "survey.parquet", first, second, third, tuple(lists))
    of = ((code, GROUPS[group].code, label) for code, group, label in zip(*listed.public, strict=True))
    write_csv(paths.occupations, ("occupation", "major_group", "label"), of)
    write_csv(paths.major_groups, ("major_group", "label"), (group[:2] for group in GROUPS))
    write_csv(paths.requirements, ("requirement", "label"), ((one.name, one.label) for one in requirements))
    for one, path in zip(requirements, paths.lists, strict=True):
        write_csv(path, (one.name, "label"), zip(one.codes, one.labels, strict=True))
    codes = (listed.codes, *(one.codes for one in requirements))
    with parquet_file(paths.survey, _schema(design), use_dictionary=list(design.names)) as writer:
        for block in sample(design, draw):
            quote = np.arange(done, done + len(block.weight))
            columns = [pa.array(block.establishment), pa.array(quote)]
            columns += [coded(positions, of) for positions, of in zip(block.codes, codes, strict=True)]
            columns += [pa.array(weight) for weight in (block.weight, *replicated(design, block))]
            writer.write_table(pa.Table.from_arrays(columns, schema=writer.schema), row_group_size=BLOCK)
            done += len(quote)
            if progress:
                progress(done, rows)
    return paths


def _schema(design: SurveyDesign) -> pa.Schema:
    weights = ("weight", *(f"rep_{number}" for number in range(1, design.replicates + 1)))
    return pa.schema(
        [(name, pa.int64()) for name in ("establishment", "quote")]
        + [(name, CODE) for name in design.names]
        + [(name, pa.float64()) for name in weights]
    )
