"""Who is hidden: the short form that people write."""

from __future__ import annotations

from typing import Any

from discreet.spec.strict import unknown

_UNIT_KEYS = {"person": "max_records", "job": "max_records", "establishment": "alpha"}


def parse_budget_unit(data: Any) -> Any:
    """As `parse_unit`, without max_records: a budget does not say how a release keeps its promise."""
    if isinstance(data, dict) and "max_records" in data:
        raise ValueError("a budget has no 'max_records'; each release says how many it keeps")
    open_ended = isinstance(data, dict) and "kind" not in data and "alpha" not in data
    parsed = parse_unit({**data, "max_records": 1} if open_ended else data)
    return {key: value for key, value in parsed.items() if key != "max_records"}


def parse_unit(data: Any) -> Any:
    """`record`, or {person: COLUMN, max_records: 2}, {job: …}, {establishment: …, alpha: …, adversary: …}."""
    if data == "record":
        return {"kind": "record"}
    if not isinstance(data, dict) or "kind" in data:
        return data
    kinds = [kind for kind in _UNIT_KEYS if kind in data]
    if len(kinds) != 1:
        raise ValueError(
            "names no unit: write `record`, {person: COLUMN, max_records: N}, {job: COLUMN, max_records: N}, "
            "{establishment: COLUMN, alpha: …, adversary: strong|weak} or {establishment: COLUMN, whole: true, "
            "max_records: N}"
        )
    kind, rest = kinds[0], {k: v for k, v in data.items() if k not in (*kinds, "whole")}
    if "whole" in data and (kind != "establishment" or not isinstance(data["whole"], bool)):
        raise ValueError("`whole` is true or false, and only an establishment has it")
    whole = data.get("whole") is True
    allowed = ["alpha", "adversary"] if kind == "establishment" and not whole else ["max_records"]
    for key in rest:
        if key not in allowed:
            raise ValueError(unknown(str(key), [*_UNIT_KEYS, *allowed]))
    for key in allowed:
        if key not in rest:
            raise ValueError(f"needs {key!r}: there is no default")
    return {"kind": "whole_establishment" if whole else kind, "column": data[kind], **rest}
