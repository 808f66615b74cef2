"""The command about recoding."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

import discreet
from discreet.cli.options import Spec
from discreet.formatting import plural, say


def recode_groups(
    spec: Spec,
    old: Annotated[Path, typer.Argument(help="The list of groups that were measured, CSV.", metavar="OLD.CSV")],
    new: Annotated[Path, typer.Argument(help="Where to write the new list.", metavar="NEW.CSV")],
    only: Annotated[Optional[list[str]], typer.Option(help="Take this recoded column, drop the others.")] = None,  # noqa: UP045
    leave_out: Annotated[Optional[list[str]], typer.Option(help="Drop this column.")] = None,  # noqa: UP045
) -> None:
    """The list of groups in a new classification that an old list can become, for a release with `recode`."""
    from discreet.methods.recode.groups import write_groups

    number = write_groups(discreet.release(spec).spec, old, new, only or [], leave_out or [])
    say(f"{new}: {plural(number, 'group')}.")


def add(app: typer.Typer) -> None:
    app.command("recode-groups")(recode_groups)
