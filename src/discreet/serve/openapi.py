"""The OpenAPI document: parameters in brackets, problem details, and every format of an answer."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from discreet.serve.formats import FORMATS
from discreet.serve.http.problems import ProblemDetails, problem_responses
from discreet.serve.models import DataResponse, VariablesSelection
from discreet.serve.query_string import FORMAT_PARAMETERS, OUTPUT_VALUES

REF = "#/components/schemas/{model}"
LIMIT_STATUSES = (405, 414, 429, 500, 503)
_LIST = {"type": "array", "items": {"type": "string"}}
_CHOICES = (
    "Expressions select codes in their order: `61*`, `?1`, `top(n)`, `bottom(n)`, `range(a,b)`, `from(a)`, `to(b)`."
)
_IGNORED = "A parameter of PxWeb. Accepted and ignored."


def _parameter(name: str, description: str, schema: dict[str, Any], **style: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema, **style}


def _codes(name: str, description: str, value: dict[str, Any]) -> dict[str, Any]:
    """A parameter whose name has the variable in brackets."""
    schema = {"type": "object", "additionalProperties": value}
    return _parameter(name, description, schema, style="deepObject", explode=True)


def _ignored(name: str, values: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "array", "items": values, "minItems": 1}
    return _parameter(name, _IGNORED, schema, style="form", explode=False)


_SHOWN = "`valueCodes[VARIABLE]=a,b` shows a variable with these codes, `*` with all. "
_VALUES = "`aggregated` shows sums for the codes of a code list, `single` the finer codes in them."
DATA_PARAMETERS: dict[str, Any] = {
    "parameters": [
        _codes("valueCodes", _SHOWN + _CHOICES, _LIST),
        _codes("where", "`where[VARIABLE]=a,b` limits all numbers to these codes.", _LIST),
        _codes("codelist", "`codelist[VARIABLE]=TABLE_COARSER` uses the codes of this code list.", {"type": "string"}),
        _codes("outputValues", _VALUES, {"type": "string", "enum": [*OUTPUT_VALUES]}),
        _ignored("heading", {"type": "string"}),
        _ignored("stub", {"type": "string"}),
        _ignored("outputFormatParams", {"type": "string", "enum": [*FORMAT_PARAMETERS]}),
        _parameter("outputFormat", "Format of the answer.", {"type": "string", "enum": [*FORMATS]}),
    ]
}


def _content(name: str) -> dict[str, Any]:
    if name == "json-stat2":
        return {"schema": {"$ref": REF.format(model="DataResponse")}}
    text = "csv" in name
    return {"schema": {"type": "string"} if text else {"type": "string", "format": "binary"}}


DATA_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Numbers",
        "content": {form.media_type.split(";")[0]: _content(name) for name, form in FORMATS.items()},
    },
    **problem_responses(400, 403, 404, 408, 413, *LIMIT_STATUSES),
}


def openapi_document(app: FastAPI, prefix: str) -> dict[str, Any]:
    """The document of an app, without FastAPI's own validation errors: ours are problem details."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        servers=[{"url": prefix or "/"}],
    )
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for model in (ProblemDetails, DataResponse, VariablesSelection):
        schema = model.model_json_schema(ref_template=REF)
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for methods in document["paths"].values():
        for operation in methods.values():
            operation["responses"].pop("422", None)
            if "get" in methods and operation is methods["get"]:
                operation["responses"]["304"] = {"description": "Your cached copy is still valid"}
    return document
