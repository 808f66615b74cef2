"""Exceptions. Each says what is wrong, where, and what to do.

A message never contains a confidential value: no cell of a table, no field of a record, no count of records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class DiscreetError(Exception):
    """Base class: `what` is wrong, `where` (a path in the declaration, a file, a ledger entry), and what to `do`."""

    def __init__(self, what: str, *, where: str = "", do: str = "") -> None:
        self.what, self.where, self.do = what, where, do
        super().__init__(str(self))

    def __str__(self) -> str:
        text = _sentence(f"{self.where}: {self.what}" if self.where else self.what)
        return f"{text} {_sentence(self.do[0].upper() + self.do[1:])}" if self.do else text


def _sentence(text: str) -> str:
    return text if text.endswith(("?", "!", ".")) else f"{text}."


class ParameterError(DiscreetError):
    """A privacy or noise parameter that is missing, inexact or out of range."""


class StreamError(DiscreetError):
    """The key stream is stuck, short or exhausted: no noise may be drawn from it."""


class ReleaseKeyError(DiscreetError):
    """A release key that is missing, unsafe, or bound to other data."""


class SpecError(DiscreetError):
    """A declaration of a release that is invalid."""


class DomainError(DiscreetError):
    """A domain that is declared incorrectly, or too large to number its cells."""


class SourceError(DiscreetError):
    """Input data that cannot be read, or lacks a declared column or type."""


class EngineError(SourceError):
    """Records that the engine could not process, even after they were cleaned."""


class GuaranteeError(DiscreetError):
    """Guarantees that do not compose, or that a method does not support."""


class LedgerError(DiscreetError):
    """A ledger that is damaged or of the other kind, or an impossible request to it."""


class LedgerUnavailable(LedgerError):
    """A ledger that is locked or unreachable at present. Nothing was written to it."""


class UnconfirmedWrite(LedgerUnavailable):
    """The ledger became unreachable during a commit: the entry may have been written or not."""


class BudgetExceeded(LedgerError):
    """The privacy budget does not cover the cost of a release."""


class PublishError(DiscreetError):
    """A release that cannot be written or completed."""


class StoreUnavailable(PublishError):
    """An object store that refuses access, or is unreachable at present."""


class InvalidQuery(DiscreetError):
    """A query that a published table cannot answer."""


class UnknownTable(InvalidQuery):
    """A table or code list that is not in the catalogue."""


class QueryTooLarge(InvalidQuery):
    """A query with more cells than one answer may have. `offers` are variables to leave out, best first."""

    def __init__(self, what: str, *, where: str, do: str, offers: Sequence[str] = ()) -> None:
        super().__init__(what, where=where, do=do)
        self.offers = tuple(offers)


class QueryRejected(DiscreetError):
    """A query server rejected a query: its HTTP `status`, and the `problem` document of the server."""

    def __init__(
        self, what: str, *, where: str, do: str = "", status: int = 0, problem: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(what, where=where, do=do)
        self.status, self.problem = status, dict(problem or {})


class ServerUnreachable(DiscreetError):
    """A query server that did not answer, or not in a readable form."""
