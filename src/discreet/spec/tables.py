"""What the declarations of all methods have in common. Which methods there are, the registry knows."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, SerializeAsAny, ValidationError
from pydantic_core import PydanticCustomError

from discreet.privacy.ledger.events import Name
from discreet.spec.strict import Strict, unknown

if TYPE_CHECKING:
    from discreet.domain import Domain
    from discreet.spec.release import Release


class TableSpec(Strict):
    """A declared table, of whatever method. A method adds its keys, and says what follows from them."""

    method: str
    name: Name
    by: list[str]
    recodable: ClassVar[bool] = False  # whether its measurements can be kept and moved to another classification
    all_or_none: ClassVar[bool] = False  # whether a unit with too many records has none that count

    @property
    def where(self) -> str:
        """As a refusal calls it."""
        return f"tables.{self.name}"

    @property
    def place(self) -> str:
        """The same, of what its method refuses."""
        return f"table {self.name}"

    @property
    def names(self) -> list[str]:
        """Everything that it publishes under a name of its own."""
        return [self.name]

    @property
    def files(self) -> list[str]:
        """The public files, beyond code lists, that decide what is published."""
        return []

    @property
    def code(self) -> list[str]:
        """Python files that it names, which are run."""
        return []

    @property
    def labelled(self) -> bool:
        """Whether labels of codes are published in it."""
        return False

    def domains(self, release: Release) -> dict[str, Domain]:
        """Every domain that it names: the cells of each published table, and what else decides who counts where."""
        return {self.name: self.cells(release)}

    def cells(self, release: Release) -> Domain:
        """The cells that it is by."""
        return release.domain(self.by, self.where)

    def similar_to(self, release: Release) -> Mapping[str, list[Domain]]:  # noqa: ARG002 - overridden
        """Families of cells that a table borrows from, by its name, the widest first."""
        return {}


def _methods() -> Mapping[str, str]:
    """The registry, by name and not by import: a method's declaration is made of this package."""
    found: Mapping[str, str] = import_module("discreet.methods").METHODS
    return found


def _declared(data: Any) -> Any:
    """A table as its method declares it. What is wrong in it is handed on with its place."""
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
    """What is wrong first, where from here."""
    found: dict[str, Any] = dict(error.errors(include_url=False)[0])
    while found["type"] == "table":
        inner = found["ctx"]["first"]
        found = {**inner, "loc": (*found["loc"], *inner["loc"])}
    return found


Table = Annotated[SerializeAsAny[TableSpec], BeforeValidator(_declared)]
