"""The trust boundary in types: mypy refuses confidential values in place of protected ones, of any library."""

import sys
from pathlib import Path

import pytest

CODE = """
from collections.abc import Iterator
import ibis
import pyarrow as pa
from discreet.privacy.confidential import Confidential
from discreet.privacy.protected import Protected
from discreet.publish.storage import Storage
from discreet.publish.tables import write_table

def published(storage: Storage, schema: pa.Schema, rows: Iterator[Protected[pa.RecordBatch]]) -> None:
    write_table(storage, "t", schema, rows, simulated=False)

def exact(storage: Storage, schema: pa.Schema, rows: Iterator[Confidential[pa.RecordBatch]]) -> None:
    write_table(storage, "t", schema, rows, simulated=False)  # refused

def inside(storage: Storage, schema: pa.Schema, rows: Iterator[Protected[ibis.Table]]) -> None:
    write_table(storage, "t", schema, rows, simulated=False)  # refused

def unwrapped(storage: Storage, schema: pa.Schema, rows: Iterator[pa.RecordBatch]) -> None:
    write_table(storage, "t", schema, rows, simulated=False)  # refused

def opened(cells: Confidential[ibis.Table]) -> pa.Table:
    return cells.open_confidential()  # refused

def renamed(cells: Confidential[ibis.Table]) -> Protected[ibis.Table]:
    return cells  # refused

def mapped(cells: Confidential[ibis.Table]) -> Protected[int]:
    return cells.map(lambda table: 1)  # refused
"""


def test_mypy_refuses_the_confidential_where_the_protected_belongs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from mypy import api

    root = Path(__file__).parents[2]
    (tmp_path / "wall.py").write_text(CODE)
    said, errors, _ = api.run(
        [
            *("--config-file", str(root / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache")),
            *("--python-executable", sys.executable, str(tmp_path / "wall.py")),
        ]
    )
    assert errors == ""
    refused = {int(line.split(":")[1]) for line in said.splitlines() if "wall.py" in line and "error:" in line}
    wanted = {n for n, line in enumerate(CODE.splitlines(), 1) if line.endswith("# refused")}
    assert refused == wanted, said
