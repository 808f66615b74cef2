"""The command that opens published releases to people and programs."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.screen import say


def serve(
    folders: Annotated[list[str], typer.Argument(help="Folders of published releases.", metavar="FOLDER")],
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 for every one.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any free one.", min=0, max=65_535)] = 8000,
    prefix: Annotated[str, typer.Option(help="The path that a reverse proxy has it under, such as /statistics.")] = "",
    workers: Annotated[int, typer.Option(help="Processes that answer.", min=1, max=256)] = 1,
    max_cells: Annotated[int, typer.Option(help="Numbers of one answer.", min=1)] = 100_000,
    trust_proxy: Annotated[
        bool, typer.Option("--trust-proxy", help="Count calls by the X-Forwarded-For of the proxy in front.")
    ] = False,
) -> None:
    """Published releases on the web. Opens published files only, every one verified."""
    from discreet.serve.server import planned
    from discreet.serve.server import serve as run

    plan = planned(
        folders,
        host=host,
        port=port,
        prefix=prefix,
        workers=workers,
        max_cells=max_cells,
        trust_proxy=trust_proxy,
    )
    run(plan, say)


def add(app: typer.Typer) -> None:
    """This command beside the others."""
    app.command()(serve)
