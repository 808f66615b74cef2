"""The codebook: every file, column and code of a release, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from discreet import formats
from discreet.domain import Attribute
from discreet.privacy.guarantee import Guarantee
from discreet.publish.tables import SIMULATION, in_words

FILES = ("codebook.json", "codebook.md")


@dataclass(frozen=True)
class TableDoc:
    """What the codebook says about one table."""

    name: str
    files: tuple[str, ...]
    about: str
    columns: tuple[tuple[str, str, str], ...]  # name, type, meaning
    attributes: tuple[Attribute, ...]
    additive: Mapping[str, object] | None = None  # the column that adds up, variance and fourth cumulant of its noise


def as_json(
    release: str, tables: list[TableDoc], layouts: Mapping[str, str], simulated: bool, recoded: str = ""
) -> str:
    """Columns, their types and all their codes, with labels where the code list has them."""
    content = {
        "format": formats.CODEBOOK,
        "release": release,
        "notice": SIMULATION if simulated else "",
        "tables": {t.name: _table(t) for t in tables},
        "layouts": dict(layouts),
        **({"recoded": recoded} if recoded else {}),
        "attributes": {a.name: _attribute(a) for t in tables for a in t.attributes},
    }
    return _lines(content, 3) + "\n"


def _lines(value: object, depth: int, margin: str = "") -> str:
    """JSON with a line for each key down to some depth. Python indents long lists of codes slowly."""
    if depth == 0 or not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = margin + " "
    lines = (f"{inner}{json.dumps(key, ensure_ascii=False)}: {_lines(v, depth - 1, inner)}" for key, v in value.items())
    return "{\n" + ",\n".join(lines) + f"\n{margin}}}"


def _table(table: TableDoc) -> dict[str, object]:
    columns = [{"name": name, "type": kind, "meaning": meaning} for name, kind, meaning in table.columns]
    found: dict[str, object] = {"files": list(table.files), "about": table.about, "columns": columns}
    return found if table.additive is None else {**found, "additive": table.additive}


def _attribute(attribute: Attribute) -> dict[str, object]:
    return {
        "columns": list(attribute.columns),
        "codes": attribute.published,
        "labels": [*attribute.labels, *([attribute.undeclared] if attribute.other else [])]
        if attribute.labels
        else None,
        "undeclared": attribute.undeclared or "dropped",
        "provenance": attribute.provenance,
    }


def as_markdown(
    release: str,
    guarantee: Guarantee,
    tables: list[TableDoc],
    layouts: Mapping[str, str],
    simulated: bool,
    recoded: str = "",
) -> str:
    """The same for reading."""
    lines = [f"# {release}", ""]
    lines += [f"**{SIMULATION}**", ""] if simulated else []
    lines += ["## What is promised", "", in_words(guarantee, simulated), ""]
    lines += [f"- Caveat: {caveat}" for caveat in guarantee.caveats] + [""] * bool(guarantee.caveats)
    lines += ["## Recoded", "", recoded, ""] if recoded else []
    for table in tables:
        lines += [f"## {table.name}", "", table.about, "", f"Files: {_files(table.files)}", ""]
        lines += ["| column | type | meaning |", "|---|---|---|"]
        lines += [f"| {' | '.join(_cell(text) for text in column)} |" for column in table.columns]
        lines += [""]
    if layouts:
        lines += ["## Further files", "", "| file | what it is |", "|---|---|"]
        lines += [f"| {name} | {_cell(about)} |" for name, about in layouts.items()] + [""]
    lines += ["All codes and labels are in codebook.json.", ""]
    return "\n".join(lines)


def _files(names: tuple[str, ...]) -> str:
    """The files of a table; of many parts the first and the last."""
    return ", ".join(names if len(names) <= 4 else (names[0], "…", names[-1])) + f" ({len(names)} files)" * (
        len(names) > 4
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
