"""Types of columns that Arrow has no word for. A column is refused under the name that its source gives them."""

from __future__ import annotations

from typing import Self

import pyarrow as pa


class Unfit(pa.ExtensionType):
    """A type that a reader would have to change: no column of it is used."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        super().__init__(pa.null(), f"discreet.{type(self).__name__.lower()}")

    def __arrow_ext_serialize__(self) -> bytes:
        return self._kind.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, _: pa.DataType, serialized: bytes) -> Self:
        return cls(serialized.decode())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and str(other) == self._kind

    def __ne__(self, other: object) -> bool:  # Arrow has one of its own
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), self._kind))

    def __str__(self) -> str:
        return self._kind


class Decimals(Unfit):
    """Decimals of any scale, handed over as texts: they are numbers, but one is written in several ways."""
