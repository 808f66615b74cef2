"""Tables of jobs, from three tables or one file: counts, noise, guarantee."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.errors import DiscreetError, GuaranteeError, ParameterError, SourceError, SpecError
from discreet.methods.employer.mechanisms.log_laplace import LogLaplace
from discreet.methods.employer.method import EmployerMethod
from discreet.methods.registry import methods
from discreet.noise.key import ReleaseKey
from support.workplaces import DOMAINS, STRONG, WEAK, WHOLE, Register, jobs, jobs_with_workplaces, workers, workplaces

PLACES, SECTORS = DOMAINS["place"]["values"], DOMAINS["sector"]["values"]
BOTH = {"worker_attributes": ["sex", "education"]}
KEY = ReleaseKey.simulation("suite")


@pytest.fixture
def register(tmp_path: Path) -> Register:
    return Register(tmp_path / "register")


def truth(attributes: list[str], only: dict[str, str] | None = None, most: int = 10**9) -> dict[tuple[str, ...], Any]:
    """By hand: of every cell its jobs, the most in one establishment, and the largest establishment's total."""
    rows = [
        row for row in jobs_with_workplaces().to_pylist() if row["workplace"] is not None and row["place"] in PLACES
    ]
    total = Counter(row["workplace"] for row in rows)
    rows = [row for row in rows if total[row["workplace"]] <= most]
    counts: dict[tuple[str, ...], Counter[int]] = defaultdict(Counter)
    sizes: dict[tuple[str, str], int] = defaultdict(int)
    for row in rows:
        place = (row["place"], row["sector"])
        sizes[place] = max(sizes[place], total[row["workplace"]])
        education = row["education"] if row["education"] in ("1", "2", "3") else "other"
        known = {**row, "education": education}
        if any(known[a] is None for a in attributes) or any(known[a] != v for a, v in (only or {}).items()):
            continue
        counts[tuple(known[a] for a in attributes)][row["workplace"]] += 1
    return {
        "n": {cell: sum(actual.values()) for cell, actual in counts.items()},
        "largest": {cell: max(actual.values()) for cell, actual in counts.items()},
        "size": dict(sizes),
    }


def method_of(register: Register, spec: dict[str, Any]) -> EmployerMethod:
    (actual,) = methods(register.open(spec).spec)
    assert isinstance(actual, EmployerMethod)
    return actual


def expected(register: Register, spec: dict[str, Any], rows: list[tuple[int, int]]) -> np.ndarray:
    """What the mechanism makes of these numbers with the stream of the release."""
    opened = register.open(spec)
    method = method_of(register, spec)
    stream = KEY.stream("r", "jobs", bytes.fromhex(opened.spec.digest()), f"employer/{method.mechanism.name}")
    n, largest = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return method.mechanism.draw(n, largest, stream, 0)


def run(register: Register, spec: dict[str, Any]) -> tuple[pa.Table, dict[str, Any]]:
    opened, out = register.open(spec), register.folder / f"out-{register._runs}"
    opened.run(out, simulation="suite")
    return pq.read_table(out / "jobs.simulation.parquet"), json.loads((out / "manifest.json").read_text())


MECHANISMS: list[Any] = [
    "laplace-pareto",
    {"name": "smooth-gamma", "constants": "printed"},
    {"name": "smooth-laplace", "delta": "0.001"},
    "log-laplace",
]


@pytest.mark.parametrize("one_file", [False, True])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m if isinstance(m, str) else m["name"])
def test_establishment_marginal(register: Register, one_file: bool, mechanism: Any) -> None:
    spec = register.spec(mechanism=mechanism, one_file=one_file)
    table, manifest = run(register, spec)
    cells, actual = list(product(PLACES, SECTORS)), truth(["place", "sector"])
    assert list(zip(table["place"].to_pylist(), table["sector"].to_pylist(), strict=True)) == cells
    rows = [(actual["n"].get(cell, 0), actual["largest"].get(cell, 0)) for cell in cells]
    assert sum(n for n, _ in rows) == 420
    assert table["count"].to_pylist() == expected(register, spec, rows).tolist()
    unit = manifest["guarantee"]["unit"]
    assert (unit["kind"], unit["alpha"], unit["adversary"]) == ("establishment", "0.1", "strong")
    assert any("two establishments" in caveat for caveat in manifest["guarantee"]["caveats"]) == one_file


def test_weak_worker_cells_compose_sequentially(register: Register) -> None:
    spec = register.spec(WEAK, epsilon="16", **BOTH)
    table, manifest = run(register, spec)
    attributes = ["place", "sector", "sex", "education"]
    cells = list(product(PLACES, SECTORS, DOMAINS["sex"]["values"], ["1", "2", "3", "other"]))
    actual, method = truth(attributes), method_of(register, spec)
    rows = [(actual["n"].get(cell, 0), actual["largest"].get(cell, 0)) for cell in cells]
    assert table.num_rows == len(cells) == 64
    assert (method.mechanism.epsilon, method.cells) == (2, 8)
    assert table["count"].to_pylist() == expected(register, spec, rows).tolist()
    assert manifest["guarantee"]["epsilon"] == "16"
    assert manifest["guarantee"]["unit"]["adversary"] == "weak"
    assert any("workforce" in caveat for caveat in manifest["guarantee"]["caveats"])


def test_strong_worker_marginal_takes_sizes_of_whole_establishments(register: Register) -> None:
    """Also where no job is in the cell; and workers with undeclared codes count for the size."""
    spec = register.spec(STRONG, epsilon="4", **BOTH)
    table, manifest = run(register, spec)
    cells = list(product(PLACES, SECTORS, DOMAINS["sex"]["values"], ["1", "2", "3", "other"]))
    actual, method = truth(["place", "sector", "sex", "education"]), method_of(register, spec)
    rows = [(actual["n"].get(cell, 0), actual["size"].get(cell[:2], 0)) for cell in cells]
    assert any(n == 0 and size for n, size in rows)
    assert max(size for _, size in rows) == 260
    assert method.mechanism.epsilon == 4
    assert method.mechanism.cells == 8  # type: ignore[attr-defined]
    assert table["count"].to_pylist() == expected(register, spec, rows).tolist()
    assert manifest["guarantee"]["unit"]["adversary"] == "strong"


@pytest.mark.parametrize("unit", [STRONG, WEAK], ids=["strong", "weak"])
def test_a_single_query(register: Register, unit: dict[str, Any]) -> None:
    only = {"sex": "2", "education": "3"}
    spec = register.spec(unit, only=only)
    table, manifest = run(register, spec)
    cells, actual = list(product(PLACES, SECTORS)), truth(["place", "sector"], only)
    beside = actual["size"] if unit is STRONG else actual["largest"]
    rows = [(actual["n"].get(cell, 0), beside.get(cell, 0)) for cell in cells]
    assert 0 < sum(n for n, _ in rows) < 200
    assert table["count"].to_pylist() == expected(register, spec, rows).tolist()
    assert manifest["guarantee"]["epsilon"] == "2"
    assert manifest["tables"][0]["about"].startswith("Jobs of workers with sex 2, education 3. No margin of error")
    assert {"sex", "education"} <= {domain["name"] for domain in manifest["domains"]}  # so that readers know the codes


def test_whole_establishments_and_truncation(register: Register) -> None:
    spec = register.spec(WHOLE, mechanism="truncated", **BOTH)
    table, manifest = run(register, spec)
    actual = truth(["place", "sector", "sex", "education"], most=20)
    cells = list(product(PLACES, SECTORS, DOMAINS["sex"]["values"], ["1", "2", "3", "other"]))
    rows = [(actual["n"].get(cell, 0), 0) for cell in cells]
    assert sum(n for n, _ in rows) == sum(actual["n"].values()) <= 25
    assert table["count"].to_pylist() == expected(register, spec, rows).tolist()
    assert len(set(table["moe90"].to_pylist())) == 1
    assert any("excluded from the counts" in caveat for caveat in manifest["guarantee"]["caveats"])


def test_a_worker_listed_twice_makes_no_second_job(register: Register) -> None:
    """Of two entries each column has the least value, whatever their order."""
    listed = workers(jobs().num_rows)
    spec = register.spec(WEAK, epsilon="16", **BOTH)
    register.write(workers=pa.concat_tables([listed, pa.table({"worker": [7], "sex": ["9"], "education": ["9"]})]))
    again, _ = run(register, spec)
    register.write(workers=listed)
    once, _ = run(register, spec)
    assert again.equals(once)
    sixth = {"worker": [6], "sex": ["1"], "education": ["1"]}  # 2 and 1 before
    register.write(workers=pa.concat_tables([pa.table(sixth), listed]))
    moved, _ = run(register, spec)
    assert not moved.equals(once)
    assert workers(7).to_pylist()[6] == {"worker": 6, "sex": "2", "education": "1"}


def test_keys_of_other_types_meet(register: Register) -> None:
    """Another table may have as text what one has as a number; real numbers are refused."""
    expected_rows, _ = run(register, register.spec())
    listed = workplaces()
    as_text = listed.set_column(0, "workplace", listed["workplace"].cast(pa.string()))
    register.write(workplaces=as_text)
    assert run(register, register.spec())[0].equals(expected_rows)
    moved = jobs()
    register.write(jobs=moved.set_column(1, "workplace", moved["workplace"].cast(pa.float64())), workplaces=listed)
    with pytest.raises(SourceError, match=r"'workplace' .* is of type double"):
        run(register, register.spec())


def test_margins_from_a_protected_bound(register: Register) -> None:
    for unit, shared in ((WEAK, 1), (STRONG, 8)):
        spec = register.spec(unit, epsilon="16", largest_establishment={"epsilon": "8"}, **BOTH)
        table, manifest = run(register, spec)
        assert manifest["guarantee"]["epsilon"] == "24"
        method, bounds = method_of(register, spec), np.array(table["largest95"].to_pylist())
        assert method.bound == LogLaplace(Fraction(1, 10), Fraction(8 if shared == 8 else 1), unbiased=False)
        blocks = bounds.reshape(-1, shared)
        assert (blocks == blocks[:, :1]).all()
        assert len(set(blocks[:, 0].tolist())) > 4  # noise of its own for every workplace cell
        margins = method.mechanism.margin(Fraction(19, 20), bounds)
        assert margins is not None
        assert table["moe90"].to_pylist() == margins.tolist()


def test_log_laplace_encloses_the_count_without_any_bound(register: Register) -> None:
    table, _ = run(register, register.spec(mechanism="log-laplace", nonnegative=True))
    low, high, count = (np.array(table[name].to_pylist()) for name in ("low90", "high90", "count"))
    assert (low <= high).all()
    assert (low >= 0).all()
    assert table["count_nonnegative"].to_pylist() == np.maximum(count, 0).tolist()
    assert "moe90" not in table.column_names


def test_nothing_published_reveals_the_largest_establishment(register: Register) -> None:
    table, manifest = run(register, register.spec())
    assert table.column_names == ["place", "sector", "count"]
    assert manifest["tables"][0]["margin90"] is None


def test_two_tables_add_up_and_the_weaker_adversary_stays(register: Register) -> None:
    spec = register.spec(WEAK)
    by_sex = {"name": "by_sex", "method": "employer", "by": ["place"], "worker_attributes": ["sex"], "epsilon": "3"}
    spec["tables"].append(by_sex)
    plan = register.open(spec).plan()
    assert (plan.total.epsilon, plan.total.unit.adversary) == (5, "weak")  # type: ignore[union-attr]
    assert [table.guarantee.unit.adversary for table in plan.tables] == ["strong", "weak"]  # type: ignore[union-attr]


def test_the_plan_states_bounds_on_odds_ratios(register: Register) -> None:
    said = str(register.open(register.spec(STRONG)).plan())
    for words in (
        "Bound on the odds ratio, by secret: One job exists: e^2.",
        "changes employer or attributes: e^4; for a worker with m jobs e^(4·m).",
        "(1+0.1)·x, or x+1: e^2; sizes that are k such steps apart: e^(2·k)",
        "for a share of up to 0.1 of it: e^4",
        "several establishments is protected one",
        "An establishment's existence, place and sector count as public and are not protected.",
        "before rounding 0.556 for x = 10, 5.56 for x = 100",
        "strong adversary), under a restricted neighbouring relation: it gains or loses workers within a factor 1+0.1 "
        "of its size, or one worker; larger changes are protected less",
    ):
        assert words in said
    weak = str(register.open(register.spec(WEAK, epsilon="16", **BOTH)).plan())
    for words in (
        "Composition of its workforce: not protected.",
        "8 × 2 = 16",
        "One job exists: e^2.",  # it is in one of the eight cells
        "attributes: e^4; for a worker with m jobs e^(4·m).",
        "or x+1: e^16, for an adversary who cannot distinguish workers",
        "of its size and of each kind of worker in it, or one worker of a kind; larger changes are protected less",
    ):
        assert words in weak
    whole = str(register.open(register.spec(WHOLE, mechanism="truncated")).plan())
    assert "or one of its jobs, exists: e^2. An establishment has one workforce or any other: e^4" in whole
    assert "more than 20 jobs" in whole
    assert "of them used" not in whole


def test_jobs_beside_records_of_whole_establishments(register: Register) -> None:
    """Counts keep some records of each establishment, a truncated table leaves large ones out: from one snapshot."""
    spec = register.spec(WHOLE, mechanism="truncated")
    spec["tables"].append({"name": "kept", "method": "counts", "by": ["place"], "epsilon": "1"})
    opened, out = register.open(spec), register.folder / "both"
    opened.run(out, simulation="suite")
    assert pq.read_table(out / "kept.simulation.parquet").num_rows == 4
    assert json.loads((out / "manifest.json").read_text())["guarantee"]["epsilon"] == "3"


def test_check_tells_what_the_rules_will_do(register: Register) -> None:
    from discreet.pipeline.check import lines

    opened = register.open(register.spec(WEAK, epsilon="16", **BOTH))
    actual = opened.check()
    assert (actual.records, actual.without_entity, actual.heavy_entities, actual.records_over) == (425, 2, 0, 0)
    said = "\n".join(lines(actual, opened.spec))
    assert "2 records without one are dropped" in said
    assert "sampled at random" not in said
    assert "workplace: 3 records have one that is not listed in workplaces; 0 are listed there more" in said
    assert "education: 0 records missing and" in said
    whole = register.open(register.spec(WHOLE, mechanism="truncated"))
    assert "3 have more than 20 records; all 395 records of theirs are left out" in "\n".join(
        lines(whole.check(), whole.spec)
    )
    one = register.open(register.spec(STRONG, one_file=True, by=["place", "sex"]))
    assert "workplace: 6 establishments in more than one cell of `by`" in "\n".join(lines(one.check(), one.spec))
    both = register.spec(WEAK)
    both["tables"].append(
        {"name": "women", "method": "employer", "by": ["place"], "only": {"sex": "2"}, "epsilon": "1"}
    )
    two = register.open(both)
    assert "are dropped (in women)" in "\n".join(lines(two.check(), two.spec))


def refused(register: Register, spec: dict[str, Any]) -> DiscreetError:
    with pytest.raises(DiscreetError) as actual:
        register.published(spec)
    assert not list(register.folder.glob("out*"))
    ledger = discreet.ledger(register.folder / f"ledger{register._runs}.sqlite")
    assert ledger.chain().releases() == {}
    return actual.value


@pytest.mark.parametrize(
    ("unit", "table", "kind", "says"),
    [
        (STRONG, {"epsilon": "0.05"}, ParameterError, "smallest admissible epsilon is"),
        (WEAK, {"epsilon": "0.5", **BOTH}, ParameterError, "for 8 worker cells is too small"),
        (WEAK, {"epsilon": "0.8", **BOTH}, ParameterError, "smallest admissible epsilon is 0.8104"),
        (STRONG, {"epsilon": "0.5", **BOTH}, ParameterError, "smallest admissible epsilon is"),
        (STRONG, {"mechanism": "log-laplace", **BOTH}, GuaranteeError, "strong adversary"),
        (STRONG, {"mechanism": "log-laplace", "only": {"sex": "1"}}, GuaranteeError, "strong adversary"),
        (STRONG, {"mechanism": "truncated"}, GuaranteeError, "whole: true"),
        (WHOLE, {}, GuaranteeError, "mechanism: truncated"),
        (STRONG, {"by": ["place", "sex"]}, SourceError, "'sex' is not a workplace attribute"),
        (STRONG, {"by": ["place"], "worker_attributes": ["sector"]}, SourceError, "List it under `by`"),
        (STRONG, {"only": {"sex": ["1", "2"]}}, SpecError, "several codes"),
        (STRONG, {"mechanism": "geometric"}, SpecError, "method: counts"),
        (STRONG, {"mechanism": "laplace-parteo"}, SpecError, "did you mean 'laplace-pareto'"),
        (STRONG, {"mechanism": {"name": "smooth-laplace"}}, SpecError, "{name: smooth-laplace, delta"),
        (STRONG, {"mechanism": "smooth-laplace"}, SpecError, "{name: smooth-laplace, delta"),
        (STRONG, {"mechanism": {"name": "smooth-laplace", "delta": "1"}}, SpecError, "probability"),
        (STRONG, {"mechanism": {"name": "log-laplace", "delta": "1"}}, SpecError, "unknown key 'delta'"),
        (
            STRONG,
            {"mechanism": "log-laplace", "largest_establishment": {"epsilon": "1"}},
            SpecError,
            "margins without it",
        ),
        (STRONG, {"worker_attributes": ["place"]}, SpecError, "twice"),
        (
            STRONG,
            {"workers": ["sex"]},
            SpecError,
            "'workers' is now called 'worker_attributes': write `worker_attributes: [sex]`",
        ),
        (STRONG, {"largest": {"epsilon": "1"}}, SpecError, "'largest' is now called 'largest_establishment': write"),
        (STRONG, {"only": {"sex": "7"}}, SpecError, "Write one of 1, 2"),
        (STRONG, {"only": {"age": "7"}}, SpecError, "unknown attribute 'age'"),
        (STRONG, {"epsilon": 2.0}, SpecError, "exact number"),
        (STRONG, {"largest_establishment": {"epsilon": "0.01"}}, ParameterError, "largest_establishment.epsilon"),
        (STRONG, {"method": "counts"}, GuaranteeError, "method: employer"),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(
    register: Register, unit: dict[str, Any], table: dict[str, Any], kind: type[DiscreetError], says: str
) -> None:
    error = refused(register, register.spec(unit, **table))
    assert isinstance(error, kind)
    assert says in str(error)


def test_sources_that_do_not_fit_are_refused(register: Register) -> None:
    spec = register.spec()
    assert "say under `join`" in str(refused(register, {k: v for k, v in spec.items() if k != "join"}))
    wrong = {**spec, "join": {**spec["join"], "others": "worker"}}
    assert "unknown table 'others'" in str(refused(register, wrong))
    first = {**spec, "source": dict(reversed(spec["source"].items()))}
    assert "the first, has the records" in str(refused(register, first))
    missing = {**spec, "join": {"workers": "worker", "workplaces": "establishment"}}
    assert "has no column 'establishment'" in str(refused(register, missing))
    register.write(jobs=jobs().append_column("place", pa.array(["10"] * jobs().num_rows)))
    error = refused(register, spec)
    assert isinstance(error, SourceError)
    assert "is in jobs and in workplaces" in str(error)


def test_frames_stand_for_sources_by_name(register: Register) -> None:
    spec = register.spec(**BOTH)
    expected_rows, _ = run(register, spec)
    frames = {"jobs": jobs(), "workers": workers(jobs().num_rows), "workplaces": workplaces()}
    opened = register.open(spec, frame=frames)
    opened.run(register.folder / "frames", simulation="suite")
    assert pq.read_table(register.folder / "frames" / "jobs.simulation.parquet").equals(expected_rows)
    named = {key: value for key, value in spec.items() if key != "source"}
    ledger = register.open(spec).ledger
    again = discreet.release({"release": "r", "asset": "records", **named}, frame=frames, ledger=ledger)
    again.run(register.folder / "named", simulation="suite")
    assert pq.read_table(register.folder / "named" / "jobs.simulation.parquet").equals(expected_rows)
    lacking = {"release": "s", "asset": "records", **named, "source": dict.fromkeys(frames, "")}
    with pytest.raises(SourceError, match="no frame for source 'workers'"):
        discreet.release(lacking, frame={"jobs": jobs()}, ledger=ledger).run(register.folder / "none", simulation="s")
    with pytest.raises(SourceError, match="no source 'job'"):
        register.open(spec, frame={"job": jobs()}).run(register.folder / "none", simulation="suite")
