"""The API for programs, in the shape of PxWeb API v2: tables, metadata, data, code lists, configuration."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from itertools import islice
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel, ValidationError

from discreet.errors import InvalidQuery, QueryTooLarge, UnknownTable
from discreet.serve.catalogue import matches
from discreet.serve.config import Served
from discreet.serve.formats import FORMATS, jsonstat, safe_name
from discreet.serve.http.caching import cached, has, tag_of
from discreet.serve.http.problems import documented, problem
from discreet.serve.models import (
    CodeListInformation,
    CodeListResponse,
    ConfigResponse,
    Dataset,
    Feature,
    Language,
    Link,
    Page,
    TableResponse,
    TablesResponse,
    Value,
    VariablesSelection,
)
from discreet.serve.openapi import DATA, LIMITS, QUESTION
from discreet.serve.query_model import QueryableTable, TableQuery, TableVariable, checked, unnamed
from discreet.serve.query_string import CONTENTS, asked, codelist, less, link, question, told
from discreet.version import __version__, package_version

VERSION = "2.0.0"
DEFAULT = "json-stat2"
JSON = "application/json"
OTHERS = ("outputFormat", "lang")

Name = Annotated[str, Path(min_length=1, max_length=300)]


def _english(lang: Annotated[Literal["en"], Query(description="English is all there is.")] = "en") -> str:
    return lang


async def _body(request: Request) -> bytes:
    return await request.body()


Body = Annotated[bytes, Depends(_body)]


def router(served: Served) -> APIRouter:
    """All routes under /api/v2."""
    api = APIRouter(prefix="/api/v2", tags=["PxWeb API v2"], dependencies=[Depends(_english)])
    own, limits = _Api(served), documented(400, 404, *LIMITS)
    body = {"schema": {"$ref": "#/components/schemas/VariablesSelection"}}
    by_post = {
        "parameters": QUESTION["parameters"][-1:],
        "requestBody": {"required": True, "content": {JSON: body}},
    }
    data: dict[str, Any] = {"responses": DATA, "response_class": Response}
    api.get("/tables", response_model=TablesResponse, responses=limits)(own.list_all_tables)
    api.get("/tables/{id}", response_model=TableResponse, responses=limits)(own.get_table_by_id)
    api.get("/tables/{id}/metadata", response_model=Dataset, response_model_exclude_none=True, responses=limits)(
        own.get_metadata_by_id
    )
    api.get("/tables/{id}/data", openapi_extra=QUESTION, **data)(own.get_table_data)
    api.post("/tables/{id}/data", openapi_extra=by_post, **data)(own.get_table_data_by_post)
    api.get("/codelists/{id}", response_model=CodeListResponse, responses=limits)(own.get_code_list_by_id)
    api.get("/config", response_model=ConfigResponse, responses=documented(400, *LIMITS))(own.get_api_configuration)
    return api


class _Api:
    """The routes, under PxWeb's names; their first lines stand in the OpenAPI document."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self._root = f"{served.config.prefix}/api/v2"
        self._etag = sha256(f"{served.catalogue.digest} {package_version()} {served.config}".encode()).hexdigest()
        self._lists = {codelist(t, v): (t, v) for t in served.catalogue.tables.values() for v in t.variables if v.of}

    # --- what is there ----------------------------------------------------------------------------------------------

    def list_all_tables(
        self,
        request: Request,
        query: Annotated[str, Query(max_length=300, description="Words of titles, variables, codes or notes.")] = "",
        pastDays: Annotated[  # noqa: N803 - PxWeb's name
            int | None, Query(ge=1, le=100_000, description="Only tables of releases of so many days ago or fewer.")
        ] = None,
        pageNumber: Annotated[int, Query(ge=1, le=1_000_000)] = 1,  # noqa: N803
        pageSize: Annotated[int, Query(ge=1, le=1_000)] = 20,  # noqa: N803
    ) -> Response:
        """The catalogue, by pages."""
        found = [t for t in self.served.catalogue.tables.values() if matches(t, query) and _recent(t, pastDays)]
        number, size, pages = pageNumber, pageSize, max(1, -(-len(found) // pageSize))
        if number > pages:
            there_are = "There is 1 page" if pages == 1 else f"There are {pages} pages"
            return problem(404, f"{there_are}, and no page {number}.")
        there = {"self": number, "first": 1, "last": pages}
        there |= {"next": number + 1} if number < pages else {}
        there |= {"previous": number - 1} if number > 1 else {}
        asked = ({"query": query} if query else {}) | ({"pastDays": str(pastDays)} if pastDays else {})

        def make() -> TablesResponse:
            shown = islice(found, (number - 1) * size, number * size)
            page = Page(page_number=number, page_size=size, total_elements=len(found), total_pages=pages)
            links = [Link(rel=rel, href=self._page(asked, n, size)) for rel, n in there.items()]
            return TablesResponse(tables=[self._brief(table) for table in shown], page=page, links=links)

        ids = [table.about.id for table in found]  # of the last days: another list tomorrow
        return self._kept(request, ["tables", query, str(pastDays), str(number), str(size), *ids], make)

    def get_table_by_id(self, request: Request, id: Name) -> Response:
        """One table, briefly."""
        table = self.served.catalogue.table(id)
        return self._kept(request, ["table", id], lambda: self._brief(table))

    def get_metadata_by_id(self, request: Request, id: Name) -> Response:
        """All variables of a table with their codes, as JSON-stat 2 without values."""
        table = self.served.catalogue.table(id)
        return self._kept(request, ["metadata", id], lambda: self._metadata(table))

    def get_code_list_by_id(self, request: Request, id: Name) -> Response:
        """A coarser variable: its codes, and the finer ones in each."""
        if id not in self._lists:
            raise UnknownTable(f"no code list {id[:60]!r}", where="codelists", do="the metadata of a table names them")
        table, coarser = self._lists[id]
        return self._kept(request, ["codelist", id], lambda: self._codelist(table, coarser))

    def get_api_configuration(self, request: Request) -> Response:
        """What the server allows."""
        return self._kept(request, ["config"], self._config)

    def get_table_data(self, request: Request, id: Name) -> Response:
        """Numbers of a table. Variables that are not named are added up, if the table adds up."""
        table = self.served.catalogue.table(id)
        return self._data(request, table, *asked(table, request.scope.get("query_string", b""), OTHERS))

    def get_table_data_by_post(self, request: Request, id: Name, body: Body) -> Response:
        """The same, for questions that are too long for a link."""
        table = self.served.catalogue.table(id)
        linked, others = asked(table, request.scope.get("query_string", b""), OTHERS)
        if linked != TableQuery():
            raise InvalidQuery("is in the body and in the link", where="question", do="ask in the body alone")
        return self._data(request, table, selected(table, body), others)

    def _page(self, asked: Mapping[str, str], number: int, size: int) -> str:
        return f"{self._root}/tables?{urlencode({**asked, 'pageNumber': number, 'pageSize': size})}"

    def _brief(self, table: QueryableTable) -> TableResponse:
        about = table.about
        return TableResponse(
            id=about.id,
            label=about.title,
            description=_described(table),
            updated=about.updated,
            source=about.release,
            variable_names=[v.label for v in table.variables if not v.of],
            simulation=about.simulation,
            links=[
                Link(rel="self", href=self._href(table)),
                Link(rel="metadata", href=f"{self._href(table)}/metadata"),
                Link(rel="data", href=f"{self._href(table)}/data"),
            ],
            extension={"method": about.method, "guarantee": about.guarantee, "caveats": list(about.caveats)},
        )

    def _href(self, table: QueryableTable) -> str:
        return f"{self._root}/tables/{quote(table.about.id, safe='')}"

    def _metadata(self, table: QueryableTable) -> Dataset:
        about, own = table.about, [v for v in table.variables if not v.of]
        measures = jsonstat.measured(table.measures)
        measures["extension"] |= {"elimination": False}
        return Dataset.model_validate(
            {
                "label": about.title,
                "source": about.release,
                "updated": about.updated,
                "note": [text for text in (*about.notes, about.guarantee, *about.caveats) if text],
                "role": {"metric": [CONTENTS]},
                "id": [*(v.id for v in own), CONTENTS],
                "size": [*(len(v) for v in own), len(table.measures)],
                "dimension": {**{v.id: self._dimension(table, v) for v in own}, CONTENTS: measures},
                "link": {"describes": [{"href": f"{self._href(table)}/data"}]},
                "extension": jsonstat.extension(about) | {"aggregationAllowed": table.additive},
            }
        )

    def _dimension(self, table: QueryableTable, v: TableVariable) -> dict[str, Any]:
        coarser = [
            CodeListInformation(id=codelist(table, c), label=c.label, links=[self._codelist_link(table, c)])
            for c in table.variables
            if c.of == v.id
        ]
        return jsonstat.dimension(v) | {"extension": {"elimination": table.additive, "codelists": coarser}}

    def _codelist_link(self, table: QueryableTable, v: TableVariable) -> Link:
        return Link(rel="metadata", href=f"{self._root}/codelists/{quote(codelist(table, v), safe='')}")

    def _codelist(self, table: QueryableTable, v: TableVariable) -> CodeListResponse:
        finer = next(f for f in table.variables if f.id == v.of)
        within: list[list[str]] = [[] for _ in v.codes]
        for code, group in zip(finer.codes, v.groups, strict=True):
            within[group].append(code)
        values = [Value(code=c, label=t, value_map=w) for c, t, w in zip(v.codes, v.labels, within, strict=True)]
        links = [self._codelist_link(table, v).model_copy(update={"rel": "self"})]
        name = codelist(table, v)
        return CodeListResponse(id=name, label=v.label, elimination=table.additive, values=values, links=links)

    def _config(self) -> ConfigResponse:
        own = self.served.config
        return ConfigResponse(
            api_version=VERSION,
            app_version=__version__,
            languages=[Language()],
            max_data_cells=own.max_cells,
            max_calls_per_time_window=own.max_calls,
            time_window=own.window,
            default_data_format=DEFAULT,
            data_formats=list(FORMATS),
            features=[Feature(id="CORS", params=[{"key": "enabled", "value": "True"}])],
        )

    # --- numbers ----------------------------------------------------------------------------------------------------

    def _data(self, request: Request, table: QueryableTable, found: TableQuery, others: Mapping[str, str]) -> Response:
        name = others.get("outputFormat", DEFAULT)
        if name not in FORMATS:
            raise InvalidQuery(f"no format {name[:40]!r}", where="outputFormat", do=f"there are {', '.join(FORMATS)}")
        if others.get("lang", "en") != "en":
            raise InvalidQuery("English is all there is", where="lang", do="write en, or leave it out")
        most, form = self.served.config.max_cells, FORMATS[name]
        checked(table, found)
        if missing := unnamed(table, {*found.shown, *dict(found.where)}):
            return self._incomplete(table, found, name, missing)
        try:
            table.cells(found)  # a link that asks wrongly is told so, whatever it already has
            tag = self._tag(["data", table.about.id, link(found), name])
            if has(request, tag):
                return Response(status_code=304, headers=cached(tag))
            content = form.write(table.answer(found, most), table.about)
        except QueryTooLarge as error:
            return self._too_large(table, found, name, error)
        headers = cached(tag) if request.method == "GET" else {"Cache-Control": "no-store"}
        if name != DEFAULT:
            stem = safe_name(table.about.id) + (".simulation" if table.about.simulation else "")
            headers["Content-Disposition"] = f'attachment; filename="{stem}.{form.extension}"'
        return Response(content, headers=headers, media_type=form.media_type)

    def _too_large(self, table: QueryableTable, found: TableQuery, name: str, error: QueryTooLarge) -> Response:
        """403, as PxWeb has it, with a link that asks for less."""
        smaller = less(table, found, self.served.config.max_cells)
        offers = list(error.offers)
        if smaller is None:
            return problem(403, str(error), offers=offers)
        said = f"{error} The link in `instead` asks for less: {told(table, found, smaller)}."
        return problem(403, said, offers=offers, instead=self._link(table, smaller, name))

    def _incomplete(self, table: QueryableTable, found: TableQuery, name: str, missing: list[str]) -> Response:
        """400, with all that is missing, and a link that has it."""
        whole = TableQuery((*found.by, *((one, ()) for one in missing)), found.where, found.measures)
        example = less(table, whole, self.served.config.max_cells)
        neither = f"{missing[0]} is" if len(missing) == 1 else f"{', '.join(missing)} are"
        said = (
            f"{table.about.id}: {neither} neither shown nor limited to one code. The cells of this table do not add up:"
            f" show each (valueCodes[{missing[0]}]=*), or choose one code (where[{missing[0]}]=…)"
        )
        if example is None:
            return problem(400, f"{said}.")
        return problem(400, f"{said}, such as in the link in `instead`.", instead=self._link(table, example, name))

    def _link(self, table: QueryableTable, found: TableQuery, name: str) -> str:
        return f"{self._href(table)}/data?{link(found, [] if name == DEFAULT else [('outputFormat', name)])}"

    # --- caches -----------------------------------------------------------------------------------------------------

    def _kept(self, request: Request, key: list[str], make: Callable[[], BaseModel]) -> Response:
        """JSON that a client may keep, and ask whether it changed."""
        tag = self._tag(key)
        if has(request, tag):
            return Response(status_code=304, headers=cached(tag))
        return Response(make().model_dump_json(by_alias=True, exclude_none=True), headers=cached(tag), media_type=JSON)

    def _tag(self, key: list[str]) -> str:
        """Of all that the answer depends on: what is published, the code, and the question."""
        return tag_of(json.dumps([self._etag, *key]).encode())


def selected(table: QueryableTable, body: bytes) -> TableQuery:
    """The question in a body."""
    try:
        found = VariablesSelection.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part)[:40] for part in first["loc"][:4])
        raise InvalidQuery(
            f"is no question: {ascii(first['msg'][:200])[1:-1]}",
            where=f"body.{ascii(place)[1:-1]}" if place else "body",
            do='write {"selection": [{"variableCode": "…", "valueCodes": ["…"]}]}',
        ) from None
    shown, limits, lists, values = (dict[str, list[str]]() for _ in range(4))
    for one in found.selection:
        _once(shown, one.variable_code, one.value_codes)
        named = {text for text in (one.codelist, one.code_list) if text is not None}
        if named:
            lists[one.variable_code] = sorted(named)
        if one.output_values is not None:
            values[one.variable_code] = [one.output_values]
    for limit in found.where:
        _once(limits, limit.variable_code, limit.value_codes)
    return question(table, shown, limits, lists, values)


def _once(into: dict[str, list[str]], name: str, codes: list[str]) -> None:
    if name in into:
        raise InvalidQuery(f"{name[:40]!r} is there twice", where="body", do="name all of its codes at once")
    into[name] = [code.replace("\\", "\\\\") for code in codes]  # nothing is escaped in a body


def _recent(table: QueryableTable, days: int | None) -> bool:
    """Whether its release is of the last days. One without a date is not."""
    if days is None:
        return True
    try:
        return date.fromisoformat(table.about.updated[:10]) >= datetime.now(UTC).date() - timedelta(days=days)
    except ValueError:
        return False


def _described(table: QueryableTable) -> str:
    """Its title, and the first sentence of its notes that is not about noise."""
    about = table.about
    sentences = (text.strip() for note in about.notes for text in note.split(". "))
    first = next((text for text in sentences if not text.startswith("Noise:")), "")
    return " ".join(text if text.endswith((".", "!", "?")) else f"{text}." for text in (about.title, first) if text)
