"""The key stream: AES-256 in counter mode, seekable, with two 64-bit words per block.

A block is AES_k(c), c a 128-bit big-endian counter; its words are bytes 0-7 and 8-15 read little-endian. Cell i of a
table has the block at counter (i div 2¹⁵, 2 + i mod 2¹⁵), of 96 and 32 bits: pieces of 32,768 cells, which GCM's
counter mode (the fastest available) produces in one call. Families of blocks have separate subkeys: `cells` (dense),
`sparse` (counter = block of cells, draw) and the extension of each, read only if 63 or 127 bits leave a draw undecided.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NoReturn, Protocol, cast

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from discreet.arrays import Words
from discreet.errors import ParameterError, ReleaseKeyError, StreamError
from discreet.noise.kernels import repeated

PIECE = 32_768  # cells that share a nonce: part of the stream's definition
CHUNK = PIECE  # cells read at once: key stream, words and results fit into the second-level cache
BLOCK = 16
CELLS = 2**63  # cell numbers are signed 64-bit integers
EXTENSIONS = 64  # further blocks that a draw may read; needing more has a probability of about 2^-8000
_SPARE = 15  # update_into requires this many bytes beyond the data
_FIRST = 2  # GCM's first counter for data: 1 is used for the tag

_ZEROS = np.zeros(PIECE * BLOCK, dtype=np.uint8)
_ZEROS.flags.writeable = False


class BlockSource(Protocol):
    """A random-access function from 128-bit counters to 128-bit blocks."""

    def at(self, counters: Words) -> Words:
        """The words (n, 2) of the blocks at the counters (n, 2), given as (high, low) halves."""


class AesBlocks:
    """AES-256 of a 128-bit counter. Explicit counters are encrypted in ECB mode: the block function itself."""

    def __init__(self, key: bytes) -> None:
        check_cipher()
        self._key = key

    def at(self, counters: Words) -> Words:
        """The words of the blocks at explicit counters."""
        return _ecb(self._key, counters)


class CellBlocks(AesBlocks):
    """The blocks of cells, which can also be read in order: cell i has counter (i div 2¹⁵, 2 + i mod 2¹⁵)."""

    def reader(self, first: int) -> _CellReader:
        """The blocks of cells first, first + 1, …"""
        return _CellReader(self._key, first)

    def at(self, counters: Words) -> Words:
        """The words of the blocks of cells, given as (0, cell)."""
        piece, place = np.divmod(counters[:, 1], np.uint64(PIECE))
        low = (piece << np.uint64(32)) | (place + np.uint64(_FIRST))
        return _ecb(self._key, np.stack([piece >> np.uint64(32), low], axis=1))


class _CellReader:
    """Blocks of successive cells. A whole piece is GCM's counter mode under nonce i div 2¹⁵ (NIST SP 800-38D), without
    computing the tag. Plain CTR gives the same blocks, more slowly on processors with vector AES."""

    def __init__(self, key: bytes, first: int) -> None:
        self._key, self._next = algorithms.AES256(key), first
        self._cipher = self._begin()

    def _begin(self) -> CipherContext:
        """A cipher for the rest of the piece that the next cell lies in."""
        piece, place = divmod(self._next, PIECE)
        nonce = piece.to_bytes(12, "big")
        mode = modes.CTR(nonce + (place + _FIRST).to_bytes(4, "big")) if place else modes.GCM(nonce)
        return Cipher(self._key, mode).encryptor()

    def read_into(self, out: NDArray[np.uint8], size: int) -> int:
        """Write the next `size` bytes to `out` (which has 15 spare bytes); returns how many were written."""
        done = 0
        while done < size:
            part = min(size - done, (PIECE - self._next % PIECE) * BLOCK)
            done += self._cipher.update_into(_ZEROS.data[:part], out.data[done:])
            self._next += part // BLOCK
            if self._next % PIECE == 0:
                self._cipher = self._begin()
        return done


def _ecb(key: bytes, counters: Words) -> Words:
    plain = np.ascontiguousarray(counters, dtype=">u8").view(np.uint8).reshape(-1)
    out = np.empty(plain.size + _SPARE, dtype=np.uint8)
    # ECB on counters that are all distinct is exactly the counter-mode block function.
    cipher = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()  # noqa: S305
    written = cipher.update_into(plain.data, out.data)
    _check_length(written, plain.size)
    return out[: plain.size].view("<u8").reshape(-1, 2)


def _check_length(written: int, wanted: int) -> None:
    if written != wanted:
        raise StreamError(
            f"the key stream returned {written} bytes instead of {wanted}",
            where="key stream",
            do="nothing was drawn; check the cryptography library",
        )


@lru_cache(maxsize=1)
def check_cipher() -> None:
    """Known-answer test of AES-256 (FIPS 197, C.3), then equality of the three modes in use; once per process."""
    counter = int("00112233445566778899aabbccddeeff", 16)
    halves = np.array([[counter >> 64, counter & (2**64 - 1)]], dtype=np.uint64)
    known = _ecb(bytes(range(32)), halves).tobytes() == bytes.fromhex("8ea2b7ca516745bfeafc49904b496089")
    cells = np.arange(PIECE - 2, PIECE + 6, dtype=np.uint64)
    blocks = CellBlocks.__new__(CellBlocks)
    blocks._key = bytes(range(32))
    out = np.empty(cells.size * BLOCK + _SPARE, dtype=np.uint8)
    blocks.reader(PIECE - 2).read_into(out, cells.size * BLOCK)  # two cells by CTR, then six by GCM
    explicit = blocks.at(np.stack([np.zeros_like(cells), cells], axis=1))
    if not known or out[: cells.size * BLOCK].tobytes() != explicit.tobytes():
        raise StreamError(
            "AES-256 fails its known-answer test", where="key stream", do="reinstall the cryptography library"
        )


class Stream:
    """All randomness for one purpose in one table. `source(family)` gives each family's block source."""

    def __init__(self, source: Callable[[str], BlockSource], secret: bytes = b"") -> None:
        self._source = lru_cache(maxsize=None)(source)
        self._secret = secret

    @classmethod
    def from_secret(cls, secret: bytes) -> Stream:
        """The stream of a subkey: each family is AES-256 under HKDF(secret; family)."""
        if len(secret) != 32:
            raise ParameterError("a stream's secret has 32 bytes", where="stream", do="use ReleaseKey.stream_secret")

        def source(family: str) -> BlockSource:
            key = HKDF(SHA256(), 32, salt=None, info=b"discreet block family " + family.encode()).derive(secret)
            return CellBlocks(key) if family == "cells" else AesBlocks(key)

        return cls(source, secret)

    def seal(self, data: bytes) -> bytes:
        """A MAC under a subkey of this stream's secret: it can be verified where the noise is drawn."""
        key = HKDF(SHA256(), 32, salt=None, info=b"discreet seal").derive(self._secret)
        return hmac.digest(key, data, "sha256")

    def words(self, first: int, n: int, chunk: int = CHUNK) -> Iterator[Words]:
        """Blocks of cells first … first+n−1, as reused (≤ chunk, 2) arrays: use one before the next."""
        for words in self.raw_words(first, n, chunk):
            self.check_fresh(words)
            yield words

    def raw_words(self, first: int, n: int, chunk: int = CHUNK) -> Iterator[Words]:
        """As `words`, for kernels that check for repeated blocks themselves."""
        check_range(first, n)
        chunk = max(min(chunk, n, CHUNK), 1)
        reader = cast(CellBlocks, self._source("cells")).reader(first)
        buffer = np.empty(chunk * BLOCK + _SPARE, dtype=np.uint8)
        blocks = buffer[: chunk * BLOCK].view("<u8").reshape(-1, 2)
        last: list[int] | None = None
        start = 0
        while start < n:
            words = blocks[: min(n - start, chunk - (first + start) % chunk)]  # whole pieces are fastest
            _check_length(reader.read_into(buffer, words.nbytes), words.nbytes)
            if words[0].tolist() == last:
                self.check_fresh(np.stack((words[0], words[0])))
            last = words[-1].tolist()
            yield words
            start += len(words)

    @staticmethod
    def check_fresh(words: Words) -> None:
        """Refuse repeated blocks: a cipher is a permutation, so equal blocks at different counters prove a fault."""
        if repeated(words):
            raise StreamError(
                "the key stream repeats a block, which a working cipher cannot do",
                where="key stream",
                do="publish nothing that was drawn by this process; check the machine and the cryptography library",
            )

    def block(self, cell: int) -> tuple[int, int]:
        """The two words of one cell."""
        words = self._source("cells").at(np.array([[0, cell]], dtype=np.uint64))
        return int(words[0, 0]), int(words[0, 1])

    def sparse_words(self, counters: Words) -> Words:
        """The blocks (n, 2) of the sparse family at counters (block of cells, draw), all distinct."""
        words = self._source("sparse").at(counters)
        _check_length(words.size * 8, counters.size * 8)
        self.check_fresh(words)
        return words

    def extension(self, family: str, draw: int, part: int) -> Iterator[int]:
        """Further words of one draw: blocks (draw, part·2³² + 0, 1, …) under the family's extension subkey."""
        source = self._source(f"{family} extension")
        for index in range(EXTENSIONS):
            words = source.at(np.array([[draw, part << 32 | index]], dtype=np.uint64))
            _check_length(words.size * 8, BLOCK)
            yield int(words[0, 0])
            yield int(words[0, 1])
        raise StreamError(
            f"a draw is undecided after {EXTENSIONS} extension blocks, which cannot happen by chance",
            where="key stream",
            do="publish nothing that was drawn by this process; check the machine and the cryptography library",
        )

    def __repr__(self) -> str:
        return "Stream(<redacted>)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise ReleaseKeyError(
            "a stream cannot be pickled or copied", where="stream", do="send its stream_secret instead"
        )


def check_range(first: int, n: int) -> None:
    """Cell numbers must be non-negative signed 64-bit integers."""
    if first < 0 or n < 0 or first + n > CELLS:
        raise ParameterError(
            "cell numbers must lie in 0 … 2^63 − 1", where=f"cells from {first}", do="number cells by their domain"
        )
