"""Where the confidential records are."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Tag

from discreet import postgres_url
from discreet.spec.strict import Strict


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
    """A table of a PostgreSQL database; the password comes from the environment or ~/.pgpass, never from the spec."""

    postgres: Annotated[str, AfterValidator(postgres_url.without_password)]
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
