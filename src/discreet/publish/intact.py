"""A release is read as its manifest, codebook and models say. One that is otherwise, damaged or forged, is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyarrow import ArrowException

from discreet.errors import PublishError

_OTHERWISE = (ArrowException, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@contextmanager
def intact(where: str) -> Iterator[None]:
    """Whatever does not fit together inside is a refusal of what is read. Its own message may be long, and stays."""
    try:
        yield
    except (*_OTHERWISE, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's; Arrow's, of a file that is no Parquet file, has no number
        raise PublishError(
            f"holds something else than it says ({type(error).__name__})",
            where=where,
            do="restore the release from a copy",
        ) from None
