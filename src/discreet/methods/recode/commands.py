"""The command `recode-groups`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

import discreet
from discreet.cli.options import Spec
from discreet.formatting import plural, say


def recode_groups(
    spec: Spec,
    old: Annotated[Path, typer.Argument(help="The list of groups of the original release, CSV.", metavar="OLD.CSV")],
    new: Annotated[Path, typer.Argument(help="Where to write the new list.", metavar="NEW.CSV")],
    only: Annotated[Optional[list[str]], typer.Option(help="Keep this recoded column, drop the others.")] = None,  # noqa: UP045
    leave_out: Annotated[Optional[list[str]], typer.Option(help="Drop this column.")] = None,  # noqa: UP045
) -> None:
    """List groups in a new classification.

    All groups that the groups of an old list can become, for a release with `recode`.
    """
    from discreet.methods.recode.groups import write_groups

    number = write_groups(discreet.release(spec).spec, old, new, only or [], leave_out or [])
    say(f"{new}: {plural(number, 'group')}.")


def add(app: typer.Typer) -> None:
    app.command("recode-groups")(recode_groups)
