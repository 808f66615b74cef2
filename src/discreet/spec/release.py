"""The declaration of a release: privacy unit, sources, engine, domains and tables."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from discreet import uris
from discreet.domain import Attribute, Domain
from discreet.errors import SpecError
from discreet.privacy.guarantee import Unit
from discreet.privacy.ledger.events import Name, canonical
from discreet.spec.base import ColumnName, Strict, Table, unknown
from discreet.spec.domains import DomainSpec, HierarchyDomain
from discreet.spec.recode import Recode

_UNIT_KEYS = {"person": "max_records", "job": "max_records", "establishment": "alpha"}


def parse_budget_unit(data: Any) -> Any:
    """As `parse_unit`, without max_records: a budget does not say how a release satisfies its guarantee."""
    if isinstance(data, dict) and "max_records" in data:
        raise ValueError("a budget has no 'max_records'; each release says how many records of a unit it uses")
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


def _delimiter(text: str) -> str:
    if len(text) != 1 or text == '"' or not (text == "\t" or (text.isascii() and text.isprintable())):
        raise ValueError("is one character: a tab, or a printable one of ASCII that is no quote")
    return text


class FileSource(Strict):
    """Records in files: the format by its ending, or named. A path may be a folder or a glob.

    CSV is cut at commas (`.tsv`: tabs) or at the declared delimiter, never at a guessed one. SAS and Stata columns with
    value labels are read as codes, or as the labels' text; SAS keeps its labels in a catalog of their own.
    """

    path: str
    format: Literal["parquet", "csv", "sas", "stata"] | None = None
    delimiter: Annotated[str, AfterValidator(_delimiter)] | None = None
    labels: Literal["codes", "text"] = "codes"
    catalog: str | None = None


class DuckDBSource(Strict):
    """A table of a DuckDB database file."""

    duckdb: str
    table: str


class PostgresSource(Strict):
    """A table of a PostgreSQL database; the password comes from the environment or ~/.pgpass, never from here."""

    postgres: Annotated[str, AfterValidator(uris.without_password)]
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


_SECRETS = re.compile(r"secret|password|token|credential|(access|account|private)\.key", re.IGNORECASE)


def _master(text: str) -> str:
    if not re.fullmatch(r"local(\[.+\])?|local-cluster\[.+\]|spark://.+|yarn|k8s://.+", text):
        raise ValueError("is not a Spark master: write local[4], spark://HOST:7077, yarn or k8s://…")
    return text


def _setting(key: str) -> str:
    if not key.startswith("spark."):
        raise ValueError(f"{key!r} is not a Spark setting: they begin with 'spark.'")
    return key


class SparkEngineSpec(Strict):
    """A Spark master: spark://host:7077, yarn, k8s://…, local[4]. `config` takes Spark's own settings, no secrets."""

    spark: Annotated[str, AfterValidator(_master)]
    config: dict[Annotated[str, AfterValidator(_setting)], str] = {}

    @model_validator(mode="before")
    @classmethod
    def _no_secrets(cls, data: Any) -> Any:
        """Before anything else: other errors quote the value."""
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


class Release(Strict):
    """Everything that determines what is published, and at what privacy cost."""

    renamed: ClassVar[Mapping[str, str]] = {"keep": "keep_measurements"}

    format: Literal[1] = 1  # another one is refused before anything else is read
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
    ledger: Annotated[str, AfterValidator(uris.without_password)] = "discreet-ledger.sqlite"
    output: str | None = None
    keep_measurements: str | None = None
    base: Annotated[Path, Field(exclude=True)] = Path()

    @model_validator(mode="after")
    def _coherent(self) -> Release:
        names = [name for table in self.tables for name in table.names]
        if double := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two tables are called {sorted(double)[0]!r}")
        if self.recode is not None:
            self._check_recode()
        elif "source" not in self.model_fields_set:
            raise ValueError("key 'source' is missing: where the records are; or 'recode', to recode kept measurements")
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
        """Every attribute that tables can use; reads the public code lists."""
        attributes: dict[str, Attribute] = {}
        for name, spec in self.domains.items():
            for attribute in spec.attributes(name, self.base):
                if attribute.name in attributes:
                    raise SpecError(f"attribute {attribute.name!r} is declared twice", where=f"domains.{name}")
                attributes[attribute.name] = attribute
        return attributes

    def domain(self, by: Sequence[str], where: str, places: Sequence[str] = (), do: str = "") -> Domain:
        """The cells that these attributes span. `places` are the paths that name them, if not `by`; `do` suggests valid
        ones."""
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
        """The labels of each attribute's codes, where its code list has them."""
        return {
            name: {key[0]: label for key, label in zip(a.categories, a.labels, strict=True)}
            for name, a in self.attributes.items()
            if a.labels is not None
        }

    def canonical(self) -> str:
        """Canonical text of the release: what is declared, not where files are."""
        return self._canonical

    @cached_property
    def _canonical(self) -> str:
        where = {
            "format",
            "source",
            "engine",
            "ledger",
            "output",
            "keep_measurements",
        }  # location and execution, not content
        parts = self.model_dump(mode="json", exclude={*where, "domains"})
        cells = {name: domain.digest() for t in self.tables for name, domain in t.domains(self).items()}
        similar = {name: near for table in self.tables for name, near in table.families(self).items()}
        families = {name: [family.digest() for family in near] for name, near in similar.items()}
        labels = self.labels() if any(table.labelled for table in self.tables) else {}
        if not self.join:
            del parts["join"]
        if self.recode is None:
            del parts["recode"]  # a release without it has the digest of versions that did not know the key
        else:
            del parts["recode"]["measurements"]  # only their location; the ledger identifies them
        if files := {name: self._content(name) for name in self._files()}:
            parts["files"] = files
        return canonical({**parts, "domains": cells, "similar": families, "labels": labels})

    def _files(self) -> list[str]:
        """Public files, beyond code lists, that affect what is published."""
        files = [file for table in self.tables for file in table.files]
        if (recode := self.recode) is not None:
            files += [recode.crosswalk.file, *([] if recode.history is None else [recode.history.file])]
            files += [] if recode.overrides is None else [recode.overrides]
            files += [rolled.file for rolled in recode.columns.values() if not isinstance(rolled, int)]
        return list(dict.fromkeys(files))

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
