"""A small client for the query tool that needs only the standard library.

client = Client("https://statistics.example.org")
data = client.data("jobs", by={"sector": "*", "place": ["US-CA", "US-NV"]}, measures=["estimate", "se"])
data.rows()    # [{"sector": "11", "place": "US-CA", "estimate": 1200.0, "se": 14.1, "status": ""}, …]
data.arrow()   # the same as an Arrow table
"""

from __future__ import annotations

import json
import re
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import HTTPException
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

from discreet.errors import QueryRejected, ServerUnreachable

if TYPE_CHECKING:
    import pyarrow as pa

CACHED = 32  # answers cached, and transferred again only if they have changed
MAX_WAIT = 60.0  # seconds that we wait if a server asks for it
CONTENTS = "ContentsCode"
ALL = "*"
EXPRESSION = re.compile(r"\[?\s*(?:top|bottom|range|from|to)\s*\(", re.IGNORECASE)  # what a server would evaluate

T = TypeVar("T")
Codes: TypeAlias = Sequence[str] | str
Cell: TypeAlias = str | float | None  # a code, a number (None where there is none) or a mark


class CatalogueLink(TypedDict):
    """A link, relative to the server."""

    rel: str
    hreflang: str
    href: str


class LimitedVariable(TypedDict):
    """The codes of a variable that all numbers are limited to."""

    variable: str
    label: str
    codes: list[str]


class TableExtension(TypedDict, total=False):
    """What the query tool states about a table beyond JSON-stat and PxWeb."""

    px: dict[str, str]
    release: str
    method: str
    simulation: bool
    guarantee: str
    caveats: list[str]
    noise: str
    status: dict[str, dict[str, str]]
    limitedTo: list[LimitedVariable]
    aggregationAllowed: bool


class CatalogueTable(TypedDict, total=False):
    """A table in the catalogue."""

    type: str
    language: str
    id: str
    label: str
    description: str
    updated: str
    source: str
    category: str
    variableNames: list[str]
    discontinued: bool
    simulation: bool
    links: list[CatalogueLink]
    extension: TableExtension


class JsonStatCategory(TypedDict, total=False):
    """The codes of a dimension."""

    index: dict[str, int] | list[str]
    label: dict[str, str]
    unit: dict[str, dict[str, int]]


class JsonStatDimension(TypedDict, total=False):
    """A dimension of a dataset. The keys of its extension depend on the server."""

    label: str
    category: JsonStatCategory
    extension: dict[str, object]


class JsonStatDataset(TypedDict, total=False):
    """A JSON-stat 2 dataset; metadata are one without `value` and `status`. Its `class` is "dataset"."""

    version: str
    label: str
    source: str
    updated: str
    note: list[str]
    role: dict[Literal["time", "geo", "metric"], list[str]]
    id: list[str]
    size: list[int]
    dimension: dict[str, JsonStatDimension]
    link: dict[str, list[dict[str, str]]]
    extension: TableExtension
    value: list[float | None] | dict[str, float | None]
    status: list[str | None] | dict[str, str | None] | str


@dataclass(frozen=True)
class AnswerDimension:
    """A variable of an answer, or its measures: codes in order, with their labels."""

    id: str
    label: str
    codes: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class TableData:
    """The answer to a query. Cells are all combinations of the codes of `variables`, row-major."""

    label: str
    source: str
    updated: str
    notes: tuple[str, ...]
    extension: TableExtension
    variables: tuple[AnswerDimension, ...]
    measures: AnswerDimension
    numbers: Mapping[str, tuple[float | None, ...]]  # by measure, one for each cell
    status: tuple[str, ...]  # the mark of each cell

    @property
    def simulation(self) -> bool:
        return bool(self.extension.get("simulation"))

    def rows(self) -> list[dict[str, Cell]]:
        """One dict per cell: codes, numbers (None where there is none) and status."""
        names, columns = zip(*self._columns(), strict=True)
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def arrow(self) -> pa.Table:
        """The cells as an Arrow table; needs pyarrow."""
        import pyarrow as pa

        first, last = len(self.variables), len(self.variables) + len(self.numbers)
        kinds = [pa.float64() if first <= k < last else pa.string() for k in range(last + 1)]
        columns = [(name, pa.array(column, kind)) for (name, column), kind in zip(self._columns(), kinds, strict=True)]
        return pa.table(dict(columns))

    def _columns(self) -> list[tuple[str, Sequence[Cell]]]:
        """Codes of the variables, measures and status, with distinct names."""
        keys = list(product(*(v.codes for v in self.variables)))
        columns = dict[str, Sequence[Cell]]()
        codes = ((v.id, [key[k] for key in keys]) for k, v in enumerate(self.variables))
        for name, column in (*codes, *self.numbers.items(), ("status", self.status)):
            while name in columns:
                name += "_"  # noqa: PLW2901 - a variable and a measure may have one name
            columns[name] = column
        return list(columns.items())


@dataclass
class Client:
    """A client of the server at an address such as https://statistics.example.org, possibly with a path."""

    url: str
    timeout: float = 30.0
    language: str = "en"
    _cache: OrderedDict[str, tuple[str, bytes]] = field(default_factory=OrderedDict, init=False, repr=False)

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https"):
            raise ServerUnreachable("is not a web address", where=self.url, do="begin it with http:// or https://")

    def tables(self) -> list[CatalogueTable]:
        """All tables of the catalogue."""
        tables: list[CatalogueTable] = []
        page = pages = 1
        while page <= pages:
            document = self._get("tables", [("pageNumber", str(page))] if page > 1 else [])
            tables += document.get("tables", [])
            pages = int((document.get("page") or {}).get("totalPages", 1))
            page += 1
        return tables

    def metadata(self, table: str) -> JsonStatDataset:
        """The variables and measures of a table."""
        return cast(JsonStatDataset, self._get(f"tables/{quote(table, safe='')}/metadata", []))

    def data(
        self,
        table: str,
        by: Mapping[str, Codes] | None = None,
        where: Mapping[str, Codes] | None = None,
        measures: Sequence[str] = (),
    ) -> TableData:
        """Numbers `by` variables, each with its codes or "*" for all, limited to the codes in `where`."""
        parameters = [pair for name, codes in (by or {}).items() for pair in _parameters(f"valueCodes[{name}]", codes)]
        parameters += [pair for name, codes in (where or {}).items() for pair in _parameters(f"where[{name}]", codes)]
        parameters += _parameters(f"valueCodes[{CONTENTS}]", measures) if measures else []
        path = f"tables/{quote(table, safe='')}/data"
        document = self._get(path, [*parameters, ("outputFormat", "json-stat2")])
        return read(cast(JsonStatDataset, document), path)

    def _get(self, path: str, parameters: Sequence[tuple[str, str]]) -> dict[str, Any]:  # JSON of any server
        query = urlencode([("lang", self.language), *parameters])
        url = f"{self.url.rstrip('/')}/api/v2/{path}?{query}"
        try:
            document = json.loads(self._body(url, again=True))
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise ServerUnreachable(
                "did not answer in JSON", where=_short(url), do="check that this is the address of a query tool"
            )
        return document

    def _body(self, url: str, *, again: bool) -> bytes:
        """The response body of a URL, from the cache if it has not changed."""
        cached = self._cache.get(url)
        headers = {"Accept": "application/json", "User-Agent": "discreet"}
        request = Request(url, headers=headers | ({"If-None-Match": cached[0]} if cached else {}))  # noqa: S310 - checked
        try:
            with urlopen(request, timeout=self.timeout) as answer:  # noqa: S310 - checked
                body, tag = answer.read(), answer.headers.get("ETag")
        except HTTPError as error:
            with error:
                if error.code == HTTPStatus.NOT_MODIFIED and cached:
                    self._cache.move_to_end(url)
                    return cached[1]
                wait = _seconds(error.headers.get("Retry-After"))
                if error.code != HTTPStatus.TOO_MANY_REQUESTS or not again or wait is None or wait > MAX_WAIT:
                    raise _refusal(error, url) from None
            time.sleep(wait)
            return self._body(url, again=False)
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", None) or error
            raise ServerUnreachable(
                f"cannot be reached ({reason})", where=_short(url), do="check the address, or try again later"
            ) from None
        self._cache.pop(url, None)
        if tag:
            self._cache[url] = tag, body
            if len(self._cache) > CACHED:
                self._cache.popitem(last=False)
        return bytes(body)


def read(document: JsonStatDataset, where: str = "") -> TableData:
    """Read a JSON-stat 2 dataset, of which any dimension may hold the measures."""
    try:
        dimensions = [_dimension(name, document["dimension"][name]) for name in document["id"]]
        metric = document["id"].index(document["role"]["metric"][0])
        size = [len(d.codes) for d in dimensions]
        status = document.get("status") or {}
        values = _dense(document["value"], prod(size))
        marks = _dense([status] if isinstance(status, str) else status, prod(size))
        if size != document["size"] or {len(values), len(marks)} != {prod(size)}:
            raise ServerUnreachable("has inconsistent sizes", where=where, do="report it to the operator of the server")
        own = dimensions.pop(metric)
        inner = prod(size[metric + 1 :])
        numbers = {code: tuple(map(_number, _part(values, inner, size[metric], j))) for j, code in enumerate(own.codes)}
        by_cell = zip(*(_part(marks, inner, size[metric], j) for j in range(size[metric])), strict=True)
        return TableData(
            label=document.get("label") or "",
            source=document.get("source") or "",
            updated=document.get("updated") or "",
            notes=tuple(document.get("note") or ()),
            extension=document.get("extension") or {},
            variables=tuple(dimensions),
            measures=own,
            numbers=numbers,
            status=tuple(next((mark for mark in cell if mark), "") for cell in by_cell),
        )
    except (LookupError, ValueError, TypeError, AttributeError):
        raise ServerUnreachable(
            "is not a JSON-stat 2 dataset with measures", where=where, do="request json-stat2"
        ) from None


def _dimension(name: str, description: JsonStatDimension) -> AnswerDimension:
    labels = description["category"].get("label") or {}
    index = description["category"].get("index") or list(labels)  # a dimension of one code needs no index
    codes = sorted(index, key=index.__getitem__) if isinstance(index, Mapping) else index
    return AnswerDimension(
        name, description.get("label") or name, tuple(codes), tuple(labels.get(code, code) for code in codes)
    )


def _dense(values: Mapping[str, T] | Sequence[T], size: int) -> list[T | None]:
    """One value per position, from a list, from an object keyed by position, or from one value for all."""
    if isinstance(values, Mapping):
        return [values.get(str(i)) for i in range(size)]
    dense: list[T | None] = list(values)
    return dense * size if len(dense) == 1 else dense


def _number(value: float | None) -> float | None:
    return None if value is None else value + 0.0


def _part(flat: Sequence[T], inner: int, width: int, j: int) -> list[T]:
    """The j-th slice of a dimension of this width, each of whose codes has `inner` cells."""
    return [x for first in range(j * inner, len(flat), inner * width) for x in flat[first : first + inner]]


def _parameters(key: str, codes: Codes) -> list[tuple[str, str]]:
    """Comma-separated codes; one parameter per code if one has a comma. Escaped as in `serve.query_string`."""
    if codes == ALL:
        return [(key, ALL)]
    texts = [_escaped(code) for code in ([codes] if isinstance(codes, str) else codes)]
    if not texts:
        raise QueryRejected("has no codes", where=key, do=f'list some, or write "{ALL}" for all')
    return [(key, text) for text in texts] if any("," in text for text in texts) else [(key, ",".join(texts))]


def _escaped(code: str) -> str:
    text = re.sub(r"([\\,*?])", r"\\\1", code)
    return f"\\{text}" if EXPRESSION.match(text) else text


def _seconds(header: str | None) -> float | None:
    """Seconds to wait, from a Retry-After header in seconds or as a date."""
    if not header:
        return None
    try:
        if header.strip().isdecimal():
            return float(header)
        return max(parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def _refusal(error: HTTPError, url: str) -> QueryRejected:
    """The refusal of the server, with its problem details (RFC 9457) if it sent any."""
    try:
        document = json.loads(error.read())
    except (ValueError, OSError, HTTPException):
        document = {}
    document = document if isinstance(document, dict) else {}
    what = str(document.get("detail") or document.get("title") or error.reason)
    return QueryRejected(what, where=_short(url), status=error.code, problem=document)


def _short(url: str) -> str:
    """The URL without its query string, which can be long."""
    return url.partition("?")[0]
