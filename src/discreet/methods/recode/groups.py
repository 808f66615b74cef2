"""The list of groups that a recoding needs, written from the old one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from discreet.errors import PublishError, SpecError
from discreet.methods.recode.classifications import Classifications
from discreet.methods.recode.groups_list import recoded_list
from discreet.spec import Release


def write_groups(release: Release, old: Path, new: Path, only: Sequence[str], leave_out: Sequence[str]) -> int:
    """Write the list of groups that an old list can become; how many there are."""
    if release.recode is None:
        raise SpecError("has no key 'recode'", where=f"release {release.release}", do="declare the recoding first")
    text, number = recoded_list(Classifications(release.recode, release.base), old, only, leave_out)
    if new.exists():
        raise PublishError("exists already", where=str(new), do="name a file that does not exist yet")
    new.write_text(text, encoding="utf-8")
    return number
