"""`plan` answers or refuses any mutated declaration, and never ends in an internal error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import discreet
from discreet.errors import DiscreetError
from support import agency, earnings, flows, sensitivity, survey, workplaces
from support.mutations import Mutation, survived

CHUNK = 100
Base = tuple[Path, dict[str, Any]]


def _plain(declared: dict[str, Any]) -> dict[str, Any]:
    return {"release": "r", "asset": "records", "ledger": "ledger.sqlite", **json.loads(json.dumps(declared))}


def _counts(folder: Path) -> Base:
    made = agency.Agency(folder)
    more = {"form": "sparse", "round_to": 5, "nonnegative": True, "name": "few", "epsilon": "1"}
    tables = [*agency.SPEC["tables"], {"method": "counts", "by": ["state"], **more}]
    (folder / "list.csv").write_text("list,label\n1,one\n2,two\n")
    domains = {**agency.SPEC["domains"], "list": {"codes": "list.csv", "code": "list", "label": "label"}}
    return made.folder, _plain({**agency.SPEC, "domains": domains, "tables": tables, "strict": True})


def _earnings(folder: Path) -> Base:
    levels = [{"name": "families", "by": ["family", "years_after"]}, {"name": "all", "by": [], "epsilon": "1"}]
    sample = [{"column": "pay", "at_least": 1}, {"column": "degree_level", "equals": ["05"]}]
    table = earnings.table(levels=levels, sample=sample, suppress_below=10, suppress_codes={"degree_level": ["05"]})
    return earnings.Registrar(folder).folder, _plain(earnings.spec(table))


def _flows(folder: Path) -> Base:
    return flows.CareersAgency(folder).folder, _plain(flows.spec())


def _employer(folder: Path) -> Base:
    made = workplaces.Register(folder)
    return made.folder, _plain(made.spec(largest_establishment={"epsilon": "1"}, only={"sex": "1"}))


def _estimates(folder: Path) -> Base:
    made = sensitivity.AtlasAgency(folder)
    return made.folder, _plain(
        made.spec(groups=["state"], suppress_below={"count": 5}, formats=["parquet", "csv", "dta"])
    )


def _function(folder: Path) -> Base:
    made = sensitivity.AtlasAgency(folder)
    (folder / "mine.py").write_text("raise RuntimeError('a plan has run this')\n")
    statistic = {"name": "function", "file": "mine.py", "function": "f", "of": ["kid_rank"], "scale": "1", "empty": "0"}
    variables = {"kid_rank": {"low": "0", "high": "1"}}
    table = {"cell_size": "true", "search": {"grid": 5}, "delta": None, "noise": "laplace"}
    return made.folder, _plain(made.spec(statistic=statistic, variables=variables, **table))


def _cube(folder: Path) -> Base:
    made = survey.SurveyAgency(folder)
    more = {"weights": survey.WEIGHTS, "controls": survey.CONTROLS, "replicates": survey.DEVIATIONS}
    return made.folder, _plain(made.spec(**more))


BASES: dict[str, Callable[[Path], Base]] = {
    "counts": _counts,
    "earnings": _earnings,
    "flows": _flows,
    "employer": _employer,
    "estimates": _estimates,
    "function": _function,
    "cube": _cube,
}


def plan(path: Path) -> None:
    """As the command does."""
    assert discreet.release(path).plan().lines


def failures(folder: Path, name: str, numbers: range) -> list[str]:
    """What goes wrong among these mutations: what each did, and its beginning."""
    place, declared = BASES[name](folder / name)
    actual = []
    for number in numbers:
        mutation = Mutation(f"declaration {name}", number)
        text = mutation.text(declared)
        path = place / "mutated.yaml"
        path.write_bytes(text)
        if said := survived(lambda path=path: plan(path), (DiscreetError, OSError)):  # type: ignore[misc]
            actual.append(f"{name} {number} ({'; '.join(mutation.said)}): {said}\n{text[:1500]!r}")
    return actual


@pytest.mark.parametrize("name", BASES)
def test_the_declarations_themselves_are_planned(tmp_path: Path, name: str) -> None:
    folder, declared = BASES[name](tmp_path / name)
    (folder / "plain.yaml").write_text(yaml.safe_dump(declared))
    plan(folder / "plain.yaml")


@pytest.mark.parametrize("name", BASES)
def test_a_mutated_declaration_is_planned_or_refused(tmp_path: Path, name: str) -> None:
    actual = failures(tmp_path, name, range(50))
    assert not actual, "\n\n".join(actual)


@pytest.mark.full
@pytest.mark.parametrize("part", range(0, 1_500, CHUNK))
@pytest.mark.parametrize("name", BASES)
def test_any_mutated_declaration_is_planned_or_refused(tmp_path: Path, name: str, part: int) -> None:
    actual = failures(tmp_path, name, range(part, part + CHUNK))
    assert not actual, "\n\n".join(actual)
