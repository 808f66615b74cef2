"""The public list of groups in the new classification: every group to which a group of the old list can map."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from discreet.domain import Key
from discreet.domain.codelists import csv_lines, read_columns
from discreet.errors import DomainError, PublishError, SpecError
from discreet.methods.recode.classifications import Classifications
from discreet.methods.recode.transitions import new_groups
from discreet.spec import Release, unknown


def write_groups(release: Release, old: Path, new: Path, only: Sequence[str], leave_out: Sequence[str]) -> int:
    """Write the list of groups to which an old list can map; returns their number."""
    if release.recode is None:
        raise SpecError("has no key 'recode'", where=f"release {release.release}", do="declare the recoding first")
    text, number = list_new_groups(Classifications(release.recode, release.base), old, only, leave_out)
    if new.exists():
        raise PublishError("exists already", where=str(new), do="name a file that does not exist yet")
    new.write_text(text, encoding="utf-8")
    return number


def list_new_groups(
    files: Classifications, old: Path, only: Sequence[str], leave_out: Sequence[str]
) -> tuple[str, int]:
    """The new list as CSV, and its number of groups.

    `only` keeps some of the recoded columns and drops the others: a table that was published by two digits needs a list
    of its own, since its codes can map to codes that no four-digit code of the institution maps to. `leave_out` drops
    columns without new values, such as the finest code.
    """
    with csv_lines(old, f"file {old.name}") as lines:
        columns = next(lines, [])
    if missing := next((column for column in leave_out if column not in columns), None):
        raise SpecError(unknown(missing, columns, "column"), where="--leave-out")
    header = [column for column in columns if column not in leave_out]
    known = list(files.spec.columns)
    if missing := next((column for column in only if column not in known), None):
        raise SpecError(f"{missing!r} is not a recoded column", where="--only", do=f"name some of {', '.join(known)}")
    dropped = [column for column in known if only and column not in only]
    header = [column for column in header if column not in dropped]
    codes = tuple(column for column in header if column in known)
    if not codes:
        raise DomainError(
            f"has none of the recoded columns {', '.join(known)}",
            where=f"file {old.name}",
            do="name the list of groups of the original release",
        )
    others = [column for column in header if column not in codes]
    rows = read_columns(old, [*codes, *others], "groups")
    _refuse_relatives(rows, codes, others, old.name)
    groups = [(row[: len(codes)], row[len(codes) :]) for row in rows]
    mapped = new_groups(groups, files.published(codes), files.overrides(codes))
    places = [([*codes, *others]).index(column) for column in header]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for code, key in mapped:
        whole = (*code, *key)
        writer.writerow([whole[place] for place in places])
    return text.getvalue(), len(mapped)


def _refuse_relatives(rows: Sequence[Key], codes: Sequence[str], others: Sequence[str], name: str) -> None:
    """Refuse columns that look like codes of the same classification, which would keep their old values."""
    for place, column in enumerate(others, start=len(codes)):
        pairs = {(row[at], row[place]) for row in rows for at in range(len(codes))}
        if pairs and all(one.startswith(other) or other.startswith(one) for one, other in pairs):
            raise DomainError(
                f"column {column!r} has codes of the same classification, and would keep the old ones",
                where=f"file {name}",
                do=f"declare it in recode.columns, or drop it: --leave-out {column}",
            )
