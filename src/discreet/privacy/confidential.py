"""The confidential side of the trust boundary (the wall): confidential values, and the grants that mark outputs of
mechanisms as protected."""

from __future__ import annotations

import datetime as dt
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TypeVar

from discreet.errors import LedgerError, ReleaseKeyError
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.events import Reserve
from discreet.privacy.protected import Protected

if TYPE_CHECKING:
    from discreet.noise.key import ReleaseKey, Secret

T = TypeVar("T")
U = TypeVar("U")


class Confidential(Generic[T]):
    """A value that must not be published. It has no text, no equality and no pickle: only a mechanism opens it."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def map(self, function: Callable[[T], U]) -> Confidential[U]:
        """A function of confidential data is confidential."""
        return Confidential(function(self._value))

    def open_confidential(self) -> T:
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


class Grant(Protocol):
    """What post-processing needs: the right to mark its output as protected, and the release it belongs to."""

    @property
    def simulated(self) -> bool: ...
    @property
    def release(self) -> str: ...
    @property
    def time(self) -> dt.datetime: ...
    def protect(self, value: T, guarantee: Guarantee) -> Protected[T]:
        """Mark post-processed output, computed from protected numbers alone, as protected."""


@dataclass(frozen=True)
class WorkerGrant:
    """Serializable grant that lets a worker mark its output as protected, and as simulated if it is."""

    guarantee: Guarantee
    simulated: bool

    def protect(self, value: T) -> Protected[T]:
        """Mark a mechanism's output as protected."""
        return Protected(value, self.guarantee, self.simulated)


class Reservation:
    """A reserved privacy cost with its key: the only source of noise streams and of newly protected values."""

    def __init__(self, reserve: Reserve, key: ReleaseKey, binding: bytes) -> None:
        if not hmac.compare_digest(bytes.fromhex(reserve.binding), binding):
            raise ReleaseKeyError(
                f"the key of release {reserve.release!r} is bound to other data, parameters, domains or code",
                do="restore what the reservation was made with, or `discreet ledger abandon` it: the same noise on "
                "changed data could be differenced away",
            )
        self.reserve, self._key = reserve, key

    @property
    def simulated(self) -> bool:
        return self._key.simulated

    @property
    def release(self) -> str:
        return self.reserve.release

    @property
    def time(self) -> dt.datetime:
        return self.reserve.time

    def secret(self, table: str, purpose: str) -> Secret:
        """The secret of the keyed stream that belongs to one table and purpose of this release."""
        return self._key.stream_secret(self.reserve.release, table, bytes.fromhex(self.reserve.spec), purpose)

    def worker_grant(self, guarantee: Guarantee) -> WorkerGrant:
        """What a worker needs to protect under this reservation."""
        return WorkerGrant(guarantee, self.simulated)

    def protect(self, value: T, guarantee: Guarantee) -> Protected[T]:
        """Mark a mechanism's output as protected."""
        return self.worker_grant(guarantee).protect(value)


@dataclass(frozen=True)
class Derivation:
    """Grant for post-processing the noisy measurements of a committed release. It needs no key, and none is left; the
    files that are read back must have the digests that the ledger has."""

    release: str
    time: dt.datetime
    simulated: bool
    committed: Mapping[str, str]  # file → SHA-256, as the ledger has them

    def protect(self, value: T, guarantee: Guarantee) -> Protected[T]:
        """Mark post-processed output, computed from protected numbers alone, as protected."""
        return Protected(value, guarantee, self.simulated)

    def read_back(self, files: Mapping[str, str], value: T, guarantee: Guarantee) -> Protected[T]:
        """Measurements in these files: protected if the ledger has committed every one of them."""
        for name, digest in files.items():
            if self.committed.get(name) != digest:
                raise LedgerError(
                    f"{name!r} is not what the ledger has committed", where="measurements", do="restore it from a copy"
                )
        return self.protect(value, guarantee)
