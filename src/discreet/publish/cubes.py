"""Open a published cube: its files, checked against the manifest, its cells, and the model of its errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet import formats
from discreet.domain import Numbers
from discreet.errors import PublishError
from discreet.post.cubes.cube import Cube
from discreet.post.cubes.model import AxisModel, CubeModel
from discreet.publish.intact import intact
from discreet.publish.manifest import Manifest, TableEntry, read
from discreet.publish.parquet import table_of
from discreet.publish.storage import Storage, storage_at
from discreet.publish.tables import stem


def open_cube(folder: str | Path, name: str | None = None, *, counts: bool = False) -> Cube:
    """A cube of a published release; the only one, if no name is given. Files that are not what the manifest lists are
    refused. With `counts` queries are about numbers of records, where the release has them beside weighted totals."""
    return cube_of(read(str(folder)), storage_at(str(folder)), name, str(folder), counts=counts)


def cube_of(manifest: Manifest, place: Storage, name: str | None, where: str, *, counts: bool = False) -> Cube:
    """The same of a manifest that has been read."""
    with intact(where):
        return _opened(manifest, place, _entry(manifest, name, where), counts)


def _opened(manifest: Manifest, place: Storage, table: TableEntry, counts: bool) -> Cube:
    model = _model(manifest, place, table.name)
    if counts:
        model = _of_counts(model)
    files = _parquet(table.files)
    if not files:
        raise PublishError("has no Parquet file", where=f"cube {table.name}", do="publish it with `formats: [parquet]`")
    dense, what = model.form == "dense", f"cube {table.name}"
    cells, (values,) = _columns(manifest, place, files, model.axes, [model.estimate], what, every=dense)
    deviations = None
    if model.sampling is not None and model.sampling.kind == "replicates":
        listed = _listed(manifest, model.sampling.table).files
        columns = [f"d{i}" for i in range(1, model.sampling.replicates + 1)]
        _, found = _columns(manifest, place, _parquet(listed), model.axes, columns, what)
        deviations = np.stack(found, axis=-1)
    steps = () if dense else tuple(_steps(manifest, place, model))
    return Cube(model, values, None if dense else cells, deviations, steps)


def additive_of(manifest: Manifest, place: Storage, model: CubeModel) -> Cube:
    """A table of counts whose noise the codebook states, as a cube that answers queries."""
    table = _listed(manifest, model.cube)
    dense, what = model.form == "dense", f"table {table.name}"
    files = _parquet(table.files)
    cells, (values,) = _columns(manifest, place, files, model.axes, [model.estimate], what, every=dense)
    return Cube(model, values, None if dense else cells)


def _of_counts(model: CubeModel) -> CubeModel:
    if model.measure == "count":
        return model
    if model.counts is None:
        raise PublishError("has no counts", where=f"cube {model.cube}", do="publish them with `epsilon`")
    own = {"variance": model.counts.variance, "fourth": model.counts.fourth, "unit": 1.0}
    none = {"controls": (), "calibration": None, "sampling": None}
    return model.model_copy(update={"measure": "count", "estimate": "count", **own, **none})


def _steps(manifest: Manifest, place: Storage, model: CubeModel) -> Iterator[NDArray[np.float64]]:
    """What calibration adds to the cells of each control."""
    axes: dict[str, AxisModel] = {axis.name: axis for axis in (*model.axes, *model.levels)}
    for control in model.controls:
        files = _listed(manifest, control.name).files
        by = [axes[name] for name in control.by]
        yield _columns(manifest, place, _parquet(files), by, ["step"], f"control {control.name}")[1][0]


def open_counts(folder: str | Path, name: str) -> NDArray[np.float64] | None:
    """The protected unweighted counts of a cube's cells, in the order of `open_cube`; None if it has none."""
    manifest, place = read(str(folder)), storage_at(str(folder))
    with intact(str(folder)):
        files = _parquet(_entry(manifest, name, str(folder)).files)
        if "count" not in pq.read_schema(pa.BufferReader(verified(manifest, place, files[0]))).names:
            return None
        model = _model(manifest, place, name)
        every = model.form == "dense"
        return _columns(manifest, place, files, model.axes, ["count"], f"cube {name}", every=every)[1][0]


def _parquet(files: Sequence[str]) -> list[str]:
    return [file for file in files if file.endswith(".parquet")]


def _listed(manifest: Manifest, name: str) -> TableEntry:
    found = [table for table in manifest.tables if table.name == name]
    if not found:
        raise PublishError(f"has no table {name!r}", where="manifest", do="restore the release from a copy")
    return found[0]


def _entry(manifest: Manifest, name: str | None, where: str) -> TableEntry:
    found = [t for t in manifest.tables if is_cube(manifest, t.name)]
    cubes = [t for t in found if name in (None, t.name)]
    if not cubes:
        known = ", ".join(t.name for t in found)
        do = f"name one of {known}" if known else "a cube is published by `method: hypercube`"
        raise PublishError(f"has no cube {name!r}" if name else "has no cube", where=where, do=do)
    if len(cubes) > 1:
        raise PublishError("has several cubes", where=where, do=f"name one of {', '.join(t.name for t in cubes)}")
    return cubes[0]


def verified(manifest: Manifest, place: Storage, name: str) -> bytes:
    """A file of a release, if it is what the manifest lists."""
    if name not in manifest.files:  # whatever a table's entry says
        raise PublishError("is not what the manifest lists", where=name, do="restore the release from a copy")
    try:
        content = place.read(name)
    except FileNotFoundError:
        raise PublishError("is missing", where=name, do="restore the release from a copy") from None
    if sha256(content).hexdigest() != manifest.files[name]:
        raise PublishError("is not what the manifest lists", where=name, do="restore the release from a copy")
    return content


def is_cube(manifest: Manifest, name: str) -> bool:
    """Whether a table has a model beside it."""
    return _model_file(manifest, name) in manifest.files


def model_of(manifest: Manifest, place: Storage, name: str) -> CubeModel | None:
    """The model of a cube; None of a table that is none."""
    return _model(manifest, place, name) if is_cube(manifest, name) else None


def _model(manifest: Manifest, place: Storage, name: str) -> CubeModel:
    file = _model_file(manifest, name)
    try:
        return CubeModel.model_validate(formats.parsed(verified(manifest, place, file), formats.MODEL, file))
    except ValueError:
        raise PublishError("is no model of a cube", where=file, do="restore the release from a copy") from None


def _model_file(manifest: Manifest, name: str) -> str:
    return f"{stem(name, manifest.simulation)}.model.json"


def _columns(
    manifest: Manifest,
    place: Storage,
    files: list[str],
    axes: Sequence[AxisModel],
    names: list[str],
    what: str,
    *,
    every: bool = True,
) -> tuple[Numbers, list[NDArray[np.float64]]]:
    """The cell of every row, and these numbers of it, in order."""
    pieces = list(_pieces(manifest, place, sorted(files), axes, names))
    cells, *columns = (np.concatenate(column) for column in zip(*pieces, strict=True))
    order = np.argsort(cells, kind="stable")
    whole = not every or len(cells) == prod(len(axis.codes) for axis in axes)
    if not whole or (len(cells) and (np.diff(cells[order]) <= 0).any()):
        raise PublishError("does not list every cell once", where=what, do="restore it from a copy")
    return cells[order].astype(np.int64), [column[order].astype(np.float64) for column in columns]


def _pieces(
    manifest: Manifest, place: Storage, files: list[str], axes: Sequence[AxisModel], names: list[str]
) -> Iterator[list[NDArray[Any]]]:
    codes = [column for axis in axes for column in axis.columns]
    for file in files:
        table = table_of(verified(manifest, place, file), [*codes, *names])
        yield [_numbers(table, axes), *(table.column(name).to_numpy() for name in names)]


def _numbers(table: pa.Table, axes: Sequence[AxisModel]) -> NDArray[np.int64]:
    """The number of each row's cell."""
    found = np.zeros(table.num_rows, np.int64)
    for axis in axes:
        found = found * len(axis.codes) + _places(table, axis.columns, axis.codes)
    return found


def _places(table: pa.Table, columns: tuple[str, ...], codes: tuple[tuple[str, ...], ...]) -> NDArray[np.int64]:
    """Which of an axis' codes each row has."""
    found = np.zeros(table.num_rows, np.int64)
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
        found = step[found, encoded.indices.to_numpy()]
        if (found < 0).any():
            raise PublishError("has a code that its model lacks", where=f"column {column}", do="restore the release")
        known = longer
    return found
