"""The confidential side of the wall."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Confidential(Generic[T]):
    """A value that must not leave. It has no text, no equality, no pickle: only a mechanism opens it."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def map(self, function: Callable[[T], U]) -> Confidential[U]:
        """A function of confidential data is confidential."""
        return Confidential(function(self._value))

    def open_inside(self) -> T:
        """For mechanisms and confidential-side commands; `post`, `publish` and `serve` cannot import this class."""
        return self._value

    def __repr__(self) -> str:
        return "Confidential(…)"

    def __eq__(self, other: object) -> bool:
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a confidential value cannot be pickled")

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __iter__(self) -> Any:
        raise TypeError("a confidential value cannot be iterated over")
