"""Reading release.yaml: errors name the line, the key and what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from discreet import formats
from discreet.errors import SpecError
from discreet.spec import Release
from discreet.spec.base import first_error


class _Loader(yaml.SafeLoader):
    """YAML without the surprises of version 1.1: 010 is not 8, 1:30 is not 90, NO is not false, a date is text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("null", "float", "merge")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789"))

DEEPEST = 100  # lists and keys within each other
_SAYS = {
    "missing": "key {key!r} is missing",
    "string_type": "expected text, found {kind}; quote it if it is a code or a number",
    "int_type": "expected an integer, found {kind}",
    "bool_type": "expected true or false, found {kind}",
    "list_type": "expected a list, found {kind}",
    "dict_type": "expected keys and values, found {kind}",
    "model_type": "expected keys and values, found {kind}",
    "model_attributes_type": "expected keys and values, found {kind}",
    "literal_error": "expected {expected}, found {kind}",
    "greater_than_equal": "must be at least {ge}, found {kind}",
    "less_than_equal": "must be at most {le}, found {kind}",
    "string_pattern_mismatch": "must be letters, digits, '_', '-' or '.', beginning with a letter or digit",
}


def load(path: str | Path) -> Release:
    """The release that a YAML file describes."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SpecError("does not exist", where=str(path), do="check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"cannot be read ({type(error).__name__})", where=str(path), do="give a text file") from None
    return parse(text, path.name, path.absolute().parent)


def parse(text: str, name: str = "release.yaml", base: Path | None = None) -> Release:
    """The release that this YAML text describes; paths in it are relative to `base`."""
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_Loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            line = event.start_mark.line + 1 if event.start_mark else 1
            if isinstance(event, yaml.AliasEvent):
                raise SpecError("aliases are not supported", where=f"{name}, line {line}", do="write the value out")
            if depth > DEEPEST:  # the time of the YAML parser grows with the square
                raise SpecError("is nested too deeply", where=f"{name}, line {line}", do="close what is open")
        node = yaml.compose(text, Loader=_Loader)
        _no_duplicate_keys(node, name)
        data = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader with fewer surprises
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SpecError(f"is not YAML ({error.problem})", where=f"{name}, line {line}", do="correct the line") from None
    except (yaml.YAMLError, ValueError, LookupError, ArithmeticError, AttributeError, TypeError, RecursionError):
        raise SpecError("is not YAML", where=name, do="write keys and values as in the README") from None
    if not isinstance(data, dict):
        raise SpecError("expected keys and values", where=name, do="start from the example in the README")
    return build(data, base or Path.cwd(), name, node)


def build(data: dict[str, Any], base: Path, name: str = "release", node: yaml.Node | None = None) -> Release:
    """The release that these keys and values describe."""
    if "base" in data:
        raise SpecError("unknown key 'base'", where=name)
    if (version := data.get("format", formats.SPEC)) != formats.SPEC or type(version) is not int:
        raise formats.other(
            repr(version)[:20],
            str(formats.SPEC),
            name,
            SpecError,
            f"write `format: {formats.SPEC}` as the reference says, or use the version of discreet it was written for",
        )
    try:
        return _valid(data, base, name, node)
    except (PydanticSerializationError, UnicodeEncodeError):
        raise SpecError("contains text that is not Unicode", where=name, do="remove lone surrogates") from None


def _valid(data: dict[str, Any], base: Path, name: str, node: yaml.Node | None) -> Release:
    try:
        release = Release.model_validate({**data, "base": base})
        release.model_dump_json()
        return release
    except ValidationError as error:
        raise _refusal(first_error(error), name, node) from None


def _refusal(error: Any, name: str, node: yaml.Node | None) -> SpecError:
    loc = error["loc"] if error["type"] != "unknown_key" else (*error["loc"], error["ctx"]["key"])
    path, line = _place(loc, node)
    key = str(error["loc"][-1]) if error["loc"] else ""
    kind = _kind(error.get("input"))
    says = _SAYS.get(error["type"])
    text = (
        says.format(key=key, kind=kind, **error.get("ctx", {})) if says else error["msg"].removeprefix("Value error, ")
    )
    if error["type"] == "missing":
        path = path.rpartition(".")[0] if path.endswith(key) else path
    where = f"{name}, line {line}" if line else name
    return SpecError(text.rstrip("."), where=f"{where}, {path}" if path else where)


def _kind(value: object) -> str:
    names = {type(None): "nothing", list: "a list", dict: "keys and values", bool: "true/false"}
    return names.get(type(value), f"{value!r}" if isinstance(value, int | str) else type(value).__name__)


def _place(loc: tuple[Any, ...], node: yaml.Node | None) -> tuple[str, int | None]:
    """The path as the user wrote it (union tags left out) and the line of its deepest part that exists."""
    parts: list[str] = []
    line = None
    for step in loc:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == str(step)), None)
            tag = pair is not None and isinstance(pair[1], yaml.ScalarNode) and step is not loc[-1]
            if pair is None or tag:  # pydantic puts a union's tag into the path
                continue
            line, node = pair[0].start_mark.line + 1, pair[1]
            parts.append(str(step))
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
            parts[-1:] = [f"{parts[-1]}[{step}]"] if parts else [f"[{step}]"]
        elif node is None:
            parts.append(str(step))
    return ".".join(parts), line


def _no_duplicate_keys(node: yaml.Node | None, name: str) -> None:
    """Duplicate keys are rejected: YAML would silently keep the last one."""
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                line = key.start_mark.line + 1
                raise SpecError("a key must be text", where=f"{name}, line {line}", do="write a plain key")
            if key.value in seen:
                line = key.start_mark.line + 1
                raise SpecError(f"duplicate key {key.value!r}", where=f"{name}, line {line}", do="keep one")
            seen.add(key.value)
            _no_duplicate_keys(value, name)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _no_duplicate_keys(item, name)
