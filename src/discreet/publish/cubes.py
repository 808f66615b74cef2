"""Opens a published cube: its files, checked against the manifest, its cells, and its error model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet.arrays import Floats, Int64s
from discreet.domain import Numbers
from discreet.errors import PublishError
from discreet.post.cubes.cube import Cube
from discreet.post.cubes.model import AxisModel, CubeModel
from discreet.publish.manifest import TableEntry
from discreet.publish.parquet import table_of
from discreet.publish.published import PublishedFiles, parquet_files, refuse_inconsistent


def open_cube(folder: str | Path, name: str | None = None, *, counts: bool = False) -> Cube:
    """A cube of a published release; without a name, the only one. Files that do not match the manifest are refused.
    With `counts`, queries return numbers of records, if the release has them besides weighted totals."""
    return cube_of(PublishedFiles.of(folder), name, counts=counts)


def cube_of(files: PublishedFiles, name: str | None, *, counts: bool = False) -> Cube:
    """A cube of a release whose manifest has been read."""
    with refuse_inconsistent(files.where):
        table = _entry(files, name)
        model = files.model(table.name)
        return _opened(files, table, _of_counts(model) if counts else model)


def _opened(files: PublishedFiles, table: TableEntry, model: CubeModel) -> Cube:
    if not parquet_files(table):
        raise PublishError("has no Parquet file", where=f"cube {table.name}", do="publish it with `formats: [parquet]`")
    dense, what = model.form == "dense", f"cube {table.name}"
    cells, (values,) = _columns(files, table, model.axes, [model.estimate], what, every=dense)
    deviations = None
    if model.sampling is not None and model.sampling.kind == "replicates":
        columns = [f"d{i}" for i in range(1, model.sampling.replicates + 1)]
        _, replicates = _columns(files, files.table(model.sampling.table), model.axes, columns, what)
        deviations = np.stack(replicates, axis=-1)
    steps = () if dense else tuple(_steps(files, model))
    return Cube(model, values, None if dense else cells, deviations, steps)


def additive_of(files: PublishedFiles, model: CubeModel) -> Cube:
    """A table of counts whose noise the codebook describes, as a cube that answers queries."""
    table, dense = files.table(model.cube), model.form == "dense"
    cells, (values,) = _columns(files, table, model.axes, [model.estimate], f"table {table.name}", every=dense)
    return Cube(model, values, None if dense else cells)


def _of_counts(model: CubeModel) -> CubeModel:
    if model.measure == "count":
        return model
    if model.counts is None:
        raise PublishError("has no counts", where=f"cube {model.cube}", do="publish them with `epsilon`")
    own = {"variance": model.counts.variance, "fourth": model.counts.fourth, "unit": 1.0}
    none = {"controls": (), "calibration": None, "sampling": None}
    return model.model_copy(update={"measure": "count", "estimate": "count", **own, **none})


def _steps(files: PublishedFiles, model: CubeModel) -> Iterator[Floats]:
    """What calibration adds to each cell, by control."""
    axes: dict[str, AxisModel] = {axis.name: axis for axis in (*model.axes, *model.levels)}
    for control in model.controls:
        by = [axes[name] for name in control.by]
        yield _columns(files, files.table(control.name), by, ["step"], f"control {control.name}")[1][0]


def open_counts(folder: str | Path, name: str) -> Floats | None:
    """The protected unweighted counts of a cube's cells, in the order of `open_cube`, or None."""
    files = PublishedFiles.of(folder)
    with refuse_inconsistent(files.where):
        table = _entry(files, name)
        if "count" not in pq.read_schema(pa.BufferReader(files.read(parquet_files(table)[0]))).names:
            return None
        model = files.model(name)
        return _columns(files, table, model.axes, ["count"], f"cube {name}", every=model.form == "dense")[1][0]


def _entry(files: PublishedFiles, name: str | None) -> TableEntry:
    available = [t for t in files.manifest.tables if files.is_cube(t.name)]
    cubes = [t for t in available if name in (None, t.name)]
    if not cubes:
        known = ", ".join(t.name for t in available)
        do = f"name one of {known}" if known else "a cube is published by `method: hypercube`"
        raise PublishError(f"has no cube {name!r}" if name else "has no cube", where=files.where, do=do)
    if len(cubes) > 1:
        raise PublishError("has several cubes", where=files.where, do=f"name one of {', '.join(t.name for t in cubes)}")
    return cubes[0]


def _columns(
    files: PublishedFiles,
    table: TableEntry,
    axes: Sequence[AxisModel],
    names: list[str],
    what: str,
    *,
    every: bool = True,
) -> tuple[Numbers, list[Floats]]:
    """The cell number of every row and these columns, in cell order."""
    codes = [column for axis in axes for column in axis.columns]
    pieces = list[list[NDArray[Any]]]()
    for file in sorted(parquet_files(table)):
        rows = table_of(files.read(file), [*codes, *names])
        pieces.append([_numbers(rows, axes), *(rows.column(name).to_numpy() for name in names)])
    cells, *columns = (np.concatenate(column) for column in zip(*pieces, strict=True))
    order = np.argsort(cells, kind="stable")
    whole = not every or len(cells) == prod(len(axis.codes) for axis in axes)
    if not whole or (len(cells) and (np.diff(cells[order]) <= 0).any()):
        raise PublishError("does not list every cell exactly once", where=what, do="restore it from a copy")
    return cells[order].astype(np.int64), [column[order].astype(np.float64) for column in columns]


def _numbers(table: pa.Table, axes: Sequence[AxisModel]) -> Int64s:
    """The cell number of each row."""
    cells = np.zeros(table.num_rows, np.int64)
    for axis in axes:
        cells = cells * len(axis.codes) + _positions(table, axis.columns, axis.codes)
    return cells


def _positions(table: pa.Table, columns: tuple[str, ...], codes: tuple[tuple[str, ...], ...]) -> Int64s:
    """The position of each row's code among an axis' codes."""
    positions = np.zeros(table.num_rows, np.int64)
    known: dict[tuple[str, ...], int] = {(): 0}
    for depth, column in enumerate(columns):
        encoded = table.column(column).combine_chunks()
        if not pa.types.is_dictionary(encoded.type):
            encoded = encoded.dictionary_encode()
        values = encoded.dictionary.to_pylist()
        longer = {key: i for i, key in enumerate(dict.fromkeys(code[: depth + 1] for code in codes))}
        step = np.full((len(known), len(values)), -1, np.int64)
        for key, i in longer.items():
            if key[-1] in values:
                step[known[key[:-1]], values.index(key[-1])] = i
        positions = step[positions, encoded.indices.to_numpy()]
        if (positions < 0).any():
            raise PublishError("has a code that its model lacks", where=f"column {column}", do="restore the release")
        known = longer
    return positions
