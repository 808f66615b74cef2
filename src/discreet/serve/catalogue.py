"""The catalogue of published releases: every file is verified, and folders with other files are refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from math import ceil, inf, log10
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from discreet.errors import PublishError, UnknownTable
from discreet.post.cubes.cube import Cube
from discreet.post.cubes.model import AxisModel, CubeModel
from discreet.publish.codebook_read import AdditivePart, Codebook, TablePart, read_codebook
from discreet.publish.cubes import additive_of, cube_of
from discreet.publish.manifest import FILE, Manifest, TableEntry, read
from discreet.publish.parquet import table_of
from discreet.publish.pins import pin_of
from discreet.publish.published import PublishedFiles, intact, parquet
from discreet.publish.storage import storage_at
from discreet.serve.cube_table import AdditiveTable
from discreet.serve.query_model import Measure, QueryableTable, TableSummary, TableVariable
from discreet.serve.stored_table import StoredTable

BOUND = (
    "Also calibrated to control totals of coarser groups: standard errors of tables by these groups are upper bounds."
)
OF_ESTIMATE = ("se", "se_sampling", "se_noise_sd", "noise_sd", "low90", "high90", "low95", "high95")
ERRORS = ("_se", "_moe90", "_low90", "_high90", "_width")


@dataclass(frozen=True, eq=False)
class TableCatalogue:
    """All tables that are served."""

    tables: Mapping[str, QueryableTable]
    simulation: bool
    digest: str  # of all manifests, and so of all published data that answers depend on

    @classmethod
    def of(cls, folders: Sequence[str | Path], pins: Collection[str] | None = None) -> TableCatalogue:
        """Open releases. A folder without a manifest, or with files that its manifest does not list, is refused; with
        pins, so is one whose manifest is not pinned."""
        if not folders:
            raise PublishError("nothing to serve", where="folders", do="name the folder of a release")
        tables: dict[str, QueryableTable] = {}
        simulated, digest = False, sha256()
        for folder in folders:
            release = _Release.of(Path(folder), pins)
            simulated |= release.manifest.simulation
            digest.update(release.manifest.text().encode())
            with intact(str(folder)):
                own = release.tables()
            for table in own:
                if table.summary.id in tables:
                    raise PublishError(
                        f"has a table {table.summary.id!r}, as does another release",
                        where=str(folder),
                        do="serve them separately",
                    )
                tables[table.summary.id] = table
        return cls(tables, simulated, digest.hexdigest())

    def table(self, name: str) -> QueryableTable:
        table = self.tables.get(name)
        if table is None:
            raise UnknownTable(f"unknown table {name[:60]!r}", where="tables", do="see the catalogue for its tables")
        return table


@dataclass(frozen=True, eq=False)
class _Release:
    files: PublishedFiles
    codebook: Codebook

    @classmethod
    def of(cls, path: Path, pins: Collection[str] | None) -> _Release:
        manifest = read(path)
        if pins is not None and pin_of(manifest) not in pins:
            raise PublishError(
                "is not a pinned release: the SHA-256 of its manifest is not among the pins",
                where=str(path),
                do="serve the folder as the agency published it, with the agency's pins",
            )
        present = {str(file.relative_to(path)) for file in path.rglob("*") if not file.is_dir()}
        if unknown := sorted(present - {FILE, *manifest.files}):
            raise PublishError(
                "is not in the manifest", where=f"{path}: {unknown[0]}", do="serve the release as it was published"
            )
        if any(file.is_symlink() for file in path.rglob("*")):
            raise PublishError("contains a symbolic link", where=str(path), do="serve the release as it was published")
        place = storage_at(str(path))
        for name, expected in manifest.files.items():
            if name not in present or place.sha256(name) != expected:
                raise PublishError("is not what the manifest lists", where=name, do="restore the release from a copy")
        return cls(PublishedFiles(manifest, place, str(path)), read_codebook(manifest, place, str(path)))

    @property
    def manifest(self) -> Manifest:
        return self.files.manifest

    def tables(self) -> list[QueryableTable]:
        """All tables but the parts of cubes: a cube answers for its controls too."""
        parts = {name for entry in self.manifest.tables for name in self._parts_of(entry)}
        return [self._table(entry) for entry in self.manifest.tables if parquet(entry) and entry.name not in parts]

    def _parts_of(self, entry: TableEntry) -> set[str]:
        if not self.files.is_cube(entry.name):
            return set()
        model = self.files.model(entry.name)
        return {control.name for control in model.controls} | ({model.sampling.table} if model.sampling else set())

    def _table(self, entry: TableEntry) -> QueryableTable:
        document = self.codebook.tables[entry.name]
        summary = self._about(entry, document)
        if self.files.is_cube(entry.name):
            return self._cube(summary, cube_of(self.files, entry.name))
        if document.additive is not None:
            return self._cube(summary, additive_of(self.files, self._additive(entry, document.additive)))
        return self._stored(summary, entry, document)

    def _about(self, entry: TableEntry, document: TablePart) -> TableSummary:
        withheld = [f"Status: {column.meaning}." for column in document.columns if column.name == "status"]
        return TableSummary(
            id=entry.name,
            title=_label(entry.name),
            release=self.manifest.release,
            method=entry.method,
            guarantee=entry.guarantee_in_words,
            caveats=tuple(entry.guarantee.caveats),
            noise=entry.noise,
            notes=tuple(text for text in (document.about, *withheld) if text),
            updated=self.manifest.reserved.isoformat(),
            simulation=self.manifest.simulation,
        )

    def _cube(self, summary: TableSummary, cube: Cube) -> AdditiveTable:
        known = self.codebook.attributes
        axes = (*cube.model.axes, *cube.model.levels)
        labels = {a.name: known[a.name].labels or () for a in axes if a.name in known}
        if any(control.axes is None for control in cube.model.controls):
            summary = replace(summary, notes=(*summary.notes, BOUND))
        return AdditiveTable(summary, cube, labels, {a.name: _label(a.name) for a in axes})

    def _additive(self, entry: TableEntry, noise: AdditivePart) -> CubeModel:
        known = self.codebook.attributes
        axes = tuple(
            AxisModel(name=name, columns=tuple(known[name].columns), codes=tuple(map(tuple, known[name].codes)))
            for name in entry.by
        )
        return CubeModel(
            cube=entry.name,
            simulation=self.manifest.simulation,
            form="sparse" if entry.form == "sparse" else "dense",
            measure="count",
            estimate=noise.column,
            axes=axes,
            levels=(),
            variance=noise.variance,
            fourth=noise.fourth,
            unit=1.0,
        )

    def _stored(self, summary: TableSummary, entry: TableEntry, document: TablePart) -> StoredTable:
        columns = document.columns
        codes = [column.name for column in columns if column.type == "code"]
        numbers = [c for c in columns if c.type in ("integer", "number") and c.name != "status"]
        names = [c.name for c in numbers]
        rows = pa.concat_tables([table_of(self.files.read(name)) for name in parquet(entry)])
        measures = tuple(
            Measure(
                c.name,
                _label(c.name),
                0 if c.type == "integer" else _decimals(rows[c.name]),
                _error_of(c.name, names),
                c.meaning,
            )
            for c in numbers
        )
        summary = replace(summary, notes=(*summary.notes, *_without_error(measures)))
        return StoredTable(summary, rows, tuple(self._variables(codes)), measures).fitting()

    def _variables(self, columns: Sequence[str]) -> list[TableVariable]:
        """A variable for each column of codes, with the codes that any attribute has for it."""
        variables = []
        for column in columns:
            codes: dict[str, str] = {}
            for attribute in self.codebook.attributes.values():
                if column in attribute.columns:
                    place, alone = attribute.columns.index(column), len(attribute.columns) == 1
                    labels = attribute.labels if alone and attribute.labels else [None] * len(attribute.codes)
                    for code, label in zip(attribute.codes, labels, strict=True):
                        if label or code[place] not in codes:
                            codes[code[place]] = label or code[place]
            variables.append(TableVariable(column, _label(column), tuple(codes), tuple(codes.values())))
        return variables


def _without_error(measures: Sequence[Measure]) -> list[str]:
    """A note that names the measures whose error is not published."""
    with_error = {measure.error_of for measure in measures}
    bare = [m.id for m in measures if not m.error_of and m.id not in with_error and not m.id.startswith("bin_")]
    return (
        [f"No margin of error is published for {', '.join(bare)}; noise may have been added nevertheless."]
        if bare
        else []
    )


def _decimals(column: pa.ChunkedArray) -> int:
    """Enough decimals to show six digits of the largest number."""
    extremes = pc.min_max(column).as_py()
    largest = max(abs(extremes["min"] or 0.0), abs(extremes["max"] or 0.0))
    return 3 if not 0 < largest < inf else min(max(6 - ceil(log10(largest)), 0), 9)


def _error_of(name: str, names: Sequence[str]) -> str:
    """The measure whose error a column is, judging by its name."""
    if name == "moe90":
        return next((main for main in ("count", "measured") if main in names), "")
    if name in OF_ESTIMATE:
        return "estimate" if "estimate" in names else ""
    for ending in ERRORS:
        if name.endswith(ending) and name.removesuffix(ending) in names:
            return name.removesuffix(ending)
    return ""


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def matches(table: QueryableTable, text: str) -> bool:
    """Whether all words occur in the table's title, variables, labels of codes, measures or notes."""
    key: Any = table  # hashed by identity
    words = text.casefold().split()
    return not words or all(word in _search_text(key) for word in words)


@lru_cache(maxsize=1_000)
def _search_text(table: QueryableTable) -> str:
    summary = table.summary
    texts = [summary.id, summary.title, summary.release, *summary.notes]
    for v in table.variables:
        texts += [v.id, v.label, *v.labels]
    for measure in table.measures:
        texts += [measure.id, measure.label, measure.meaning]
    return "\n".join(texts).casefold()
