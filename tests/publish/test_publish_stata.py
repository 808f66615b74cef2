"""Stata files: read back by two readers, and deterministic."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest

from discreet.errors import PublishError
from discreet.publish.stata import LONGEST_TEXT, StataFile, names

CODES = pa.dictionary(pa.int32(), pa.string())


def written(table: pa.Table, label: str = "protected") -> bytes:
    file = io.BytesIO()
    writer = StataFile(file, table.schema, label)  # type: ignore[arg-type]
    for batch in table.to_batches(max_chunksize=2):
        writer.write(batch)
    writer.close()
    return file.getvalue()


def example() -> pa.Table:
    tracts = pa.array(["001", "été", "001", "x" * 40, ""]).dictionary_encode()
    numbers = [1.5, None, -2.25, 1e300, 0.1]
    return pa.table({"tract": tracts.cast(CODES), "estimate": numbers, "count": pa.array([1, 2, None, 2**53, -4])})


def test_both_readers_find_the_same(tmp_path: Path) -> None:
    path = tmp_path / "t.dta"
    path.write_bytes(written(example(), "a label, grün"))
    frame, meta = pyreadstat.read_dta(str(path))
    again = pd.read_stata(path)
    for actual in (frame, again):
        assert actual["tract"].tolist() == ["001", "été", "001", "x" * 40, ""]
        assert actual["estimate"].tolist()[0] == 1.5
        assert np.isnan(actual["estimate"][1])
        assert actual["count"].tolist()[3:] == [2**53, -4]
    assert meta.file_label == "a label, grün"


def test_equal_rows_give_equal_bytes() -> None:
    """However they are split into batches; the file contains no time stamp."""
    assert written(example()) == written(example().combine_chunks())


def test_a_table_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.dta"
    path.write_bytes(written(example().slice(0, 0)))
    assert list(pyreadstat.read_dta(str(path))[0].columns) == ["tract", "estimate", "count"]


def test_names_that_stata_accepts() -> None:
    actual = names(["a b", "a_b", "a.b", "9", "double", "", "x" * 50, "x" * 51, "größe", "if", "_n", "str10"])
    assert actual[:6] == ["a_b", "a_b_2", "a_b_3", "_9", "_double", "_"]
    assert actual[6:] == ["x" * 32, "x" * 30 + "_2", "gr__e", "_if", "__n", "_str10"]
    assert len(set(actual)) == len(actual)


def test_a_code_that_is_too_long_is_refused() -> None:
    long = pa.array(["x" * (LONGEST_TEXT + 1)]).dictionary_encode().cast(CODES)
    with pytest.raises(PublishError, match="too long for Stata"):
        written(pa.table({"code": long}))


def test_long_labels_are_cut_between_characters(tmp_path: Path) -> None:
    path = tmp_path / "t.dta"
    table = example().rename_columns(["é" * 200, "estimate", "count"])
    path.write_bytes(written(table, "é" * 200))
    _, meta = pyreadstat.read_dta(str(path))
    assert meta.file_label == "é" * 80
    assert set(meta.column_labels[0]) == {"é"}


def test_a_missing_number_is_missing_in_stata() -> None:
    """Its "." is 2^1023; anything else would be a number."""
    assert np.array([2.0**1023, 1.0]).tobytes() in written(pa.table({"x": pa.array([None, 1.0])}))
