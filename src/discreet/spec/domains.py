"""Declared domains: public categories that are listed, from code lists, hierarchies, or lists of groups."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from discreet.domain import Attribute, codelists
from discreet.privacy.ledger.events import Name
from discreet.spec.base import ColumnName, Strict

Width = Annotated[int, Field(ge=1, le=100)]


class OtherRule(Strict):
    """Undeclared values are recoded to this category."""

    other: Name


class _DomainSpec(Strict):
    undeclared: Literal["drop", "other"] | OtherRule = "drop"
    provenance: str = ""

    @property
    def other(self) -> str | None:
        rule = self.undeclared
        return rule.other if isinstance(rule, OtherRule) else "other" if rule == "other" else None


class _OneColumn(_DomainSpec):
    column: ColumnName | None = None
    width: Width | None = None


class ValuesDomain(_OneColumn):
    """Categories listed in the declaration."""

    values: list[str]

    def attributes(self, name: str, base: Path) -> list[Attribute]:  # noqa: ARG002 - one signature for all
        return [Attribute.flat(name, self.values, None, self.column or name, self.other, self.provenance, self.width)]


class CodesDomain(_OneColumn):
    """Categories from one column of a code-list file."""

    codes: str
    code: ColumnName | None = None
    label: ColumnName | None = None

    def attributes(self, name: str, base: Path) -> list[Attribute]:
        path, code = base / self.codes, self.code or name
        return [
            codelists.from_codes(
                name, path, code, self.label, self.column or name, self.other, self.provenance, self.width
            )
        ]


class HierarchyDomain(_OneColumn):
    """Nested codes, finest first: every level can be published; coarser ones follow from the finest."""

    hierarchy: str
    levels: Annotated[list[ColumnName], Field(min_length=1)]

    def attributes(self, name: str, base: Path) -> list[Attribute]:
        path, column = base / self.hierarchy, self.column or self.levels[0]
        return codelists.from_hierarchy(path, self.levels, column, self.other, self.provenance, name, self.width)


class GroupsDomain(_DomainSpec):
    """A public list of groups, with its provenance. `coarser` names other columns of the list by which groups are
    aggregated: every group lies in one group of that attribute."""

    groups: str
    columns: Annotated[list[ColumnName], Field(min_length=1)]
    source_columns: list[ColumnName] | None = None
    width: dict[ColumnName, Width] = {}
    coarser: dict[Name, Annotated[list[ColumnName], Field(min_length=1)]] = {}
    provenance: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _as_many(self) -> GroupsDomain:
        if self.source_columns is not None and len(self.source_columns) != len(self.columns):
            raise ValueError("source_columns needs one name for each of columns")
        if strange := next((column for column in self.width if column not in self.columns), None):
            raise ValueError(f"width names {strange!r}, which is none of columns")
        return self

    def attributes(self, name: str, base: Path) -> list[Attribute]:
        source = self.source_columns or self.columns
        path, shown = base / self.groups, {name: self.columns, **self.coarser}
        return codelists.from_groups(name, path, shown, source, self.other, self.provenance, self.width)


_DOMAINS: dict[str, type[_DomainSpec]] = {
    "values": ValuesDomain,
    "codes": CodesDomain,
    "hierarchy": HierarchyDomain,
    "groups": GroupsDomain,
}


def _domain_kind(data: Any) -> str | None:
    if isinstance(data, dict):
        return next((kind for kind in _DOMAINS if kind in data), None)
    return next((kind for kind, model in _DOMAINS.items() if type(data) is model), None)


DomainSpec = Annotated[
    Annotated[ValuesDomain, Tag("values")]
    | Annotated[CodesDomain, Tag("codes")]
    | Annotated[HierarchyDomain, Tag("hierarchy")]
    | Annotated[GroupsDomain, Tag("groups")],
    Discriminator(
        _domain_kind,
        custom_error_type="domain",
        custom_error_message="needs one of values, codes, hierarchy or groups",
    ),
]
