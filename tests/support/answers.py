"""Hand-written and randomly generated answers, for tests of their formats."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from discreet.serve.query_model import Answer, Measure, Status, TableSummary, TableVariable

ABOUT = TableSummary(
    id="jobs by place",
    title="Jobs by place",
    release="jobs-2024",
    method="counts",
    guarantee="Satisfies (1, 0)-differential privacy for one record.",
    caveats=("Firms are hidden one establishment at a time.",),
    noise="two-sided geometric, P(k) ∝ exp(−|k|)",
    notes=("Protected statistics.",),
    updated="2024-05-01",
    simulation=False,
)
PLACE = TableVariable("place", "Place", ("US-CA", "US-NV"), ("California", "Nevada"))
SEX = TableVariable("sex", "Sex", ("f", "m", "x"), ("Women", "Men", "Women"))  # one label twice
COUNT = Measure("estimate", "Jobs", 0)
ERROR = Measure("se", "Standard error", 1, "estimate")
NAN = float("nan")

NASTY = [
    "=1+1",
    "+2",
    "-3",
    "-a",
    "@x",
    "\tq",
    "\rq",
    '"',
    'a"b',
    "a,b",
    "x\ny",
    "x\r\ny",
    "Zürich",
    "",
    "😀",
    "_x0041_",
]
NASTY += ["'=1", "\x00", "\x1f", " ", "a/b", "a_b", "<b>&amp;", "null", "\ufffe", "\u2028", "=cmd|' /C calc'!A0"]


def jobs() -> Answer:
    """Two places by three codes of sex, one cell suppressed and one absent."""
    return Answer(
        title="Jobs by place",
        variables=(PLACE, SEX),
        measures=(COUNT, ERROR),
        numbers={
            "estimate": np.array([1200.0, -3.0, 0.4, NAN, NAN, 7.0]),
            "se": np.array([14.14, 2.25, -0.01, NAN, NAN, NAN]),
        },
        status=[
            Status.RELIABLE,
            Status.UNRELIABLE,
            Status.CAUTION,
            Status.SUPPRESSED,
            Status.ABSENT,
            Status.RELIABLE,
        ],
        notes=ABOUT.notes,
        limits=((TableVariable("sector", "Sector", ("11", "=21"), ("Farming", "Mining")), ("11", "=21")),),
    )


@dataclass(frozen=True)
class TrickyNames:
    """Names with a special meaning in some output format."""

    variables = ("sex", "age group", "ContentsCode", "status", "estimate", "2020", "größe", "AGE_GROUP", "OBS_VALUE")
    measures = ("estimate", "se", "p50", "status", "größe")


@st.composite
def answers(draw: Any) -> Answer:
    """Up to three variables, arbitrary texts and numbers, and missing values."""
    texts = st.sampled_from(NASTY) | st.text(max_size=6)
    ids = draw(st.lists(st.sampled_from(TrickyNames.variables), max_size=3, unique=True))
    variables = []
    for name in ids:
        codes = draw(st.lists(texts, min_size=1, max_size=4, unique=True))
        labels = [draw(texts) for _ in codes]
        variables.append(TableVariable(name, draw(texts), tuple(codes), tuple(labels)))
    measures = tuple(
        Measure(name, draw(texts), draw(st.integers(0, 3)))
        for name in draw(st.lists(st.sampled_from(TrickyNames.measures), min_size=1, max_size=3, unique=True))
    )
    size = prod(len(v) for v in variables)
    number = st.floats(-1e11, 1e11) | st.integers(-50, 50).map(float) | st.just(NAN) | st.just(-0.0)
    numbers = {m.id: np.array(draw(st.lists(number, min_size=size, max_size=size))) for m in measures}
    status = draw(st.lists(st.sampled_from(list(Status)), min_size=size, max_size=size))
    return Answer(draw(texts), tuple(variables), measures, numbers, status, tuple(draw(st.lists(texts, max_size=2))))
