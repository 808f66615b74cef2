"""Pseudorandom mutations of declarations and published folders: of bytes, texts and structures, the same in every run.
Each mutation carries a description."""

from __future__ import annotations

import copy
import datetime as dt
import json
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import yaml

Path = tuple[Any, ...]

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 1000, 2**31, 2**63, -(2**63) - 1, 2**64, 10**30, 10**400, 0.0, -0.0, 0.5, -1.5,
    1e308, 5e-324, float("nan"), float("inf"), float("-inf"), "", " ", "0", "-1", "1/2", "1/0", "0/1", "1e999999999",
    "1e-400", "NaN", "inf", "1_000", "0x10", "²", "١٢", "true", "all", "null", "*", "a", "=1", "\0", "a\0b", "\n",
    "\x1b[2J", "\u202e", "\ud800", "\ufeff", "é", "e\u0301", "😀", "/", ".", "..", "../../x", "a/b", "file:///nowhere",
    "C:\\x", "x" * 300, "x" * 10_000, "9" * 30, "1e" + "9" * 20, [], [[]], [None], ["a", "a"], [0], [[1, 2], 3],
    ["x"] * 1000, {}, {"": ""}, {"a": None}, {"a": {"b": [{}]}}, {"name": "a"}, {"1": 2}, {"x" * 200: "x" * 200},
]  # fmt: skip
YAML_VALUES: list[Any] = [
    dt.date(2020, 1, 1),
    dt.datetime(2020, 1, 1, 12),
    b"\0\xff",
    {"a"},
    {None: 1},
    {1: 2},
    {True: 3},
]
SNIPPETS = [
    r'"\UFFFFFFFF"', r'"\U00110000"', r'"\uD800"', r'"\uDC00\uD800"', r'"\x00"', r'"\e[2J"', r'"\N\_\L\P"', r'"\q"',
    r'"\x"', '!!binary "AA=="', '!!binary "?"', "!!binary [a]", '!!python/object/apply:os.system ["x"]',
    "!!timestamp 2020-01-01", "!!timestamp x", "!!set {a, b}", "!!omap [a: 1]", "!!pairs [a: 1]", "!!int x", "!!int ''",
    "!!int '-'", "!!float x", "!!float ''", "!!bool x", "!!null x", "!!str", "!!str {a: b}", "!!map x", "!!seq {a: b}",
    "!!merge x", "!<tag:x> y", "! x", "!", "!!", "!a!b c", "&a [*a]", "*a", "&a x", "{<<: {a: b}}", "{<<: [a]}",
    "{<<: x}", "{? [a, b] : c}", "{? {a: b} : c}", "{[a]: b}", "{a, b}", "{a: 1, a: 2}", "|\n x", ">-\n\n x", "---",
    "...", "- - - -", "%YAML 3.0", "\t", ".nan", "-.inf", "1e999", "0x1F", "0o7", "010", "1:30", "2020-01-01",
    "2020-99-99", "2020-01-01T99:99:99Z", "9" * 5000, "1e" + "9" * 50, "'", '"', ",", ":", "?", "-", "[", "]", "{", "}",
    "#", "[" * 100 + "]" * 100, "[" * 3000, "[" * 3000 + "]" * 3000, "{a: " * 1500, "{a: " * 1500 + "x" + "}" * 1500,
    "@a", "`a", "~", "=", "<<", "yes", "x" * 100_000,
]  # fmt: skip
BYTES = [
    b"\0",
    b"\xff",
    b"\xfe\xff",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"\xef\xbb\xbf",
    b"\xf4\x90\x80\x80",
    b"\x85",
    b"\r",
    b"\n\n",
    b"\x1b",
]
SCALAR = re.compile(r"(?<=[:\-,\[] )[^\s\[\]{},#][^\n\[\]{},#]*")
SECONDS = 60


class Mutation:
    """One of many, by its seed and number. `said` is what was done."""

    def __init__(self, seed: str, number: int) -> None:
        self.random, self.said = Random(f"{seed}/{number}"), list[str]()

    def text(self, data: Any) -> bytes:
        """A declaration as YAML, changed somewhere."""
        way = self.random.random()
        if way < 0.55:
            return self._yaml(self.structure(data, [*VALUES, *YAML_VALUES], self.random.choice([1, 1, 1, 2, 3])))
        actual = self._yaml(data).decode()
        if way < 0.8:
            places = [match.span() for match in SCALAR.finditer(actual)]
            first, last = self.random.choice(places)
            snippet = self.random.choice(SNIPPETS)
            self.said.append(f"{actual[first:last]!r} became {snippet[:80]!r}")
            return (actual[:first] + snippet + actual[last:]).encode("utf-8", "surrogatepass")
        return self.bytes(actual.encode())

    def _yaml(self, data: Any) -> bytes:
        options = {"sort_keys": False, "default_flow_style": self.random.choice([None, None, True, False])}
        return str(yaml.dump(data, Dumper=_Dumper, **options)).encode("utf-8", "surrogatepass")  # type: ignore[call-overload]

    def json(self, content: bytes, indent: int | None = None) -> bytes:
        """A JSON document, changed somewhere."""
        if self.random.random() < 0.1:
            return self.bytes(content)
        if self.random.random() < 0.05:
            self.said.append("nested deeply")
            return b'{"a": ' * 3000 + b"1" + b"}" * 3000
        data = self.structure(json.loads(content), VALUES, self.random.choice([1, 1, 1, 2, 3]))
        return json.dumps(data, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")

    def bytes(self, content: bytes) -> bytes:
        """Any bytes, changed somewhere."""
        actual = bytearray(content)
        for _ in range(self.random.choice([1, 1, 2, 8])):
            at, size = self.random.randrange(len(actual) + 1), self.random.choice([1, 1, 4, 40])
            way = self.random.choice(["flip", "insert", "delete", "repeat", "cut"])
            if way == "flip" and at < len(actual):
                actual[at] ^= 1 << self.random.randrange(8)
            elif way == "insert":
                actual[at:at] = self.random.choice([*BYTES, self.random.randbytes(size)])
            elif way == "delete":
                del actual[at : at + size]
            elif way == "repeat":
                actual[at:at] = actual[max(at - size, 0) : at] * self.random.choice([1, 3])
            elif way == "cut" and self.random.random() < 0.2:
                del actual[at:]
            self.said.append(f"{way} {size} bytes at {at}")
        return bytes(actual)

    def structure(self, data: Any, values: list[Any], times: int) -> Any:
        """Keys and values: replaced, removed, doubled, renamed, wrapped, taken from elsewhere."""
        data = copy.deepcopy(data)
        for _ in range(times):
            places = list(_places(data))
            if not places:
                break
            path = self.random.choice(places)
            above, key = _at(data, path[:-1]), path[-1]
            way = self.random.choice(["value"] * 4 + ["elsewhere"] * 2 + ["remove", "rename", "wrap", "double", "type"])
            new: Any = None
            if way == "remove":
                del above[key]
            elif way == "rename" and isinstance(above, dict):
                new = self.random.choice(
                    ["", "x", "name", "method", key + "s" if isinstance(key, str) else "x", " ", "base"]
                )
                above[new] = above.pop(key)
            elif way == "double" and isinstance(above, list):
                above.insert(key, copy.deepcopy(above[key]))
            else:
                new = self._new(way, above[key], data, values, places)
                above[key] = new
            self.said.append(
                f"{'.'.join(map(str, path))}: {way} {new!r}"[:300].encode("ascii", "backslashreplace").decode()
            )
        return data

    def _new(self, way: str, old: Any, data: Any, values: list[Any], places: list[Path]) -> Any:
        if way == "elsewhere":
            return copy.deepcopy(_at(data, self.random.choice(places)))
        if way == "wrap":
            return self.random.choice([[old], {"a": old}, {"name": old}, [old, old]])
        if way == "type":
            if isinstance(old, str):
                return self.random.choice(
                    [list(old), {old: old}, len(old), old + "\0", old.upper(), old * 50, f" {old} "]
                )
            if isinstance(old, bool | int | float):
                return self.random.choice([str(old), -old, old + 1, old * 10**9, float(old), [old]])
            if isinstance(old, list):
                return self.random.choice([dict.fromkeys(map(str, old), 1), old[::-1], old * 3, str(old), old[:1]])
            if isinstance(old, dict):
                return self.random.choice([list(old), list(old.values()), str(old), {**old, "x": 1}])
        return copy.deepcopy(self.random.choice(values))


def _places(data: Any, path: Path = ()) -> Iterator[Path]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from _places(value, (*path, key))


def _at(data: Any, path: Path) -> Any:
    for key in path:
        data = data[key]
    return data


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


class TooSlow(BaseException):
    """A mutation that exceeds the time limit."""


@contextmanager
def in_time(seconds: int = SECONDS) -> Iterator[None]:
    """Whatever takes longer is stopped."""

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def survived(call: Callable[[], object], refusals: tuple[type[Exception], ...]) -> str:
    """Empty if it answers or refuses; else what was raised, and where."""
    try:
        with in_time():
            call()
    except refusals:
        return ""
    except (Exception, TooSlow) as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
        return f"{type(error).__name__} at {place}: {str(error)[:300]}"
    return ""
