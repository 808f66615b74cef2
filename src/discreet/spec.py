"""release.yaml ⇄ typed objects: strict, one tagged union of methods, no defaults where privacy is concerned."""

from __future__ import annotations

import difflib
import hashlib
import re
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from discreet import codelists, pgurl
from discreet.domain import Attribute, Domain
from discreet.errors import SpecError
from discreet.privacy.events import Name, canonical
from discreet.privacy.exact import Positive
from discreet.privacy.unit import Unit

ColumnName = Annotated[str, Field(min_length=1, max_length=200)]


class Strict(BaseModel):
    """Unknown keys are refused, with the nearest known one; values are what they look like."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for key in data:
                if key not in cls.model_fields:
                    text = unknown(str(key), [name for name in cls.model_fields if name != "base"])
                    raise PydanticCustomError("unknown_key", "{text}", {"text": text, "key": str(key)})
        return data


def unknown(word: str, known: list[str], what: str = "key") -> str:
    """«unknown key 'epsilno'; did you mean 'epsilon'?»"""
    close = difflib.get_close_matches(word, known, 1, cutoff=0.6)
    return f"unknown {what} {word!r}; " + (f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}")


# --- sources ----------------------------------------------------------------------------------------------------


class FileSource(Strict):
    """Records in files: the format by its ending, or named. A path may be a folder or a glob.

    CSV is cut at commas (`.tsv`: tabs) or at the declared delimiter, never at a guessed one. SAS and Stata columns with
    value labels are read as codes, or as the labels' text; SAS keeps its labels in a catalog of their own.
    """

    path: str
    format: Literal["parquet", "csv", "sas", "stata"] | None = None
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    labels: Literal["codes", "text"] = "codes"
    catalog: str | None = None


class DuckDBSource(Strict):
    """A table of a DuckDB database file."""

    duckdb: str
    table: str


class PostgresSource(Strict):
    """A table of a PostgreSQL database; the password comes from the environment or ~/.pgpass, never from the spec."""

    postgres: Annotated[str, AfterValidator(pgurl.without_password)]
    table: str


def _source_kind(data: Any) -> str:
    if isinstance(data, dict):
        return next((kind for kind in ("duckdb", "postgres") if kind in data), "file")
    return "duckdb" if isinstance(data, DuckDBSource) else "postgres" if isinstance(data, PostgresSource) else "file"


Source = Annotated[
    Annotated[FileSource, Tag("file")]
    | Annotated[DuckDBSource, Tag("duckdb")]
    | Annotated[PostgresSource, Tag("postgres")],
    Discriminator(_source_kind),
    BeforeValidator(lambda data: {"path": data} if isinstance(data, str) else data),
]


# --- domains ----------------------------------------------------------------------------------------------------


class OtherRule(Strict):
    """Undeclared values are counted together under this name."""

    other: Name


class _DomainSpec(Strict):
    undeclared: Literal["drop", "other"] | OtherRule = "drop"
    provenance: str = ""

    @property
    def other(self) -> str | None:
        rule = self.undeclared
        return rule.other if isinstance(rule, OtherRule) else "other" if rule == "other" else None


class _OneColumn(_DomainSpec):
    column: ColumnName | None = None
    width: Annotated[int, Field(ge=1, le=100)] | None = None


class ValuesDomain(_OneColumn):
    """Categories listed in the spec."""

    values: list[str]

    def attributes(self, name: str, base: Path) -> list[Attribute]:  # noqa: ARG002 - one signature for all
        return [codelists.flat(name, self.values, None, self.column or name, self.other, self.provenance, self.width)]


class CodesDomain(_OneColumn):
    """Categories from one column of a code-list file."""

    codes: str
    code: ColumnName | None = None
    label: ColumnName | None = None

    def attributes(self, name: str, base: Path) -> list[Attribute]:
        path, code = base / self.codes, self.code or name
        return [
            codelists.from_codes(
                name, path, code, self.label, self.column or name, self.other, self.provenance, self.width
            )
        ]


class HierarchyDomain(_OneColumn):
    """Nested codes, finest first: every level can be published, all are read off the finest one."""

    hierarchy: str
    levels: Annotated[list[ColumnName], Field(min_length=1)]

    def attributes(self, name: str, base: Path) -> list[Attribute]:
        path, column = base / self.hierarchy, self.column or self.levels[0]
        return codelists.levels(path, self.levels, column, self.other, self.provenance, name, self.width)


class GroupsDomain(_DomainSpec):
    """A public list of groups, with where it comes from."""

    groups: str
    columns: Annotated[list[ColumnName], Field(min_length=1)]
    source_columns: list[ColumnName] | None = None
    provenance: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _as_many(self) -> GroupsDomain:
        if self.source_columns is not None and len(self.source_columns) != len(self.columns):
            raise ValueError("source_columns needs one name for each of columns")
        return self

    def attributes(self, name: str, base: Path) -> list[Attribute]:
        source = self.source_columns or self.columns
        return [codelists.from_groups(name, base / self.groups, self.columns, source, self.other, self.provenance)]


_DOMAINS: dict[str, type[_DomainSpec]] = {
    "values": ValuesDomain,
    "codes": CodesDomain,
    "hierarchy": HierarchyDomain,
    "groups": GroupsDomain,
}


def _domain_kind(data: Any) -> str | None:
    if isinstance(data, dict):
        return next((kind for kind in _DOMAINS if kind in data), None)
    return next((kind for kind, model in _DOMAINS.items() if type(data) is model), None)


DomainSpec = Annotated[
    Annotated[ValuesDomain, Tag("values")]
    | Annotated[CodesDomain, Tag("codes")]
    | Annotated[HierarchyDomain, Tag("hierarchy")]
    | Annotated[GroupsDomain, Tag("groups")],
    Discriminator(
        _domain_kind,
        custom_error_type="domain",
        custom_error_message="needs one of values, codes, hierarchy or groups",
    ),
]


# --- tables -----------------------------------------------------------------------------------------------------


class Counts(Strict):
    """Protected counts by some attributes (000 §1, 001 A.1)."""

    method: Literal["counts"] = "counts"
    name: Name
    by: list[str]
    epsilon: Positive
    form: Literal["dense", "sparse"] = "dense"
    nonnegative: bool = False
    round_to: Annotated[int, Field(ge=2, le=10**9)] | None = None


_METHODS = {"counts": Counts}


def _known_method(data: Any) -> Any:
    if isinstance(data, dict):
        if "method" not in data:
            raise ValueError(f"key 'method' is missing; known methods: {', '.join(_METHODS)}")
        if not isinstance(data["method"], str) or data["method"] not in _METHODS:
            raise ValueError(unknown(str(data["method"]), list(_METHODS), "method"))
    return data


Table = Annotated[Counts, BeforeValidator(_known_method)]  # a union tagged by `method` from the second method on


# --- the unit ---------------------------------------------------------------------------------------------------

_UNIT_KEYS = {"person": "max_records", "job": "max_records", "establishment": "alpha"}


def parse_budget_unit(data: Any) -> Any:
    """As `parse_unit`, without max_records: a budget does not say how a release keeps its promise."""
    if isinstance(data, dict) and "max_records" in data:
        raise ValueError("a budget has no 'max_records'; each release says how many it keeps")
    open_ended = isinstance(data, dict) and "kind" not in data and "alpha" not in data
    parsed = parse_unit({**data, "max_records": 1} if open_ended else data)
    return {key: value for key, value in parsed.items() if key != "max_records"}


def parse_unit(data: Any) -> Any:
    """`record`, or {person: COLUMN, max_records: 2}, {job: …}, {establishment: …, alpha: …, adversary: …}."""
    if data == "record":
        return {"kind": "record"}
    if not isinstance(data, dict) or "kind" in data:
        return data
    kinds = [kind for kind in _UNIT_KEYS if kind in data]
    if len(kinds) != 1:
        raise ValueError(
            "names no unit: write `record`, {person: COLUMN, max_records: N}, {job: COLUMN, max_records: N}, "
            "{establishment: COLUMN, alpha: …, adversary: strong|weak} or {establishment: COLUMN, whole: true, "
            "max_records: N}"
        )
    kind, rest = kinds[0], {k: v for k, v in data.items() if k not in (*kinds, "whole")}
    if "whole" in data and (kind != "establishment" or not isinstance(data["whole"], bool)):
        raise ValueError("`whole` is true or false, and only an establishment has it")
    whole = data.get("whole") is True
    allowed = ["alpha", "adversary"] if kind == "establishment" and not whole else ["max_records"]
    for key in rest:
        if key not in allowed:
            raise ValueError(unknown(str(key), [*_UNIT_KEYS, *allowed]))
    for key in allowed:
        if key not in rest:
            raise ValueError(f"needs {key!r}: there is no default")
    return {"kind": "whole_establishment" if whole else kind, "column": data[kind], **rest}


# --- the engine -------------------------------------------------------------------------------------------------


_SECRETS = re.compile(r"secret|password|token|credential|(access|account|private)\.key", re.IGNORECASE)


def _master(text: str) -> str:
    if not re.fullmatch(r"local(\[.+\])?|local-cluster\[.+\]|spark://.+|yarn|k8s://.+", text):
        raise ValueError("is no Spark master: write local[4], spark://HOST:7077, yarn or k8s://…")
    return text


def _setting(key: str) -> str:
    if not key.startswith("spark."):
        raise ValueError(f"{key!r} is none of Spark's settings: they begin with 'spark.'")
    return key


class SparkEngineSpec(Strict):
    """A Spark master: spark://host:7077, yarn, k8s://…, local[4]. `config` takes Spark's own settings, no secrets."""

    spark: Annotated[str, AfterValidator(_master)]
    config: dict[Annotated[str, AfterValidator(_setting)], str] = {}

    @model_validator(mode="before")
    @classmethod
    def _no_secrets(cls, data: Any) -> Any:
        """Before anything else: other refusals quote what they found."""
        config = data.get("config") if isinstance(data, dict) else None
        for key in config if isinstance(config, dict) else ():
            if _SECRETS.search(str(key)):
                raise ValueError(f"config has the secret {key!r}; put it into the spark-defaults.conf of its owner")
        return data


def _engine_kind(data: Any) -> str | None:
    return "Spark" if isinstance(data, dict | SparkEngineSpec) else "DuckDB" if data == "duckdb" else None


EngineSpec = Annotated[
    Annotated[Literal["duckdb"], Tag("DuckDB")] | Annotated[SparkEngineSpec, Tag("Spark")],
    Discriminator(
        _engine_kind,
        custom_error_type="engine",
        custom_error_message="expected 'duckdb', or key 'spark' with a master",
    ),
]


# --- the release ------------------------------------------------------------------------------------------------


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
        names = [table.name for table in self.tables]
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

    def domain(self, table: Counts) -> Domain:
        """The cells of one table."""
        for i, name in enumerate(table.by):
            if isinstance(nested := self.domains.get(name), HierarchyDomain) and name not in self.attributes:
                raise SpecError(
                    f"{name!r} is a hierarchy",
                    where=f"tables.{table.name}.by[{i}]",
                    do=f"name one of its levels: {', '.join(nested.levels)}",
                )
            if name not in self.attributes:
                raise SpecError(
                    unknown(name, list(self.attributes), "attribute"),
                    where=f"tables.{table.name}.by[{i}]",
                    do="declare it under `domains`",
                )
        return Domain(tuple(self.attributes[name] for name in table.by))

    def canonical(self) -> str:
        """The release as one text: what is asked for, not where files lie."""
        return self._canonical

    @cached_property
    def _canonical(self) -> str:
        parts = self.model_dump(mode="json", exclude={"source", "engine", "ledger", "output", "domains"})
        return canonical({**parts, "domains": {t.name: self.domain(t).digest() for t in self.tables}})

    def digest(self) -> str:
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def describe_source(self) -> str:
        return next(iter(self.source))
