"""`pseoe_all.csv`: a row for each institution, degree, field and cohort, the years after graduation side by side."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.domain import Attribute, Domain
from discreet.errors import DomainError, SpecError
from discreet.post.summary import Summary
from discreet.privacy.protected import Protected
from discreet.publish.lehd import schema
from discreet.publish.lehd.codes import fits
from discreet.publish.lehd.schema import AggLevel
from discreet.publish.place import Place
from discreet.publish.tables import stem, write_table
from discreet.spec.earnings import Lehd

BATCH = 1 << 16
NOT_AVAILABLE, NO_IPEDS = -1, 3  # flags
QUARTILES = ("25", "50", "75")
_CODE = pa.dictionary(pa.int32(), pa.string())
_TEXTS = {"inst_level", "institution", "degree_level", "cip_level", "cipcode", "grad_cohort", "geo_level", "geography"}
_TEXTS |= {"ind_level", "industry"}
SCHEMA = pa.schema([(c, _CODE if c in _TEXTS else pa.int64()) for c in schema.PSEOE.columns])


@dataclass(frozen=True)
class LehdLevel:
    """How the cells of one level become rows of the file."""

    name: str
    domain: Domain
    agg: AggLevel
    columns: Mapping[str, tuple[int, int]]  # identifier: attribute, and column of it
    years: tuple[int, Mapping[str, int]]  # the attribute, and the category of y1, y5, y10

    @property
    def rows(self) -> int:
        return self.domain.cells // self.domain.shape[self.years[0]]

    def cells(self) -> NDArray[np.int64]:
        """The numbers of the cells of each row, one column a category of years."""
        numbers = np.arange(self.domain.cells).reshape(self.domain.shape)
        return np.moveaxis(numbers, self.years[0], -1).reshape(self.rows, -1)

    def batches(self, summary: Summary, quartiles: tuple[int, int, int]) -> Iterator[pa.RecordBatch]:
        """The rows of a level."""
        cells = self.cells()
        for first in range(0, self.rows, BATCH):
            yield self._batch(cells[first : first + BATCH], summary, quartiles)

    def _batch(self, cells: NDArray[np.int64], summary: Summary, quartiles: tuple[int, int, int]) -> pa.RecordBatch:
        n = len(cells)
        shown = dict(zip(self.domain.columns, self.domain.describe(cells[:, 0]), strict=True))
        found: dict[str, pa.Array] = {
            "agg_level_pseo": _all(self.agg.number, n),
            "inst_level": _all(self.agg.inst_level, n),
            "cip_level": _all(self.agg.cip_level, n),
            "cipcode": _all("00", n),
            "grad_cohort": _all(schema.ALL_COHORTS, n),
            "geo_level": _all("N", n),
            "geography": _all("00", n),
            "ind_level": _all("A", n),
            "industry": _all("00", n),
        }
        for identifier, (place, column) in self.columns.items():
            found[identifier] = shown[self.domain.attributes[place].columns[column]]
        degrees = found["degree_level"]
        years = np.array([schema.cohort_years(code) for code in degrees.dictionary.to_pylist()], np.int64)
        found["grad_cohort_years"] = pa.array(years[degrees.indices.to_numpy()])
        for year in schema.YEARS:
            found |= self._year(year, cells, summary, quartiles)
        return pa.RecordBatch.from_arrays([found[column] for column in SCHEMA.names], schema=SCHEMA)

    def _year(
        self, year: str, cells: NDArray[np.int64], summary: Summary, quartiles: tuple[int, int, int]
    ) -> dict[str, pa.Array]:
        n, category = len(cells), self.years[1].get(year)
        ipeds = {f"{year}_ipeds_count": pa.nulls(n, pa.int64()), f"status_{year}_ipeds_count": _all(NO_IPEDS, n)}
        earnings = [f"{year}_p{q}_earnings" for q in QUARTILES]
        flags = (f"status_{year}_earnings", f"status_{year}_grads_earn")
        if category is None:
            empty = {name: pa.nulls(n, pa.int64()) for name in (*earnings, f"{year}_grads_earn")}
            return ipeds | empty | {flag: _all(NOT_AVAILABLE, n) for flag in flags}
        mine = cells[:, category]
        hidden = ~summary.published[mine]
        found = {
            name: pa.array(summary.percentiles[mine, q], mask=hidden)
            for name, q in zip(earnings, quartiles, strict=True)
        }
        found[f"{year}_grads_earn"] = pa.array(summary.counts[mine], mask=hidden)
        return ipeds | found | {flag: pa.array(summary.status[mine]) for flag in flags}


def lehd_level(name: str, domain: Domain, layout: Lehd, withhold: Mapping[str, list[str]]) -> LehdLevel:
    """Which rows of the file a level gives; refused where the layout has no place for it."""
    where = f"level {name}, layout lehd"
    found = {column: (place, i) for place, a in enumerate(domain.attributes) for i, column in enumerate(a.columns)}
    wanted = vars(layout)
    roles = {wanted[role]: role for role in _ROLES}
    for column in found:
        if column not in roles:
            raise SpecError(
                f"column {column!r} has no place in the layout",
                where=where,
                do=f"leave it out, or say which of {', '.join(_ROLES)} it is",
            )
    has = {roles[column]: at for column, at in found.items()}
    for one, other in (("institution", "state"), ("cip4", "cip2")):
        if one in has and other in has:
            raise SpecError(f"has both {one} and {other}", where=where, do="publish them as two levels")
    for needed in ("degree_level", "years_after", "institution" if "state" not in has else "state"):
        if needed not in has:
            raise SpecError(f"has no {needed}", where=where, do=f"add an attribute with the column {wanted[needed]!r}")
    if len(domain.attributes[has["years_after"][0]].columns) > 1:
        raise SpecError("years_after is part of a group", where=where, do="declare it as a domain of its own")
    cip = "4" if "cip4" in has else "2" if "cip2" in has else "A"
    agg = AggLevel("I" if "institution" in has else "S", cip, "grad_cohort" in has)
    columns = {"institution": has.get("institution") or has["state"], "degree_level": has["degree_level"]}
    columns |= {"cipcode": has[f"cip{cip}"]} if cip != "A" else {}
    columns |= {"grad_cohort": has["grad_cohort"]} if "grad_cohort" in has else {}
    levels = {"institution": agg.inst_level, "cipcode": agg.cip_level}
    for identifier, (place, i) in columns.items():
        _check_codes(domain.attributes[place], i, identifier, levels.get(identifier, ""), where)
    if agg.cip_level == "4":
        place, i = has["degree_level"]
        open_ = {key[i] for key in domain.attributes[place].published} - set(withhold.get(layout.degree_level, ()))
        if stopped := sorted(open_ & schema.RESTRICTED):
            raise SpecError(
                f"publishes degree level {stopped[0]} at four digits of the field, which the layout does not",
                where=where,
                do=f'write `withhold: {{{layout.degree_level}: ["07", "17"]}}`',
            )
    years = has["years_after"][0]
    return LehdLevel(name, domain, agg, columns, (years, _years(domain.attributes[years], where)))


_ROLES = ("institution", "state", "degree_level", "cip4", "cip2", "grad_cohort", "years_after")


def _years(attribute: Attribute, where: str) -> dict[str, int]:
    found = {f"y{key[0]}": i for i, key in enumerate(attribute.published)}
    if strange := next((year for year in found if year not in schema.YEARS), None):
        raise DomainError(
            f"{attribute.name} has the category {strange[1:]!r}", where=where, do="the layout has years 1, 5 and 10"
        )
    return found


def _check_codes(attribute: Attribute, column: int, identifier: str, level: str, where: str) -> None:
    for key in attribute.published:
        if not fits(identifier, level, key[column]) or key[column] == schema.ALL_COHORTS:
            raise DomainError(
                f"{key[column]!r} is no {identifier} of the layout",
                where=f"{where}, domain {attribute.name}",
                do="declare codes as LEHD writes them, undeclared values dropped",
            )


def _all(value: str | int, n: int) -> pa.Array:
    if isinstance(value, int):
        return pa.array(np.full(n, value, np.int64))
    return pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), pa.array([value]))


@dataclass(frozen=True)
class Pseoe:
    """The whole file, and the small ones beside it."""

    layout: Lehd
    levels: tuple[LehdLevel, ...]
    labels: Mapping[str, Mapping[str, str]]  # of institutions and fields, as far as they are declared

    @property
    def stem(self) -> str:
        return f"pseoe_{self.layout.area}"

    def files(self, simulated: bool) -> dict[str, str]:
        """Every file's name, and what it is."""
        name = stem(self.stem, simulated)
        about = f"the levels of LEHD's public-use layout pseoe {schema.VERSION}"
        found = {f"{name}.parquet": about, f"{name}.csv": about, _version_name(simulated): "LEHD's line of metadata"}
        labels = {what: f"the codes of column {what} and what they mean" for what in self._label_rows()}
        labels |= {"flags": "the status flags and what they mean", "flags_ipeds_count": "the flags of IPEDS counts"}
        return found | {f"{stem(f'label_{what}', simulated)}.csv": about for what, about in labels.items()}

    def write(
        self,
        place: Place,
        summaries: Mapping[str, Protected[Summary]],
        quartiles: tuple[int, int, int],
        version: str,
    ) -> dict[str, str]:
        """Write everything: the files and their digests."""
        simulated = next(iter(summaries.values())).simulated
        ordered = sorted(self.levels, key=lambda level: level.agg.number)
        batches = (
            summaries[level.name].map(lambda _, batch=batch: batch)  # type: ignore[misc]
            for level in ordered
            for batch in level.batches(summaries[level.name].value, quartiles)
        )
        files = dict(write_table(place, self.stem, SCHEMA, batches, simulated, bare=True).files)
        texts = {_version_name(simulated): version + "\n"}
        for what, rows in self._label_rows().items():
            texts[f"{stem(f'label_{what}', simulated)}.csv"] = _csv(rows)
        for name, text in texts.items():
            with place.create(name) as file:
                file.write(text.encode())
            files[name] = file.sha256()
        return files

    def version(self, quarter: str, release: str) -> str:
        """The line of version_pseo.txt."""
        first, last = self._cohorts()
        geo = "US" if self.layout.area == "all" else self.layout.area.upper()
        return schema.version_line("pseoe", geo, self.layout.area_code, first, last, quarter, f"discreet_{release}")

    def _cohorts(self) -> tuple[int, int]:
        """The first and the last cohort of the declaration."""
        found = {
            key[i]
            for level in self.levels
            if (at := level.columns.get("grad_cohort")) is not None
            for i in [at[1]]
            for key in level.domain.attributes[at[0]].published
        }
        return int(min(found)), int(max(found))

    def _label_rows(self) -> dict[str, list[tuple[str, ...]]]:
        """The codes that the declaration uses, with their labels; never those that occur."""
        aggs = sorted({level.agg for level in self.levels}, key=lambda agg: agg.number)
        rows: dict[str, list[tuple[str, ...]]] = {
            "agg_level_pseo": [
                ("agg_level_pseo", "grad_char", "cip_level", "inst_level", "geo_level", "ind_level", "by_grad_cohort"),
                *(
                    (str(a.number), a.grad_char, a.cip_level, a.inst_level, "N", "A", str(int(a.by_cohort)))
                    for a in aggs
                ),
            ],
            "flags": [("flag", "label"), *schema.FLAGS.items()],
            "flags_ipeds_count": [("flag", "label"), *schema.IPEDS_FLAGS.items()],
        }
        used = {
            "inst_level": {a.inst_level for a in aggs},
            "cip_level": {a.cip_level for a in aggs},
            "geo_level": {"N"},
            "ind_level": {"A"},
            "degree_level": self._codes("degree_level"),
        }
        for what, codes in used.items():
            rows[what] = [(what, "label"), *((c, schema.LABELS[what][c]) for c in sorted(codes))]
        for what in ("institution", "cipcode"):
            labels = {"00": schema.CIP_LEVELS["A"]} if what == "cipcode" else dict(self.labels.get("state", {}))
            labels |= self.labels.get(what, {})
            rows[what] = [(what, "label"), *((c, labels.get(c, c)) for c in sorted(self._codes(what)))]
        return rows

    def _codes(self, identifier: str) -> set[str]:
        found = [
            (level.domain.attributes[at[0]], at[1]) for level in self.levels if (at := level.columns.get(identifier))
        ]
        codes = {key[i] for attribute, i in found for key in attribute.published}
        return codes | (
            {"00"} if identifier == "cipcode" and any(a.agg.cip_level == "A" for a in self.levels) else set()
        )


def _version_name(simulated: bool) -> str:
    return f"{stem('version_pseo', simulated)}.txt"


def _csv(rows: list[tuple[str, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
