"""What goes wrong, told to programs: RFC 9457, without a path, a trace or a guess."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import Response
from pydantic import BaseModel, Field

from discreet.formatting import cut

MEDIA = "application/problem+json"


class ProblemDetails(BaseModel):
    """A question that was not answered."""

    type: str = "about:blank"
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    offers: list[str] | None = Field(None, description="Variables to leave out, best first.")
    instead: str | None = Field(None, description="A link that asks for less and is answered.")


def problem(
    status: int,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    offers: list[str] | None = None,
    instead: str | None = None,
) -> Response:
    """As a response."""
    found = ProblemDetails(
        title=HTTPStatus(status).phrase, status=status, detail=cut(detail), offers=offers, instead=instead
    )
    content = json.dumps(found.model_dump(exclude_none=True))  # ASCII, whatever the detail repeats
    return Response(content, status, {"Cache-Control": "no-store", **(headers or {})}, MEDIA)


def documented(*statuses: int) -> dict[int | str, dict[str, object]]:
    """For the OpenAPI document."""
    schema = {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
    return {status: {"description": HTTPStatus(status).phrase, "content": {MEDIA: schema}} for status in statuses}
