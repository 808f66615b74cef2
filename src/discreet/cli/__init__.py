"""The command line. Heavy modules are imported inside the commands: `--help` answers at once."""

from __future__ import annotations

import io
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from discreet.cli import ledger, releases, serve
from discreet.errors import DiscreetError
from discreet.formatting import cut, refuse, say, visible
from discreet.methods import COMMANDS
from discreet.version import __version__

app = typer.Typer(
    help="Disclosure avoidance for labour-market statistics: differential privacy, with a ledger of privacy budgets.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
INTERRUPTED = 130
WRONG_USAGE: Any = typer.BadParameter.__mro__[2]  # base class of all usage errors, which typer does not name
INTERRUPT = (  # perhaps during `resume`, or right after a reservation: claim nothing about what is spent
    "discreet: interrupted. `discreet ledger show` says whether a release is reserved; `discreet resume` completes it."
)


def console() -> NoReturn:
    """Run a command in a process of its own, and end the process."""
    from discreet.cli.ending import end

    status: object = 0
    try:
        main()
    except SystemExit as ended:
        status = ended.code or 0
    end(status if isinstance(status, int) else 1)


def main() -> None:
    """The command line of discreet."""
    as_command(app)


def as_command(app: typer.Typer) -> NoReturn:
    """Run a command; an error is one line on standard error and exit code 1 (2 for wrong usage)."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, signal.default_int_handler)  # clean up as after Ctrl-C
    try:
        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # how typer reports Ctrl-C
            say(INTERRUPT, err=True)
        sys.exit(code)
    except WRONG_USAGE as error:
        sys.exit(_usage(error))
    except DiscreetError as error:
        refuse(error)
        sys.exit(1)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        refuse(f"{place}{error.strerror or type(error).__name__}.")
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 - a traceback could quote a record
        refuse(_internal(error))
        sys.exit(70)


def _usage(error: Any) -> int:
    """Print typer's message, which quotes the arguments; gives the exit code."""
    message = io.StringIO()
    error.show(message)
    for line in message.getvalue().rstrip("\n").split("\n"):
        say(cut(visible(line)), err=True)
    return int(error.exit_code)


def _internal(error: Exception) -> str:
    """Where a programming error happened, without its message, which may quote a confidential value."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}" if trace else "unknown place"
    return f"internal error ({type(error).__name__} in {place}). Please report it, and see `discreet ledger show`."


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        say(f"discreet {__version__}")
        raise typer.Exit


for module in (releases, *map(import_module, COMMANDS), serve, ledger):
    module.add(app)
