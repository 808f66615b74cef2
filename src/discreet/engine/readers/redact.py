"""Other people's error messages may quote a record. Only their kind passes, and no trace of them is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from discreet.errors import SourceError

T = TypeVar("T")


def withhold(
    call: Callable[[], T],
    kinds: tuple[type[BaseException], ...],
    what: str,
    where: str,
    do: str,
    refusal: type[SourceError] = SourceError,
) -> T:
    """call(), its failures told as «`what` (kind)». Raised after the handler has ended, so that not even the
    exception's context leads back to the message."""
    try:
        return call()
    except SourceError:
        raise
    except kinds as error:
        kind = type(error).__name__
    raise refusal(f"{what} ({kind})", where=where, do=do)
