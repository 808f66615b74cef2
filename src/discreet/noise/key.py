"""The release key: 256 bits from which all randomness of one release is derived."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable
from typing import NoReturn

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from discreet.errors import ReleaseKeyError
from discreet.noise.stream import Stream

KEY_BYTES = 32
_REAL = b"discreet real key"


def encode_labels(labels: Iterable[str | bytes]) -> bytes:
    """Injective encoding: the number of labels, then each label's type, length and bytes."""
    pieces: list[bytes] = []
    for label in labels:
        kind, data = (b"s", label.encode()) if isinstance(label, str) else (b"b", bytes(label))
        pieces.append(kind + len(data).to_bytes(8, "big") + data)
    return len(pieces).to_bytes(8, "big") + b"".join(pieces)


def public_stream(*labels: str) -> Stream:
    """A stream that anyone can reproduce: for randomness in post-processing, which need not be secret and should be
    repeatable by others. It protects nothing."""
    return Stream.from_secret(hashlib.sha256(encode_labels(("discreet public stream", *labels))).digest())


def nonce() -> str:
    """128 random bits in hexadecimal, used as a unique name."""
    return os.urandom(16).hex()


class Secret:
    """A subkey for an engine. Never displayed or pickled; the engine exposes it where the noise is drawn."""

    __slots__ = ("_bytes",)

    def __init__(self, secret: bytes) -> None:
        self._bytes = secret

    def expose(self) -> bytes:
        """The bytes themselves, for engines only."""
        return self._bytes

    def __repr__(self) -> str:
        return "Secret(<redacted>)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise ReleaseKeyError("a secret cannot be pickled or copied", where="secret", do="broadcast it, encrypted")


class ReleaseKey:
    """A secret of 256 bits, never displayed or pickled. `simulated` marks a fixed test key."""

    __slots__ = ("_secret", "_simulated")

    def __init__(self, secret: bytes, *, simulated: bool) -> None:
        if len(secret) != KEY_BYTES:
            raise ReleaseKeyError(
                f"a release key has {KEY_BYTES} bytes, this one {len(secret)}",
                where="release key",
                do="make keys with ReleaseKey.generate",
            )
        self._secret = bytes(secret)
        self._simulated = simulated

    @classmethod
    def generate(cls) -> ReleaseKey:
        """A new key from the operating system's generator: the only entropy of a release."""
        return cls(os.urandom(KEY_BYTES), simulated=False)

    @classmethod
    def simulation(cls, seed: str) -> ReleaseKey:
        """A fixed test key, SHA-256 of the seed's encoding: every output is marked as a simulation."""
        text = encode_labels(("discreet simulation key", seed))
        return cls(hashlib.sha256(text).digest(), simulated=True)

    @property
    def simulated(self) -> bool:
        """Whether this is a fixed test key."""
        return self._simulated

    def subkey(self, *labels: str | bytes, length: int = KEY_BYTES) -> bytes:
        """HKDF-SHA256 of the key with the encoded labels as info (RFC 5869). Real and test keys have different salts:
        a test key relabelled as real has other subkeys, and matches no reservation."""
        return HKDF(SHA256(), length, salt=None if self._simulated else _REAL, info=encode_labels(labels)).derive(
            self._secret
        )

    def mac(self, parts: Iterable[bytes]) -> bytes:
        """HMAC-SHA256 under the subkey "binding" of the length-prefixed parts, with one part in memory at a time."""
        code = hmac.new(self.subkey("binding"), digestmod=hashlib.sha256)
        for part in parts:
            code.update(len(part).to_bytes(8, "big"))
            code.update(part)
        return code.digest()

    def secret(self, *labels: str | bytes, length: int = KEY_BYTES) -> Secret:
        """A subkey for an engine."""
        return Secret(self.subkey(*labels, length=length))

    def stream_secret(self, release: str, table: str, spec_digest: bytes, purpose: str) -> Secret:
        """The subkey of one stream, HKDF over (release, table, spec digest, purpose): workers get it instead of the
        key."""
        return self.secret("stream", release, table, spec_digest, purpose)

    def stream(self, release: str, table: str, spec_digest: bytes, purpose: str) -> Stream:
        """The stream for one purpose in one table."""
        return Stream.from_secret(self.stream_secret(release, table, spec_digest, purpose).expose())

    def expose(self) -> bytes:
        """The secret itself, for key stores only."""
        return self._secret

    def __repr__(self) -> str:
        return f"ReleaseKey(<redacted>, simulated={self._simulated})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReleaseKey):
            return NotImplemented
        return self._simulated == other._simulated and hmac.compare_digest(self._secret, other._secret)

    __hash__ = None  # type: ignore[assignment]  # a hash in a log would reveal something about the secret

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise ReleaseKeyError(
            "a release key cannot be pickled or copied",
            where="release key",
            do="give workers the stream_secret of a table",
        )
