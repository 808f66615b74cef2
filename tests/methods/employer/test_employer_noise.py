"""The noise of a table of jobs: its constants, positions in the stream, and cost."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.errors import DiscreetError, ParameterError
from discreet.methods.employer.mechanisms.discrete import Truncated
from discreet.methods.employer.mechanisms.laplace_pareto import LaplacePareto
from discreet.methods.employer.mechanisms.log_laplace import LogLaplace
from discreet.methods.employer.mechanisms.smooth_gamma import SmoothGamma
from discreet.methods.employer.mechanisms.smooth_laplace import SmoothLaplace
from discreet.methods.employer.method import EmployerMethod
from discreet.methods.registry import methods
from discreet.noise.key import ReleaseKey
from support.workplaces import STRONG, WEAK, WHOLE, Register, jobs_with_workplaces

F = Fraction
ALPHA = F(1, 10)
BOTH = {"worker_attributes": ["sex", "education"]}
SMOOTH = {"name": "smooth-laplace", "delta": "0.08"}


@pytest.fixture
def register(tmp_path: Path) -> Register:
    return Register(tmp_path / "register")


def method_of(register: Register, *unit: Any, **table: Any) -> EmployerMethod:
    (actual,) = methods(register.open(register.spec(*unit, **table)).spec)
    assert isinstance(actual, EmployerMethod)
    return actual


@pytest.mark.parametrize(
    ("unit", "table", "mechanism"),
    [
        (STRONG, {}, LaplacePareto(ALPHA, F(2))),
        (STRONG, {"mechanism": {"name": "laplace-pareto", "g": "3.5"}}, LaplacePareto(ALPHA, F(2), F("3.5"))),
        (STRONG, {"epsilon": "4", **BOTH}, LaplacePareto(ALPHA, F(4), cells=8)),
        (WEAK, {"epsilon": "4", **BOTH}, LaplacePareto(ALPHA, F(1, 2))),
        (STRONG, {"mechanism": "smooth-gamma", "epsilon": "4", **BOTH}, SmoothGamma(ALPHA, F(4), cells=8)),
        (WEAK, {"mechanism": "smooth-gamma", "epsilon": "4", **BOTH}, SmoothGamma(ALPHA, F(1, 2))),
        (
            STRONG,
            {"mechanism": {"name": "smooth-gamma", "gamma": "best", "constants": "separate"}},
            SmoothGamma(ALPHA, F(2), "separate", None),
        ),
        (STRONG, {"mechanism": SMOOTH, "epsilon": "8", **BOTH}, SmoothLaplace(ALPHA, F(8), F("0.08"), cells=8)),
        (WEAK, {"mechanism": SMOOTH, "epsilon": "8", **BOTH}, SmoothLaplace(ALPHA, F(1), F("0.01"))),
        (WEAK, {"mechanism": "log-laplace", "epsilon": "8", **BOTH}, LogLaplace(ALPHA, F(1))),
        (
            STRONG,
            {"mechanism": {"name": "log-laplace", "scale": "printed", "unbiased": False}},
            LogLaplace(ALPHA, F(2), "printed", False),
        ),
        (WHOLE, {"mechanism": "truncated", **BOTH}, Truncated(F(2), 21)),
        (WHOLE, {"mechanism": {"name": "truncated", "noise": "printed"}}, Truncated(F(2), 21, "printed")),
    ],
)
def test_declared_parameters_reach_the_mechanism(register: Register, unit: Any, table: Any, mechanism: Any) -> None:
    actual = method_of(register, unit, **table)
    assert actual.mechanism == mechanism
    assert actual.guarantee().epsilon == F(table.get("epsilon", 2))
    assert actual.guarantee().delta == (F("0.08") if table.get("mechanism") is SMOOTH else 0)


def test_truncation_keeps_twenty_jobs_and_noise_protects_as_many(register: Register) -> None:
    assert method_of(register, WHOLE, mechanism="truncated").mechanism.distribution.rate == F(2, 20)  # type: ignore[attr-defined]


def drawn(register: Register, unit: Any, **table: Any) -> tuple[pa.Table, EmployerMethod, Any]:
    spec = register.spec(unit, **table)
    opened, out = register.open(spec), register.folder / f"out-{register._runs}"
    opened.run(out, simulation="suite")
    actual = method_of(register, unit, **table)
    secret = bytes.fromhex(opened.spec.digest()), f"employer/{actual.mechanism.name}"
    path = out / "jobs.simulation.parquet"
    return pq.read_table(path), actual, ReleaseKey.simulation("suite").stream("r", "jobs", *secret)


@pytest.mark.parametrize(("unit", "shared"), [(STRONG, 8), (WEAK, 1)], ids=["strong", "weak"])
def test_bounds_have_noise_that_no_count_has(register: Register, unit: Any, shared: int) -> None:
    """After the noise of all cells, one for each bound: noise that two numbers share would give both away."""
    table, method, stream = drawn(register, unit, epsilon="16", largest_establishment={"epsilon": "8"}, **BOTH)
    rows = [row for row in jobs_with_workplaces().to_pylist() if row["workplace"] is not None]
    cells = method.domain.cells
    largest = np.zeros(cells // shared, np.int64)
    for place in range(cells // shared):
        codes = method.domain.codes(place * shared)
        mine = [
            row["workplace"]
            for row in rows
            if all(
                (shared > 1 and a.name in ("sex", "education")) or _category(a, row) == code
                for a, code in zip(method.domain.attributes, codes, strict=True)
            )
        ]
        largest[place] = max((mine.count(w) for w in set(mine)), default=0)
    assert method.bound is not None
    bounds = method.bound.limits(method.bound.draw(largest, largest, stream, cells), F(9, 10))[1]
    assert table["largest95"].to_pylist() == np.repeat(bounds, shared).tolist()
    assert method.kernel.shared == shared


def _category(attribute: Any, row: dict[str, Any]) -> int | None:
    return attribute.lookup.get((row[attribute.name],), attribute.other_code)


@pytest.mark.parametrize("unit", [STRONG, WEAK], ids=["strong", "weak"])
def test_how_work_is_cut_changes_nothing(register: Register, monkeypatch: pytest.MonkeyPatch, unit: Any) -> None:
    """Sizes that are no multiples of the eight cells which share a bound."""
    table = {"epsilon": "16", "largest_establishment": {"epsilon": "8"}, **BOTH}
    whole, _, _ = drawn(register, unit, **table)
    monkeypatch.setattr("discreet.methods.employer.kernel.RANGE", 12)
    ranges, _, _ = drawn(register, unit, **table)
    assert ranges.equals(whole)
    monkeypatch.setattr("discreet.methods.employer.method.PART", 20)
    parts, _, _ = drawn(register, unit, **table)
    assert parts.equals(whole)


def test_margins_are_those_of_the_bound_at_two_levels(register: Register) -> None:
    table, method, _ = drawn(register, STRONG, largest_establishment={"epsilon": "1"})
    bounds = np.array(table["largest95"].to_pylist())
    assert table["moe90"].to_pylist() == method.mechanism.margin(F(19, 20), bounds).tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize("largest", [None, {"epsilon": "0.71"}])
def test_an_alpha_with_many_digits_is_refused_before_anything_is_spent(register: Register, largest: Any) -> None:
    spec = register.spec({**STRONG, "alpha": "0.999999999999"}, epsilon="20")
    spec["tables"][0] |= {} if largest is None else {"largest_establishment": largest}
    with pytest.raises(ParameterError, match="too many digits"):
        register.published(spec)


def test_noise_that_cannot_be_drawn_is_refused_before_anything_is_spent(
    register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ParameterError("cannot be drawn", where="noise")

    monkeypatch.setattr(LaplacePareto, "draw", fail)
    with pytest.raises(DiscreetError, match="cannot be drawn"):
        register.published(register.spec())
    assert discreet.ledger(register.folder / "ledger1.sqlite").chain().releases() == {}


def test_caveats_are_those_of_the_declaration(register: Register) -> None:
    def caveats(unit: Any, **more: Any) -> str:
        spec = register.spec(unit, **more)
        if more.get("one_file") is None and more.get("by") is None:
            spec["join"], spec["source"] = {"workers": "worker"}, dict(list(spec["source"].items())[:2])
        return " ".join(register.open(spec).plan().total.caveats)

    firms, recorded = "one establishment at a time", "two cells count as two establishments"
    assert all(firms in caveats(unit, by=["place"]) for unit in (STRONG, WEAK))
    assert firms in caveats(WHOLE, by=["place"], mechanism="truncated")
    assert recorded not in caveats(STRONG, by=["place"])
    assert recorded in caveats(STRONG, one_file=True)
    assert recorded in caveats(STRONG)  # workers are looked up, workplaces are not
    assert "composition of an establishment's workforce" not in caveats(WEAK, by=["place"])
    assert "composition of an establishment's workforce" in caveats(WEAK, by=["place"], worker_attributes=["sex"])


def test_too_many_cells_and_taken_names_are_refused(register: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = register.spec()
    spec["domains"] = {**spec["domains"], "count": {"values": ["A", "B"], "column": "sector"}}
    spec["tables"][0]["by"] = ["place", "count"]
    with pytest.raises(DiscreetError, match="called 'count' already"):
        register.published(spec)
    monkeypatch.setattr("discreet.methods.employer.method.MOST_CELLS", 7)
    with pytest.raises(DiscreetError, match="8 cells are too many"):
        register.published(register.spec())
    assert json.loads(json.dumps(spec["unit"])) == STRONG
