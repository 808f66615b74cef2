"""An invented revision of the classification, and the history of awards by which its splits can be shared out.

Shaped like NCES's crosswalk of 2010 to 2020: one to one at six digits, so that codes split only when rolled up.
Moves into another family start from families with one series here: then what a family may become is what its
series may become, and `programmes_new` is complete at two digits as well as at four.
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
GONE = ("22.0302",)  # all that 22.03 had: it needs the overrides
OVERRIDES = (("22.03", "22.00", "0.25"), ("22.03", "22.01", "0.75"))
CREATED = ("11.0203", "22.0001", "30.7102")
UNOBSERVED = ("19.0709", "51.3808")

POPULAR = 0.8  # a series of this weight has an "other" code beside the agency's own
OTHER, OFFERED = 0.15, 0.6  # its size as a share of the series, and how many programmes award it
UNREPORTED, UNREPORTED_LEVEL = 0.12, "06"  # institutions, and a degree level, without a history
AWARDS = 0.1  # of rows, in every cohort: about the graduates behind the records
FEWEST_ROWS = 100_000  # a history doesn't shrink with the file
AWARDS_SPREAD = 0.3


def six_digits() -> dict[str, tuple[str, ...]]:
    """The old six-digit codes of each series: the agency's own, those that move, and an "other" one."""
    own = {field.cip6 for field in FIELDS}
    weights = dict.fromkeys((field.cip4 for field in FIELDS), 0.0)
    for field in FIELDS:
        weights[field.cip4] += field.weight
    others = {f"{series}99" for series, weight in weights.items() if weight >= POPULAR}
    listed = sorted(own | set(MOVED) | others)
    return {series: tuple(code for code in listed if code.startswith(series)) for series in weights}


def crosswalk() -> list[tuple[str, str, str]]:
    """Old code, new code and action, new codes last; what is new has no old code, what is deleted no new one."""
    return [_transition(old) for codes in six_digits().values() for old in codes] + [("", new, NEW) for new in CREATED]


def possible() -> dict[str, tuple[str, ...]]:
    """The new six-digit codes that each old series may become."""
    new = {old: new for old, new, _ in crosswalk()}
    found = {series: tuple(new[old] for old in codes if new[old]) for series, codes in six_digits().items()}
    known = sorted({code for _, code, _ in crosswalk() if code})
    for series, target, _ in OVERRIDES:
        found[series] += tuple(code for code in known if code.startswith(target))
    return found


def programmes_new(public: EducationCatalogue) -> list[tuple[str, ...]]:
    """The programme list in the new codes: each offer under everything its series may become."""
    schools, offered, targets = public.institutions, public.programmes, possible()
    return list(
        dict.fromkeys(
            (schools[school].code, LEVELS[level].code, new, new[:5], new[:2], STATES[schools[school].state].code)
            for school, level, field in zip(offered.institution, offered.level, offered.field, strict=True)
            for new in targets[FIELDS[field].cip4]
        )
    )


def series_new() -> list[tuple[str, str]]:
    """Code and label of every new family and series; a series that was there before keeps its label."""
    before = {field.cip4: field.label for field in reversed(FIELDS)}
    codes = sorted({code for _, code, _ in crosswalk() if code})
    families = {code[:2]: f"CIP family {code[:2]}" for code in codes}
    return sorted((families | {code[:5]: before.get(code[:5], f"CIP series {code[:5]}") for code in codes}).items())


def completions(public: EducationCatalogue, rows: int, seed: int) -> Iterator[tuple[str, str, str, str, int]]:
    """Institution, level, cohort, old code and awards, where there are any; some institutions and a level have none."""
    rng = generator(seed, StreamPurpose.COMPLETIONS)
    schools = public.institutions
    silent = rng.random(len(schools)) < UNREPORTED
    silent[rng.integers(len(schools))] = True
    awarded = _awarded(public, rng)
    weight = np.array([width for *_, width in awarded])
    expected = weight / weight.sum() * AWARDS * max(rows, FEWEST_ROWS)
    awards = rng.poisson(expected[:, None] * rng.lognormal(0.0, AWARDS_SPREAD, (len(awarded), len(COHORTS))))
    for (school, level, code, _), counts in zip(awarded, awards, strict=True):
        for cohort, count in zip(COHORTS, counts, strict=True):
            if count and not silent[school] and LEVELS[level].code != UNREPORTED_LEVEL:
                yield schools[school].code, LEVELS[level].code, cohort, code, int(count)


def _awarded(public: EducationCatalogue, rng: np.random.Generator) -> list[tuple[int, int, str, float]]:
    """Institution, level, old code and size of all that is awarded: own codes as taken, others beside them."""
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
    if old in GONE:
        return old, "", DELETED
    return (old, MOVED[old], MOVED_TO) if old in MOVED else (old, old, UNCHANGED)
