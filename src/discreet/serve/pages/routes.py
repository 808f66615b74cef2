"""The routes of the pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.routing import Match
from starlette.types import Scope

from discreet.errors import InvalidQuery, QueryTooLarge
from discreet.formatting import cut
from discreet.serve.catalogue import matches
from discreet.serve.config import ServerContext
from discreet.serve.formats import safe_name
from discreet.serve.http.caching import client_has, tag_of
from discreet.serve.pages import texts
from discreet.serve.pages.builder_state import BuilderState, complete_state, default_state, parse_state, table_query
from discreet.serve.pages.chart_view import chart_file, chart_note, page_chart
from discreet.serve.pages.form import downloads, form, offers
from discreet.serve.pages.grid import grid
from discreet.serve.pages.view import view
from discreet.serve.query_model import MEANING, QueryableTable, Status

METHODS = ["GET", "HEAD"]
STATIC = Path(__file__).parent / "static"
TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


def router(served: ServerContext) -> APIRouter:
    """All pages of one server."""
    routes = APIRouter(include_in_schema=False, default_response_class=Response)
    pages = _Pages(served)
    routes.add_api_route("/", pages.catalogue, methods=METHODS)
    routes.add_api_route("/about", pages.about, methods=METHODS)
    routes.add_api_route("/tables/{name}", pages.table, methods=METHODS)
    routes.add_api_route("/tables/{name}/chart.{kind}", pages.chart, methods=METHODS)
    routes.add_api_route("/static/{name}", pages.static, methods=METHODS)
    routes.add_api_route("/{path:path}", pages.elsewhere, methods=METHODS, route_class_override=_UnknownAddress)
    return routes


class _UnknownAddress(APIRoute):
    """Any other URL outside the API. API paths and other HTTP methods are answered elsewhere."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        if match is not Match.FULL or child["path_params"]["path"].split("/")[0] == "api":
            return Match.NONE, {}
        return match, child


class StaticFile(NamedTuple):
    """A style sheet, script or image that may be cached forever: its name changes with its content."""

    name: str
    type: str
    body: bytes


def static_files() -> dict[str, StaticFile]:
    """Static files by their original names."""
    contents = {path: path.read_bytes() for path in sorted(STATIC.iterdir()) if path.suffix in TYPES}
    return {
        path.name: StaticFile(f"{path.stem}.{sha256(body).hexdigest()[:12]}{path.suffix}", TYPES[path.suffix], body)
        for path, body in contents.items()
    }


class _Pages:
    def __init__(self, served: ServerContext) -> None:
        self.served = served
        self.files = static_files()
        self.by_name = {file.name: file for file in self.files.values()}
        folder = Path(__file__).parent / "templates"
        self.templates = Environment(
            loader=FileSystemLoader(folder),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )

    def catalogue(self, request: Request, q: str = "") -> Response:
        """The catalogue: all tables, or those that match a search."""
        releases: dict[str, list[QueryableTable]] = {}
        for table in self.served.catalogue.tables.values():
            if matches(table, q[:200]):
                releases.setdefault(table.summary.release, []).append(table)
        count = sum(map(len, releases.values()))
        return self._page(request, "catalogue.html", q=q[:200], releases=releases, count=count)

    def about(self, request: Request) -> Response:
        """The page that explains noise, errors, marks and the guarantee."""
        return self._page(request, "about.html", meaning=[(m.value, MEANING[m]) for m in Status if m.value])

    def table(self, request: Request, name: str) -> Response:
        """The table builder with its result."""
        table = self.served.catalogue.tables.get(name)
        if table is None:
            return self._page(request, "missing.html", 404, name=name[:60])
        here = f"{request.scope.get('root_path', '')}/tables/{quote(table.summary.id, safe='')}"
        state, wrong = default_state(table), ""
        more = dict[str, Any](view=None, offers=[], files=[], chart=None, chart_note="", too_much="")

        def link(other: BuilderState) -> str:
            return f"{here}?{other.query()}"

        try:
            state = parse_state(request.query_params.multi_items(), table)
            state = complete_state(state, table)
            numbers = grid(state, table, self.served.config.max_cells)
            more["view"] = table_view = view(numbers, state, table, lambda other: f"{link(other)}#result")
            more["files"] = downloads(
                numbers.query, table.summary.id, request.scope.get("root_path", ""), table.summary.simulation
            )
            more["chart"] = page_chart(table_view, state, table, link)
            more["chart_note"] = chart_note(table_view, state, table)
        except QueryTooLarge as error:
            more["too_much"] = error.what
            more["offers"] = offers(state, table, error.offers, self.served.config.max_cells, link)
        except InvalidQuery as error:
            wrong = f"{error.what[0].upper()}{error.what[1:]} ({error.where}). {error.do[0].upper()}{error.do[1:]}."
        query = state.query()
        return self._page(
            request,
            "table.html",
            400 if wrong else 200,
            table=table,
            state=state,
            form=form(state, table),
            wrong=cut(wrong),
            here=here,
            query=query,
            swapped=_swapped(state, link),
            share=f"{request.url.scheme}://{request.url.netloc}{here}?{query}",
            **more,
        )

    def chart(self, request: Request, name: str, kind: str) -> Response:
        """The chart of an answer as a file; if there is none, a page that says why."""
        table = self.served.catalogue.tables.get(name)
        if table is None or kind not in ("svg", "png"):
            return self._page(request, "missing.html", 404, name=name[:60])
        try:
            state = complete_state(parse_state(request.query_params.multi_items(), table), table)
            table_query(state, table)
            numbers = grid(state, table, self.served.config.max_cells)
            body = chart_file(view(numbers, state, table, lambda _: ""), state, table, kind)
        except InvalidQuery:
            return self.table(request, name)
        if body is None:
            return self._page(request, "missing.html", 404, name=f"{name[:60]} as a chart")
        ending = f".simulation.{kind}" if table.summary.simulation else f".{kind}"
        headers = {"Content-Disposition": f'attachment; filename="{safe_name(name)}{ending}"'}
        media = "image/svg+xml" if kind == "svg" else "image/png"
        return self._tagged(request, body, media, 200, headers)

    async def static(self, request: Request, name: str) -> Response:
        file = self.by_name.get(name)
        if file is None:
            return self._page(request, "missing.html", 404, name=name[:60])
        return self._tagged(
            request, file.body, file.type, 200, {"Cache-Control": "public, max-age=31536000, immutable"}
        )

    def elsewhere(self, request: Request, path: str) -> Response:
        """The page for URLs where nothing exists."""
        return self._page(request, "missing.html", 404, name=path[:60])

    def _page(self, request: Request, template: str, code: int = 200, **given: Any) -> Response:
        root = request.scope.get("root_path", "")
        text = self.templates.get_template(template).render(
            root=root,
            files_of={name: f"{root}/static/{file.name}" for name, file in self.files.items()},
            site=self.served.config.title,
            simulation=self.served.catalogue.simulation,
            today=datetime.now(UTC).date().isoformat(),
            texts=texts,
            config=self.served.config,
            **given,
        )
        return self._tagged(request, text.encode(), "text/html; charset=utf-8", code, {"Cache-Control": "no-cache"})

    def _tagged(self, request: Request, body: bytes, media: str, code: int, more: Mapping[str, str]) -> Response:
        tag = tag_of(body)
        headers = {"ETag": tag, **more}
        known = code == 200 and client_has(request, tag)
        return Response(status_code=304, headers=headers) if known else Response(body, code, headers, media)


def _swapped(state: BuilderState, link: Any) -> str:
    """The link that swaps rows and columns, if possible."""
    if len(state.rows) != 1 or not state.columns:
        return ""
    other = {"rows": (state.columns,), "columns": state.rows[0], "key": "", "page": 1, "sort": "", "top": 0}
    share = {"rows": "columns", "columns": "rows"}.get(state.share, state.share)
    return str(link(BuilderState(**{**vars(state), **other, "share": share}))) + "#result"
