"""What `import discreet` exports: complete annotations, and no `Any` where the ecosystem has types."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

import discreet
from discreet import Counts, Earnings, Employer, Flows, Hypercube, Sensitivity
from discreet.methods import METHODS

EXPORTS = [name for name in discreet.__all__ if name != "__version__"]
EXCEPTIONS = {  # JSON documents, whose content is a server's
    "Client.metadata",
    "Client.tables",
}


def annotations(name: str) -> Iterator[tuple[str, str]]:
    """Each public parameter, result and field of an export, with its annotation as text; empty if it has none."""
    export = getattr(discreet, name)
    if not isinstance(export, type):
        yield from _of_function(name, export) if callable(export) else ()
        return
    for owner in export.__mro__:
        if not owner.__module__.startswith("discreet"):
            continue
        for field, annotation in vars(owner).get("__annotations__", {}).items():
            if not field.startswith("_"):
                yield f"{name}.{field}", str(annotation)
        for member, value in vars(owner).items():
            function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            function = getattr(function, "func", function)  # a cached property
            if inspect.isfunction(function) and (not member.startswith("_") or _written(function, owner)):
                yield from _of_function(f"{name}.{member}", function)


def _written(function: Any, owner: type) -> bool:
    """`__init__` and its kind, unless a dataclass or pydantic has generated it."""
    return function.__name__ == "__init__" and inspect.getsourcefile(function) == inspect.getsourcefile(owner)


def _of_function(name: str, function: Any) -> Iterator[tuple[str, str]]:
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.name not in ("self", "cls"):
            yield f"{name}.{parameter.name}", _text(parameter.annotation)
    yield name, _text(signature.return_annotation)


def _text(annotation: object) -> str:
    return "" if annotation is inspect.Signature.empty else str(annotation)


@pytest.mark.parametrize("name", EXPORTS)
def test_every_exported_name_is_typed(name: str) -> None:
    for where, annotation in annotations(name):
        assert annotation, f"{where} has no annotation"
        assert where in EXCEPTIONS or not re.search(r"\bAny\b", annotation), f"{where}: {annotation}"


def test_the_tester_finds_what_is_missing() -> None:
    class Bare:
        field: Any

        def method(self, untyped):  # type: ignore[no-untyped-def]
            return untyped

    Bare.__module__ = "discreet.example"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discreet, "Bare", Bare, raising=False)
        actual = dict(annotations("Bare"))
    assert actual == {"Bare.field": "Any", "Bare.method.untyped": "", "Bare.method": ""}


def test_every_method_has_its_declaration_class() -> None:
    exported = {Counts, Earnings, Employer, Flows, Hypercube, Sensitivity}
    assert {declaration.__name__ for declaration in exported} == set(METHODS.values())
    assert all(issubclass(declaration, BaseModel) for declaration in exported)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="'discreet' has no attribute 'publish_all'"):
        _ = discreet.publish_all  # type: ignore[attr-defined]
