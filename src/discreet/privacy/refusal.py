"""Values that a model refuses, as one clear line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from discreet.errors import ParameterError


@contextmanager
def as_refusal(where: str) -> Iterator[None]:
    """Options that a model refuses become one clear line."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        text = str(first["msg"]).removeprefix("Value error, ")
        raise ParameterError(text, where=f"{where}, {place}" if place else where, do="correct it") from None
    except ValueError as error:
        raise ParameterError(str(error), where=where, do="correct it") from None
