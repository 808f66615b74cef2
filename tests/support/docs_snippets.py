"""Fenced blocks of a Markdown page, and how to run them in order. The convention stands in CONTRIBUTING."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.repository import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    """One fenced block: its language, the rest of its info string, its text and where it stands."""

    language: str
    title: str
    body: str
    line: int


@dataclass(frozen=True)
class Command:
    """A line after `$ ` with the output that is shown below it."""

    text: str
    shown: str


class Mismatch(AssertionError):
    """A page shows something else than what happens."""


def snippets(text: str) -> list[Snippet]:
    """All fenced blocks, in order."""
    actual = []
    for match in _FENCE.finditer(text):
        language, _, rest = match["info"].strip().partition(" ")
        title = rest.partition("title=")[2].strip()
        actual.append(Snippet(language, title, match["body"], text.count("\n", 0, match.start()) + 1))
    return actual


def without_fences(text: str) -> str:
    """The page's prose: blocks blanked out, line numbers kept."""
    return _FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)


def commands(body: str) -> list[Command]:
    """The commands of a console block; a trailing backslash continues a line."""
    actual: list[Command] = []
    for line in re.sub(r"\\\n\s*", "", body).splitlines():
        if line.startswith("$ "):
            actual.append(Command(line[2:], ""))
        elif actual:
            actual[-1] = Command(actual[-1].text, actual[-1].shown + line + "\n")
        else:
            raise Mismatch(f"a console block begins with output: {line!r}")
    return actual


def pattern(shown: str) -> re.Pattern[str]:
    """`…` alone on a line stands for any lines, elsewhere for any text of one line."""
    parts = []
    for line in shown.rstrip("\n").split("\n"):
        if line.strip() == "…":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(r"[^\n]*".join(re.escape(piece) for piece in line.rstrip().split("…")) + r"[ ]*\n")
    return re.compile("".join(parts))


def compare(command: Command, printed: str, line: int) -> None:
    """Where output is shown it must be the whole output; standard error counts as well, after standard output."""
    text = printed if printed.endswith("\n") or not printed else printed + "\n"
    if command.shown.strip() and not pattern(command.shown).fullmatch(text):
        raise Mismatch(f"block at line {line}, `{command.text}`\n--- shown\n{command.shown}--- printed\n{text}")


class Session:
    """A reader at a terminal and at a Python prompt, in one folder. An unexpected refusal is a failure."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "docs"}
        self.ran = 0

    def run(self, snippet: Snippet) -> None:
        if snippet.title:
            path = Path(snippet.title)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(snippet.body, encoding="utf-8")
        elif snippet.language == "console":
            for command in commands(snippet.body):
                self._command(command, snippet.line)
        elif snippet.language == "python":
            code = compile("\n" * snippet.line + snippet.body, "snippet", "exec")
            with redirect_stdout(io.StringIO()):
                exec(code, self.names)
            self.ran += 1

    def _command(self, command: Command, line: int) -> None:
        text, refused = re.subn(r"\s+#\s*refused$", "", command.text)
        code, printed = _discreet(text) if re.match(r"discreet [^|;&>]*$", text) else _shell(text)
        if bool(code) != bool(refused):
            raise Mismatch(f"block at line {line}, `{command.text}` ended with {code}:\n{printed}")
        compare(command, printed, line)
        self.ran += 1


def _discreet(text: str) -> tuple[int, str]:
    """The command line in this process: a second faster than a new one."""
    from discreet.cli import main

    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, shlex.split(text)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.argv = before
    refusal = err.getvalue() if code else ""  # progress goes to standard error as well
    return code, out.getvalue() + refusal


def _shell(text: str) -> tuple[int, str]:
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")
