"""One hierarchy of exceptions, each with what, where and what to do."""

import ast
import inspect
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet import errors
from discreet.errors import DiscreetError
from support.hypothesis_profile import examples

properties = examples(60)

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)]
words = st.text(min_size=1).filter(str.strip)


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_is_a_refusal_with_a_docstring(kind: type[DiscreetError]) -> None:
    assert issubclass(kind, DiscreetError)
    assert kind.__doc__
    error = kind("is wrong", where="tables[0]", do="mend it")
    assert str(error) == "tables[0]: is wrong. Mend it."
    assert (error.what, error.where, error.do) == ("is wrong", "tables[0]", "mend it")


def test_parts_may_be_missing() -> None:
    assert str(DiscreetError("is wrong")) == "is wrong."
    assert str(DiscreetError("is wrong", where="x")) == "x: is wrong."
    assert str(DiscreetError("is wrong", do="mend it")) == "is wrong. Mend it."


@properties
@given(words, words, words)
def test_the_message_contains_every_part(what: str, where: str, do: str) -> None:
    text = str(DiscreetError(what, where=where, do=do))
    assert text.startswith(f"{where}: {what}. ")
    assert text.endswith(f"{do[1:]}.")


def makers() -> set[str]:
    """Functions that are declared to return a refusal."""
    kinds = {kind.__name__ for kind in KINDS}
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in Path(discreet.__file__).parent.rglob("*.py"))
    functions = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {f.name for f in functions if f.returns is not None and ast.unparse(f.returns) in kinds}


def raises() -> list[tuple[str, int, str]]:
    """Every `raise Name(…)` in the source."""
    root, actual = Path(discreet.__file__).parent, []
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                actual.append((file.relative_to(root).as_posix(), node.lineno, ast.unparse(node.exc.func)))
    return actual


def test_refusals_come_from_the_hierarchy() -> None:
    """What a user can meet is a DiscreetError; the exceptions below never reach one as they are."""
    ours = {kind.__name__ for kind in KINDS}
    elsewhere = {
        "ValueError",
        "PydanticCustomError",
        "refusal",
        "TypeError",
        "AttributeError",
        "StopIteration",
        "typer.Exit",
        "typer.BadParameter",
    }
    made = makers()
    wild = [p for p in raises() if p[2] not in ours | elsewhere and p[2].rpartition(".")[2] not in made]
    assert wild == []
    assert len(raises()) > 50
