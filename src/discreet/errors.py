"""One short hierarchy: what is wrong, where, and what to do about it.

A message never contains a confidential value: no cell of a table, no field of a record, no count of records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class DiscreetError(Exception):
    """Any refusal. `what` happened, `where` (a spec path, a file, a ledger entry), what to `do`."""

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
    """A release specification that cannot be read as one."""


class DomainError(DiscreetError):
    """A domain that is not declared properly, or too large to number."""


class SourceError(DiscreetError):
    """Input data that cannot be read, or lacks a declared column or type."""


class EngineError(SourceError):
    """Records that the engine could not compute with, even after they were cleaned."""


class GuaranteeError(DiscreetError):
    """Guarantees that do not compose, or that a method cannot give."""


class LedgerError(DiscreetError):
    """A ledger that is locked, broken, of the other kind, or asked for something impossible."""


class LedgerUnavailable(LedgerError):
    """A ledger that is locked or out of reach just now. Nothing was written to it."""


class UnconfirmedWrite(LedgerUnavailable):
    """The ledger went out of reach in the instant of a write: the entry may be there or not."""


class BudgetExceeded(LedgerError):
    """The budget does not cover what was asked."""


class PublishError(DiscreetError):
    """A release that cannot be written or completed."""


class StoreUnavailable(PublishError):
    """An object store that refuses, or is out of reach just now."""


class InvalidQuery(DiscreetError):
    """A question that a published table cannot answer."""


class UnknownTable(InvalidQuery):
    """A table or a list of codes that is not there."""


class QueryTooLarge(InvalidQuery):
    """A question with more cells than one answer may have. `offers` are variables to leave out, best first."""

    def __init__(self, what: str, *, where: str, do: str, offers: Sequence[str] = ()) -> None:
        super().__init__(what, where=where, do=do)
        self.offers = tuple(offers)


class QueryRejected(DiscreetError):
    """A query server has no answer: its `status`, and the `problem` in its words, such as what to ask instead."""

    def __init__(
        self, what: str, *, where: str, do: str = "", status: int = 0, problem: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(what, where=where, do=do)
        self.status, self.problem = status, dict(problem or {})


class ServerUnreachable(DiscreetError):
    """A query server from which no answer came, or none that can be read."""
