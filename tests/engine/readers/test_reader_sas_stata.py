"""No record of a SAS or Stata file changes the reading of another, or makes the reader fail."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyreadstat
import pytest

from discreet.engine.readers import statistical
from discreet.errors import SourceError
from support.readings import Row, each_alone, readings, released_csv, uses
from support.sas_writer import write_sas7bdat

BAD = {"utf-8": b"\xff\xfe\xfd", "windows-1252": b"a\x81b"}  # what no text in it is
MARK = "QZQ"  # three bytes that become bad ones
Record = tuple[str, float | None]
RECORDS: list[Record] = [("ok", 1.0), (MARK, None), ("", 4.0), ("7", 1e300), ("ok", 3.0)]


def stata(path: Path, records: Sequence[Record], version: int, bad: bytes, **more: Any) -> Path:
    frame = pd.DataFrame({"s": [s for s, _ in records], "v": [v for _, v in records]}).astype({"v": float})
    frame["s"] = frame["s"].astype(object)
    frame.to_stata(path, version=version, write_index=False, **more)  # type: ignore[call-overload]
    path.write_bytes(path.read_bytes().replace(MARK.encode(), bad))
    return path


def sas(path: Path, records: Sequence[Record], code: int, bad: bytes) -> Path:
    write_sas7bdat(path, {"s": [s.ljust(3) for s, _ in records] or ["   "], "v": [v for _, v in records] or [None]})
    raw = bytearray(path.read_bytes().replace(MARK.encode(), bad))
    raw[70] = code
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("chunk", [2, 1000])
@pytest.mark.parametrize("version", [114, 117, 118])
def test_a_text_that_is_not_in_a_stata_files_encoding(
    tmp_path: Path, version: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistical, "CHUNK_ROWS", chunk)
    bad = BAD["utf-8" if version >= 118 else "windows-1252"]
    made = uses("s", "v")
    rows = each_alone(RECORDS, lambda rs: readings(str(stata(tmp_path / "x.dta", rs, version, bad)), made))
    assert rows[0] == (0, "ok", 1.0, 0)
    assert rows[1] == (None, None, None, None)
    assert rows[2] == (None, None, 4.0, 1)


@pytest.mark.parametrize(("code", "encoding"), [(20, "utf-8"), (62, "windows-1252"), (0, "windows-1252")])
def test_a_text_that_is_not_in_a_sas_files_encoding(tmp_path: Path, code: int, encoding: str) -> None:
    made = uses("s", "v")
    rows = each_alone(RECORDS, lambda rs: readings(str(sas(tmp_path / "x.sas7bdat", rs, code, BAD[encoding])), made))
    assert rows[0] == (0, "ok", 1.0, 0)
    assert rows[1] == (None, None, None, None)


def test_texts_and_names_in_other_alphabets(tmp_path: Path) -> None:
    frame = pd.DataFrame({"größe": ["Zürich", "東京"]})
    pyreadstat.write_dta(frame, str(tmp_path / "x.dta"))
    assert [row[1] for row in readings("x.dta", uses("größe"), tmp_path)] == ["Zürich", "東京"]
    write_sas7bdat(tmp_path / "x.sas7bdat", {"grXXe": ["Zürich", "abcdefghij", "東京"]})
    raw = (tmp_path / "x.sas7bdat").read_bytes()
    (tmp_path / "x.sas7bdat").write_bytes(raw.replace(b"grXXe", "gröe".encode()))
    assert [row[1] for row in readings("x.sas7bdat", uses("gröe"), tmp_path)][::2] == ["Zürich", "東京"]
    stata(tmp_path / "y.dta", [(MARK, 1.0)], 114, b"Z\xfc\x80")
    assert [row[1] for row in readings("y.dta", uses("s"), tmp_path)] == ["Zü€"]


def test_labels_that_are_not_text_label_nothing(tmp_path: Path) -> None:
    frame = pd.DataFrame({"s": [1, 2, 3]})
    pyreadstat.write_dta(frame, str(tmp_path / "x.dta"), variable_value_labels={"s": {1: "ok", 2: MARK}})
    raw = (tmp_path / "x.dta").read_bytes()
    (tmp_path / "x.dta").write_bytes(raw.replace(MARK.encode(), BAD["utf-8"]))
    actual = readings({"path": "x.dta", "labels": "text"}, uses("s"), tmp_path)
    assert [row[1] for row in actual] == ["ok", None, "3"]
    assert [row[1] for row in readings("x.dta", uses("s"), tmp_path)] == ["1", "2", "3"]


def test_a_number_without_a_label_is_written_as_its_code(tmp_path: Path) -> None:
    frame = pd.DataFrame({"s": [1.0, 7.0, 2.5]})
    pyreadstat.write_dta(frame, str(tmp_path / "x.dta"), variable_value_labels={"s": {1: "ok"}})
    actual = readings({"path": "x.dta", "labels": "text"}, uses("s"), tmp_path)
    assert [row[1] for row in actual] == ["ok", "7", "2.5"]


def test_long_strings_are_refused_by_their_type(tmp_path: Path) -> None:
    """ReadStat hands them over undecoded, and pyreadstat gives up where one is not UTF-8."""
    for records in (RECORDS, RECORDS[:1]):
        stata(tmp_path / "x.dta", records, 118, BAD["utf-8"], convert_strl=["s"])
        with pytest.raises(SourceError, match="of type strL"):
            readings("x.dta", uses("s"), tmp_path)
        assert len(readings("x.dta", uses("v"), tmp_path)) == len(records)


def test_a_file_without_records(tmp_path: Path) -> None:
    stata(tmp_path / "x.dta", [], 118, b"")
    assert readings("x.dta", uses("s", "v"), tmp_path) == []
    assert readings("x.dta", (), tmp_path) == [(None,)] * 0


def dated(path: Path, values: Sequence[float | None], how: str) -> list[Row]:
    frame = pd.DataFrame({"d": pd.Series(list(values), dtype=float)})
    pyreadstat.write_dta(frame, str(path), variable_format={"d": how})
    return readings(str(path), uses("d"))


def test_dates_of_any_size(tmp_path: Path) -> None:
    values = [21915.0, 1e9, -1e9, 1e300, None, -0.5, 21915.25]
    rows = each_alone(values, lambda vs: dated(tmp_path / "x.dta", vs, "%td"))
    assert [row[1] for row in rows] == ["2020-01-01", None, None, None, None, "1959-12-31", "2020-01-01"]


def test_tagged_missing_values_and_whole_numbers(tmp_path: Path) -> None:
    def read(values: Sequence[Any]) -> list[Row]:
        frame = pd.DataFrame({"s": pd.Series(list(values), dtype=object)})
        pyreadstat.write_dta(frame, str(tmp_path / "x.dta"), missing_user_values={"s": ["a"]})
        return readings("x.dta", uses("s", "s"), tmp_path)

    assert [row[1] for row in each_alone([1, "a", 7], read)] == ["1", None, "7"]


def test_times_are_no_dates(tmp_path: Path) -> None:
    assert not statistical._DATES.match("DATETIME20.")
    assert not statistical._DATES.match("DATEAMPM")
    assert statistical._DATES.match("DATE9.")
    assert statistical._DATES.match("E8601DA10.")
    assert [row[1] for row in dated(tmp_path / "x.dta", [86400000.0], "%tc")] == ["86400000"]


def test_real_numbers_are_no_identifiers(tmp_path: Path) -> None:
    sas(tmp_path / "x.sas7bdat", RECORDS, 20, BAD["utf-8"])
    with pytest.raises(SourceError, match="is used as an identifier"):
        readings("x.sas7bdat", uses("s", id="v"), tmp_path)


def test_a_release_of_a_file_with_a_broken_text(tmp_path: Path) -> None:
    stata(tmp_path / "x.dta", RECORDS, 118, BAD["utf-8"])
    stata(tmp_path / "y.dta", [record for record in RECORDS if record[0] != MARK], 118, b"")
    assert released_csv(tmp_path / "1", str(tmp_path / "x.dta")) == released_csv(
        tmp_path / "2", str(tmp_path / "y.dta")
    )
