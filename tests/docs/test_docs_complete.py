"""What can be typed, raised or read must be documented. The lists come from the code, never from here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, get_args

import pytest
import typer.main
import yaml
from pydantic import BaseModel

import discreet
from discreet import cli, errors, spec
from discreet.methods import METHODS
from discreet.privacy import guarantee
from discreet.privacy.ledger import events
from discreet.publish import manifest
from discreet.spec import release
from discreet.synth import __main__ as synth
from discreet_studies.cli import app as studies
from support.docs_snippets import ROOT

REFERENCE = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
SOURCES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src/discreet").rglob("*.py")}


def section(text: str, heading: str) -> str:
    """From a heading to the next one of the same or a higher level."""
    match = re.search(rf"^(#+) {re.escape(heading)}.*$", text, re.MULTILINE)
    assert match, f"no section {heading!r}"
    rest = text[match.end() :]
    end = re.search(rf"^#{{1,{len(match[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def undocumented(words: Iterable[str], text: str) -> list[str]:
    """The words that do not stand within `ticks`, as whole words."""
    code = "\n".join(re.findall(r"`([^`\n]+)`", text))
    return [word for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", code)]


def models(module: Any) -> list[type[BaseModel]]:
    return [m for m in vars(module).values() if isinstance(m, type) and issubclass(m, BaseModel) and m is not BaseModel]


def spec_keys() -> set[str]:
    """Every key of every model of the spec, and the short forms of the unit."""
    modules = [import_module(f"{spec.__name__}.{actual.name}") for actual in iter_modules(spec.__path__)]
    modules += [import_module(f"discreet.methods.{name}.spec") for name in METHODS]
    actual = {key for module in modules for model in models(module) for key in model.model_fields} - {"base", "kind"}
    return actual | set(release._UNIT_KEYS) | {"whole", "max_records", "alpha", "adversary", "record"}


def unit_keys() -> set[str]:
    return {key for member in get_args(get_args(guarantee.Unit)[0]) for key in member.model_fields} - {"kind", "column"}


def command_tree(group: Any = None, words: str = "discreet") -> Iterator[tuple[str, Any]]:
    """Every command with what is typed to reach it."""
    group = group or typer.main.get_command(cli.app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from command_tree(command, f"{words} {name}")
        else:
            yield f"{words} {name}", command


def options(command: Any) -> list[str]:
    return [o for p in command.params for o in (*p.opts, *p.secondary_opts) if o.startswith("--") and o != "--help"]


COMMANDS = {
    **dict(command_tree()),
    **dict(command_tree(typer.main.get_command(studies), "discreet-studies")),
}


def test_every_spec_key_is_documented() -> None:
    keys = spec_keys() | unit_keys()
    assert {"epsilon", "round_to", "source_columns", "undeclared", "postgres"} <= keys
    assert not undocumented(keys, section(REFERENCE, "release.yaml"))


def test_every_method_has_its_page() -> None:
    for name in METHODS:
        assert (ROOT / f"docs/methods/{name}.md").is_file()


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_and_option_is_documented(words: str) -> None:
    text = section(REFERENCE, f"`{words}")
    assert not undocumented(options(COMMANDS[words]), text)


def test_no_documented_option_is_gone() -> None:
    for words, command in COMMANDS.items():
        shown = re.findall(r"^\| (`--.*?) \|", section(REFERENCE, f"`{words}"), re.MULTILINE)
        assert set(re.findall(r"--[\w-]+", " ".join(shown))) == set(options(command)), words


def test_every_invented_agency_and_its_options_are_documented() -> None:
    (agencies,) = (action for action in synth._parser()._actions if isinstance(action.choices, dict))
    assert {"graduates", "occupations"} <= set(agencies.choices)
    for name, command in agencies.choices.items():
        text = section(REFERENCE, f"`python -m discreet.synth {name}`")
        known = {o for action in command._actions for o in action.option_strings if o.startswith("--")} - {"--help"}
        assert set(re.findall(r"`(--[\w-]+)`", text)) == known, name


def test_every_error_is_documented_with_cause_and_cure() -> None:
    names = [e.__name__ for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.DiscreetError)]
    text = section(REFERENCE, "Errors")
    assert len(names) > 8
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.MULTILINE))
    assert set(rows) == set(names)
    assert all(re.fullmatch(r".+ \| .+", row) for name, row in rows.items() if name != "DiscreetError")


def test_every_environment_variable_is_documented() -> None:
    names = {name for text in SOURCES.values() for name in re.findall(r"\bDISCREET_[A-Z_]+\b", text)}
    assert {"DISCREET_KEYS", "DISCREET_TMP"} <= names
    assert not undocumented(names, section(REFERENCE, "Environment variables"))


def test_every_python_name_is_documented() -> None:
    names = [f"discreet.{name}" for name in discreet.__all__ if not name.startswith("_")]
    assert not undocumented(names, section(REFERENCE, "Python"))


def test_every_ledger_event_and_its_fields_are_documented() -> None:
    text = section(REFERENCE, "The ledger")
    for model in get_args(get_args(events.Event)[0]):
        kind = model.model_fields["kind"].default
        row = re.search(rf"^\| `{kind}` \| (.*?) \|", text, re.MULTILINE)
        assert row, kind
        assert re.findall(r"`(\w+)`", row[1]) == [f for f in model.model_fields if f != "kind"], kind


def test_every_manifest_field_is_documented() -> None:
    text = section(REFERENCE, "manifest.json")
    fields = {f for model in models(manifest) for f in model.model_fields}
    assert len(fields) > 20
    assert not undocumented(fields, text)


def test_every_file_format_and_ending_is_documented() -> None:
    from discreet.engine.readers import _ENDINGS

    assert not undocumented(_ENDINGS, section(REFERENCE, "Files read"))


def test_every_make_target_is_documented() -> None:
    phony = re.search(r"^\.PHONY:(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert phony
    targets = [f"make {name}" for name in phony[1].split()]
    assert "make demo" in targets
    assert not undocumented(targets, section((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), "Make targets"))


def test_the_tester_finds_what_is_missing() -> None:
    text = "| `epsilon` | … |\n| `--from`, `--to` | … |\n`make test-full` round_to `{person: COLUMN, max_records: N}`"
    known = ("epsilon", "--from", "--to", "make test-full", "person", "max_records")
    assert undocumented(known, text) == []
    missing = ["eps", "round_to", "--fro", "make test", "records"]
    assert undocumented(missing, text) == missing


def test_the_citation_names_this_version_and_the_papers() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "authors", "title", "license"} <= citation.keys()
    assert citation["version"] == discreet.__version__
    bibliography = (ROOT / "docs/bibliography.md").read_text(encoding="utf-8").replace("*", "")
    assert len(citation["references"]) == 5
    assert all(paper["title"] in bibliography for paper in citation["references"])


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 140
