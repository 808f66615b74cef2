"""The OpenAPI document: parameters in brackets, problems, and every format of an answer."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from discreet.serve.formats import FORMATS
from discreet.serve.http.problems import ProblemDetails, documented
from discreet.serve.models import DataResponse, VariablesSelection
from discreet.serve.query_string import FORMAT_PARAMETERS, OUTPUT_VALUES

REF = "#/components/schemas/{model}"
LIMITS = (405, 414, 429, 500, 503)
_LIST = {"type": "array", "items": {"type": "string"}}
_CHOICES = "Also `61*`, `?1`, `top(n)`, `bottom(n)`, `range(a,b)`, `from(a)`, `to(b)`, by the order of codes."
_IGNORED = "PxWeb's, for pages. It is accepted and changes nothing."


def _parameter(name: str, about: str, schema: dict[str, Any], **style: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": about, "schema": schema, **style}


def _codes(name: str, about: str, value: dict[str, Any]) -> dict[str, Any]:
    """In brackets the variable."""
    schema = {"type": "object", "additionalProperties": value}
    return _parameter(name, about, schema, style="deepObject", explode=True)


def _ignored(name: str, values: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "array", "items": values, "minItems": 1}
    return _parameter(name, _IGNORED, schema, style="form", explode=False)


_SHOWN = "`valueCodes[VARIABLE]=a,b` shows a variable with these codes, `*` with all. "
_VALUES = "`single` shows the finer codes in those of a code list, `aggregated` these themselves."
QUESTION: dict[str, Any] = {
    "parameters": [
        _codes("valueCodes", _SHOWN + _CHOICES, _LIST),
        _codes("where", "`where[VARIABLE]=a,b` limits everything to these codes.", _LIST),
        _codes("codelist", "`codelist[VARIABLE]=TABLE_COARSER`: the codes are those of the list.", {"type": "string"}),
        _codes("outputValues", _VALUES, {"type": "string", "enum": [*OUTPUT_VALUES]}),
        _ignored("heading", {"type": "string"}),
        _ignored("stub", {"type": "string"}),
        _ignored("outputFormatParams", {"type": "string", "enum": [*FORMAT_PARAMETERS]}),
        _parameter("outputFormat", "How the answer is written.", {"type": "string", "enum": [*FORMATS]}),
    ]
}


def _content(name: str) -> dict[str, Any]:
    if name == "json-stat2":
        return {"schema": {"$ref": REF.format(model="DataResponse")}}
    text = "csv" in name
    return {"schema": {"type": "string"} if text else {"type": "string", "format": "binary"}}


DATA: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Numbers",
        "content": {form.media_type.split(";")[0]: _content(name) for name, form in FORMATS.items()},
    },
    **documented(400, 403, 404, 408, 413, *LIMITS),
}


def described(app: FastAPI, prefix: str) -> dict[str, Any]:
    """The document of an app. FastAPI's own words for wrong parameters are left out: ours are problems."""
    found = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        servers=[{"url": prefix or "/"}],
    )
    schemas = found.setdefault("components", {}).setdefault("schemas", {})
    for model in (ProblemDetails, DataResponse, VariablesSelection):
        made = model.model_json_schema(ref_template=REF)
        schemas.update(made.pop("$defs", {}))
        schemas[model.__name__] = made
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for methods in found["paths"].values():
        for operation in methods.values():
            operation["responses"].pop("422", None)
            if "get" in methods and operation is methods["get"]:
                operation["responses"]["304"] = {"description": "What you have is still right"}
    return found
