"""A small client of the query tool, of the standard library alone.

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
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

from discreet.errors import QueryRejected, ServerUnreachable

if TYPE_CHECKING:
    import pyarrow as pa

KEPT = 32  # answers that are remembered, to be asked for again only if they have changed
LONGEST = 60.0  # seconds that a server may make us wait
CONTENTS = "ContentsCode"
ALL = "*"
EXPRESSION = re.compile(r"\[?\s*(?:top|bottom|range|from|to)\s*\(", re.IGNORECASE)  # what a server would work out

Codes = Sequence[str] | str


@dataclass(frozen=True)
class AnswerDimension:
    """A variable of an answer, or its measures: codes in order, each with a label."""

    id: str
    label: str
    codes: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Data:
    """An answer. Cells are all combinations of the codes of `variables`, the first variable slowest."""

    label: str
    source: str
    updated: str
    notes: tuple[str, ...]
    extension: Mapping[str, Any]
    variables: tuple[AnswerDimension, ...]
    measures: AnswerDimension
    numbers: Mapping[str, tuple[float | None, ...]]  # by measure, one of each cell
    status: tuple[str, ...]  # of each cell

    @property
    def simulation(self) -> bool:
        return bool(self.extension.get("simulation"))

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each cell: codes, numbers (None where there is none) and status."""
        names, columns = zip(*self._columns(), strict=True)
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def arrow(self) -> pa.Table:
        """The same as an Arrow table; it needs pyarrow."""
        import pyarrow as pa

        first, last = len(self.variables), len(self.variables) + len(self.numbers)
        kinds = [pa.float64() if first <= k < last else pa.string() for k in range(last + 1)]
        columns = [(name, pa.array(column, kind)) for (name, column), kind in zip(self._columns(), kinds, strict=True)]
        return pa.table(dict(columns))

    def _columns(self) -> list[tuple[str, Sequence[Any]]]:
        """Codes of the variables, measures, status: no two of one name."""
        keys = list(product(*(v.codes for v in self.variables)))
        found = dict[str, Sequence[Any]]()
        codes = ((v.id, [key[k] for key in keys]) for k, v in enumerate(self.variables))
        for name, column in (*codes, *self.numbers.items(), ("status", self.status)):
            while name in found:
                name += "_"  # noqa: PLW2901 - a variable may be called as a measure is
            found[name] = column
        return list(found.items())


@dataclass
class Client:
    """A server by its address, such as https://statistics.example.org or one with a path."""

    url: str
    timeout: float = 30.0
    language: str = "en"
    _kept: OrderedDict[str, tuple[str, bytes]] = field(default_factory=OrderedDict, init=False, repr=False)

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https"):
            raise ServerUnreachable("is not a web address", where=self.url, do="begin with http:// or https://")

    def tables(self) -> list[dict[str, Any]]:
        """The catalogue, all its pages."""
        found: list[dict[str, Any]] = []
        page = pages = 1
        while page <= pages:
            document = self._get("tables", [("pageNumber", str(page))] if page > 1 else [])
            found += document.get("tables", [])
            pages = int((document.get("page") or {}).get("totalPages", 1))
            page += 1
        return found

    def metadata(self, table: str) -> dict[str, Any]:
        """The variables and measures of a table."""
        return self._get(f"tables/{quote(table, safe='')}/metadata", [])

    def data(
        self,
        table: str,
        by: Mapping[str, Codes] | None = None,
        where: Mapping[str, Codes] | None = None,
        measures: Sequence[str] = (),
    ) -> Data:
        """Numbers `by` variables, each with its codes or "*" for all, limited to codes of others `where`."""
        asked = [pair for name, codes in (by or {}).items() for pair in _parameters(f"valueCodes[{name}]", codes)]
        asked += [pair for name, codes in (where or {}).items() for pair in _parameters(f"where[{name}]", codes)]
        asked += _parameters(f"valueCodes[{CONTENTS}]", measures) if measures else []
        path = f"tables/{quote(table, safe='')}/data"
        return read(self._get(path, [*asked, ("outputFormat", "json-stat2")]), path)

    def _get(self, path: str, asked: Sequence[tuple[str, str]]) -> dict[str, Any]:
        query = urlencode([("lang", self.language), *asked])
        url = f"{self.url.rstrip('/')}/api/v2/{path}?{query}"
        try:
            document = json.loads(self._body(url, again=True))
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise ServerUnreachable(
                "did not answer in JSON", where=_short(url), do="is this the address of a query tool?"
            )
        return document

    def _body(self, url: str, *, again: bool) -> bytes:
        """What is at an address: what we have of it, if it has not changed since."""
        kept = self._kept.get(url)
        headers = {"Accept": "application/json", "User-Agent": "discreet"}
        request = Request(url, headers=headers | ({"If-None-Match": kept[0]} if kept else {}))  # noqa: S310 - checked
        try:
            with urlopen(request, timeout=self.timeout) as answer:  # noqa: S310 - checked
                body, tag = answer.read(), answer.headers.get("ETag")
        except HTTPError as error:
            with error:
                if error.code == HTTPStatus.NOT_MODIFIED and kept:
                    self._kept.move_to_end(url)
                    return kept[1]
                wait = _seconds(error.headers.get("Retry-After"))
                if error.code != HTTPStatus.TOO_MANY_REQUESTS or not again or wait is None or wait > LONGEST:
                    raise _refused(error, url) from None
            time.sleep(wait)
            return self._body(url, again=False)
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", None) or error
            raise ServerUnreachable(
                f"cannot be reached ({reason})", where=_short(url), do="check the address, or try later"
            ) from None
        self._kept.pop(url, None)
        if tag:
            self._kept[url] = tag, body
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return bytes(body)


def read(document: Mapping[str, Any], where: str = "") -> Data:
    """A JSON-stat 2 dataset, whose measures may be any of its dimensions."""
    try:
        dimensions = [_dimension(name, document["dimension"][name]) for name in document["id"]]
        metric = document["id"].index(document["role"]["metric"][0])
        size = [len(d.codes) for d in dimensions]
        values, marks = _dense(document["value"], prod(size)), _dense(document.get("status") or {}, prod(size))
        if size != document["size"] or {len(values), len(marks)} != {prod(size)}:
            raise ServerUnreachable("has sizes that do not fit", where=where, do="tell those who run the server")
        own = dimensions.pop(metric)
        inner = prod(size[metric + 1 :])
        numbers = {code: tuple(map(_number, _part(values, inner, size[metric], j))) for j, code in enumerate(own.codes)}
        status = zip(*(_part(marks, inner, size[metric], j) for j in range(size[metric])), strict=True)
        return Data(
            label=document.get("label") or "",
            source=document.get("source") or "",
            updated=document.get("updated") or "",
            notes=tuple(document.get("note") or ()),
            extension=document.get("extension") or {},
            variables=tuple(dimensions),
            measures=own,
            numbers=numbers,
            status=tuple(next((mark for mark in cell if mark), "") for cell in status),
        )
    except (LookupError, ValueError, TypeError, AttributeError):
        raise ServerUnreachable(
            "is not a JSON-stat 2 dataset with measures", where=where, do="ask for json-stat2"
        ) from None


def _dimension(name: str, found: Mapping[str, Any]) -> AnswerDimension:
    labels = found["category"].get("label") or {}
    index = found["category"].get("index") or list(labels)  # a single code needs no index
    codes = sorted(index, key=index.__getitem__) if isinstance(index, Mapping) else index
    return AnswerDimension(
        name, found.get("label") or name, tuple(codes), tuple(labels.get(code, code) for code in codes)
    )


def _dense(found: Any, size: int) -> list[Any]:
    """One for each position, of a list, of an object by position, or of one for all."""
    if isinstance(found, Mapping):
        return [found.get(str(i)) for i in range(size)]
    texts = [found] if isinstance(found, str) else list(found)
    return texts * size if len(texts) == 1 else texts


def _number(found: float | None) -> float | None:
    return None if found is None else found + 0.0


def _part(flat: Sequence[Any], inner: int, width: int, j: int) -> list[Any]:
    """What stands at the j-th place of a dimension of this width, with so many cells within each."""
    return [x for first in range(j * inner, len(flat), inner * width) for x in flat[first : first + inner]]


def _parameters(key: str, codes: Codes) -> list[tuple[str, str]]:
    """Codes between commas; a parameter for each if one has a comma. Escaped as `serve.query_string` reads them."""
    if codes == ALL:
        return [(key, ALL)]
    texts = [_escaped(code) for code in ([codes] if isinstance(codes, str) else codes)]
    if not texts:
        raise QueryRejected("names no codes", where=key, do=f'name some, or "{ALL}" for all')
    return [(key, text) for text in texts] if any("," in text for text in texts) else [(key, ",".join(texts))]


def _escaped(code: str) -> str:
    text = re.sub(r"([\\,*?])", r"\\\1", code)
    return f"\\{text}" if EXPRESSION.match(text) else text


def _seconds(header: str | None) -> float | None:
    """How long to wait: seconds, or until a date."""
    if not header:
        return None
    try:
        if header.strip().isdecimal():
            return float(header)
        return max(parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def _refused(error: HTTPError, url: str) -> QueryRejected:
    """What the server says, if it says it as RFC 9457 has it."""
    try:
        found = json.loads(error.read())
    except (ValueError, OSError, HTTPException):
        found = {}
    found = found if isinstance(found, dict) else {}
    what = str(found.get("detail") or found.get("title") or error.reason)
    return QueryRejected(what, where=_short(url), status=error.code, problem=found)


def _short(url: str) -> str:
    """Without the question, which can be long."""
    return url.partition("?")[0]
