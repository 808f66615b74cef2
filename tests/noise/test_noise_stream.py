"""The stream is AES-256 of the counter, and refuses to continue after a detected fault."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError, StreamError
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.noise.samplers.laplace import Laplace
from discreet.noise.stream import CHUNK, AesBlocks, CellBlocks, Stream, check_cipher
from support.noise_fakes import fixed_stream, scripted


def aes(key: bytes, counter: int) -> tuple[int, int]:
    block = Cipher(algorithms.AES256(key), modes.ECB()).encryptor().update(counter.to_bytes(16, "big"))
    return int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")


@given(st.one_of(st.integers(0, 2**63 - 40), st.integers(0, 2**48 - 2).map(lambda piece: piece * CHUNK + CHUNK - 16)))
def test_the_block_of_cell_i_is_aes_of_its_big_endian_counter(first: int) -> None:
    """Whole pieces come from GCM, broken ones from CTR, single cells from ECB: one function."""
    key = bytes(range(32))
    stream = Stream(lambda _: CellBlocks(key))
    words = np.concatenate([piece.copy() for piece in stream.words(first, 33)])
    counters = [(i // 2**15) << 32 | (2 + i % 2**15) for i in range(first, first + 33)]
    assert [tuple(map(int, row)) for row in words] == [aes(key, counter) for counter in counters]
    assert stream.block(first + 7) == tuple(words[7])


def test_whole_pieces_equal_their_blocks_one_by_one() -> None:
    key = bytes(range(32))
    stream = Stream(lambda _: CellBlocks(key))
    words = np.concatenate([piece.copy() for piece in stream.words(5, 2 * CHUNK)])
    for cell in (5, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK - 1, 2 * CHUNK, 2 * CHUNK + 4):
        assert stream.block(cell) == tuple(words[cell - 5])


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), min_size=1, max_size=9, unique=True))
def test_explicit_counters_are_the_same_function(counters: list[tuple[int, int]]) -> None:
    key = bytes(range(32))
    words = AesBlocks(key).at(np.array(counters, dtype=np.uint64))
    assert [tuple(map(int, row)) for row in words] == [aes(key, h << 64 | low) for h, low in counters]


@given(st.integers(0, 2**40), st.integers(1, 5000), st.integers(1, 5000))
def test_chunks_do_not_matter(first: int, n: int, chunk: int) -> None:
    stream = fixed_stream()
    whole = np.concatenate([piece.copy() for piece in stream.words(first, n)])
    pieces = np.concatenate([piece.copy() for piece in stream.words(first, n, chunk)])
    assert (whole == pieces).all()


def test_families_have_their_own_keys() -> None:
    stream = fixed_stream()
    dense = stream.block(0)
    sparse = stream.sparse_words(np.zeros((1, 2), dtype=np.uint64))
    extension = stream.extension("cells", 0, 0)
    other = stream.extension("sparse", 0, 0)
    assert len({dense[0], int(sparse[0, 0]), next(extension), next(other)}) == 4


def draw(stream: Stream, n: int) -> None:
    DiscreteLaplace(Fraction(1)).draw(stream, 0, n)


def draw_laplace(stream: Stream, n: int) -> None:
    Laplace(Fraction(1), Fraction(1), Fraction(100)).draw(stream, 0, n)


def read(stream: Stream, n: int) -> None:
    for _ in stream.words(0, n):
        pass


@pytest.mark.parametrize("use", [draw, draw_laplace, read])
def test_a_stuck_stream_is_noticed(use: Callable[[Stream, int], None]) -> None:
    odd = 0x123456789ABCDEF
    with pytest.raises(StreamError, match="repeats"):
        use(scripted(lambda i: (odd, odd)), 2)
    with pytest.raises(StreamError, match="repeats"):
        use(scripted(lambda i: (odd + 5 * i, odd) if i < 900 else (odd, odd)), 1000)


@pytest.mark.parametrize("use", [draw, draw_laplace, read])
def test_a_stream_stuck_across_pieces_is_noticed(use: Callable[[Stream, int], None]) -> None:
    words = lambda i: (3 * min(i, CHUNK - 1) + 2**60 if i >= CHUNK - 1 else 3 * i + 2**60, 7)  # noqa: E731
    with pytest.raises(StreamError, match="repeats"):
        use(scripted(words), CHUNK + 1)


@pytest.mark.parametrize("use", [draw, draw_laplace])
def test_equal_first_words_alone_are_no_fault(use: Callable[[Stream, int], None]) -> None:
    use(scripted(lambda i: (2**60 + 12345, i)), 100)


@pytest.mark.parametrize("use", [draw, draw_laplace, read])
def test_a_short_stream_is_noticed(use: Callable[[Stream, int], None]) -> None:
    with pytest.raises(StreamError, match="bytes instead of"):
        use(scripted(lambda i: (i, i), short=16), 10)


def test_extensions_end() -> None:
    with pytest.raises(StreamError, match="undecided"):
        list(fixed_stream().extension("cells", 1, 2))


def test_known_answer_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    check_cipher.cache_clear()
    check_cipher()
    check_cipher.cache_clear()
    monkeypatch.setattr("discreet.noise.stream._ecb", lambda key, counters: np.zeros((1, 2), dtype=np.uint64))
    with pytest.raises(StreamError, match="known-answer"):
        AesBlocks(bytes(32))
    check_cipher.cache_clear()


@pytest.mark.parametrize(("first", "n"), [(-1, 1), (0, -1), (2**63, 1), (2**63 - 1, 2)])
def test_cells_outside_the_numbering_are_refused(first: int, n: int) -> None:
    with pytest.raises(ParameterError):
        list(fixed_stream().words(first, n))


def test_no_cells_no_words() -> None:
    assert list(fixed_stream().words(5, 0)) == []
    assert DiscreteLaplace(Fraction(1)).draw(fixed_stream(), 5, 0).size == 0
