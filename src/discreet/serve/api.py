"""The API for programs, compatible with PxWeb API v2: tables, metadata, data, code lists, configuration."""

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
from discreet.serve.config import ServerContext
from discreet.serve.formats import FORMATS, jsonstat, safe_name
from discreet.serve.http.caching import cache_headers, client_has, tag_of
from discreet.serve.http.problems import problem, problem_responses
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
from discreet.serve.openapi import DATA_PARAMETERS, DATA_RESPONSES, LIMIT_STATUSES
from discreet.serve.query_model import QueryableTable, TableQuery, TableVariable, resolve_query, unspecified
from discreet.serve.query_string import (
    CONTENTS,
    build_query,
    codelist_id,
    describe_reduction,
    link,
    parse_query,
    reduce_query,
)
from discreet.version import __version__, package_version

VERSION = "2.0.0"
DEFAULT = "json-stat2"
JSON = "application/json"
OTHERS = ("outputFormat", "lang")

Name = Annotated[str, Path(min_length=1, max_length=300)]


def _english(lang: Annotated[Literal["en"], Query(description="Only English is available.")] = "en") -> str:
    return lang


async def _body(request: Request) -> bytes:
    return await request.body()


Body = Annotated[bytes, Depends(_body)]


def router(served: ServerContext) -> APIRouter:
    """All routes under /api/v2."""
    api = APIRouter(prefix="/api/v2", tags=["PxWeb API v2"], dependencies=[Depends(_english)])
    own, limits = _Api(served), problem_responses(400, 404, *LIMIT_STATUSES)
    body = {"schema": {"$ref": "#/components/schemas/VariablesSelection"}}
    by_post = {
        "parameters": DATA_PARAMETERS["parameters"][-1:],
        "requestBody": {"required": True, "content": {JSON: body}},
    }
    data: dict[str, Any] = {"responses": DATA_RESPONSES, "response_class": Response}
    api.get("/tables", response_model=TablesResponse, responses=limits)(own.list_all_tables)
    api.get("/tables/{id}", response_model=TableResponse, responses=limits)(own.get_table_by_id)
    api.get("/tables/{id}/metadata", response_model=Dataset, response_model_exclude_none=True, responses=limits)(
        own.get_metadata_by_id
    )
    api.get("/tables/{id}/data", openapi_extra=DATA_PARAMETERS, **data)(own.get_table_data)
    api.post("/tables/{id}/data", openapi_extra=by_post, **data)(own.get_table_data_by_post)
    api.get("/codelists/{id}", response_model=CodeListResponse, responses=limits)(own.get_code_list_by_id)
    api.get("/config", response_model=ConfigResponse, responses=problem_responses(400, *LIMIT_STATUSES))(
        own.get_api_configuration
    )
    return api


class _Api:
    """The routes, under PxWeb's names; their docstrings are the descriptions in the OpenAPI document."""

    def __init__(self, served: ServerContext) -> None:
        self.served = served
        self._root = f"{served.config.prefix}/api/v2"
        self._etag = sha256(f"{served.catalogue.digest} {package_version()} {served.config}".encode()).hexdigest()
        self._lists = {
            codelist_id(t, v): (t, v) for t in served.catalogue.tables.values() for v in t.variables if v.finer
        }

    # --- catalogue and metadata --------------------------------------------------------------------------------------

    def list_all_tables(
        self,
        request: Request,
        query: Annotated[
            str,
            Query(
                max_length=300, description="Words to find in titles, variables, labels of codes, measures or notes."
            ),
        ] = "",
        pastDays: Annotated[  # noqa: N803 - PxWeb's name
            int | None, Query(ge=1, le=100_000, description="Only tables released within this many days.")
        ] = None,
        pageNumber: Annotated[int, Query(ge=1, le=1_000_000)] = 1,  # noqa: N803
        pageSize: Annotated[int, Query(ge=1, le=1_000)] = 20,  # noqa: N803
    ) -> Response:
        """List all tables, page by page."""
        matching = [
            t for t in self.served.catalogue.tables.values() if matches(t, query) and _released_within(t, pastDays)
        ]
        number, size, pages = pageNumber, pageSize, max(1, -(-len(matching) // pageSize))
        if number > pages:
            total = "1 page" if pages == 1 else f"{pages} pages"
            return problem(404, f"Page {number} does not exist: the list has {total}.")
        page_numbers = {"self": number, "first": 1, "last": pages}
        page_numbers |= {"next": number + 1} if number < pages else {}
        page_numbers |= {"previous": number - 1} if number > 1 else {}
        parameters = ({"query": query} if query else {}) | ({"pastDays": str(pastDays)} if pastDays else {})

        def make() -> TablesResponse:
            shown = islice(matching, (number - 1) * size, number * size)
            page = Page(page_number=number, page_size=size, total_elements=len(matching), total_pages=pages)
            links = [Link(rel=rel, href=self._page(parameters, n, size)) for rel, n in page_numbers.items()]
            return TablesResponse(tables=[self._brief(table) for table in shown], page=page, links=links)

        ids = [table.summary.id for table in matching]  # with pastDays the list changes from day to day
        return self._kept(request, ["tables", query, str(pastDays), str(number), str(size), *ids], make)

    def get_table_by_id(self, request: Request, id: Name) -> Response:
        """Get a summary of a table."""
        table = self.served.catalogue.table(id)
        return self._kept(request, ["table", id], lambda: self._brief(table))

    def get_metadata_by_id(self, request: Request, id: Name) -> Response:
        """Get a table's variables, codes and measures, as JSON-stat 2 without values."""
        table = self.served.catalogue.table(id)
        return self._kept(request, ["metadata", id], lambda: self._metadata(table))

    def get_code_list_by_id(self, request: Request, id: Name) -> Response:
        """Get a code list: the codes of a coarser variable, and the finer codes that each groups."""
        if id not in self._lists:
            raise UnknownTable(
                f"unknown code list {id[:60]!r}", where="codelists", do="see the code lists in the table's metadata"
            )
        table, coarser = self._lists[id]
        return self._kept(request, ["codelist", id], lambda: self._codelist(table, coarser))

    def get_api_configuration(self, request: Request) -> Response:
        """Get the limits and formats of the server."""
        return self._kept(request, ["config"], self._config)

    def get_table_data(self, request: Request, id: Name) -> Response:
        """Get numbers of a table. An additive table is summed over variables that are not named."""
        table = self.served.catalogue.table(id)
        return self._data(request, table, *parse_query(table, request.scope.get("query_string", b""), OTHERS))

    def get_table_data_by_post(self, request: Request, id: Name, body: Body) -> Response:
        """Get numbers of a table, by a query that is too long for a URL."""
        table = self.served.catalogue.table(id)
        linked, others = parse_query(table, request.scope.get("query_string", b""), OTHERS)
        if linked != TableQuery():
            raise InvalidQuery("is given in both the body and the URL", where="query", do="give it in the body only")
        return self._data(request, table, parse_body(table, body), others)

    def _page(self, parameters: Mapping[str, str], number: int, size: int) -> str:
        return f"{self._root}/tables?{urlencode({**parameters, 'pageNumber': number, 'pageSize': size})}"

    def _brief(self, table: QueryableTable) -> TableResponse:
        about = table.summary
        return TableResponse(
            id=about.id,
            label=about.title,
            description=_description(table),
            updated=about.updated,
            source=about.release,
            variable_names=[v.label for v in table.variables if not v.finer],
            simulation=about.simulation,
            links=[
                Link(rel="self", href=self._href(table)),
                Link(rel="metadata", href=f"{self._href(table)}/metadata"),
                Link(rel="data", href=f"{self._href(table)}/data"),
            ],
            extension={"method": about.method, "guarantee": about.guarantee, "caveats": list(about.caveats)},
        )

    def _href(self, table: QueryableTable) -> str:
        return f"{self._root}/tables/{quote(table.summary.id, safe='')}"

    def _metadata(self, table: QueryableTable) -> Dataset:
        about, own = table.summary, [v for v in table.variables if not v.finer]
        measures = jsonstat.measure_dimension(table.measures)
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
            CodeListInformation(id=codelist_id(table, c), label=c.label, links=[self._codelist_link(table, c)])
            for c in table.variables
            if c.finer == v.id
        ]
        return jsonstat.dimension(v) | {"extension": {"elimination": table.additive, "codelists": coarser}}

    def _codelist_link(self, table: QueryableTable, v: TableVariable) -> Link:
        return Link(rel="metadata", href=f"{self._root}/codelists/{quote(codelist_id(table, v), safe='')}")

    def _codelist(self, table: QueryableTable, v: TableVariable) -> CodeListResponse:
        finer = next(f for f in table.variables if f.id == v.finer)
        within: list[list[str]] = [[] for _ in v.codes]
        for code, group in zip(finer.codes, v.groups, strict=True):
            within[group].append(code)
        values = [Value(code=c, label=t, value_map=w) for c, t, w in zip(v.codes, v.labels, within, strict=True)]
        links = [self._codelist_link(table, v).model_copy(update={"rel": "self"})]
        name = codelist_id(table, v)
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

    def _data(self, request: Request, table: QueryableTable, query: TableQuery, others: Mapping[str, str]) -> Response:
        name = others.get("outputFormat", DEFAULT)
        if name not in FORMATS:
            raise InvalidQuery(
                f"unknown format {name[:40]!r}", where="outputFormat", do=f"use one of {', '.join(FORMATS)}"
            )
        if others.get("lang", "en") != "en":
            raise InvalidQuery("only English is available", where="lang", do="write en, or leave it out")
        most, form = self.served.config.max_cells, FORMATS[name]
        resolve_query(table, query)
        if missing := unspecified(table, {*query.shown, *dict(query.where)}):
            return self._incomplete(table, query, name, missing)
        try:
            table.cells(query)  # an invalid query is refused even if the client has a matching ETag
            tag = self._tag(["data", table.summary.id, link(query), name])
            if client_has(request, tag):
                return Response(status_code=304, headers=cache_headers(tag))
            content = form.write(table.answer(query, most), table.summary)
        except QueryTooLarge as error:
            return self._too_large(table, query, name, error)
        headers = cache_headers(tag) if request.method == "GET" else {"Cache-Control": "no-store"}
        if name != DEFAULT:
            stem = safe_name(table.summary.id) + (".simulation" if table.summary.simulation else "")
            headers["Content-Disposition"] = f'attachment; filename="{stem}.{form.extension}"'
        return Response(content, headers=headers, media_type=form.media_type)

    def _too_large(self, table: QueryableTable, query: TableQuery, name: str, error: QueryTooLarge) -> Response:
        """403, as in PxWeb, with a URL that requests less."""
        smaller = reduce_query(table, query, self.served.config.max_cells)
        offers = list(error.offers)
        if smaller is None:
            return problem(403, str(error), offers=offers)
        detail = f"{error} The URL in `instead` requests less: {describe_reduction(table, query, smaller)}."
        return problem(403, detail, offers=offers, instead=self._link(table, smaller, name))

    def _incomplete(self, table: QueryableTable, query: TableQuery, name: str, missing: list[str]) -> Response:
        """400, with all missing variables, and a URL that names them."""
        whole = TableQuery((*query.by, *((one, ()) for one in missing)), query.where, query.measures)
        example = reduce_query(table, whole, self.served.config.max_cells)
        neither = f"{missing[0]} is" if len(missing) == 1 else f"{', '.join(missing)} are"
        detail = (
            f"{table.summary.id}: {neither} neither shown nor limited to one code. Cells of this table cannot be"
            f" summed: show each variable (valueCodes[{missing[0]}]=*), or choose one code (where[{missing[0]}]=…)"
        )
        if example is None:
            return problem(400, f"{detail}.")
        return problem(400, f"{detail}, as in the URL in `instead`.", instead=self._link(table, example, name))

    def _link(self, table: QueryableTable, query: TableQuery, name: str) -> str:
        return f"{self._href(table)}/data?{link(query, [] if name == DEFAULT else [('outputFormat', name)])}"

    # --- caches -----------------------------------------------------------------------------------------------------

    def _kept(self, request: Request, key: list[str], make: Callable[[], BaseModel]) -> Response:
        """JSON that clients may cache and revalidate."""
        tag = self._tag(key)
        if client_has(request, tag):
            return Response(status_code=304, headers=cache_headers(tag))
        return Response(
            make().model_dump_json(by_alias=True, exclude_none=True), headers=cache_headers(tag), media_type=JSON
        )

    def _tag(self, key: list[str]) -> str:
        """The entity tag: a hash of all that the answer depends on: published data, code and query."""
        return tag_of(json.dumps([self._etag, *key]).encode())


def parse_body(table: QueryableTable, body: bytes) -> TableQuery:
    """The query in a request body."""
    try:
        selection = VariablesSelection.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part)[:40] for part in first["loc"][:4])
        raise InvalidQuery(
            f"is not a valid query: {ascii(first['msg'][:200])[1:-1]}",
            where=f"body.{ascii(place)[1:-1]}" if place else "body",
            do='write {"selection": [{"variableCode": "…", "valueCodes": ["…"]}]}',
        ) from None
    shown, limits, lists, values = (dict[str, list[str]]() for _ in range(4))
    for one in selection.selection:
        _add_selection(shown, one.variable_code, one.value_codes)
        named = {text for text in (one.codelist, one.code_list) if text is not None}
        if named:
            lists[one.variable_code] = sorted(named)
        if one.output_values is not None:
            values[one.variable_code] = [one.output_values]
    for limit in selection.where:
        _add_selection(limits, limit.variable_code, limit.value_codes)
    return build_query(table, shown, limits, lists, values)


def _add_selection(into: dict[str, list[str]], name: str, codes: list[str]) -> None:
    if name in into:
        raise InvalidQuery(f"duplicate variable {name[:40]!r}", where="body", do="list all of its codes in one entry")
    into[name] = [code.replace("\\", "\\\\") for code in codes]  # nothing is escaped in a body


def _released_within(table: QueryableTable, days: int | None) -> bool:
    """Whether the table was released within this many days. A release without a date was not."""
    if days is None:
        return True
    try:
        return date.fromisoformat(table.summary.updated[:10]) >= datetime.now(UTC).date() - timedelta(days=days)
    except ValueError:
        return False


def _description(table: QueryableTable) -> str:
    """The title, and the first sentence of the notes that is not about noise."""
    about = table.summary
    sentences = (text.strip() for note in about.notes for text in note.split(". "))
    first = next((text for text in sentences if not text.startswith("Noise:")), "")
    return " ".join(text if text.endswith((".", "!", "?")) else f"{text}." for text in (about.title, first) if text)
