"""Opening a published cube: it is read as published or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.api import set_budget
from discreet.errors import DiscreetError, ParameterError, PublishError
from discreet.publish.cubes import open_cube
from support.forged_manifests import forge_file_digest
from support.survey import CONTROLS, DEVIATIONS, WEIGHTS, SurveyAgency, exact, quotes

PAIRS = "occupation,outdoors\n11-1011,yes\n11-1021,no\n13-1011,yes\n13-1011,no\n"


@pytest.fixture
def survey(tmp_path: Path) -> SurveyAgency:
    return SurveyAgency(tmp_path / "survey")


def test_the_published_numbers_and_no_others(survey: SurveyAgency) -> None:
    actual = survey.simulate(weights=WEIGHTS, controls=CONTROLS, replicates=DEVIATIONS)
    cube = actual.cube
    assert (cube.model.cube, cube.model.estimate, cube.model.measure) == ("cube", "calibrated", "total")
    assert cube.model.simulation
    assert cube.cells is None
    assert np.array_equal(cube.values, actual.column("calibrated"))
    assert cube.deviations is not None
    assert np.array_equal(cube.deviations[:, 2], actual.column("d3", "cube_replicates"))
    assert np.array_equal(open_cube(str(actual.folder), "cube").values, cube.values)


def test_a_real_release_is_not_marked_as_a_simulation(survey: SurveyAgency) -> None:
    ledger = discreet.ledger(survey.folder / "real.sqlite")
    set_budget(ledger, "survey", epsilon="10", unit="record")
    survey.more["ledger"] = "real.sqlite"
    survey.open().run(survey.folder / "real")
    assert not open_cube(survey.folder / "real").model.simulation


def test_rows_in_any_order_are_the_same_cube(survey: SurveyAgency) -> None:
    """A copy of a release may have sorted rows, with a manifest to match."""
    actual = survey.simulate()
    expected = actual.cube.values
    path = actual.folder / "cube.simulation.parquet"
    rows = actual.rows()
    pq.write_table(rows.take(np.random.default_rng(1).permutation(rows.num_rows)), path)
    forge_file_digest(actual.folder, path)
    assert np.array_equal(open_cube(actual.folder).values, expected)


@pytest.mark.parametrize(
    "name", ["cube.simulation.parquet", "cube.simulation.model.json", "cube_replicates.simulation.parquet"]
)
def test_a_changed_file_is_refused(survey: SurveyAgency, name: str) -> None:
    folder = survey.run(weights=WEIGHTS, replicates=DEVIATIONS)
    path = folder / name
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(PublishError, match="is not what the manifest lists") as error:
        open_cube(folder)
    assert name in str(error.value)
    path.unlink()
    with pytest.raises(PublishError, match="is missing") as error:
        open_cube(folder)
    assert name in str(error.value)


def test_rows_that_do_not_list_every_cell_once_are_refused(survey: SurveyAgency) -> None:
    actual = survey.simulate()
    path, rows = actual.folder / "cube.simulation.parquet", actual.rows()
    strange = rows.set_column(1, "strength", pa.array(["mild"] * rows.num_rows))
    for wrong, said in (
        (rows.slice(1), "does not list every cell exactly once"),
        (pa.concat_tables([rows.slice(1), rows.slice(5, 1)]), "does not list every cell exactly once"),
        (strange, "has a code that its model lacks"),
    ):
        pq.write_table(wrong, path)
        forge_file_digest(actual.folder, path)
        with pytest.raises(PublishError, match=said):
            open_cube(actual.folder)


def test_a_model_of_another_version_is_refused(survey: SurveyAgency) -> None:
    folder = survey.run()
    path = folder / "cube.simulation.model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": "discreet-cube/2"}))
    forge_file_digest(folder, path)
    with pytest.raises(PublishError, match="is in format 'discreet-cube/2'"):
        open_cube(folder)


def test_a_folder_without_a_manifest_is_not_a_release(survey: SurveyAgency) -> None:
    folder = survey.run()
    (folder / "manifest.json").unlink()
    with pytest.raises(DiscreetError, match="manifest"):
        open_cube(folder)
    with pytest.raises(DiscreetError):
        open_cube(survey.folder / "nowhere")


def test_several_cubes_need_a_name(survey: SurveyAgency) -> None:
    table: dict[str, Any] = {"method": "hypercube", "by": ["strength"], "epsilon": "1"}
    counts = {"name": "counts", "method": "counts", "by": ["strength"], "epsilon": "1"}
    survey.more["tables"] = [{"name": "one", **table}, {"name": "two", **table, "by": ["major"]}, counts]
    folder = survey.run()
    with pytest.raises(PublishError, match="several cubes\\. Name one of one, two"):
        open_cube(folder)
    assert open_cube(folder, "two").model.shape == (2,)
    for name in ("three", "counts"):
        with pytest.raises(PublishError, match=f"no cube '{name}'\\. Name one of one, two"):
            open_cube(folder, name)
    survey.more["tables"] = [counts]
    with pytest.raises(PublishError, match="has no cube\\. A cube is published by `method: hypercube`"):
        open_cube(survey.run())


def test_a_sparse_cube_without_rows(tmp_path: Path) -> None:
    """At a large epsilon all noise is 0, and without records no cell is listed."""
    survey = SurveyAgency(tmp_path / "empty", quotes().slice(0, 0))
    cube = survey.simulate(form="sparse", epsilon="100").cube
    assert cube.cells is not None
    assert len(cube.cells) == 0
    assert cube.table(["strength"]).estimate.tolist() == [0, 0, 0]


def test_coarser_levels(survey: SurveyAgency) -> None:
    cube = survey.simulate(epsilon="100").cube
    true = exact(quotes()).n.reshape(5, 6).sum(axis=1)
    assert cube.table(["major"]).estimate.tolist() == [true[:2].sum(), true[2:].sum()]
    assert [level.name for level in cube.model.levels] == ["major"]
    with pytest.raises(ParameterError, match="no variable 'soc'\\. It has occupation, strength, outdoors, major"):
        cube.table(["soc"])


def test_variables_of_several_columns(survey: SurveyAgency) -> None:
    """A `groups` domain: its codes are tuples, in two columns."""
    (survey.folder / "pairs.csv").write_text(PAIRS)
    pairs = {"groups": "pairs.csv", "columns": ["occupation", "outdoors"], "provenance": "made up"}
    survey.more["domains"] = {**survey.spec()["domains"], "pair": pairs}
    actual = survey.simulate(by=["pair", "strength"], epsilon="100")
    cube = actual.cube
    assert cube.model.axes[0].columns == ("occupation", "outdoors")
    table = cube.table(["strength", "pair"])
    assert table.columns == ("strength", "occupation", "outdoors")
    rows = quotes().to_pylist()
    for strength, occupation, outdoors, estimate in zip(*table.codes, table.estimate, strict=True):
        mine = (strength, occupation, outdoors)
        assert estimate == sum((row["strength"], row["occupation"], row["outdoors"]) == mine for row in rows)
    yes = cube.table([], {"pair": ["11-1011/yes", "13-1011/yes"]}).estimate[0]
    assert yes == sum(row["outdoors"] == "yes" and row["occupation"] in ("11-1011", "13-1011") for row in rows)
    with pytest.raises(ParameterError, match="'13-1011' is not a code of 'pair'\\. It has 11-1011/yes"):
        cube.table([], {"pair": ["13-1011"]})
