"""Rules for the rows of a PSEO file. Problems quote codes and flags, never indicators, which may be suppressed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from discreet.publish.lehd.codes import fault
from discreet.publish.lehd.schema import (
    AGG_LEVELS,
    ALL_COHORTS,
    FLAGS,
    FORMS,
    IDENTIFIERS,
    IPEDS_FLAGS,
    PSEOE,
    PSEOF,
    RESTRICTED,
    SMALLEST,
    YEARS,
    AggLevel,
    IndicatorGroup,
    Kind,
    Layout,
    cohort_years,
)

_AT = {column: place for place, column in enumerate(IDENTIFIERS)}
_LEVELS = ("agg_level_pseo", "inst_level", "degree_level", "cip_level", "grad_cohort", "grad_cohort_years")
_LEVEL_PLACES = tuple(_AT[column] for column in (*_LEVELS, "geo_level", "ind_level"))
_CODED = tuple((column, _AT[column], level, _AT[level]) for column, (level, _) in FORMS.items())
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})", re.ASCII)
_NUMBERS = {level: number for number, level in AGG_LEVELS.items()}


@dataclass(frozen=True)
class LayoutProblem:
    """A problem in a column; `kind` is the text that problems of one kind share."""

    column: str
    kind: str
    code: str | None = None

    def __str__(self) -> str:
        return self.kind if self.code is None else f"{shortened(self.code)} {self.kind}"


def shortened(code: str) -> str:
    return repr(code if len(code) <= 20 else f"{code[:20]}…")


class Rules:
    """The rules of one layout."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        at = {column: place for place, column in enumerate(layout.columns)}
        self._groups = [(group, at[group.flag], [at[value] for value in group.values]) for group in layout.groups]
        self._years = [at[g.flag] for g in layout.groups if g.measure == "earnings"]
        pairs = [(f"{y}_grads_emp_instate", f"{y}_grads_emp") for y in YEARS if layout is PSEOF]
        self._parts = [(part, at[part], whole, at[whole]) for part, whole in pairs]

    def problems(self, row: list[str]) -> Iterator[LayoutProblem]:
        """All problems of a row."""
        yield from _levels(self.layout.kind, *(row[place] for place in _LEVEL_PLACES))
        for column, place, level, at in _CODED:
            if not fault(level, "", row[at]) and (wrong := fault(column, row[at], row[place])):
                yield LayoutProblem(column, wrong, row[place])
        split = row[_AT["geo_level"]] == "D" or row[_AT["ind_level"]] == "S"
        coarse = self.layout is PSEOE and row[_AT["cip_level"]] == "4" and row[_AT["degree_level"]] in RESTRICTED
        for group, flag, values in self._groups:
            texts = [row[place] for place in values]
            if group.measure == "ipeds":
                yield from self._ipeds(group, row[flag], texts, [row[place] for place in self._years])
                continue
            if row[flag] not in FLAGS:
                yield LayoutProblem(group.flag, f"is not one of {', '.join(FLAGS)}", row[flag])
                continue
            if coarse and row[flag] == "1":
                yield LayoutProblem(
                    group.flag, f"is 1 in a 4-digit field of degree level {' or '.join(sorted(RESTRICTED))}"
                )
            if split and group.measure == "marginal" and row[flag] != "-1":
                wrong = f"is {row[flag]} in a row of one sector or division, where nonemployment is not available"
                yield LayoutProblem(group.flag, wrong)
                continue
            if row[flag] == "1" or any(texts):
                yield from _values(group, row[flag], texts, [row[flag] == "1"] * len(texts))
        for part, place, whole, at in self._parts:
            if _WHOLE.fullmatch(row[place]) and _WHOLE.fullmatch(row[at]) and int(row[place]) > int(row[at]) >= 0:
                yield LayoutProblem(part, f"is above {whole}")

    def _ipeds(self, group: IndicatorGroup, flag: str, texts: list[str], years: list[str]) -> Iterator[LayoutProblem]:
        """The counts of IPEDS: empty where the flag is 3.

        In 2019 one flag covered three counts. They are empty for future years, and totals of all cohorts may lack the
        flag (later releases call them partially missing): then any of them may be empty.
        """
        single = len(texts) > 1
        if flag not in IPEDS_FLAGS and not (single and flag == ""):
            yield LayoutProblem(group.flag, f"is not one of {', '.join(IPEDS_FLAGS)}", flag)
        elif single and flag in {"", "4"}:
            yield from _values(group, flag, texts, [text != "" for text in texts])
        elif single:
            for column, text, year in zip(group.values, texts, years, strict=True):
                if text and year == "-1":
                    yield LayoutProblem(column, "is filled although the year's earnings are not available (-1)")
            available = [text if year != "-1" else "" for text, year in zip(texts, years, strict=True)]
            yield from _values(group, flag, available, [flag != "3" and year != "-1" for year in years])
        else:
            yield from _values(group, flag, texts, [flag != "3"])


@lru_cache(maxsize=1 << 14)
def _levels(
    kind: Kind, agg: str, inst: str, degree: str, cip: str, cohort: str, years: str, geo: str, ind: str
) -> tuple[LayoutProblem, ...]:
    """Levels that are in their lists, the length of the cohort, and the aggregation level that they imply."""
    listed = {"inst_level": inst, "degree_level": degree, "cip_level": cip}
    listed |= {"grad_cohort": cohort, "geo_level": geo, "ind_level": ind}
    faults = {column: wrong for column, code in listed.items() if (wrong := fault(column, "", code))}
    problems = [LayoutProblem(column, wrong, listed[column]) for column, wrong in faults.items()]
    if degree == "00":
        problems.append(LayoutProblem("degree_level", "does not occur: every aggregation level is by degree", degree))
    elif "degree_level" not in faults and years != str(cohort_years(degree)):
        wrong = f"is not {cohort_years(degree)}, the years in a cohort of degree level {degree}"
        problems.append(LayoutProblem("grad_cohort_years", wrong, years))
    elif years not in {"3", "5"}:
        problems.append(LayoutProblem("grad_cohort_years", "is neither 3 nor 5", years))
    if not faults.keys() - {"degree_level"}:
        problems += _agg(kind, agg, AggLevel(inst, cip, cohort != ALL_COHORTS, geo, ind))
    return tuple(problems)


def _agg(kind: Kind, agg: str, level: AggLevel) -> list[LayoutProblem]:
    number = _NUMBERS.get(level)
    cohort = "one cohort" if level.by_cohort else "all cohorts"
    parts = f"inst_level {level.inst_level}, cip_level {level.cip_level}, {cohort}, "
    parts += f"geo_level {level.geo_level}, ind_level {level.ind_level}"
    if number is None:
        return [LayoutProblem("agg_level_pseo", f"is impossible: no aggregation level has {parts}", agg)]
    if agg != str(number):
        return [LayoutProblem("agg_level_pseo", f"is not {number}, the level of {parts}", agg)]
    return [] if level.occurs_in(kind) else [LayoutProblem("agg_level_pseo", f"does not occur in {kind}", agg)]


def _values(group: IndicatorGroup, flag: str, texts: list[str], present: list[bool]) -> Iterator[LayoutProblem]:
    """Indicators are present or absent according to their flag; numbers are integers; percentiles ascend."""
    sound = True
    for column, text, expected in zip(group.values, texts, present, strict=True):
        if text and expected:
            wrong = _number(text, group.measure)
        elif expected:
            wrong = f"is empty although {group.flag} is {flag}"
        else:
            wrong = f"is filled although {group.flag} is {flag}" if text else None
        if wrong:
            sound = False
            yield LayoutProblem(column, wrong)
    if sound and group.measure == "earnings" and all(present):
        for low, high in ((0, 1), (1, 2)):
            if int(texts[low]) > int(texts[high]):
                yield LayoutProblem(group.values[low], f"is above {group.values[high]}")


def _number(text: str, measure: str) -> str | None:
    if not _WHOLE.fullmatch(text):
        return "is not an integer"
    if text.startswith("-"):
        return "is negative"
    if measure == "earnings" and text == "0":
        return "is not positive"
    if measure == "grads_earn" and len(text) < 3 and int(text) < SMALLEST:
        return f"is published below {SMALLEST}"
    return None
