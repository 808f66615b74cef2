"""Published releases, opened to be asked: every file verified, nothing else in the folder, no manifest no release."""

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
from discreet.serve.query_model import About, Measure, QueryableTable, TableVariable
from discreet.serve.stored_table import StoredTable

BOUND = "It was calibrated to totals of coarser groups as well: standard errors of tables by these are upper bounds."
OF_ESTIMATE = ("se", "se_sampling", "se_noise_sd", "noise_sd", "low90", "high90", "low95", "high95")
ERRORS = ("_se", "_moe90", "_low90", "_high90", "_width")


@dataclass(frozen=True, eq=False)
class TableCatalogue:
    """All tables that are served, and what they were made of."""

    tables: Mapping[str, QueryableTable]
    simulation: bool
    digest: str  # of all manifests: what is published, and so what every answer depends on

    @classmethod
    def of(cls, folders: Sequence[str | Path], pins: Collection[str] | None = None) -> TableCatalogue:
        """Open releases. A folder with a file that its manifest does not list, or without a manifest, is refused; so is
        one whose manifest is not pinned, where there are pins."""
        if not folders:
            raise PublishError("nothing to serve", where="folders", do="name the folder of a release")
        found: dict[str, QueryableTable] = {}
        simulated, digest = False, sha256()
        for folder in folders:
            release = _Release.of(Path(folder), pins)
            simulated |= release.manifest.simulation
            digest.update(release.manifest.text().encode())
            with intact(str(folder)):
                tables = release.tables()
            for table in tables:
                if table.about.id in found:
                    raise PublishError(
                        f"has a table {table.about.id!r}, as another one has", where=str(folder), do="serve them apart"
                    )
                found[table.about.id] = table
        return cls(found, simulated, digest.hexdigest())

    def table(self, name: str) -> QueryableTable:
        found = self.tables.get(name)
        if found is None:
            raise UnknownTable(f"no table {name[:60]!r}", where="tables", do="the catalogue lists what there is")
        return found


@dataclass(frozen=True, eq=False)
class _Release:
    files: PublishedFiles
    codebook: Codebook

    @classmethod
    def of(cls, path: Path, pins: Collection[str] | None) -> _Release:
        manifest = read(path)
        if pins is not None and pin_of(manifest) not in pins:
            raise PublishError(
                "is none of the pinned releases: its manifest has another SHA-256",
                where=str(path),
                do="serve the folder as the agency published it, with the pins that the agency gives",
            )
        there = {str(file.relative_to(path)) for file in path.rglob("*") if not file.is_dir()}
        if strange := sorted(there - {FILE, *manifest.files}):
            raise PublishError(
                "is not in the manifest", where=f"{path}: {strange[0]}", do="serve the release as it was published"
            )
        if any(file.is_symlink() for file in path.rglob("*")):
            raise PublishError("has a symbolic link", where=str(path), do="serve the release as it was published")
        place = storage_at(str(path))
        for name, expected in manifest.files.items():
            if name not in there or place.sha256(name) != expected:
                raise PublishError("is not what the manifest lists", where=name, do="restore the release from a copy")
        return cls(PublishedFiles(manifest, place, str(path)), read_codebook(manifest, place, str(path)))

    @property
    def manifest(self) -> Manifest:
        return self.files.manifest

    def tables(self) -> list[QueryableTable]:
        """All but what cubes are made of: a cube answers for its controls, and better."""
        parts = {name for entry in self.manifest.tables for name in self._parts_of(entry)}
        return [self._table(entry) for entry in self.manifest.tables if parquet(entry) and entry.name not in parts]

    def _parts_of(self, entry: TableEntry) -> set[str]:
        if not self.files.is_cube(entry.name):
            return set()
        found = self.files.model(entry.name)
        return {control.name for control in found.controls} | ({found.sampling.table} if found.sampling else set())

    def _table(self, entry: TableEntry) -> QueryableTable:
        document = self.codebook.tables[entry.name]
        about = self._about(entry, document)
        if self.files.is_cube(entry.name):
            return self._cube(about, cube_of(self.files, entry.name))
        if document.additive is not None:
            return self._cube(about, additive_of(self.files, self._additive(entry, document.additive)))
        return self._stored(about, entry, document)

    def _about(self, entry: TableEntry, document: TablePart) -> About:
        withheld = [f"Status: {column.meaning}." for column in document.columns if column.name == "status"]
        return About(
            id=entry.name,
            title=_words(entry.name),
            release=self.manifest.release,
            method=entry.method,
            guarantee=entry.guarantee_in_words,
            caveats=tuple(entry.guarantee.caveats),
            noise=entry.noise,
            notes=tuple(text for text in (document.about, *withheld) if text),
            updated=self.manifest.reserved.isoformat(),
            simulation=self.manifest.simulation,
        )

    def _cube(self, about: About, cube: Cube) -> AdditiveTable:
        known = self.codebook.attributes
        axes = (*cube.model.axes, *cube.model.levels)
        labels = {a.name: known[a.name].labels or () for a in axes if a.name in known}
        if any(control.axes is None for control in cube.model.controls):
            about = replace(about, notes=(*about.notes, BOUND))
        return AdditiveTable(about, cube, labels, {a.name: _words(a.name) for a in axes})

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

    def _stored(self, about: About, entry: TableEntry, document: TablePart) -> StoredTable:
        columns = document.columns
        codes = [column.name for column in columns if column.type == "code"]
        numbers = [c for c in columns if c.type in ("integer", "number") and c.name != "status"]
        names = [c.name for c in numbers]
        rows = pa.concat_tables([table_of(self.files.read(name)) for name in parquet(entry)])
        measures = tuple(
            Measure(
                c.name,
                _words(c.name),
                0 if c.type == "integer" else _decimals(rows[c.name]),
                _about_what(c.name, names),
                c.meaning,
            )
            for c in numbers
        )
        about = replace(about, notes=(*about.notes, *_bare(measures)))
        return StoredTable(about, rows, tuple(self._variables(codes)), measures).fitting()

    def _variables(self, columns: Sequence[str]) -> list[TableVariable]:
        """A variable for each column of codes; its codes are those that any attribute has for it."""
        found = []
        for column in columns:
            codes: dict[str, str] = {}
            for attribute in self.codebook.attributes.values():
                if column in attribute.columns:
                    place, alone = attribute.columns.index(column), len(attribute.columns) == 1
                    labels = attribute.labels if alone and attribute.labels else [None] * len(attribute.codes)
                    for code, label in zip(attribute.codes, labels, strict=True):
                        if label or code[place] not in codes:
                            codes[code[place]] = label or code[place]
            found.append(TableVariable(column, _words(column), tuple(codes), tuple(codes.values())))
        return found


def _bare(measures: Sequence[Measure]) -> list[str]:
    """Numbers whose error is not published are named."""
    told = {measure.about for measure in measures}
    bare = [m.id for m in measures if not m.about and m.id not in told and not m.id.startswith("bin_")]
    return [f"No margin of error is published of {', '.join(bare)}: noise may be in it nevertheless."] if bare else []


def _decimals(column: pa.ChunkedArray) -> int:
    """As many as show six digits of the largest number."""
    found = pc.min_max(column).as_py()
    largest = max(abs(found["min"] or 0.0), abs(found["max"] or 0.0))
    return 3 if not 0 < largest < inf else min(max(6 - ceil(log10(largest)), 0), 9)


def _about_what(name: str, names: Sequence[str]) -> str:
    """The measure whose error a column tells, by its name."""
    if name == "moe90":
        return next((main for main in ("count", "measured") if main in names), "")
    if name in OF_ESTIMATE:
        return "estimate" if "estimate" in names else ""
    for ending in ERRORS:
        if name.endswith(ending) and name.removesuffix(ending) in names:
            return name.removesuffix(ending)
    return ""


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()


def matches(table: QueryableTable, text: str) -> bool:
    """Whether all words are somewhere in its title, variables, labels of codes, measures or notes."""
    key: Any = table  # hashed as the object that it is
    words = text.casefold().split()
    return not words or all(word in _said(key) for word in words)


@lru_cache(maxsize=1_000)
def _said(table: QueryableTable) -> str:
    about = table.about
    texts = [about.id, about.title, about.release, *about.notes]
    for v in table.variables:
        texts += [v.id, v.label, *v.labels]
    for measure in table.measures:
        texts += [measure.id, measure.label, measure.meaning]
    return "\n".join(texts).casefold()
