"""The trust boundary: confidential values reveal nothing, and only grants mark values as protected."""

import ast
import copy
import json
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.errors import ReleaseKeyError
from discreet.noise.key import ReleaseKey
from discreet.noise.stream import Stream
from discreet.privacy.confidential import Confidential, Reservation
from discreet.privacy.protected import Protected
from support.ledger_fakes import cost, reserve

SECRET = 8231946057
SRC = Path(discreet.__file__).parent
LEAKS: dict[str, Callable[[Confidential[Any]], object]] = {
    "repr": repr,
    "str": str,
    "format": lambda c: f"{c} {c!r} {c!s} {c:>40}",
    "percent": lambda c: "%s %r" % (c, c),  # noqa: UP031
    "in a list": lambda c: repr([c, {"x": c}]),
    "dict": lambda c: getattr(c, "__dict__", ""),
    "dir": dir,
    "json": lambda c: json.dumps({"x": c}),
    "json with str": lambda c: json.dumps({"x": c}, default=str),
    "pickle": pickle.dumps,
    "pickle 0": lambda c: pickle.dumps(c, 0),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "iterate": list,
    "unpack": lambda c: [*c],
    "length": len,
    "number": int,
    "index": lambda c: c[0],
    "hash": hash,
    "vars": vars,
    "sort": lambda c: sorted([c, c]),
    "add": lambda c: c + 1,
    "contains": lambda c: SECRET in c,
}


@pytest.mark.parametrize("name", LEAKS)
@pytest.mark.parametrize("value", [SECRET, [SECRET], {"n": SECRET}, str(SECRET)], ids=["int", "list", "dict", "str"])
def test_nothing_shows_a_confidential_value(name: str, value: Any) -> None:
    try:
        shown = str(LEAKS[name](Confidential(value)))
    except TypeError as error:
        shown = "".join(traceback.format_exception(error))
    assert str(SECRET) not in shown


@pytest.mark.parametrize("name", ["pickle", "pickle 0", "copy", "deepcopy", "iterate", "unpack", "hash", "vars"])
def test_ways_out_are_refused(name: str) -> None:
    with pytest.raises(TypeError):
        LEAKS[name](Confidential(SECRET))


def test_equality_reveals_nothing() -> None:
    one, two = Confidential(1), Confidential(1)
    assert (one == two) is False
    assert (one == 1) is False
    assert (one != two) is True
    assert bool(Confidential(0)) is bool(one) is True


def test_a_function_of_confidential_data_is_confidential() -> None:
    mapped = Confidential(20).map(lambda n: n + 1)
    assert isinstance(mapped, Confidential)
    assert mapped.open_confidential() == 21


def test_protected_values_keep_their_guarantee_and_mark() -> None:
    key = ReleaseKey.simulation("wall")
    binding = key.mac([b"data"])
    made = Reservation(reserve(binding=binding.hex()), key, binding).protect(20, cost())
    assert made.map(lambda n: n + 1) == Protected(21, cost(), simulated=True)
    with pytest.raises(AttributeError):
        made.value = 3  # type: ignore[misc]


def test_a_worker_grant_protects_as_its_reservation_does_and_is_serializable() -> None:
    for key in (ReleaseKey.simulation("wall"), ReleaseKey.generate()):
        binding = key.mac([b"data"])
        reservation = Reservation(reserve(binding=binding.hex()), key, binding)
        sent = pickle.dumps(reservation.worker_grant(cost()))
        assert key.expose() not in sent
        made = pickle.loads(sent).protect(20)
        assert made == reservation.protect(20, cost()) == Protected(20, cost(), simulated=key.simulated)


def test_a_real_key_marks_nothing() -> None:
    key = ReleaseKey.generate()
    binding = key.mac([b"data"])
    assert not Reservation(reserve(binding=binding.hex()), key, binding).protect(0, cost()).simulated


@pytest.mark.parametrize("other", [b"", b"x", bytes(32)])
def test_a_key_bound_to_other_data_gives_no_reservation(other: bytes) -> None:
    key = ReleaseKey.simulation("wall")
    with pytest.raises(ReleaseKeyError, match="bound to other data"):
        Reservation(reserve("r", binding=key.mac([b"data"]).hex()), key, other)


def test_streams_belong_to_release_table_spec_and_purpose() -> None:
    def words(table: str, purpose: str, release: str = "r", spec: str = "00") -> tuple[int, int]:
        key = ReleaseKey.simulation("wall")
        binding = key.mac([b"data"])
        reservation = Reservation(reserve(release, binding=binding.hex(), spec=spec), key, binding)
        return Stream.from_secret(reservation.secret(table, purpose).expose()).block(0)

    seen = [words("t", "p"), words("t", "q"), words("u", "p"), words("t", "p", "s"), words("t", "p", spec="01")]
    assert len(set(seen)) == len(seen)
    assert words("t", "p") == seen[0]


# --- who may make a protected value ---------------------------------------------------------------------------------

MAKERS = {"privacy/protected.py", "privacy/confidential.py"}


def makes_protected(tree: ast.AST) -> bool:
    """Whether some call, of any spelling, constructs `Protected`, or the licence to do so, or rewrites one."""
    aliases = set(makers := ("Protected", "WorkerGrant"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            aliases |= {a.asname for a in node.names if a.name.split(".")[-1] in makers and a.asname}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Subscript):
                called = called.value
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in aliases or (name == "replace" and "dataclasses" in ast.unparse(node.func)):
                return True
    return False


@pytest.mark.parametrize(
    "source",
    [
        "from discreet.privacy.protected import Protected\nProtected(1, g, False)",
        "from discreet.privacy.protected import Protected as P\nP(1, g, False)",
        "import discreet.privacy.protected as p\np.Protected(1, g, False)",
        "from discreet.privacy.protected import Protected\nx = Protected[int](1, g, False)",
        "import dataclasses\ndataclasses.replace(made, value=truth)",
        "from discreet.privacy.confidential import WorkerGrant\nWorkerGrant(g, False).protect(truth)",
        "from discreet.privacy.confidential import WorkerGrant as L\nL(g, False)",
        "import discreet.privacy.confidential as r\nr.WorkerGrant(g, False)",
    ],
)
def test_the_scan_sees_every_spelling(source: str) -> None:
    assert makes_protected(ast.parse(source))
    assert not makes_protected(ast.parse("def f(x: Protected[int]) -> Protected[int]: return x.map(g)"))


def test_only_a_reservation_makes_protected_values() -> None:
    actual = {
        file.relative_to(SRC).as_posix()
        for file in SRC.rglob("*.py")
        if makes_protected(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert actual == MAKERS
