"""The codebook: every file, column and code of a release, as JSON and as Markdown."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from discreet import formats
from discreet.publish.description import CODEBOOKS, SIMULATION, guarantee_text

if TYPE_CHECKING:
    from discreet.domain import Attribute
    from discreet.publish.description import PublishedTable, ReleaseDescription


def codebooks(description: ReleaseDescription) -> dict[str, str]:
    """The codebook files, by name."""
    return dict(zip(CODEBOOKS, (as_json(description), as_markdown(description)), strict=True))


def as_json(description: ReleaseDescription) -> str:
    """Columns, their types and all codes, with labels where the code list has them."""
    simulated, recoded = description.simulated, description.recoding_source
    content = {
        "format": formats.CODEBOOK,
        "release": description.release,
        "notice": SIMULATION if simulated else "",
        "tables": {table.name: _table(table, simulated) for table in description.tables},
        "layouts": description.further_files,
        **({"recoded": recoded.about} if recoded is not None else {}),
        "attributes": {name: _attribute(attribute) for name, attribute in description.attributes.items()},
    }
    return _lines(content, 3) + "\n"


def _lines(value: object, depth: int, margin: str = "") -> str:
    """JSON with one line per key down to `depth`; `json.dumps(indent=…)` is slow on long lists of codes."""
    if depth == 0 or not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = margin + " "
    lines = (f"{inner}{json.dumps(key, ensure_ascii=False)}: {_lines(v, depth - 1, inner)}" for key, v in value.items())
    return "{\n" + ",\n".join(lines) + f"\n{margin}}}"


def _table(table: PublishedTable, simulated: bool) -> dict[str, object]:
    columns = [asdict(column) for column in table.columns]
    entry: dict[str, object] = {"files": table.files(simulated), "about": table.contents, "columns": columns}
    return entry if table.additive is None else {**entry, "additive": asdict(table.additive)}


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


def as_markdown(description: ReleaseDescription) -> str:
    """The codebook as Markdown; codes and labels are left to the JSON file."""
    guarantee, simulated = description.guarantee, description.simulated
    lines = [f"# {description.release}", ""]
    lines += [f"**{SIMULATION}**", ""] if simulated else []
    lines += ["## Privacy guarantee", "", guarantee_text(guarantee, simulated), ""]
    lines += [f"- Caveat: {caveat}" for caveat in guarantee.caveats] + [""] * bool(guarantee.caveats)
    lines += (
        ["## Recoding", "", description.recoding_source.about, ""] if description.recoding_source is not None else []
    )
    for table in description.tables:
        lines += [f"## {table.name}", "", table.contents, "", f"Files: {_files(table.files(simulated))}", ""]
        lines += ["| column | type | meaning |", "|---|---|---|"]
        lines += [f"| {' | '.join(map(_cell, (c.name, c.type, c.meaning)))} |" for c in table.columns]
        lines += [""]
    if further := description.further_files:
        lines += ["## Further files", "", "| file | contents |", "|---|---|"]
        lines += [f"| {name} | {_cell(about)} |" for name, about in further.items()] + [""]
    lines += ["All codes and labels are in codebook.json.", ""]
    return "\n".join(lines)


def _files(names: list[str]) -> str:
    """The files of a table; the first and the last if there are many parts."""
    return ", ".join(names) if len(names) <= 4 else f"{names[0]}, …, {names[-1]} ({len(names)} files)"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
