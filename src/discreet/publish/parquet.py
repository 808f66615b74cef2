"""Reads whole Parquet files in the calling thread only.

`pyarrow.parquet.read_table` scans: its own threads still hold the file's bytes when it has returned, and one that
releases them while Python shuts down aborts the process ("terminate called without an active exception",
apache/arrow#34314, #50482).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def table_of(file: bytes | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows, and these columns in this order; by default all of them."""
    source = file if isinstance(file, Path) else pa.BufferReader(file)
    with pq.ParquetFile(source, pre_buffer=False) as opened:
        table: pa.Table = opened.read(None if columns is None else list(columns), use_threads=False)
    return table if columns is None else table.select(list(columns))
