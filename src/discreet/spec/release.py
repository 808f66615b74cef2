"""A whole release."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from discreet import pgurl
from discreet.domain import Attribute, Domain
from discreet.errors import SpecError
from discreet.privacy.events import Name, canonical
from discreet.privacy.unit import Unit
from discreet.spec.domains import DomainSpec, HierarchyDomain
from discreet.spec.engines import EngineSpec
from discreet.spec.sources import Source
from discreet.spec.strict import Strict, unknown
from discreet.spec.tables import Earnings, Table, table_names
from discreet.spec.units import parse_unit


class Release(Strict):
    """Everything that decides what leaves, and at what cost."""

    release: Name
    asset: Name
    source: dict[Name, Source]
    unit: Annotated[Unit, BeforeValidator(parse_unit)]
    domains: dict[Name, DomainSpec]
    tables: Annotated[list[Table], Field(min_length=1)]
    strict: bool = False
    engine: EngineSpec = "duckdb"
    ledger: Annotated[str, AfterValidator(pgurl.without_password)] = "discreet-ledger.sqlite"
    output: str | None = None
    base: Annotated[Path, Field(exclude=True)] = Path()

    @model_validator(mode="after")
    def _coherent(self) -> Release:
        names = [name for table in self.tables for name in table_names(table)]
        if double := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two tables are called {sorted(double)[0]!r}")
        if len(self.source) != 1:
            raise ValueError(f"source must name exactly one table of records, found {len(self.source)}")
        return self

    @cached_property
    def attributes(self) -> dict[str, Attribute]:
        """Every attribute that a table can be by; reads the public code lists."""
        found: dict[str, Attribute] = {}
        for name, spec in self.domains.items():
            for attribute in spec.attributes(name, self.base):
                if attribute.name in found:
                    raise SpecError(f"attribute {attribute.name!r} is declared twice", where=f"domains.{name}")
                found[attribute.name] = attribute
        return found

    def domain(self, by: Sequence[str], where: str) -> Domain:
        """The cells that these attributes span."""
        for i, name in enumerate(by):
            if isinstance(nested := self.domains.get(name), HierarchyDomain) and name not in self.attributes:
                raise SpecError(
                    f"{name!r} is a hierarchy",
                    where=f"{where}.by[{i}]",
                    do=f"name one of its levels: {', '.join(nested.levels)}",
                )
            if name not in self.attributes:
                having = [a.name for a in self.attributes.values() if name in a.columns]
                hint = f"it is a column of {' and of '.join(having)}: name one of those" if having else ""
                raise SpecError(
                    unknown(name, list(self.attributes), "attribute"),
                    where=f"{where}.by[{i}]",
                    do=hint or "declare it under `domains`",
                )
        return Domain(tuple(self.attributes[name] for name in by))

    def domains_of(self, table: Table) -> dict[str, Domain]:
        """The cells of a table, and of each of its further levels, by name."""
        found = {table.name: self.domain(table.by, f"tables.{table.name}")}
        for level in table.levels if isinstance(table, Earnings) else ():
            found[level.name] = self.domain(level.by, f"tables.{table.name}.levels.{level.name}")
        return found

    def similar_of(self, table: Earnings) -> list[Domain]:
        """The families that cells of a table borrow from, the widest first."""
        return [self.domain(by, f"tables.{table.name}.similar[{i}]") for i, by in enumerate(table.similar)]

    def labels(self) -> dict[str, dict[str, str]]:
        """What the codes of each attribute mean, where its code list says so."""
        return {
            name: {key[0]: label for key, label in zip(a.categories, a.labels, strict=True)}
            for name, a in self.attributes.items()
            if a.labels is not None
        }

    def canonical(self) -> str:
        """The release as one text: what is asked for, not where files lie."""
        return self._canonical

    @cached_property
    def _canonical(self) -> str:
        parts = self.model_dump(mode="json", exclude={"source", "engine", "ledger", "output", "domains"})
        cells = {name: domain.digest() for t in self.tables for name, domain in self.domains_of(t).items()}
        tables = [table for table in self.tables if isinstance(table, Earnings)]
        families = {table.name: [family.digest() for family in self.similar_of(table)] for table in tables}
        labels = self.labels() if any(table.layout for table in tables) else {}
        return canonical({**parts, "domains": cells, "similar": families, "labels": labels})

    def digest(self) -> str:
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def describe_source(self) -> str:
        return next(iter(self.source))
