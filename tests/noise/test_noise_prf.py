"""SipHash-2-4 against the vectors published by its authors."""

import pyarrow as pa
import pytest

from discreet.errors import ParameterError
from discreet.noise.prf import siphash_text

KEY = bytes(range(16))
# vectors_sip64 of the reference implementation: messages 00 01 02 … of length 0 to 15, little-endian
PUBLISHED = [
    "310e0edd47db6f72", "fd67dc93c539f874", "5a4fa9d909806c0d", "2d7efbd796666785",
    "b7877127e09427cf", "8da699cd64557618", "cee3fe586e46c9cb", "37d1018bf50002ab",
    "6224939a79f5f593", "b0e4a90bdf82009e", "f3b9dd94c5bb5d7a", "a7ad6b22462fb3f4",
    "fbe50e86bc8f1e75", "903d84c02756ea14", "eef27a8e90ca23f7", "e545be4961ca29a1",
]  # fmt: skip


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_published_vectors(kind: pa.DataType) -> None:
    messages = pa.array([bytes(range(n)) for n in range(16)], type=kind)
    assert siphash_text(KEY, messages).astype("<u8").tobytes().hex() == "".join(PUBLISHED)


def test_slices_and_kinds_agree() -> None:
    texts = ["", "a", "Zürich", "x" * 300, "a"]
    whole = siphash_text(KEY, pa.array(texts))
    assert whole[1] == whole[4]
    assert (siphash_text(KEY, pa.array(texts, type=pa.large_string())) == whole).all()
    assert (siphash_text(KEY, pa.array(["zz", *texts, "y"])[1:-1]) == whole).all()
    assert (siphash_text(bytes(16), pa.array(texts)) != whole).all()
    assert siphash_text(KEY, pa.array([], type=pa.string())).size == 0


def test_missing_texts_other_types_and_keys_are_refused() -> None:
    for key, texts in ((KEY, pa.array(["a", None])), (KEY, pa.array([1])), (KEY[:8], pa.array(["a"]))):
        with pytest.raises(ParameterError):
            siphash_text(key, texts)
