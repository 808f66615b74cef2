"""Keys: derivation, secrecy, the binding code."""

import copy
import hashlib
import hmac
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ReleaseKeyError
from discreet.noise.key import ReleaseKey, encode_labels
from discreet.noise.stream import Stream

LABELS = st.lists(st.one_of(st.text(max_size=5), st.binary(max_size=5)), max_size=4)


def hkdf(key: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869 written out, salt absent."""
    secret = hmac.new(bytes(32), key, hashlib.sha256).digest()
    out, block = b"", b""
    for i in range(1, 9):
        block = hmac.new(secret, block + info + bytes([i]), hashlib.sha256).digest()
        out += block
    return out[:length]


def test_subkey_is_hkdf_of_the_encoded_labels() -> None:
    key = ReleaseKey.simulation("a")
    assert key.subkey("x", b"y", length=40) == hkdf(key.expose(), encode_labels(("x", b"y")), 40)


@given(LABELS, LABELS)
def test_labels_are_encoded_injectively(a: list[str | bytes], b: list[str | bytes]) -> None:
    assert (encode_labels(a) == encode_labels(b)) == (a == b)


def test_streams_of_different_names_differ() -> None:
    key = ReleaseKey.simulation("a")
    names = [("r", "t", b"d", "p"), ("rt", "", b"d", "p"), ("r", "t", b"dp", ""), ("r", "t", b"d", "q")]
    assert len({key.stream(*name).block(0) for name in names}) == len(names)


def test_mac_is_hmac_of_length_prefixed_parts_and_takes_a_generator() -> None:
    key = ReleaseKey.simulation("a")
    text = b"".join(len(p).to_bytes(8, "big") + p for p in (b"ab", b"", b"c"))
    assert key.mac(p for p in (b"ab", b"", b"c")) == hmac.new(key.subkey("binding"), text, "sha256").digest()
    assert key.mac([b"ab", b"c"]) != key.mac([b"a", b"bc"])


def test_a_key_is_never_shown_pickled_copied_or_hashed() -> None:
    key = ReleaseKey.generate()
    shown = repr(key) + str(key) + f"{key}" + repr(key.stream("r", "t", b"", "p"))
    assert key.expose().hex() not in shown
    assert repr(key.expose()) not in shown
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(ReleaseKeyError):
            attempt(key)
        with pytest.raises(ReleaseKeyError):
            attempt(key.stream("r", "t", b"", "p"))
    with pytest.raises(TypeError):
        hash(key)


def test_a_secret_is_never_shown_pickled_or_copied() -> None:
    secret = ReleaseKey.generate().secret("x", length=16)
    assert len(secret.expose()) == 16
    for shown in (repr(secret), str(secret), f"{secret}", repr([secret]), f"{(secret,)}"):
        assert secret.expose().hex() not in shown
        assert repr(secret.expose())[2:-1] not in shown
    assert not hasattr(secret, "__dict__")
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(ReleaseKeyError, match="cannot be pickled"):
            attempt(secret)


def test_a_secret_is_the_subkey_and_a_stream_its_own() -> None:
    key = ReleaseKey.simulation("a")
    assert key.secret("x", b"y").expose() == key.subkey("x", b"y")
    assert key.secret("x", length=16).expose() == key.subkey("x", length=16)
    name = ("r", "t", b"d", "p")
    assert key.stream_secret(*name).expose() == key.subkey("stream", *name)
    assert key.stream(*name).block(7) == Stream.from_secret(key.stream_secret(*name).expose()).block(7)


def test_simulation_keys_are_fixed_and_marked() -> None:
    assert ReleaseKey.simulation("a") == ReleaseKey.simulation("a") != ReleaseKey.simulation("b")
    assert ReleaseKey.simulation("a").simulated
    assert not ReleaseKey.generate().simulated
    assert ReleaseKey.generate() != ReleaseKey.generate()
    with pytest.raises(ReleaseKeyError):
        ReleaseKey(b"short", simulated=True)
