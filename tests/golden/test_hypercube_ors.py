"""Real estimates of the Occupational Requirements Survey, wave 1, as public controls of a cube."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.errors import DomainError
from support.repository import SHARED
from support.survey import SurveyAgency

REAL = SHARED / "ors" / "ors_wave1_2018_imputeORS.csv"
pytestmark = pytest.mark.skipif(not REAL.exists(), reason="the public ORS estimates are not beside this clone")
EXPERIENCE, SITTING = "Prior work experience", "Sitting vs. standing/walking at will"
STRENGTH, SVP = "Strength", "SVP"
Shares = dict[str, dict[str, float]]  # by occupation and category


def shares(element: str) -> Shares:
    """Percentages of one requirement, by occupation, where every category has one: −1 and −6 are codes, not values."""
    actual: Shares = defaultdict(dict)
    with REAL.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["data_element_text"] == element and row["estimate_type_text"] == "Estimate":
                actual[row["upper_soc_code"]][row["data_type_text"]] = float(row["value"])
    all_of = {category for one in actual.values() for category in one}
    return {code: one for code, one in actual.items() if one.keys() == all_of and min(one.values()) >= 0}


def written(folder: Path, name: str, column: str, table: Shares, *, whole: bool) -> None:
    """A file of controls: percentages as they are, or made to add up to 100."""
    lines = [f"occupation,{column},total"]
    for code, one in sorted(table.items()):
        scale = 100 / sum(one.values()) if whole else 1.0
        lines += [f'{code},"{category}",{value * scale!r}' for category, value in one.items()]
    (folder / name).write_text("\n".join(lines) + "\n")


class Ors(SurveyAgency):
    """Invented quotes of the occupations that two requirements are known of."""

    def __init__(self, folder: Path, elements: tuple[str, str], *, whole: bool) -> None:
        one, two = (shares(element) for element in elements)
        self.codes = sorted(one.keys() & two.keys())
        self.kinds = [sorted(next(iter(table.values()))) for table in (one, two)]
        rng = np.random.default_rng(2)
        rows = 20 * len(self.codes)
        columns = {"occupation": rng.choice(self.codes, rows)}
        columns |= {name: rng.choice(kinds, rows) for name, kinds in zip(("one", "two"), self.kinds, strict=True)}
        super().__init__(folder, pa.table(columns))
        for name, table in (("one", one), ("two", two)):
            written(folder, f"{name}.csv", name, {code: table[code] for code in self.codes}, whole=whole)

    def spec(self, **changes: object) -> dict[str, object]:
        controls = [
            {"name": n, "by": ["occupation", n], "file": f"{n}.csv", "provenance": "ORS"} for n in ("one", "two")
        ]
        actual = super().spec(by=["occupation", "one", "two"], controls=controls, **changes)
        kinds = {"occupation": self.codes, "one": self.kinds[0], "two": self.kinds[1]}
        return {**actual, "domains": {name: {"values": values} for name, values in kinds.items()}}


@pytest.mark.parametrize("calibration", ["regression", "rake"])
def test_ors_estimates_are_met_by_a_cube(tmp_path: Path, calibration: str) -> None:
    survey = Ors(tmp_path / "ors", (EXPERIENCE, SITTING), whole=True)
    assert len(survey.codes) > 50
    cube = discreet.open_cube(survey.run(calibration=calibration))
    assert cube.model.calibration is not None
    assert cube.model.calibration.converged
    for name in ("one", "two"):
        table = cube.table(["occupation", name])
        wanted = {}
        with (tmp_path / "ors" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            wanted = {(row["occupation"], row[name]): float(row["total"]) for row in csv.DictReader(file)}
        for code, category, value, se in zip(*table.codes, table.estimate, table.se_perturbation, strict=True):
            assert value == pytest.approx(wanted[code, category], abs=1e-3)
            if calibration == "regression":
                assert se == 0  # a public control has no noise


def test_groups_that_do_not_sum_to_100_are_inconsistent(tmp_path: Path) -> None:
    survey = Ors(tmp_path / "ors", (STRENGTH, SVP), whole=False)
    assert survey.codes  # some groups add up to 99.9 or 100.1
    with pytest.raises(DomainError, match=r"cube_one.*cube_two|one.*two") as refused:
        survey.open().plan()
    assert refused.value.do
