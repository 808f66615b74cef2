"""Numbers and descriptions as text on pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import exp, log10

from discreet.serve.query_model import QueryableTable, TableSummary, TableVariable

METHODS = {
    "counts": "Counts of records, with added noise",
    "earnings": "Percentiles of earnings, from histograms with added noise",
    "flows": "Flows from origins to destinations, with added noise",
    "employer": "Jobs at establishments, with added noise",
    "hypercube": "Totals of a survey, with added noise and standard errors",
    "sensitivity": "Estimates for small groups, with added noise",
}
_POWER = re.compile(r"e\^(\d+(?:\.\d+)?)")
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, decimals: int) -> str:
    """A number with thousands separators and a minus sign."""
    text = f"{value:,.{decimals}f}"
    return text.replace("-", "−") if float(f"{value:.{decimals}f}") else text.lstrip("-")


def margin(value: float, decimals: int) -> str:
    """An error as text, never rounded to 0."""
    least = 10.0**-decimals
    return f"<{least:.{decimals}f}" if 0 < value < least / 2 else number(value, decimals)


def percent(value: float) -> str:
    return number(100 * value, 1) + "%"


def comma_list(words: Sequence[str]) -> str:
    """The texts as an enumeration: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def distinguish_labels(shown: TableVariable, of: TableVariable) -> TableVariable:
    """The variable with the code appended to each label that occurs more than once."""
    times = Counter(of.labels)
    labels = (
        f"{label} ({code})" if times[label] > 1 else label
        for code, label in zip(shown.codes, shown.labels, strict=True)
    )
    return replace(shown, labels=tuple(labels))


def describe_table(table: QueryableTable) -> str:
    """One sentence for the catalogue."""
    what = METHODS.get(table.summary.method, table.summary.method.capitalize())
    if table.summary.method == "hypercube" and not table.additive:
        what = "Control totals of a survey, each with its own noise"
    if table.summary.method == "sensitivity" and any(m.id == "chi" for m in table.measures):
        what = "Scale factors for the noise of other tables"
    names = [v.label.lower() for v in table.variables if not v.finer]
    return f"{what}, by {comma_list(names)}." if names else f"{what}."


def factor_as_number(summary: TableSummary) -> str:
    """The number that e^ε in a guarantee stands for, as a sentence; empty if the guarantee has none."""
    match = _POWER.search(summary.guarantee)
    if not match:
        return ""
    power = float(match[1])
    digits = int(power * log10(exp(1)))
    if digits >= 6:
        return f"e^{match[1]} is more than 10{str(digits).translate(_SUPERSCRIPT)}."
    return f"e^{match[1]} is about {exp(power):,.{1 if digits < 1 else 0}f}."


def notes(summary: TableSummary) -> list[str]:
    """The notes on the table, without the noise, which pages show separately."""
    texts = [text.replace(f"Noise: {summary.noise}.", "").replace("`", "").strip() for text in summary.notes]
    return [text for text in texts if text]
