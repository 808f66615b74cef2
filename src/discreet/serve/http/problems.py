"""Problem details for HTTP APIs (RFC 9457), without paths or stack traces."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import Response
from pydantic import BaseModel, Field

from discreet.formatting import cut

MEDIA = "application/problem+json"


class ProblemDetails(BaseModel):
    """Why a request was not answered."""

    type: str = "about:blank"
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    offers: list[str] | None = Field(None, description="Variables to leave out, most effective first.")
    instead: str | None = Field(None, description="A URL that requests less and will be answered.")


def problem(
    status: int,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    offers: list[str] | None = None,
    instead: str | None = None,
) -> Response:
    """A problem response."""
    details = ProblemDetails(
        title=HTTPStatus(status).phrase, status=status, detail=cut(detail), offers=offers, instead=instead
    )
    content = json.dumps(details.model_dump(exclude_none=True))  # ASCII, whatever the detail quotes
    return Response(content, status, {"Cache-Control": "no-store", **(headers or {})}, MEDIA)


def problem_responses(*statuses: int) -> dict[int | str, dict[str, object]]:
    """Problem responses for the OpenAPI document."""
    schema = {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
    return {status: {"description": HTTPStatus(status).phrase, "content": {MEDIA: schema}} for status in statuses}
