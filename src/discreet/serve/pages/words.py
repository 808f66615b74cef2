"""Numbers and facts as people read them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import exp, log10

from discreet.serve.query_model import About, QueryableTable, TableVariable

METHODS = {
    "counts": "Counts of records with noise",
    "earnings": "Percentiles of earnings from protected histograms",
    "flows": "Flows from origins to destinations, with noise",
    "employer": "Jobs, protected for establishments and workers",
    "hypercube": "Totals of a survey with standard errors, for any combination of its variables",
    "sensitivity": "Estimates for small groups with noise",
}
_POWER = re.compile(r"e\^(\d+(?:\.\d+)?)")
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, decimals: int) -> str:
    """With a separator of thousands and a true minus."""
    text = f"{value:,.{decimals}f}"
    return text.replace("-", "−") if float(f"{value:.{decimals}f}") else text.lstrip("-")


def margin(value: float, decimals: int) -> str:
    """An error: never rounded to nothing."""
    least = 10.0**-decimals
    return f"<{least:.{decimals}f}" if 0 < value < least / 2 else number(value, decimals)


def percent(value: float) -> str:
    return number(100 * value, 1) + "%"


def listed(words: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def distinct(shown: TableVariable, of: TableVariable) -> TableVariable:
    """With the code after each label that the variable has more than once."""
    times = Counter(of.labels)
    labels = (
        f"{label} ({code})" if times[label] > 1 else label
        for code, label in zip(shown.codes, shown.labels, strict=True)
    )
    return replace(shown, labels=tuple(labels))


def about_what(table: QueryableTable) -> str:
    """One line for the catalogue."""
    what = METHODS.get(table.about.method, table.about.method.capitalize())
    if table.about.method == "hypercube" and not table.additive:
        what = "Control totals of a survey, each with noise of its own"
    if table.about.method == "sensitivity" and any(m.id == "chi" for m in table.measures):
        what = "What scales the noise of other tables"
    names = [v.label.lower() for v in table.variables if not v.of]
    return f"{what}, by {listed(names)}." if names else f"{what}."


def factor(about: About) -> str:
    """What the e^ε of a guarantee is as a number, in words; empty if it names none."""
    found = _POWER.search(about.guarantee)
    if not found:
        return ""
    power = float(found[1])
    digits = int(power * log10(exp(1)))
    if digits >= 6:
        return f"e^{found[1]} is more than 10{str(digits).translate(_SUPERSCRIPT)}."
    return f"e^{found[1]} is about {exp(power):,.{1 if digits < 1 else 0}f}."


def notes(about: About) -> list[str]:
    """What the release says of the table, without the noise, which has a place of its own."""
    texts = [text.replace(f"Noise: {about.noise}.", "").replace("`", "").strip() for text in about.notes]
    return [text for text in texts if text]
