"""The table of flows: true counts plus the stated noise, a reproducible correction, preserved totals."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from discreet.methods.flows.correction import RULES, Controls, GroupControls
from discreet.noise.key import ReleaseKey, public_stream
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.laplace_sum import count_margin
from support.flows import (
    COHORTS,
    DOMAINS,
    GROUP,
    HOMES,
    PERSON,
    SECTORS,
    STATES,
    TO,
    YEARS,
    ZZ,
    CareersAgency,
    Record,
    Z,
    cells,
    employment,
    filled,
    graduates,
    job_flows,
    matrix,
    plain,
    programmes,
    published,
    read,
    read_csv,
    spec,
    table,
    true_counts,
)

Files = dict[str, bytes]
Counts = np.ndarray[Any, np.dtype[np.int64]]
RATE = Fraction(3, PERSON["max_records"])
RECORDS = graduates(40)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    """Published once for many tests."""
    with published(tmp_path_factory.mktemp("usual"), RECORDS, spec()) as actual:
        yield actual


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    """Empty source: groups are pure noise, so some totals are negative and some are not, whatever is drawn."""
    with published(tmp_path_factory.mktemp("silent"), [], spec()) as actual:
        yield actual


def measured(files: Files) -> Counts:
    """Every measurement, from the file of those that are not 0."""
    return matrix(filled(files, "flows_measured"), "measured")


def corrected(files: Files) -> Counts:
    return matrix(filled(files), "flow")


# --- what is in the files -------------------------------------------------------------------------------------------


def test_a_group_adds_up_to_its_measured_total_or_is_zero(files: Files, silent: Files) -> None:
    for actual, some in ((files, lambda totals: totals > 20), (silent, lambda totals: totals < 0)):
        totals = measured(actual).sum(axis=1)
        assert corrected(actual).sum(axis=1).tolist() == np.maximum(totals, 0).tolist()
        assert some(totals).any()


def test_listed_are_flows_above_zero_and_none_else(files: Files) -> None:
    actual, noisy = filled(files), filled(files, "flows_measured")
    assert (actual.loc[actual["listed"], "flow"] > 0).all()
    assert actual["listed"].tolist() == (actual["flow"] != 0).tolist()
    assert noisy["listed"].tolist() == (noisy["measured"] != 0).tolist()
    kept = actual[actual["listed"]]
    assert kept["measured"].tolist() == noisy.loc[actual["listed"], "measured"].tolist()
    assert (kept["measured"] > 0).all()


def test_flows_are_lowered_where_something_is_negative_and_never_raised(files: Files) -> None:
    flows, noisy = corrected(files), measured(files)
    assert (flows <= np.maximum(noisy, 0)).all()
    whole = (noisy >= 0).all(axis=1)
    assert np.array_equal(flows[whole], noisy[whole])
    broken = (noisy < 0).any(axis=1) & (noisy.sum(axis=1) > 0)
    assert broken.any()
    assert (flows[broken] < np.maximum(noisy[broken], 0)).any(axis=1).all()


def test_rows_are_in_the_order_of_the_declaration_and_margins_are_of_one_draw(files: Files) -> None:
    for name in ("flows", "flows_measured"):
        actual, every = read(files, name), cells()
        places = {tuple(key): i for i, key in enumerate(every[[*GROUP, *TO]].itertuples(index=False))}
        order = [places[tuple(key)] for key in actual[[*GROUP, *TO]].itertuples(index=False)]
        assert order == sorted(order)
        assert set(actual["moe90"]) == {count_margin(RATE, 1)}
    assert list(read(files, "flows").columns) == [*GROUP, *TO, "flow", "measured", "moe90"]
    assert list(read(files, "flows_measured").columns) == [*GROUP, *TO, "measured", "moe90"]


def test_csv_and_parquet_say_the_same(files: Files) -> None:
    both = read(files, "flows").astype(str), read_csv(files, "flows").astype(str)
    pd.testing.assert_frame_equal(*(one.reset_index(drop=True) for one in both), check_dtype=False)
    assert "flows_measured.simulation.csv" not in files


# --- counting -------------------------------------------------------------------------------------------------------


def noise_of(office: CareersAgency, declared: dict[str, Any], rate: Fraction, n: int, seed: str = "suite") -> Counts:
    """What the key of a simulation adds to the cells, drawn by hand."""
    digest = bytes.fromhex(office.open(declared).spec.digest())
    stream = ReleaseKey.simulation(seed).stream("r", "flows~measured", digest, "flows/cells")
    return DiscreteLaplace(rate).draw(stream, 0, n)


@pytest.mark.parametrize("marginal", [{}, {"undeclared": True}, {"missing": True}])
@pytest.mark.parametrize(("unit", "records"), [("record", 1), (PERSON, 3)])
def test_measurements_are_true_counts_and_the_noise_of_the_key(
    tmp_path: Path, unit: Any, records: int, marginal: dict[str, bool]
) -> None:
    office = CareersAgency(tmp_path / "office", RECORDS)
    declared = spec(plain(marginal=marginal), unit=unit)
    truth = true_counts(RECORDS, **marginal)
    drawn = noise_of(office, declared, Fraction(3, records), truth.size).reshape(truth.shape)
    assert np.array_equal(measured(office.published(declared)) - truth, drawn)


def test_truth_tells_the_rules_apart() -> None:
    """Were no record missing, undeclared or marginal, the test above could not fail."""
    strict, wide = true_counts(RECORDS), true_counts(RECORDS, undeclared=True)
    assert 0 < strict[:, -1].sum() < true_counts(RECORDS, missing=True)[:, -1].sum() < wide[:, -1].sum()
    assert np.array_equal(strict[:, :-1], wide[:, :-1])
    assert wide.sum() == len(RECORDS)
    kinds = {(r[-2] in SECTORS, r[-2] in (ZZ, None), r[-1] in STATES, r[-1] in (Z, None)) for r in RECORDS}
    assert len(kinds) == 9


def pure(to: Sequence[tuple[str | None, str | None]]) -> list[Record]:
    """Each destination so often that noise is negligible: 1,000, 2,000, … records of one group."""
    first = programmes()[0]
    return [
        (f"P{i}-{n}", first["institution"], first["degree_level"], first["cipcode"], COHORTS[0], YEARS[0], *pair)
        for i, pair in enumerate(to, 1)
        for n in range(1000 * i)
    ]


def rounded(files: Files) -> dict[tuple[str, str], int]:
    """Thousands in the first group, by destination."""
    actual = filled(files, "flows_measured")
    first = actual.head(len(SECTORS) * len(STATES) + 1)
    return {
        (k, s): n
        for k, s, n in zip(first["industry"], first["state"], round(first["measured"] / 1000), strict=True)
        if n
    }


def test_codes_of_the_marginal_cell_are_those_that_are_declared(tmp_path: Path) -> None:
    """Half of the pair is no destination, unless undeclared ones count."""
    pairs = [("11", "06"), ("no", "none"), (ZZ, Z), ("no", "06"), ("11", "none"), (None, None), ("11", None)]
    office = CareersAgency(tmp_path / "office", pure(pairs))
    for undeclared, count in ((False, 2), (True, sum(range(2, 8)))):
        marginal = {"industry": "no", "state": "none", "undeclared": undeclared}
        actual = read(office.published(spec(plain(marginal=marginal))), "flows_measured")
        large = actual.loc[actual["measured"] > 500, [*TO, "measured"]]
        thousands = [(k, s, round(n / 1000)) for k, s, n in large.itertuples(index=False)]
        assert thousands == [("11", "06", 1), ("no", "none", count)]


@pytest.mark.parametrize("undeclared", [False, True])
def test_codes_that_lost_their_zeros_are_padded_and_the_marginal_ones_too(tmp_path: Path, undeclared: bool) -> None:
    """Data with states 6 and Z: were Z looked up as 0Z, all records without a job would be dropped."""
    pairs = [("11", "6"), ("52", "06"), (ZZ, Z), ("31-33", "41")]
    office = CareersAgency(tmp_path / "office", pure(pairs))
    geography = {**DOMAINS["geography"], "width": 2}
    industry = {**DOMAINS["industry"], "width": 2}
    declared = spec(
        plain(marginal={"undeclared": undeclared}), domains={**DOMAINS, "geography": geography, "industry": industry}
    )
    assert rounded(office.published(declared)) == {
        ("11", "06"): 1,
        ("31-33", "41"): 4,
        ("52", "06"): 2,
        (ZZ, Z): 3,
    }


def test_at_most_so_many_records_of_a_person(tmp_path: Path) -> None:
    """Under one key, removing a person changes the measurements by her used records; dropped ones take no place."""
    useless = [("target", *r[1:6], "99", "77") for r in RECORDS[:7]]
    hers = [("target", *r[1:6], "11", "06") for r in RECORDS[:200:20]]
    actual = []
    for i, records in enumerate((RECORDS, [*RECORDS, *useless, *hers])):
        actual.append(measured(CareersAgency(tmp_path / f"office{i}", records).published(spec(plain()))))
    moved = actual[1] - actual[0]
    assert moved.sum() == np.abs(moved).sum() == 3
    assert set(np.flatnonzero(moved.any(axis=0))) == {0}


def test_the_noise_has_the_stated_distribution(tmp_path: Path) -> None:
    """Ten thousand groups without a record; the right rate is accepted, others are not."""
    groups = {"group": {"values": [str(i) for i in range(2500)]}, "industry": {"values": list(SECTORS)}}
    domains = {**groups, "geography": DOMAINS["geography"]}
    none = pa.table({n: pa.array([], pa.string()) for n in ("person_id", "group", "industry", "state")})
    office = CareersAgency(tmp_path / "office", none)
    files = office.published(spec(plain(by=["group"], epsilon="3/2"), domains=domains))
    actual = read(files, "flows_measured")["measured"].to_numpy(np.int64)
    noise = np.concatenate([actual, np.zeros(2500 * 16 - actual.size, np.int64)])  # cells without a row measured 0
    assert p_value(noise, 0.5) > 1e-6
    for wrong in (0.35, 0.65, 1.5):
        assert p_value(noise, wrong) < 1e-20
    flows = read(files, "flows")
    assert int(flows["flow"].sum()) == sum(
        max(int(n), 0) for n in read(files, "flows_measured").groupby("group")["measured"].sum()
    )


def p_value(noise: Counts, rate: float) -> float:
    """χ² of integer noise against the two-sided geometric distribution, tails pooled."""
    a, top = np.exp(-rate), int(6 / rate)
    k = np.arange(-top, top + 1)
    probability = (1 - a) / (1 + a) * a ** np.abs(k)
    probability[[0, -1]] = a**top / (1 + a)
    observed = np.bincount(np.clip(noise, -top, top) + top, minlength=2 * top + 1)
    return float(stats.chisquare(observed, probability * noise.size).pvalue)


# --- the correction -------------------------------------------------------------------------------------------------


def summed(text: str, rows: tuple[str, ...], across: tuple[str, ...]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A public file of pairs and values as a matrix, with pandas."""
    actual = pd.read_csv(io.StringIO(text), dtype={0: str, 1: str})
    row, column, value = actual.columns
    whole = actual.pivot_table(value, row, column, aggfunc="sum")
    return np.asarray(whole.loc[list(rows), list(across)], np.float64)


JOBS = summed(job_flows(), HOMES, tuple(STATES))
EMPLOYMENT = summed(employment(), tuple(STATES), SECTORS).T


def likely(noisy: Counts) -> tuple[Controls, Counts, Counts]:
    """The weights, from public files and the measurements alone; each group's home and family."""
    frame = cells().drop_duplicates(GROUP)
    families = list(dict.fromkeys((p["institution"], p["cip2"]) for p in programmes()))
    family = np.array([families.index((r.institution, r.cip2)) for r in frame.itertuples()])
    home = np.array([HOMES.index(h) for h in frame["home"]])
    by_industry = noisy[:, :-1].reshape(len(noisy), len(SECTORS), len(STATES)).sum(axis=2)
    flows = np.stack([by_industry[family == f].sum(axis=0) for f in range(len(families))])
    return Controls.of(JOBS, EMPLOYMENT, flows, Fraction(1)), home, family


def by_hand(noisy: Counts, rule: str, weights: tuple[Controls, Counts, Counts]) -> Counts:
    """The corrected flows, one group after the other, with a public stream."""
    stream, (controls, home, family) = public_stream("flows/correction", "r", "flows"), weights
    out = np.empty_like(noisy)
    for g, row in enumerate(noisy):
        blocks = (int(RULES[rule].words_needed(row[None])[0]) + 1) // 2
        counters = np.array([(g, j) for j in range(blocks)], np.uint64).reshape(-1, 2)
        words = stream.sparse_words(counters).reshape(-1) if blocks else np.empty(0, np.uint64)
        groups = GroupControls(controls, home[g : g + 1], family[g : g + 1], RATE)
        out[g] = RULES[rule].correct(row[None], groups, words, np.array([0, words.size]))[0]
    return out


@pytest.mark.parametrize("rule", sorted(RULES))
def test_corrected_flows_are_reproducible_from_the_measurements(tmp_path: Path, rule: str) -> None:
    """Without the key and without records: the correction is post-processing."""
    office = CareersAgency(tmp_path / "office", RECORDS)
    correction = {**table()["correction"], "rule": rule}
    files = office.published(spec(table(correction=correction), keep_measurements=str(tmp_path / "kept")))
    noisy = measured(files)
    kept = pq.read_table(tmp_path / "kept" / "flows~measured.simulation.parquet")["count"].to_numpy()
    assert np.array_equal(kept.reshape(noisy.shape), noisy)
    assert np.array_equal(corrected(files), by_hand(noisy, rule, likely(noisy)))


def test_weights_decide_what_is_lowered(tmp_path: Path) -> None:
    """The marginal cell, with a weight like no other's, gives all that it has before any other gives."""
    office = CareersAgency(tmp_path / "office", RECORDS)
    for weight, gives in (("1e9", True), ("1e-9", False)):
        files = office.published(spec(table(correction={**table()["correction"], "marginal_weight": weight})))
        flows, noisy = corrected(files), measured(files)
        lowered = np.maximum(noisy, 0) - flows
        asked = (noisy.sum(axis=1) > 0) & (lowered.sum(axis=1) > 0) & (noisy[:, -1] > 0)
        assert asked.sum() > 4
        if gives:
            assert (lowered[asked, -1] == np.minimum(noisy[asked, -1], lowered[asked].sum(axis=1))).all()
        else:
            assert (lowered[asked, -1] == 0).all()


def test_the_report_counts_what_was_done(files: Files, silent: Files) -> None:
    for actual in (files, silent):
        noisy, flows = measured(actual), corrected(actual)
        controls, *_ = likely(noisy)
        report = {fact: (count, of) for fact, count, of in read(actual, "flows_correction").itertuples(index=False)}
        assert report == {
            "job_flows": (int((JOBS <= 0).sum()), JOBS.size),
            "employment": (int((EMPLOYMENT <= 0).sum()), EMPLOYMENT.size),
            "industry_flows": (controls.replaced[2], controls.industry_flow.size),
            "groups_zeroed": (int((noisy.sum(axis=1) <= 0).sum()), len(noisy)),
            "units_subtracted": (int(np.maximum(noisy, 0).sum() - flows.sum()), None),
        }
    assert all(0 < count != of for count, of in report.values())  # of nobody: some of everything


def test_a_group_that_measures_nothing_counts_among_the_zeroed(tmp_path: Path) -> None:
    """With an ε that leaves counts as they are: one group has records, the totals of all others are 0."""
    office = CareersAgency(tmp_path / "office", pure([("11", "06")]))
    report = read(office.published(spec(plain(epsilon="900"))), "flows_correction")
    assert report["count"].tolist()[-2:] == [len(cells().drop_duplicates(GROUP)) - 1, 0]


def test_the_report_leaves_out_what_was_not_used(tmp_path: Path) -> None:
    report = read(CareersAgency(tmp_path / "office", RECORDS).published(spec(plain())), "flows_correction")
    assert report["count"].isna().tolist() == [True, True, True, False, False]
    assert report["of"].isna().tolist() == [True, True, True, False, True]


def test_without_anything_public_all_cells_weigh_the_same(tmp_path: Path) -> None:
    """Nothing but the measurements decides: the controls are all 1."""
    noisy = measured(files := CareersAgency(tmp_path / "office", RECORDS).published(spec(plain())))
    ones = np.ones((1, len(SECTORS)))
    equal = Controls.of(np.ones((1, len(STATES))), np.ones((len(SECTORS), len(STATES))), ones, Fraction(1))
    alone = np.zeros(len(noisy), np.int64)
    assert np.array_equal(corrected(files), by_hand(noisy, "published", (equal, alone, alone)))
    assert not np.array_equal(corrected(files), by_hand(noisy, "published", likely(noisy)))
