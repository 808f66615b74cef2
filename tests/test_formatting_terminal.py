"""Printed text shows every character, in any encoding, and is never too long. The command line prints through one
function."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet.cli.output import table_lines
from discreet.formatting import LAST, MOST, cut, say, visible
from discreet.serve.http.problems import problem
from support.agency import Agency, graduates

SOURCE = Path(discreet.__file__).parent
DANGEROUS = [
    *map(chr, range(0x20)), "\x7f", *map(chr, range(0x80, 0xA0)),  # C0, DEL, C1
    *"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c",  # which way it runs
    *"\u200b\u200c\u200d\u2060\ufeff\u00ad\u2028\u2029", "\ud800", "\udcff", "\U000e0041",
]  # fmt: skip
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\u202egnp.exe\u200b\x9b1m\r\nforged line"


@pytest.mark.parametrize("character", DANGEROUS, ids=ascii)
def test_invisible_characters_are_escaped(character: str) -> None:
    actual = visible(f"a{character}b")
    assert actual.isprintable()
    assert character not in actual
    assert actual.startswith("a\\")
    assert actual.encode().decode("unicode_escape") == f"a{character}b"


@given(st.text())
def test_a_line_is_one_line_that_can_be_printed_everywhere(text: str) -> None:
    actual = visible(text)
    assert not set(actual) & set(DANGEROUS)
    actual.encode()
    assert visible(actual) == actual


@pytest.mark.parametrize("text", ["plain", "ε ≤ 4 × 2⁵², “Zürich”, 東京, עברית, 😀", "C:\\new", ""])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", "cp1252"])
def test_printing_never_fails_for_want_of_an_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n")
    monkeypatch.setattr(sys, "stdout", stream)
    say("ε × \ud800 😀")
    written = stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    assert written.endswith("\n")
    assert "\\ud800" in written
    assert (written == "ε × \\ud800 😀\n") == (encoding == "utf-8")


@given(st.integers(0, 3 * MOST))
def test_a_long_text_is_cut_with_a_mark(length: int) -> None:
    text = "a" * length + "end"
    actual = cut(text)
    assert actual.endswith("end")
    if len(text) <= MOST:
        assert actual == text
    else:
        assert f" […{len(text) - MOST:,} characters left out…] " in actual
        assert len(actual) < MOST + 50
        assert actual.endswith(text[-LAST:])


def test_a_refusal_of_the_server_is_cut() -> None:
    body = bytes(problem(400, "x" * 100_000).body)
    assert len(body) < MOST + 300
    assert b"characters left out" in body


def test_columns_of_a_table_stay_below_each_other() -> None:
    lines = table_lines(pa.table({"co\x1bde": ["a\x1b[31m", "b"], "n": [1, 2]}))
    assert lines == ["co\\x1bde   n", "a\\x1b[31m  1", "b          2"]


def test_everything_is_printed_in_one_way() -> None:
    """But one line of numbers that is written over."""
    actual = []
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in ("print", "typer.echo", "sys.stdout.write", "sys.stderr.write", "sys.stdout.writelines"):
                    actual.append(f"{file.relative_to(SOURCE)}: {called}")
    assert actual == ["synth/__main__.py: sys.stderr.write"]


# --- as people call it


def command(folder: Path, *words: str, encoding: str = "utf-8") -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    code = "from discreet.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *words], cwd=folder, env=environment, capture_output=True, check=False
    )


def harmless(done: subprocess.CompletedProcess[bytes]) -> str:
    """What was printed, if nothing in it acts on a terminal."""
    text = (done.stdout + done.stderr).decode()
    assert not set(text) & (set(DANGEROUS) - {"\n"})
    assert "\nforged line" not in text
    return text


def test_examples_of_records_do_nothing_to_a_terminal(agency: Agency) -> None:
    table = graduates().to_pydict()
    table["state"][:50] = [ESCAPES] * 50
    agency.write(pa.table(table))
    done = command(agency.folder, "check", str(agency.spec()), "--examples")
    assert "forged line" in harmless(done)


@pytest.mark.parametrize(
    "words",
    [
        ("plan", f"{ESCAPES}.yaml"),
        ("query", ESCAPES),
        ("serve", ESCAPES),
        ("check-layout", ESCAPES),
        ("ledger", "show", "--ledger", ESCAPES),
        ("plan", "release.yaml", f"--{ESCAPES}"),
        ("plan", "release.yaml", ESCAPES),
        (ESCAPES,),
    ],
    ids=["plan", "query", "serve", "check-layout", "ledger", "option", "argument", "command"],
)
def test_names_of_files_and_words_of_the_command_line_do_nothing_to_a_terminal(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    done = command(tmp_path, *words)
    assert done.returncode in (1, 2)
    assert "owned" in harmless(done)


def test_a_declaration_does_nothing_to_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text('release: "a\\e[2J\\u202Eb"\nother: 1\n')
    done = command(tmp_path, "plan", "r.yaml")
    assert done.returncode == 1
    harmless(done)


def test_a_long_refusal_is_cut_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(f"release: {'x' * 100_000}!\n")
    done = command(tmp_path, "plan", "r.yaml")
    assert done.returncode == 1
    assert len(done.stderr) < MOST + 100


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_commands_print_in_a_poor_encoding(agency: Agency, encoding: str) -> None:
    done = command(agency.folder, "plan", str(agency.spec()), encoding=encoding)
    assert done.returncode == 0, done.stderr
    assert ("\\xd7" if encoding == "ascii" else "×") in done.stdout.decode(encoding)
