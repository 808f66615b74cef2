"""A synthetic revision of the classification, and the history of awards that determines the shares of its splits.

Like NCES's crosswalk of 2010 to 2020 it is one to one at six digits, so that codes split only at coarser levels. Only
families with a single series move into another family: then the possible successors of a family are those of its
series, and `programmes_new` is complete at two digits as well as at four.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from discreet.synth.draws import Array, StreamPurpose, generator
from discreet.synth.education.catalogue import EducationCatalogue
from discreet.synth.education.fields import FIELDS, LEVELS
from discreet.synth.education.records import COHORTS
from discreet.synth.lists import records
from discreet.synth.states import STATES

UNCHANGED, MOVED_TO, NEW, DELETED = "No substantive changes", "Moved to", "New", "Deleted"

MOVED = {row["old"]: row["new"] for row in records("moved")}
DELETED_CODES = ("22.0302",)  # the only code of 22.03, which therefore needs the overrides
OVERRIDES = (("22.03", "22.00", "0.25"), ("22.03", "22.01", "0.75"))
CREATED = ("11.0203", "22.0001", "30.7102")
UNOBSERVED = ("19.0709", "51.3808")

POPULAR = 0.8  # a series of at least this weight has an "other" code besides the agency's own
OTHER, OFFERED = 0.15, 0.6  # its size relative to the series, and the share of programmes that award it
UNREPORTED, UNREPORTED_LEVEL = 0.12, "06"  # share of institutions, and a degree level, without a history
AWARDS = 0.1  # per row and cohort: about the number of graduates behind the records
FEWEST_ROWS = 100_000  # the history does not shrink with the file below this
AWARDS_SPREAD = 0.3


def six_digits() -> dict[str, tuple[str, ...]]:
    """The old six-digit codes of each series: the agency's own, those that move, and an "other" code."""
    own = {field.cip6 for field in FIELDS}
    weights = dict.fromkeys((field.cip4 for field in FIELDS), 0.0)
    for field in FIELDS:
        weights[field.cip4] += field.weight
    others = {f"{series}99" for series, weight in weights.items() if weight >= POPULAR}
    listed = sorted(own | set(MOVED) | others)
    return {series: tuple(code for code in listed if code.startswith(series)) for series in weights}


def crosswalk() -> list[tuple[str, str, str]]:
    """Old code, new code and action, new codes last; a new code has no old one, a deleted code no new one."""
    return [_transition(old) for codes in six_digits().values() for old in codes] + [("", new, NEW) for new in CREATED]


def possible() -> dict[str, tuple[str, ...]]:
    """The new six-digit codes that each old series may become."""
    new = {old: new for old, new, _ in crosswalk()}
    successors = {series: tuple(new[old] for old in codes if new[old]) for series, codes in six_digits().items()}
    known = sorted({code for _, code, _ in crosswalk() if code})
    for series, target, _ in OVERRIDES:
        successors[series] += tuple(code for code in known if code.startswith(target))
    return successors


def programmes_new(public: EducationCatalogue) -> list[tuple[str, ...]]:
    """The programme list in the new codes: each programme under all possible successors of its series."""
    schools, offered, targets = public.institutions, public.programmes, possible()
    return list(
        dict.fromkeys(
            (schools[school].code, LEVELS[level].code, new, new[:5], new[:2], STATES[schools[school].state].code)
            for school, level, field in zip(offered.institution, offered.level, offered.field, strict=True)
            for new in targets[FIELDS[field].cip4]
        )
    )


def series_new() -> list[tuple[str, str]]:
    """Code and label of every new family and series; existing series keep their labels."""
    before = {field.cip4: field.label for field in reversed(FIELDS)}
    codes = sorted({code for _, code, _ in crosswalk() if code})
    families = {code[:2]: f"CIP family {code[:2]}" for code in codes}
    return sorted((families | {code[:5]: before.get(code[:5], f"CIP series {code[:5]}") for code in codes}).items())


def completions(public: EducationCatalogue, rows: int, seed: int) -> Iterator[tuple[str, str, str, str, int]]:
    """Institution, level, cohort, old code and number of awards, if positive; some institutions and a level have no
    history."""
    rng = generator(seed, StreamPurpose.COMPLETIONS)
    schools = public.institutions
    unreported = rng.random(len(schools)) < UNREPORTED
    unreported[rng.integers(len(schools))] = True
    awarded = _awarded(public, rng)
    weight = np.array([width for *_, width in awarded])
    expected = weight / weight.sum() * AWARDS * max(rows, FEWEST_ROWS)
    awards = rng.poisson(expected[:, None] * rng.lognormal(0.0, AWARDS_SPREAD, (len(awarded), len(COHORTS))))
    for (school, level, code, _), counts in zip(awarded, awards, strict=True):
        for cohort, count in zip(COHORTS, counts, strict=True):
            if count and not unreported[school] and LEVELS[level].code != UNREPORTED_LEVEL:
                yield schools[school].code, LEVELS[level].code, cohort, code, int(count)


def _awarded(public: EducationCatalogue, rng: np.random.Generator) -> list[tuple[int, int, str, float]]:
    """Institution, level, old code and size of all awards: the agency's own codes by popularity, and others."""
    offered, codes = public.programmes, six_digits()
    own = {field.cip6 for field in FIELDS}
    sizes: dict[tuple[int, int, str], float] = {}
    columns: tuple[Array, ...] = (offered.institution, offered.level, offered.field, np.diff(offered.upto, prepend=0))
    for school, level, field, width in zip(*(column.tolist() for column in columns), strict=True):
        sizes[school, level, FIELDS[field].cip6] = width
        for code in codes[FIELDS[field].cip4]:
            if code not in own and code not in UNOBSERVED and rng.random() < OFFERED:
                sizes[school, level, code] = sizes.get((school, level, code), 0.0) + OTHER * width
    return [(*key, size) for key, size in sorted(sizes.items())]


def _transition(old: str) -> tuple[str, str, str]:
    if old in DELETED_CODES:
        return old, "", DELETED
    return (old, MOVED[old], MOVED_TO) if old in MOVED else (old, old, UNCHANGED)
