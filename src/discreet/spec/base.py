"""Base models of declarations: unknown keys are refused, nothing is guessed. And the base model of declared tables; the
registry knows the methods."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SerializeAsAny, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from discreet.privacy.exact import format_exact
from discreet.privacy.ledger.events import Name

if TYPE_CHECKING:
    from discreet.domain import Domain
    from discreet.spec.release import Release


LONGEST_LINE = 120  # of what a refusal suggests to write
ColumnName = Annotated[str, Field(min_length=1, max_length=200)]


class Strict(BaseModel):
    """A model that refuses unknown keys, naming the nearest known one, and keys of earlier versions, with the line as
    it should be now (`renamed`). Values are not coerced. `needs` says what a missing key is for."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    needs: ClassVar[Mapping[str, str]] = {}
    renamed: ClassVar[Mapping[str, str]] = {}  # earlier name → present name

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for key, value in data.items():
                if key not in cls.model_fields:
                    known = [name for name in cls.model_fields if name != "base"]
                    if (new := cls.renamed.get(key)) is not None:
                        text = renamed(key, new, value, cls.model_fields[new].annotation)
                    else:
                        text = unknown(str(key), known)
                    raise PydanticCustomError("unknown_key", "{text}", {"text": text, "key": str(key)})
            for key, why in cls.needs.items():
                if key not in data:
                    raise ValueError(f"key {key!r} is missing: {why}")
        return data


def unknown(word: str, known: list[str], what: str = "key") -> str:
    """«unknown key 'epsilno'; did you mean 'epsilon'?»"""
    close = difflib.get_close_matches(word, known, 1, cutoff=0.6)
    return f"unknown {what} {word!r}; " + (f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}")


def renamed(old: str, new: str, value: Any, annotation: Any = None) -> str:
    """«key 'minimum' is now called 'suppress_below': write `suppress_below: 30`», with keys within the value renamed.
    Of a value that does not fit into a short line, only the key is written."""
    text = f"key {old!r} is now called {new!r}"
    if isinstance(value, dict):
        inner = {key: name for model in _models(annotation) for key, name in model.renamed.items()}
        value = {inner.get(key, key): item for key, item in value.items()}
    try:
        line = yaml.dump({new: value}, Dumper=_OneLine, default_flow_style=True, allow_unicode=True, width=math.inf)
    except (yaml.YAMLError, RecursionError, ValueError):  # a Python object that YAML has no text for
        line = ""
    line = line.strip()[1:-1]
    short = line and "\n" not in line and len(line) <= LONGEST_LINE
    return f"{text}: write `{line}`" if short else f"{text}: write the same value there"


class _OneLine(yaml.SafeDumper):
    """Without aliases, which declarations may not have; keys keep their order; a fraction is a text."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - overridden
        return True


_OneLine.add_representer(dict, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data.items()))
_OneLine.add_representer(Fraction, lambda dumper, data: dumper.represent_data(format_exact(data)))


def _models(annotation: Any) -> list[type[Strict]]:
    """The models that a field can hold."""
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, Strict) else []
    return [model for part in get_args(annotation) for model in _models(part)]


def within(least: Fraction | int, most: Fraction | int) -> Callable[[Fraction], Fraction]:
    """A validator: the number lies in this range."""

    def check(number: Fraction) -> Fraction:
        if not least <= number <= most:
            raise ValueError(f"lies outside {format_exact(Fraction(least))} … {format_exact(Fraction(most))}")
        return number

    return check


def short(field: str, known: str) -> BeforeValidator:
    """`bins: pseo` for {standard: pseo}, `layout: lehd` for {kind: lehd}."""

    def expand(data: Any) -> Any:
        if isinstance(data, str) and data != known:
            raise ValueError(f"expected {known!r}, or keys and values; found {data!r}")
        return {field: data} if isinstance(data, str) else data

    return BeforeValidator(expand)


class TableSpec(Strict):
    """A declared table of any method. Each method adds its keys and derived properties."""

    method: str
    name: Name
    by: list[str]
    recodable: ClassVar[bool] = False  # whether its noisy measurements can be kept and recoded
    all_or_none: ClassVar[bool] = False  # whether a unit with too many records contributes none

    @property
    def where(self) -> str:
        """Its path in error messages."""
        return f"tables.{self.name}"

    @property
    def place(self) -> str:
        """Its path in error messages of its method."""
        return f"table {self.name}"

    @property
    def names(self) -> list[str]:
        """The names of all tables that it publishes."""
        return [self.name]

    @property
    def files(self) -> list[str]:
        """Public files, beyond code lists, that affect what is published."""
        return []

    @property
    def code(self) -> list[str]:
        """Python files that it names, which will be run."""
        return []

    @property
    def labelled(self) -> bool:
        """Whether it publishes labels of codes."""
        return False

    def domains(self, release: Release) -> dict[str, Domain]:
        """Every domain that it names: the cells of each published table, and others that determine membership."""
        return {self.name: self.cells(release)}

    def cells(self, release: Release) -> Domain:
        """The cells of its `by` attributes."""
        return release.domain(self.by, self.where)

    def families(self, release: Release) -> Mapping[str, list[Domain]]:  # noqa: ARG002 - overridden
        """Families of cells that a table borrows strength from, by its name, the widest first."""
        return {}


def _methods() -> Mapping[str, str]:
    """The registry, imported late: the declarations of methods import this package."""
    methods: Mapping[str, str] = import_module("discreet.methods").METHODS
    return methods


def _declared(data: Any) -> Any:
    """A table as its method's model. Errors in it are passed on with their path."""
    if not isinstance(data, dict):
        return data
    known = _methods()
    if "method" not in data:
        raise ValueError(f"key 'method' is missing; known methods: {', '.join(known)}")
    if not isinstance(name := data["method"], str) or name not in known:
        raise ValueError(unknown(str(name), list(known), "method"))
    declared: type[TableSpec] = getattr(import_module(f"discreet.methods.{name}.spec"), known[name])
    try:
        return declared.model_validate(data)
    except ValidationError as error:
        raise PydanticCustomError("table", "{title}", {"title": name, "first": first_error(error)}) from None


def first_error(error: ValidationError) -> dict[str, Any]:
    """The first error, with its path from this model."""
    first: dict[str, Any] = dict(error.errors(include_url=False)[0])
    while first["type"] == "table":
        inner = first["ctx"]["first"]
        first = {**inner, "loc": (*first["loc"], *inner["loc"])}
    return first


Table = Annotated[SerializeAsAny[TableSpec], BeforeValidator(_declared)]
