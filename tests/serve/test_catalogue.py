"""The catalogue: releases are verified or refused, and answers are those of the published files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import DiscreetError, InvalidQuery, PublishError, QueryTooLarge
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.publish.cubes import open_cube
from discreet.serve.catalogue import TableCatalogue
from discreet.serve.cube_table import AdditiveTable
from discreet.serve.query_model import Measure, Status, TableQuery, TableVariable
from discreet.serve.stored_table import StoredTable
from support.forged_manifests import forge_file_digest, forge_manifest
from support.survey import CONTROLS, OCCUPATIONS, STRENGTH, WEIGHTS, SurveyAgency

MOST = 10_000
COUNTS: dict[str, Any] = {"name": "counts", "method": "counts", "by": ["strength", "outdoors"], "epsilon": "1"}
SPARSE: dict[str, Any] = {**COUNTS, "name": "few", "form": "sparse", "by": ["occupation", "strength"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_KEYS", str(home / "keys"))
        patch.setenv("DISCREET_TMP", str(home / "tmp"))
        survey = SurveyAgency(home / "survey")
        cube = survey.spec(weights=WEIGHTS, controls=CONTROLS)["tables"][0]
        survey.more["tables"] = [cube, COUNTS, SPARSE]
        return survey.run()


@pytest.fixture(scope="module")
def catalogue(folder: Path) -> TableCatalogue:
    return TableCatalogue.of([folder])


def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


# --- what is served -----------------------------------------------------------------------------------------------


def test_every_table_has_its_guarantee_and_a_simulation_is_marked(catalogue: TableCatalogue) -> None:
    assert set(catalogue.tables) == {"cube", "counts", "few"}  # a cube answers for its controls
    assert catalogue.simulation
    for table in catalogue.tables.values():
        assert table.summary.guarantee
        assert table.summary.simulation


def test_a_cube_answers_as_it_does_elsewhere(folder: Path, catalogue: TableCatalogue) -> None:
    table, cube = catalogue.table("cube"), open_cube(folder, "cube")
    actual = table.answer(TableQuery(by=(("strength", ("heavy", "light")), ("major", ()))), MOST)
    expected = cube.table(["strength", "major"])
    where = dict(zip(zip(*expected.codes, strict=True), range(6), strict=True))
    places = [where[s, m] for s in ("heavy", "light") for m in ("11", "13")]
    for name, column in (("estimate", expected.estimate), ("se", expected.se), ("high90", expected.high)):
        assert np.array_equal(actual.numbers[name], column[places])
    assert actual.shape == (2, 2)
    assert table.variables[-1].finer == "occupation"
    assert table.variables[-1].groups == tuple(["11", "13"].index(major) for major in OCCUPATIONS.values())


def test_numbers_are_summed_over_the_codes_of_a_limit(catalogue: TableCatalogue) -> None:
    table = catalogue.table("cube")
    one = table.answer(TableQuery(where=(("strength", ("light", "heavy")),)), MOST)
    each = table.answer(TableQuery(by=(("strength", ("light", "heavy")),)), MOST)
    assert one.numbers["estimate"].sum() == pytest.approx(each.numbers["estimate"].sum())
    assert one.shape == ()


@pytest.mark.parametrize("name", ["counts", "few"])
def test_counts_are_summed_with_the_error_of_their_noise(folder: Path, catalogue: TableCatalogue, name: str) -> None:
    table = catalogue.table(name)
    assert isinstance(table, AdditiveTable)
    rows = pq.read_table(folder / f"{name}.simulation.parquet").to_pylist()
    actual = table.answer(TableQuery(by=(("strength", ()),)), MOST)
    for strength, estimate in zip(STRENGTH, actual.numbers["estimate"], strict=True):
        assert estimate == sum(row["count"] for row in rows if row["strength"] == strength)
    cells = 2 if name == "counts" else 5
    assert actual.numbers["se"] == pytest.approx([(cells * DiscreteLaplace(Fraction(1)).variance()) ** 0.5] * 3)


def stored(catalogue: TableCatalogue) -> StoredTable:
    """Counts without an error, and medians with one; one of four rows is suppressed, and one code has no row."""
    rows = pa.table(
        {
            "place": pa.array(["a", "b", "c", "d"]).dictionary_encode(),
            "status": [1, 1, 5, 1],
            "count": [40, -3, None, 12],
            "p50": [100.0, 100.0, None, 100.0],
            "p50_low90": [95.0, 60.0, None, None],
            "p50_high90": [105.0, 140.0, None, None],
        }
    )
    place = TableVariable("place", "Place", tuple("abcde"), tuple("ABCDE"))
    measures = (Measure("count", "Count"), Measure("p50", "Median", 2))
    errors = (Measure("p50_low90", "low", 2, "p50"), Measure("p50_high90", "high", 2, "p50"))
    return StoredTable(catalogue.table("cube").summary, rows, (place,), (*measures, *errors))


def test_other_tables_are_looked_up_and_never_summed(catalogue: TableCatalogue) -> None:
    table = stored(catalogue)
    assert not table.additive
    actual = table.answer(TableQuery(by=(("place", ("d", "a")),)), MOST)
    assert actual.numbers["count"].tolist() == [12, 40]
    one = table.answer(TableQuery(where=(("place", ("a",)),), measures=("p50",)), MOST)
    assert one.numbers["p50"].tolist() == [100.0]
    with pytest.raises(InvalidQuery, match="neither shown nor limited"):
        table.answer(TableQuery(), MOST)
    with pytest.raises(InvalidQuery, match="neither shown nor limited"):
        table.cells(TableQuery())
    with pytest.raises(InvalidQuery, match="limited to several codes"):
        table.answer(TableQuery(where=(("place", ("a", "b")),)), MOST)


def test_every_measure_has_its_own_marks(catalogue: TableCatalogue) -> None:
    actual = stored(catalogue).answer(TableQuery(by=(("place", ()),)), MOST)
    count, median, low, _ = actual.measures
    assert actual.marks_for(count) == ["", "x", "s", "", ":"]  # no error is published: not positive, at least
    assert actual.marks_for(median) == ["", "u", "s", "", ":"]
    assert actual.marks_for(low) == actual.marks_for(median)
    assert actual.status == ["", "x", "s", "", ":"]
    alone = stored(catalogue).answer(TableQuery(by=(("place", ()),), measures=("p50",)), MOST)
    assert alone.marks_for(median) == actual.marks_for(median)  # whatever else is asked for


def test_codes_that_a_limit_excludes_are_not_shown(catalogue: TableCatalogue) -> None:
    table = catalogue.table("cube")
    same = table.answer(TableQuery(by=(("strength", ()),), where=(("strength", ("heavy",)),)), MOST)
    assert same.variables[0].codes == ("heavy",)
    finer = table.answer(TableQuery(by=(("occupation", ()),), where=(("major", ("11",)),)), MOST)
    assert finer.variables[0].codes == ("11-1011", "11-1021")
    assert Status.ABSENT not in finer.status
    question = TableQuery(by=(("major", ()),), where=(("occupation", ("13-1011",)),))
    assert table.answer(question, MOST).variables[0].codes == ("13",)
    assert table.cells(question) == 4


# --- what cannot be asked -----------------------------------------------------------------------------------------

HOSTILE = "'; DROP TABLE cube; --"


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (TableQuery(by=(("color", ()),)), "unknown variable 'color'"),
        (TableQuery(by=((HOSTILE, ()),)), "unknown variable"),
        (TableQuery(by=(("strength", ("lihgt",)),)), "unknown code 'lihgt' of strength. Its codes are light"),
        (TableQuery(where=(("strength", (HOSTILE,)),)), "unknown code"),
        (TableQuery(by=(("strength", ("light", "light")),)), "duplicate code of strength"),
        (TableQuery(by=(("occupation", ()), ("major", ()))), "duplicate variable occupation"),
        (TableQuery(measures=("truth",)), "unknown measure 'truth'"),
        (TableQuery(measures=("se", "se")), "duplicate measure"),
        (TableQuery(by=(("strength", ("",)),)), "unknown code '' of strength"),
        (
            TableQuery(by=(("strength", ("light",)),), where=(("strength", ("heavy",)),)),
            "the limits exclude every code of strength",
        ),
        (TableQuery(where=(("major", ("11",)), ("occupation", ("13-1011",)))), "no cell of the cube matches"),
    ],
)
def test_invalid_queries_are_refused_with_what_to_do(
    catalogue: TableCatalogue, question: TableQuery, said: str
) -> None:
    with pytest.raises(InvalidQuery, match=said):
        catalogue.table("cube").answer(question, MOST)


def test_too_large_a_query_names_what_to_leave_out(catalogue: TableCatalogue) -> None:
    question = TableQuery(by=(("strength", ()), ("occupation", ()), ("outdoors", ())))
    assert catalogue.table("cube").cells(question) == 120
    with pytest.raises(QueryTooLarge, match="120 numbers, more than the limit of 100") as error:
        catalogue.table("cube").answer(question, 100)
    assert error.value.offers[0] == "occupation"


# --- what is refused ----------------------------------------------------------------------------------------------


def test_a_folder_without_a_manifest(folder: Path, tmp_path: Path) -> None:
    copy = copied(folder, tmp_path)
    (copy / "manifest.json").unlink()
    with pytest.raises(PublishError, match="manifest"):
        TableCatalogue.of([copy])
    with pytest.raises(PublishError, match="nothing to serve"):
        TableCatalogue.of([])


@pytest.mark.parametrize("name", ["records.parquet", ".hidden", "cube.simulation.parquet/part.parquet~"])
def test_a_file_that_the_manifest_does_not_list(folder: Path, tmp_path: Path, name: str) -> None:
    copy = copied(folder, tmp_path)
    path = copy / name.replace("cube.simulation.parquet/", "more/")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x")
    with pytest.raises(PublishError, match="is not in the manifest"):
        TableCatalogue.of([copy])


def test_a_changed_file_a_missing_one_and_a_link(folder: Path, tmp_path: Path) -> None:
    copy = copied(folder, tmp_path)
    path = copy / "counts.simulation.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:-9] + b"x" + content[-8:])
    with pytest.raises(PublishError, match="is not what the manifest lists"):
        TableCatalogue.of([copy])
    path.unlink()
    with pytest.raises(PublishError, match="is not what the manifest lists"):
        TableCatalogue.of([copy])
    (tmp_path / "elsewhere").write_bytes(content)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DiscreetError, match="symbolic link"):
        TableCatalogue.of([copy])


def test_a_manifest_that_names_files_elsewhere(folder: Path, tmp_path: Path) -> None:
    copy = copied(folder, tmp_path)
    elsewhere = tmp_path / "elsewhere.parquet"
    shutil.copy(folder / "counts.simulation.parquet", elsewhere)
    forge_manifest(copy, lambda said: [table.update(files=[str(elsewhere)]) for table in said["tables"]])
    with pytest.raises(PublishError, match="is not what the manifest lists"):
        TableCatalogue.of([copy])


def test_two_releases_with_tables_of_one_name(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(PublishError, match="as does another release"):
        TableCatalogue.of([folder, copied(folder, tmp_path)])


def test_nothing_that_reads_confidential_data_is_loaded(folder: Path) -> None:
    """In a separate process: no engine, no method, no key, no noise."""
    program = (
        "import json, sys; from discreet.serve.catalogue import TableCatalogue; "
        "from discreet.serve.query_model import TableQuery; "
        f"TableCatalogue.of([{str(folder)!r}]).table('cube').answer(TableQuery(), 10); "
        "print(json.dumps(sorted(sys.modules)))"
    )
    actual = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = json.loads(actual.stdout)
    packages = ("api", "engine", "methods", "noise", "pipeline", "spec", "synth")
    assert "discreet.serve.catalogue" in loaded
    assert not [m for m in loaded if m.startswith(tuple(f"discreet.{p}" for p in packages))]
    assert not {"cryptography", "numba", "ibis", "pyspark", "discreet.privacy.confidential"} & set(loaded)


CODEBOOKS: dict[str, tuple[Any, str]] = {
    "no tables": (lambda book: book.pop("tables"), r"is not a valid codebook \(tables\)"),
    "a table left out": (lambda book: book["tables"].pop("counts"), "does not describe table 'counts'"),
    "columns without a name": (lambda book: book["tables"]["few"]["columns"][0].pop("name"), "few.columns.0.name"),
    "labels that do not fit": (lambda book: book["attributes"]["strength"].update(labels=["x"]), "attributes.strength"),
    "half a character": (lambda book: book["tables"]["few"].update(about="\ud800"), "is not a valid codebook"),
    "a noise that is no number": (lambda book: book["tables"]["few"]["additive"].update(variance="x"), "variance"),
}


@pytest.mark.parametrize("case", CODEBOOKS)
def test_an_incomplete_codebook_is_refused_in_one_line(folder: Path, tmp_path: Path, case: str) -> None:
    """Though every digest fits."""
    change, said = CODEBOOKS[case]
    copy = copied(folder, tmp_path)
    book = json.loads((copy / "codebook.json").read_text())
    change(book)
    (copy / "codebook.json").write_text(json.dumps(book))
    forge_file_digest(copy, copy / "codebook.json")
    with pytest.raises(PublishError, match=said) as caught:
        TableCatalogue.of([copy])
    assert "\n" not in str(caught.value)
