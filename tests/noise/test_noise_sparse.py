"""The sparse form: independent of the split; the right share of cells; ties decided by their own extension."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError, StreamError
from discreet.noise.samplers.discrete import DiscreteLaplace, Magnitude
from discreet.noise.samplers.rounded import LARGEST_LIMIT, Uniform, resolve
from discreet.noise.samplers.sparse import GapQuantile, block_bits
from discreet.noise.stream import AesBlocks, BlockSource, Stream
from support.hypothesis_profile import examples
from support.noise_fakes import Scripted, fixed_stream

F = Fraction


def literal(distribution: DiscreteLaplace, stream: Stream, block: int) -> list[tuple[int, int]]:
    """One block of cells, draw by draw, in interval arithmetic."""
    bits = block_bits(distribution.magnitude)
    actual, at, j = [], -1, 0
    while True:
        word0, word1 = stream.sparse_words(np.array([[block, j]], dtype=np.uint64))[0].tolist()
        at += 1 + resolve(
            GapQuantile(distribution.magnitude).at,
            Uniform(word0, stream.extension("sparse", block, 2 * j)),
            LARGEST_LIMIT,
        )
        if at >= 1 << bits:
            return actual
        given = Magnitude(distribution.rate, distribution.cap, nonzero=True)
        k = resolve(given.at, Uniform(word1, stream.extension("sparse", block, 2 * j + 1)), LARGEST_LIMIT)
        actual.append(((block << bits) + at, -k if word1 >> 63 else k))
        j += 1


@pytest.mark.parametrize(
    "distribution", [DiscreteLaplace(F(14)), DiscreteLaplace(F(5), 1), DiscreteLaplace(F(60))], ids=str
)
def test_blocks_are_the_literal_walk(distribution: DiscreteLaplace) -> None:
    bits = block_bits(distribution.magnitude)
    stream = fixed_stream("sparse")
    expected = [pair for block in range(7, 10) for pair in literal(distribution, stream, block)]
    cells, noise = distribution.sparse(stream, 7 << bits, 3 << bits)
    assert list(zip(cells.tolist(), noise.tolist(), strict=True)) == expected


def test_small_rates_are_the_literal_walk_too() -> None:
    distribution = DiscreteLaplace(F(1, 100))
    stream = fixed_stream("sparse")
    expected = literal(distribution, stream, 1)
    cells, noise = distribution.sparse(stream, 1 << 12, 1 << 12)
    assert list(zip(cells.tolist(), noise.tolist(), strict=True)) == expected


@examples(30)
@given(
    st.sampled_from([DiscreteLaplace(F(3)), DiscreteLaplace(F(14)), DiscreteLaplace(F(8), 2)]),
    st.integers(0, 2**40),
    st.lists(st.integers(0, 10**6), min_size=1, max_size=5),
)
def test_noise_does_not_depend_on_the_split(distribution: DiscreteLaplace, first: int, sizes: list[int]) -> None:
    cells, noise = distribution.sparse(fixed_stream(), first, sum(sizes))
    assert (np.diff(cells) > 0).all()
    assert noise.all()
    assert ((cells >= first) & (cells < first + sum(sizes))).all()
    parts = [
        distribution.sparse(fixed_stream(), first + int(a), int(b - a)) for a, b in pairwise(np.cumsum([0, *sizes]))
    ]
    assert (np.concatenate([c for c, _ in parts]) == cells).all()
    assert (np.concatenate([v for _, v in parts]) == noise).all()


def test_block_size_is_fixed_by_the_distribution() -> None:
    assert block_bits(Magnitude(F(14), None)) == 24
    assert block_bits(Magnitude(F(1), None)) == 12
    assert block_bits(Magnitude(F(1000), None)) == 44
    with ctx.workprec(128):
        for rate in range(7, 25):
            distribution = Magnitude(F(rate), None)
            assert 16 <= distribution.tail(1) * arb(2) ** block_bits(distribution) < 32


def test_the_end_of_the_numbering_and_empty_ranges() -> None:
    distribution = DiscreteLaplace(F(20))
    cells, _ = distribution.sparse(fixed_stream(), 2**63 - 2**36, 2**36)
    assert cells.size > 0
    assert cells.min() >= 2**63 - 2**36
    assert distribution.sparse(fixed_stream(), 5, 0)[0].size == 0
    for first, n in ((2**63, 1), (-1, 5)):
        with pytest.raises(ParameterError):
            distribution.sparse(fixed_stream(), first, n)
    with pytest.raises(ParameterError, match=r"2\^31"):
        DiscreteLaplace(F(1)).sparse(fixed_stream(), 0, 2**40)


def test_a_stuck_sparse_stream_is_noticed() -> None:
    def source(family: str) -> BlockSource:
        return Scripted(lambda i: (5, 5)) if family == "sparse" else AesBlocks(bytes(32))

    with pytest.raises(StreamError, match="repeats"):
        DiscreteLaplace(F(14)).sparse(Stream(source), 0, 1 << 25)


def test_an_undecided_gap_reads_its_own_extension() -> None:
    """A prefix at the boundary between two gaps is decided by extension words, not by word 1."""
    distribution = DiscreteLaplace(F(14))
    gap = GapQuantile(distribution.magnitude)
    with ctx.workprec(400):
        border = (-1000 * gap._rate()).exp()  # gap ≥ 1000 iff U ≤ border
        digits = int((border * arb(2) ** 127).floor().unique_fmpz())
    prefix, rest = digits >> 64, digits & (2**64 - 1)
    for change, expected in ((-1, 1000), (1, 999)):

        def source(family: str, change: int = change) -> BlockSource:
            if family == "sparse":
                return Scripted(lambda i: (prefix if i == 0 else 1, i))
            # block 0, draw 0, part 0 (its gap), index 0 is counter 0; any other would decide otherwise
            return Scripted(lambda i: (rest + change if i == 0 else rest - change, 0))

        cells, _ = distribution.sparse(Stream(source), 0, 1 << 24)
        assert cells[0] == expected


def test_an_undecided_value_reads_its_own_extension() -> None:
    distribution = DiscreteLaplace(F(14))
    given = Magnitude(distribution.rate, None, nonzero=True)
    with ctx.workprec(400):
        digits = int((given.tail(2) * arb(2) ** 127).floor().unique_fmpz())
    prefix, rest = digits >> 64, digits & (2**64 - 1)
    for change, expected in ((-1, 2), (1, 1)):

        def source(family: str, change: int = change) -> BlockSource:
            if family == "sparse":
                return Scripted(lambda i: (2**62 + i if i == 0 else 1, prefix + i))
            return Scripted(lambda i: (rest + change if i == 1 << 32 else rest - change, 0))

        _, noise = distribution.sparse(Stream(source), 0, 1 << 24)
        assert noise[0] == expected
