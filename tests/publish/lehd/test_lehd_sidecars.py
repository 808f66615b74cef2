"""Label and version files of LEHD's layouts: shared by the tables of a release."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from pathlib import Path
from typing import Any

import pytest

from discreet.domain import Domain
from discreet.errors import SpecError
from discreet.methods.registry import methods
from discreet.publish.lehd import schema
from discreet.publish.lehd.check import check_layout
from discreet.publish.lehd.pseoe import Pseoe, lehd_level
from discreet.publish.lehd.pseof import Pseof
from discreet.publish.lehd.sidecars import Sidecars, Version, merged_sidecars
from discreet.publish.lehd.spec import Lehd
from discreet.spec import Release
from support.earnings import Registrar, graduates, spec, table
from support.flow_levels import COHORT, DIVISION, FAMILY, SCHOOL, SECTOR, STATE, YEARS, attribute, level

DAY = dt.date(2026, 8, 15)
NAMES = {
    "institution": {"00100100": 'Aster, "the" College'},
    "state": {"44": "Rhode Island"},
    "industry": {"11": "Farms"},
}
FIELD = attribute("institution/degree_level/cip4", "00100100/05/01.01", "00100300/05/52.02")
COHORTS = attribute("grad_cohort", "2016", "2019")


def flows(layout: Lehd | None = None) -> Sidecars:
    layout = layout or Lehd()
    levels = (
        level("schools", [SCHOOL, YEARS], [SECTOR], layout),
        level("families", [FAMILY, COHORT, YEARS], [DIVISION, SECTOR], layout),
        level("states", [STATE, COHORT, YEARS], layout=layout),
    )
    return Pseof(layout, levels, NAMES).sidecars()


def earnings() -> Sidecars:
    levels = (lehd_level("fields", Domain((FIELD, COHORTS, YEARS)), Lehd(), {}),)
    return Pseoe(Lehd(), levels, NAMES).sidecars()


def read(sidecars: Sidecars, what: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(sidecars.texts(False, DAY, "r")[f"label_{what}.csv"])))


def test_flows_list_exactly_the_declared_codes() -> None:
    made = flows()
    assert read(made, "industry") == [
        *(["industry", "label"], ["00", "All industries"], ["11", "Farms"], ["31-33", "Manufacturing"]),
        ["92", "Public administration"],
    ]
    assert read(made, "geography") == [["geography", "label"], ["00", "National"], ["8", "Mountain"], ["9", "Pacific"]]
    assert read(made, "institution") == [
        *(["institution", "label"], ["00100100", 'Aster, "the" College'], ["00100200", "00100200"]),
        *(["06", "06"], ["44", "Rhode Island"]),
    ]
    assert read(made, "cipcode") == [["cipcode", "label"], ["00", "All fields"], ["01", "01"], ["52", "52"]]
    assert [row[0] for row in read(made, "degree_level")] == ["degree_level", "05", "17", "18"]
    for what, codes in (("geo_level", "DN"), ("ind_level", "AS"), ("inst_level", "IS"), ("cip_level", "2A")):
        assert [row[0] for row in read(made, what)] == [what, *codes]
    assert read(made, "agg_level_pseo") == [
        ["agg_level_pseo", "grad_char", "cip_level", "inst_level", "geo_level", "ind_level", "by_grad_cohort"],
        *(
            [str(n), a.grad_char, a.cip_level, a.inst_level, a.geo_level, a.ind_level, str(int(a.by_cohort))]
            for n, a in schema.AGG_LEVELS.items()
            if n in {32, 86, 190}
        ),
    ]
    assert read(made, "flags")[1:] == [list(item) for item in schema.FLAGS.items()]
    assert "label_flags_ipeds_count.csv" not in made.files(False)


def test_the_version_file_has_a_line_for_each_product() -> None:
    both = merged_sidecars([flows(), earnings(), Sidecars()])
    assert both.texts(False, DAY, "r")["version_pseo.txt"] == (
        "PSEOE US 00 2016-2019 V4.14.0 R2026Q3 discreet_r\nPSEOF US 00 2010-2013 V4.14.0 R2026Q3 discreet_r\n"
    )
    colorado = flows(Lehd(area="co", area_code="08")).texts(False, dt.date(2027, 1, 1), "x")
    assert colorado["version_pseo.txt"] == "PSEOF CO 08 2010-2013 V4.14.0 R2027Q1 discreet_x\n"


@pytest.mark.parametrize(("month", "quarter"), [(1, 1), (3, 1), (4, 2), (6, 2), (7, 3), (9, 3), (10, 4), (12, 4)])
def test_the_quarter_is_that_of_the_reservation(month: int, quarter: int) -> None:
    line = Version("pseof", "US", "00", 2010, 2013).line(dt.date(2026, month, 28), "r")
    assert line == f"PSEOF US 00 2010-2013 V4.14.0 R2026Q{quarter} discreet_r"


def test_merged_files_have_the_rows_of_both_once() -> None:
    one, other = earnings(), flows()
    both = merged_sidecars([one, other])
    assert both == merged_sidecars([other, one])
    assert merged_sidecars([both, one]) == both
    assert both.texts(False, DAY, "r") == merged_sidecars([other, one]).texts(False, DAY, "r")
    for what in both.labels:
        parts = [read(part, what) for part in (one, other) if what in part.labels]
        header, *rows = read(both, what)
        assert all(part[0] == header for part in parts)
        assert {tuple(row) for row in rows} == {tuple(row) for part in parts for row in part[1:]}
        assert len(rows) == len({row[0] for row in rows})
    assert [row[0] for row in read(both, "agg_level_pseo")[1:]] == ["32", "48", "86", "190"]
    assert set(both.files(False)) == set(one.files(False)) | set(other.files(False))


def test_a_single_table_has_its_own_files() -> None:
    for part in (earnings(), flows()):
        assert merged_sidecars([part]) == part
        assert list(part.files(True)) == list(part.texts(True, DAY, "r"))
        assert all(".simulation." in name for name in part.files(True))
        assert list(part.files(False)) == [name.replace(".simulation", "") for name in part.files(True)]
    assert Sidecars().files(False) == Sidecars().texts(False, DAY, "r") == {}


def test_a_code_with_two_labels_is_refused() -> None:
    levels = (level("x", [SCHOOL, COHORT, YEARS]),)
    birch, aster = (Pseof(Lehd(), levels, {"institution": {"00100200": name}}).sidecars() for name in ("B", "A"))
    with pytest.raises(SpecError, match="has two labels for '00100200'") as refusal:
        merged_sidecars([birch, aster])
    assert refusal.value.where == "label_institution.csv"
    assert refusal.value.do


# --- the declaration ------------------------------------------------------------------------------------------------


def test_the_digest_of_a_layout_is_the_same_as_before_flows_were_added() -> None:
    """Otherwise releases that were reserved before could not be resumed."""
    assert Lehd().model_dump(mode="json") == {
        **{"kind": "lehd", "area": "all", "area_code": "00", "institution": "institution", "state": "state"},
        **{"degree_level": "degree_level", "cip4": "cip4", "cip2": "cip2", "grad_cohort": "grad_cohort"},
        "years_after": "years_after",
    }


@pytest.mark.parametrize(
    "names", [{"industry": "naics"}, {"division": "industry", "industry": "division"}, {}], ids=str
)
def test_a_layout_is_declared_and_read_back(names: dict[str, str]) -> None:
    layout = Lehd(**names)  # type: ignore[arg-type]
    dumped = layout.model_dump(mode="json")
    assert {key: dumped[key] for key in names} == names
    assert Lehd.model_validate(dumped) == layout


# --- releases -------------------------------------------------------------------------------------------------------

AREAS = (
    table(name="ours", layout={"kind": "lehd", "area": "co", "area_code": "08"}),
    table(name="theirs", by=["school", "grad_cohort", "years_after"], layout={"kind": "lehd", "area": "wy"}),
)


def test_two_layouts_of_one_release_share_their_sidecars(tmp_path: Path) -> None:
    files = Registrar(tmp_path / "office", graduates(40)).published(spec(*AREAS))
    assert files["version_pseo.simulation.txt"] == (
        b"PSEOE CO 08 2010-2013 V4.14.0 R2026Q1 discreet_r\nPSEOE WY 00 2010-2013 V4.14.0 R2026Q1 discreet_r\n"
    )
    aggs = list(csv.DictReader(io.StringIO(files["label_agg_level_pseo.simulation.csv"].decode())))
    assert [row["agg_level_pseo"] for row in aggs] == ["44", "48"]
    manifest = json.loads(files["manifest.json"])
    assert set(manifest["files"]) == set(files) - {"manifest.json"}
    book = json.loads(files["codebook.json"])
    assert manifest["layouts"] == book["layouts"]
    assert list(manifest["layouts"])[:5] == [
        *(f"pseoe_{area}.simulation.{kind}" for area in ("co", "wy") for kind in ("parquet", "csv")),
        "version_pseo.simulation.txt",
    ]
    assert len([name for name in files if name.startswith("label_")]) == 10
    for area in ("co", "wy"):
        (tmp_path / area).write_bytes(files[f"pseoe_{area}.simulation.csv"])
        assert check_layout(tmp_path / area).violations == ()


def declared(folder: Path, *tables: dict[str, Any]) -> Release:
    office = Registrar(folder / "office")
    content = {"release": "r", "asset": "records", **spec(*tables), "base": office.folder}
    return Release.model_validate(content)


@pytest.mark.parametrize("name", ["label_flags", "LABEL_institution", "pseoe_all"])
def test_a_table_called_like_a_file_of_the_layout_is_refused(tmp_path: Path, name: str) -> None:
    other = {"name": name, "method": "counts", "by": ["grad_cohort"], "epsilon": "1"}
    with pytest.raises(SpecError, match="two files are called"):
        methods(declared(tmp_path, table(layout="lehd"), other))
    assert len(methods(declared(tmp_path / "apart", table(layout="lehd"), other | {"name": "apart"}))) == 2


def test_one_file_is_not_written_by_two_tables(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"two files are called 'pseoe_all\.parquet'"):
        methods(declared(tmp_path, table(layout="lehd"), table(name="again", layout="lehd")))


def test_counts_have_no_sidecars(tmp_path: Path) -> None:
    (made,) = methods(declared(tmp_path, {"name": "n", "method": "counts", "by": ["grad_cohort"], "epsilon": "1"}))
    assert made.shared_files() is None
