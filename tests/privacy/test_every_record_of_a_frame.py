"""How a value of a frame is read depends on that value alone, whatever else is in its column.

As in `test_every_record_by_itself`: the same frame with and without one record, under one test key, without noise.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from support.neighbouring_experiments import FARM
from support.neighbouring_releases import ReleaseOffice, assert_own_cell_only

GOOD = ["farm", "shop", "farm"]


@pytest.fixture
def office(tmp_path: Path) -> ReleaseOffice:
    return ReleaseOffice(tmp_path / "office")


def people(sectors: Any) -> dict[str, Any]:
    return {"person_id": [f"p{i}" for i in range(len(sectors))], "sector": sectors}


class Hostile:
    """Says that it is a number of NumPy's, and is not."""

    dtype = "int64"

    def item(self) -> Any:
        raise ValueError("no")


class Endless:
    dtype = "int64"

    def item(self) -> Any:
        return self


ODD: dict[str, Any] = {
    "a whole number of 4,400 digits": 10**4400,
    "an array": np.array([1, 2]),
    "an empty array": np.array([]),
    "a series": pd.Series([1, 2]),
    "a long double": np.longdouble("1.5"),
    "a long infinity": np.longdouble("inf"),
    "half a surrogate pair": "\ud800",
    "a time": pd.Timestamp("2020-01-01"),
    "no time": np.datetime64("NaT"),
    "a complex number": np.complex128(1),
    "bytes": b"\xff",
    "infinity": float("inf"),
    "a number": 7,
    "missing": pd.NA,
    "a dictionary": {},
    "something that fails": Hostile(),
    "something without end": Endless(),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("column", ["sector", "person_id"])
def test_one_odd_object_in_a_frame(office: ReleaseOffice, odd: str, column: str) -> None:
    """An object column of pandas can hold anything. One cell of it was enough for the whole frame to be refused."""
    frame = pd.DataFrame(people([*GOOD, "farm"]), dtype=object)
    dirty = frame.copy()
    dirty.at[3, column] = ODD[odd]
    assert_own_cell_only(office.run(frame=frame.iloc[:3]), office.run(frame=dirty), FARM)


MIXED = ["a number", "a whole number of 4,400 digits", "a long double", "a time", "bytes", "infinity"]


@pytest.mark.parametrize("odd", MIXED)
def test_one_odd_category_in_a_frame(office: ReleaseOffice, odd: str) -> None:
    """The categories of pandas may be of several types: one record with another type stopped the release."""
    frames = [
        pd.DataFrame(people(pd.Categorical(v, categories=pd.Index(list(dict.fromkeys(v)), dtype=object))))
        for v in (GOOD, [*GOOD, ODD[odd]])
    ]
    assert_own_cell_only(*(office.run(frame=frame) for frame in frames))


def test_half_a_surrogate_pair_in_a_column_of_text(office: ReleaseOffice) -> None:
    """pandas' own text can hold what UTF-8 cannot: such a value is missing."""
    frames = [pd.DataFrame(people(pd.array(v, dtype=pd.StringDtype("python")))) for v in (GOOD, [*GOOD, "\ud800"])]
    assert_own_cell_only(*(office.run(frame=frame) for frame in frames))


# --- the private folder ---------------------------------------------------------------------------------------------


class Slow:
    """A frame that speaks Arrow; while it does, something happens in the private folder."""

    def __init__(self, table: pa.Table, meanwhile: Callable[[], None]) -> None:
        self.table, self.meanwhile = table, meanwhile

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self.meanwhile()
        return self.table.__arrow_c_stream__(requested_schema)


def test_files_that_the_engine_spills_name_no_others(office: ReleaseOffice) -> None:
    """The engine's spills come and go in the folder that converted sources lie in. A source was named by the number of
    files there: one spill that went in between, and the third source was written over the second."""
    runs = []
    for spills in (False, True):

        def folder() -> Path:
            return next(Path(os.environ["DISCREET_TMP"]).glob("run-*")) / "duckdb_temp_storage_S32K-0.tmp"

        def come(spills: bool = spills, folder: Callable[[], Path] = folder) -> None:
            if spills:
                folder().touch()

        def go(folder: Callable[[], Path] = folder) -> None:
            folder().unlink(missing_ok=True)

        frames = {
            "jobs": Slow(pa.table({"person_id": ["p1", "p2"], "worker": ["w1", "w2"], "place": ["x", "y"]}), come),
            "workers": Slow(pa.table({"worker": ["w1", "w2"], "sex": ["1", "2"]}), go),
            "places": Slow(pa.table({"place": ["x", "y"], "sector": ["farm", "shop"]}), lambda: None),
        }
        runs.append(
            office.run(
                dict.fromkeys(frames, ""),
                frame=frames,
                codes={"sector": ["farm", "shop"], "sex": ["1", "2"]},
                more={"join": {"workers": "worker", "places": "place"}},
            )
        )
    assert runs[0].occupied() == {("farm", "1"): 1, ("shop", "2"): 1}
    assert runs[1] == runs[0]
