"""A whole release."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from discreet import postgres_url
from discreet.domain import Attribute, Domain
from discreet.errors import SpecError
from discreet.privacy.ledger.events import Name, canonical
from discreet.privacy.unit import Unit
from discreet.spec.domains import DomainSpec, HierarchyDomain
from discreet.spec.engines import EngineSpec
from discreet.spec.recode import Recode
from discreet.spec.sources import Source
from discreet.spec.strict import ColumnName, Strict, unknown
from discreet.spec.tables import Table
from discreet.spec.units import parse_unit


class Release(Strict):
    """Everything that decides what leaves, and at what cost."""

    format: Literal[1] = 1  # another one is refused before anything else is looked at
    release: Name
    asset: Name
    source: dict[Name, Source] = {}
    join: dict[Name, ColumnName] = {}
    recode: Recode | None = None
    unit: Annotated[Unit, BeforeValidator(parse_unit)]
    domains: dict[Name, DomainSpec]
    tables: Annotated[list[Table], Field(min_length=1)]
    strict: bool = False
    engine: EngineSpec = "duckdb"
    ledger: Annotated[str, AfterValidator(postgres_url.without_password)] = "discreet-ledger.sqlite"
    output: str | None = None
    keep: str | None = None
    base: Annotated[Path, Field(exclude=True)] = Path()

    @model_validator(mode="after")
    def _coherent(self) -> Release:
        names = [name for table in self.tables for name in table.names]
        if double := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two tables are called {sorted(double)[0]!r}")
        if self.recode is not None:
            self._check_recode()
        elif "source" not in self.model_fields_set:
            raise ValueError("key 'source' is missing: where the records are; or 'recode', to make it of measurements")
        else:
            self._check_source()
        return self

    def _check_source(self) -> None:
        if not self.source:
            raise ValueError("source must name a table of records, found none")
        records, *further = self.source
        if other := next((name for name in self.join if name not in further), None):
            first = f"; {records!r}, the first, has the records" if other == records else ""
            known = f"{unknown(other, further, 'table')}" if further else f"there is no table {other!r} in `source`"
            raise ValueError(f"join: {known}{first}")
        if missing := next((name for name in further if name not in self.join), None):
            raise ValueError(
                f"source names several tables: the first, {records!r}, has the records, the others are looked up; say "
                f"under `join` by which column {missing!r} is, {{{missing}: COLUMN}}"
            )

    def _check_recode(self) -> None:
        if self.source:
            raise ValueError("a release reads records, with `source`, or recodes measurements, with `recode`: not both")
        if self.strict or self.join:
            raise ValueError(f"a recoding reads no records: leave out `{'strict' if self.strict else 'join'}`")
        if other := next((table for table in self.tables if not table.recodable), None):
            raise ValueError(f"table {other.name!r} cannot be recoded: only earnings and flows keep measurements")

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

    def domain(self, by: Sequence[str], where: str, places: Sequence[str] = (), do: str = "") -> Domain:
        """The cells that these attributes span; `places` are where they are named, if not in `by`; `do` says which
        could be meant."""
        for i, name in enumerate(by):
            place = places[i] if places else f"{where}.by[{i}]"
            if isinstance(nested := self.domains.get(name), HierarchyDomain) and name not in self.attributes:
                raise SpecError(
                    f"{name!r} is a hierarchy",
                    where=place,
                    do=f"name one of its levels: {', '.join(nested.levels)}",
                )
            if name not in self.attributes:
                having = [a.name for a in self.attributes.values() if name in a.columns]
                hint = f"it is a column of {' and of '.join(having)}: name one of those" if having else ""
                raise SpecError(
                    unknown(name, list(self.attributes), "attribute"),
                    where=place,
                    do=hint or do or "write it as it is declared under `domains`, or declare it there",
                )
        return Domain(tuple(self.attributes[name] for name in by))

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
        where = {"format", "source", "engine", "ledger", "output", "keep"}  # how and where, not what
        parts = self.model_dump(mode="json", exclude={*where, "domains"})
        cells = {name: domain.digest() for t in self.tables for name, domain in t.domains(self).items()}
        similar = {name: near for table in self.tables for name, near in table.similar_to(self).items()}
        families = {name: [family.digest() for family in near] for name, near in similar.items()}
        labels = self.labels() if any(table.labelled for table in self.tables) else {}
        if not self.join:
            del parts["join"]
        if self.recode is None:
            del parts["recode"]  # releases without it mean what they meant before there was one
        else:
            del parts["recode"]["measurements"]  # where they lie; the ledger knows which they are
        if files := {name: self._content(name) for name in self._files()}:
            parts["files"] = files
        return canonical({**parts, "domains": cells, "similar": families, "labels": labels})

    def _files(self) -> list[str]:
        """The public files, beyond code lists, that decide what is published."""
        found = [file for table in self.tables for file in table.files]
        if (recode := self.recode) is not None:
            found += [recode.crosswalk.file, *([] if recode.history is None else [recode.history.file])]
            found += [] if recode.overrides is None else [recode.overrides]
            found += [rolled.file for rolled in recode.columns.values() if not isinstance(rolled, int)]
        return list(dict.fromkeys(found))

    def _content(self, name: str) -> str:
        try:
            return hashlib.sha256((self.base / name).read_bytes()).hexdigest()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "not a path"
            raise SpecError(f"cannot be read ({reason})", where=f"file {name}", do="check the path") from None

    def digest(self) -> str:
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def describe_source(self) -> str:
        return next(iter(self.source), "none")
