"""Two-level grouping against plain Python, on random registers: texts, codes recoded or padded, lookups."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.domain import Attribute, Domain
from discreet.engine import Engine, open_engine
from discreet.engine.establishments import Establishments, Workforce, count_jobs_with_sizes, count_jobs_without_large
from discreet.engine.intake.derived import Number
from discreet.engine.lookups import Records, ingest_tables
from discreet.engine.tabulate import derived_columns
from discreet.errors import SourceError
from discreet.spec import FileSource

PLACES, SEXES = ["a", "b", "c"], ["1", "2"]


def attribute(name: str, values: list[str], other: str | None = None, width: int | None = None) -> Any:
    return Attribute.flat(name, values, None, name, other, "", width)


def register(seed: int) -> list[dict[str, Any]]:
    """Jobs: most establishments in one place, some in two or in an undeclared one; workers with odd codes."""
    rng = np.random.default_rng(seed)
    rows = []
    for establishment in range(30):
        place = str(rng.choice([*PLACES, "z"]))
        for _ in range(int(rng.integers(0, 25))):
            rows.append(
                {
                    "id": None if rng.random() < 0.02 else establishment,
                    "place": str(rng.choice(PLACES)) if rng.random() < 0.05 else place,
                    "sex": [None, "1", "2", "7"][int(rng.choice(4, p=[0.05, 0.5, 0.4, 0.05]))],
                    "age": int(rng.integers(1, 4)),
                }
            )
    rng.shuffle(rows)
    return rows


def by_hand(rows: list[dict[str, Any]], what: Workforce, most: int = 10**9) -> dict[int, tuple[int, int, int]]:
    """Of each cell: jobs, the most of one establishment, and the largest establishment of its workplace cell."""
    coded = []
    for row in rows:
        codes = [_code(a, row) for a in what.attributes.attributes]
        first, second = len(what.by.shape), len(what.by.shape) + len(what.workers.shape)
        if row["id"] is None or None in codes[:first]:
            continue
        counts = None not in codes[first:second] and tuple(codes[second:]) == what.chosen
        worker = what.workers.number(codes[first:second]) if counts else None
        coded.append((row["id"], what.by.number(codes[:first]), worker))
    total = Counter(entity for entity, _, _ in coded)
    coded = [row for row in coded if total[row[0]] <= most]
    sizes, cells = Counter((e, place) for e, place, _ in coded), defaultdict(Counter)
    for entity, place, worker in coded:
        if worker is not None:
            cells[place * what.workers.cells + worker][entity] += 1
    largest = {place: max(n for (_, p), n in sizes.items() if p == place) for _, place in sizes}
    return {
        place * what.workers.cells + worker: (
            sum(cells[place * what.workers.cells + worker].values()),
            max(cells[place * what.workers.cells + worker].values(), default=0),
            size,
        )
        for (place, size), worker in product(largest.items(), range(what.workers.cells))
    }


def _code(actual: Any, row: dict[str, Any]) -> int | None:
    value = row[actual.source[0]]
    text = None if value is None else str(value).rjust(actual.width or 0, "0")
    return actual.lookup.get((text,), actual.other_code)


def jobs_of(
    engine: Engine,
    what: Workforce,
    sources: dict[str, Any],
    keys: dict[str, str] | None = None,
    base: Path = Path(),
    stored: bool = False,
) -> Establishments:
    """Jobs, and lookup tables with these keys."""
    scans = {name: engine.open(source, base) for name, source in sources.items()}
    records = ingest_tables(engine, scans, keys or {}, derived_columns([what.attributes]), "id")
    return Establishments(records.store(engine) if stored else records, "id")


def rows_of(engine: Engine, table: ibis.Table) -> dict[int, tuple[int, ...]]:
    actual = [row for batch in engine.batches(table) for row in batch.to_pylist()]
    assert len({row["cell"] for row in actual}) == len(actual)
    return {row["cell"]: tuple(value for name, value in row.items() if name != "cell") for row in actual}


PLACE, SEX = attribute("place", PLACES), attribute("sex", SEXES)
FORMS = {
    "places": Workforce(Domain((PLACE,)), Domain(()), Domain(())),
    "other": Workforce(Domain((attribute("place", PLACES[:2], "other"),)), Domain(()), Domain(())),
    "nowhere": Workforce(Domain(()), Domain((SEX,)), Domain(())),
    "workers": Workforce(Domain((PLACE,)), Domain((SEX, attribute("age", ["01", "02"], "other", 2))), Domain(())),
    "only": Workforce(Domain((PLACE,)), Domain(()), Domain((SEX, attribute("age", ["1", "2", "3"]))), (1, 0)),
    "only and workers": Workforce(Domain((PLACE,)), Domain((attribute("age", ["1", "3"]),)), Domain((SEX,)), (0,)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_cell_against_plain_python(form: str) -> None:
    what = FORMS[form]
    with open_engine("duckdb") as engine:
        for seed in range(6):
            rows = register(seed)
            jobs = jobs_of(engine, what, {"jobs": pa.Table.from_pylist(rows)}, stored=True)
            expected = by_hand(rows, what)
            some = {cell: (n, most) for cell, (n, most, _) in expected.items() if n}
            assert rows_of(engine, jobs.job_counts(engine, what)) == some
            assert (
                rows_of(engine, jobs_of(engine, what, {"jobs": pa.Table.from_pylist(rows)}).job_counts(engine, what))
                == some
            )
            sized = count_jobs_with_sizes(engine, jobs.workforce(engine, what), what.workers.cells)
            actual = rows_of(engine, sized.select("cell", "n", "largest"))
            assert actual == {cell: (n, size) for cell, (n, _, size) in expected.items()}
            small = count_jobs_without_large(engine, jobs.workforce(engine, what), what.workers.cells, 12)
            kept = {cell: (n, most) for cell, (n, most, _) in by_hand(rows, what, 12).items() if n}
            assert rows_of(engine, small) == kept
            assert kept != some


def _joined(rows: list[dict[str, Any]], rng: np.random.Generator, twice: bool) -> tuple[pa.Table, ...]:
    """The same jobs in three tables: the place belongs to the establishment, sex and age to the worker."""
    places = {row["id"]: row["place"] for row in rows if row["id"] is not None}
    listed = [{"id": key, "place": place} for key, place in places.items() if key % 7]
    jobs = [{"id": row["id"], "worker": i if i % 11 else None} for i, row in enumerate(rows)]
    workers = [{"worker": i, "sex": row["sex"], "age": row["age"]} for i, row in enumerate(rows) if i % 13]
    if twice:
        listed += [{"id": key, "place": "zz"} for key in places]
        workers += [{"worker": worker["worker"], "sex": "9", "age": 9} for worker in workers[::3]]
    for table in (listed, workers):
        rng.shuffle(table)
    return tuple(pa.Table.from_pylist(table) for table in (jobs, workers, listed))


def _looked_up(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    places = {row["id"]: row["place"] for row in rows if row["id"] is not None}
    return [
        {
            "id": row["id"],
            "place": places[row["id"]] if row["id"] is not None and row["id"] % 7 else None,
            "sex": row["sex"] if i % 11 and i % 13 else None,
            "age": row["age"] if i % 11 and i % 13 else None,
        }
        for i, row in enumerate(rows)
    ]


@pytest.mark.parametrize("twice", [False, True], ids=["listed once", "listed twice"])
def test_lookups_neither_add_nor_drop_a_job(twice: bool) -> None:
    with open_engine("duckdb") as engine:
        for seed in range(3):
            rows, rng = register(seed), np.random.default_rng(seed + 100)
            tables = dict(zip(("jobs", "workers", "w"), _joined(rows, rng, twice), strict=True))
            known = _looked_up(rows)
            if twice:  # of 9 and a missing sex the least is 9, which is no code either
                assert all(row["sex"] in (None, "1", "2", "7") for row in known)
            for what in FORMS.values():
                jobs = jobs_of(engine, what, tables, {"workers": "worker", "w": "id"})
                expected = {cell: (n, most) for cell, (n, most, _) in by_hand(known, what).items() if n}
                assert rows_of(engine, jobs.job_counts(engine, what)) == expected


def coarse() -> Any:
    """Places a and b lie in N, c in S."""
    return replace(PLACE, name="area", categories=(("N",), ("S",)), lookup={("a",): 0, ("b",): 0, ("c",): 1})


@pytest.mark.parametrize("kind", ["padded", "coarse"])
def test_texts_that_share_a_cell_are_added_up_before_taking_the_largest(kind: str) -> None:
    with open_engine("duckdb") as engine:
        rows = [{"id": 1, "place": "a"}] * 3 + [{"id": 1, "place": "b"}] * 4 + [{"id": 2, "place": "c"}] * 5
        by = coarse()
        if kind == "padded":
            rows = [{**row, "place": {"a": "1", "b": "01", "c": "2"}[row["place"]]} for row in rows]
            by = attribute("place", ["01", "02"], width=2)
        what = Workforce(Domain((by,)), Domain(()), Domain(()))
        jobs = jobs_of(engine, what, {"jobs": pa.Table.from_pylist(rows)})
        assert rows_of(engine, jobs.job_counts(engine, what)) == {0: (7, 7), 1: (5, 5)}


@pytest.mark.parametrize("name", ["n", "largest", "cell", "discreet", "discreet_jobs", "discreet_n", "ID"])
@pytest.mark.parametrize("joined", [False, True], ids=["one file", "joined"])
def test_columns_may_be_called_as_ours_are(name: str, joined: bool) -> None:
    """A workplace column `n` must not be confused with the number of jobs."""
    with open_engine("duckdb") as engine:
        jobs = pa.table({"id": [1] * 40 + [2] * 7})
        listed = pa.table({"id": [1, 2], name: ["a", "b"]})
        by = replace(PLACE, source=(name,))
        what = Workforce(Domain((by,)), Domain(()), Domain(()))
        sources = {"jobs": jobs, "w": listed} if joined else {"jobs": jobs.join(listed, "id")}
        actual = jobs_of(engine, what, sources, {"w": "id"} if joined else {})
        assert rows_of(engine, actual.job_counts(engine, what)) == {0: (40, 40), 1: (7, 7)}


@pytest.mark.parametrize("nulls", [0, 1])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_codes_that_are_no_number_are_missing_whatever_else_is_in_the_file(
    tmp_path: Path, nulls: int, kind: pa.DataType
) -> None:
    """An engine would decide it for all of them from the least and the largest value that the file lists."""
    codes = pa.array([math.nan] * 1000 + [1.0, 2.0, 2.0] + [None] * nulls, kind, from_pandas=False)
    pq.write_table(pa.table({"id": range(len(codes)), "x": codes}), tmp_path / "jobs.parquet")
    source = {"jobs": FileSource(path="jobs.parquet")}
    by = replace(PLACE, source=("x",), lookup={("nan",): 0, ("1",): 1, ("2",): 2})
    only = Workforce(Domain(()), Domain(()), Domain((by,)), (0,))
    with open_engine("duckdb") as engine:
        place = Workforce(Domain((by,)), Domain(()), Domain(()))
        jobs = jobs_of(engine, place, source, base=tmp_path)
        assert rows_of(engine, jobs.job_counts(engine, place)) == {1: (1, 1), 2: (2, 1)}
        assert rows_of(engine, jobs_of(engine, only, source, base=tmp_path).job_counts(engine, only)) == {}


NOWHERE = Workforce(Domain(()), Domain(()), Domain(()))


@pytest.mark.parametrize("values", [[1.0, 2.0, 2.0], [math.nan] * 3, []], ids=["whole", "no numbers", "none"])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.decimal128(9, 2)], ids=str)
def test_ids_of_a_type_that_could_merge_two_are_refused_whatever_they_are(
    tmp_path: Path, kind: pa.DataType, values: list[float]
) -> None:
    """Floats were accepted as ids as long as they were numeric; now their type is refused before any is read."""
    if pa.types.is_decimal(kind):
        values = [value for value in values if not math.isnan(value)]
    pq.write_table(pa.table({"id": pa.array(values, pa.float64()).cast(kind)}), tmp_path / "jobs.parquet")
    with open_engine("duckdb") as engine, pytest.raises(SourceError, match="is used as an identifier") as refused:
        jobs_of(engine, NOWHERE, {"jobs": FileSource(path="jobs.parquet")}, base=tmp_path)
    assert refused.value.where == "source jobs.parquet"
    assert "as text or as 64-bit integers" in str(refused.value)


IDS: dict[str, pa.Array] = {
    "text": pa.array(["1", "2", "2", None, "02"]),
    "whole": pa.array([1, 2, 2, None, 3], pa.int64()),
    "unsigned": pa.array([2**64 - 1, 2**64 - 2, 2**64 - 2, None, 0], pa.uint64()),
    "close": pa.array([2**53, 2**53 + 1, 2**53 + 1, None, 2**53 + 2]),  # which doubles would merge
    "decimal": pa.array([1, 2, 2, None, 3], pa.decimal128(38, 0)),
    "dictionary": pa.array(["a", "A", "A", None, "á"]).dictionary_encode(),
    "date": pa.array([0, 1, 1, None, 2], pa.date32()),
}


@pytest.mark.parametrize("name", IDS)
def test_ids_of_any_fit_type_are_told_apart(name: str) -> None:
    with open_engine("duckdb") as engine:
        jobs = jobs_of(engine, NOWHERE, {"jobs": pa.table({"id": IDS[name]})})
        assert rows_of(engine, jobs.job_counts(engine, NOWHERE)) == {0: (4, 2)}


def test_keys_are_matched_as_texts_where_a_table_has_texts(tmp_path: Path) -> None:
    """1 is "1" and not "01"; between files of one table each value goes by its own file's type."""
    what = Workforce(Domain((PLACE,)), Domain(()), Domain(()))
    (tmp_path / "jobs").mkdir()
    pq.write_table(pa.table({"id": [1, 1, 2, 3]}), tmp_path / "jobs" / "0.parquet")
    pq.write_table(pa.table({"id": ["1", "01", None]}), tmp_path / "jobs" / "1.parquet")
    sources = {"jobs": FileSource(path="jobs"), "w": pa.table({"id": ["1", "2", "03", "01"], "place": list("abca")})}
    with open_engine("duckdb") as engine:
        jobs = jobs_of(engine, what, sources, {"w": "id"}, tmp_path)
        assert rows_of(engine, jobs.job_counts(engine, what)) == {0: (4, 3), 1: (1, 1)}


@pytest.mark.parametrize("other", [None, "other"])
def test_codes_of_columns_in_several_tables(engine: Engine, tmp_path: Path, other: str | None) -> None:
    """What is declared is the combination, wherever its parts lie: as if all of them were in one table."""
    pair = Attribute.flat("pair", ["a1", "a2", "b1"], None, "place", other, "")
    lookup = {("a", "01"): 0, ("a", "02"): 1, ("b", "01"): 2}
    pair = replace(pair, source=("place", "sex"), lookup=lookup, width=(None, 2))
    what = Workforce(Domain((pair,)), Domain(()), Domain(()))
    places, sexes = ["a", "b", "z", None], [1, 2, 7, None]
    rows = [{"id": i % 5, "worker": i, "place": p, "sex": s} for i, (p, s) in enumerate(product(places, sexes))]
    rows.append({"id": 9, "worker": 999, "place": "a", "sex": None})  # not listed
    for name, columns in {"jobs": ("id", "worker", "place"), "all": ("id", "place", "sex")}.items():
        pq.write_table(pa.Table.from_pylist(rows).select(columns), tmp_path / f"{name}.parquet")
    pq.write_table(pa.Table.from_pylist(rows[:-1]).select(["worker", "sex"]), tmp_path / "workers.parquet")
    files = {name: FileSource(path=f"{name}.parquet") for name in ("jobs", "workers", "all")}
    apart = {name: files[name] for name in ("jobs", "workers")}
    actual = rows_of(engine, jobs_of(engine, what, apart, {"workers": "worker"}, tmp_path).job_counts(engine, what))
    assert actual == rows_of(
        engine, jobs_of(engine, what, {"all": files["all"]}, None, tmp_path).job_counts(engine, what)
    )
    codes = Counter(lookup.get((row["place"], f"0{row['sex']}"), None if other is None else 3) for row in rows)
    assert {cell: n for cell, (n, _) in actual.items()} == {c: n for c, n in codes.items() if c is not None}


def test_a_column_that_two_tables_have_is_refused(tmp_path: Path) -> None:
    content = {"one": {"id": [1], "x": [1]}, "two": {"id": [1], "x": [1]}, "bare": {"y": [1]}}
    for name, columns in content.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")

    def looked_up(jobs: str, others: str, *columns: str) -> Records:
        scans = {
            k: engine.open(FileSource(path=f"{v}.parquet"), tmp_path) for k, v in (("jobs", jobs), ("others", others))
        }
        return ingest_tables(engine, scans, {"others": "id"}, map(Number, columns), None)

    with open_engine("duckdb") as engine:
        with pytest.raises(SourceError, match="'x' is in jobs and in others"):
            looked_up("one", "two", "x")
        assert looked_up("one", "two").lookups == ()
        for jobs, others in (("bare", "two"), ("one", "bare")):
            with pytest.raises(SourceError, match="has no column 'id'") as refused:
                looked_up(jobs, others, "y")
            assert refused.value.where == "source bare.parquet"
        with pytest.raises(SourceError, match="has no column 'z'") as refused:
            looked_up("one", "two", "z")
        assert refused.value.where == "source jobs, others"
