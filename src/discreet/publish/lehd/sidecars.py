"""Label files and version file published with LEHD's layouts, and shared by both layouts."""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from discreet.errors import SpecError
from discreet.formatting import guarded
from discreet.publish.description import stem
from discreet.publish.lehd import schema
from discreet.publish.lehd.layout import LehdLevel
from discreet.publish.lehd.schema import AggLevel, Kind
from discreet.publish.lehd.spec import Lehd

Row = tuple[str, ...]
_AGG = ("agg_level_pseo", "grad_char", "cip_level", "inst_level", "geo_level", "ind_level", "by_grad_cohort")
_HEADERS = {"agg_level_pseo": _AGG, "flags": ("flag", "label"), "flags_ipeds_count": ("flag", "label")}
_ABOUT = {"flags": "status flags and their meaning", "flags_ipeds_count": "flags of IPEDS counts"}
_LEVELS = ("inst_level", "cip_level", "geo_level", "ind_level")
_CODES = ("degree_level", "institution", "cipcode", "geography", "industry")
_FILES = ("agg_level_pseo", "flags", "flags_ipeds_count", *_LEVELS, *_CODES)  # in this order


@dataclass(frozen=True, order=True)
class Version:
    """The entry of one table in the version file."""

    product: Kind
    geo: str
    geonum: str
    start: int
    end: int

    def line(self, reserved: dt.date, release: str) -> str:
        quarter = f"R{reserved.year}Q{(reserved.month + 2) // 3}"
        return schema.version_line(
            self.product, self.geo, self.geonum, self.start, self.end, quarter, f"discreet_{release}"
        )


@dataclass(frozen=True)
class Sidecars:
    """Rows of label files and lines of the version file, from the declaration."""

    labels: Mapping[str, Mapping[str, Row]] = field(default_factory=dict)  # by file, by code
    versions: frozenset[Version] = frozenset()

    def files(self, simulated: bool) -> dict[str, str]:
        """File names, and what each contains."""
        version = {_version_name(simulated): "LEHD's line of metadata"} if self.versions else {}
        labels = {what: _ABOUT.get(what, f"codes of column {what} and their meaning") for what in self._listed()}
        return version | {_label_name(what, simulated): about for what, about in labels.items()}

    def texts(self, simulated: bool, reserved: dt.date, release: str) -> dict[str, str]:
        """The content of every file."""
        lines = "".join(f"{version.line(reserved, release)}\n" for version in sorted(self.versions))
        version = {_version_name(simulated): lines} if self.versions else {}
        return version | {_label_name(what, simulated): self._csv(what) for what in self._listed()}

    def _listed(self) -> list[str]:
        return [what for what in _FILES if what in self.labels]

    def _csv(self, what: str) -> str:
        text, rows = io.StringIO(), self.labels[what]
        ordered = sorted(rows, key=int) if what == "agg_level_pseo" else sorted(rows)
        header = _HEADERS.get(what, (what, "label"))
        csv.writer(text, lineterminator="\n").writerows(
            [header, *(tuple(map(guarded, rows[code])) for code in ordered)]
        )
        return text.getvalue()


def merged_sidecars(parts: Iterable[Sidecars]) -> Sidecars:
    """The union of several tables' sidecars. A code with two different labels is refused."""
    labels: dict[str, dict[str, Row]] = {}
    versions: set[Version] = set()
    for part in parts:
        versions |= part.versions
        for what, rows in part.labels.items():
            known = labels.setdefault(what, {})
            if double := next((code for code, row in rows.items() if known.get(code, row) != row), None):
                raise SpecError(
                    f"has two labels for {double!r}", where=f"label_{what}.csv", do="let both tables use one code list"
                )
            known |= rows
    return Sidecars(labels, frozenset(versions))


def sidecars_of(
    kind: Kind,
    layout: Lehd,
    levels: Sequence[LehdLevel],
    labels: Mapping[str, Mapping[str, str]],
    destinations: dict[str, set[str]] | None = None,
) -> Sidecars:
    """The declared codes with their labels, whether or not they occur in the data."""
    aggs = {level.agg for level in levels}
    used = {what: {str(getattr(agg, what)) for agg in aggs} for what in _LEVELS}
    used |= {what: _codes(levels, what) for what in ("degree_level", "institution", "cipcode")}
    used["cipcode"] |= {"00"} if any(agg.cip_level == "A" for agg in aggs) else set()
    used |= destinations or {}
    known: dict[str, Mapping[str, str]] = {
        **schema.LABELS,
        "institution": {**labels.get("state", {}), **labels.get("institution", {})},
        "cipcode": {"00": schema.LABELS["cip_level"]["A"], **labels.get("cipcode", {})},
        "geography": {"00": schema.LABELS["geo_level"]["N"], **schema.DIVISIONS, **labels.get("division", {})},
        "industry": {"00": schema.LABELS["ind_level"]["A"], **schema.SECTORS, **labels.get("industry", {})},
    }
    rows: dict[str, Mapping[str, Row]] = {"agg_level_pseo": {str(agg.number): _agg(agg) for agg in aggs}}
    rows |= {what: {code: (code, known[what].get(code, code)) for code in codes} for what, codes in used.items()}
    rows["flags"] = {flag: (flag, label) for flag, label in schema.FLAGS.items()}
    if kind == "pseoe":
        rows["flags_ipeds_count"] = {flag: (flag, label) for flag, label in schema.IPEDS_FLAGS.items()}
    cohorts = _codes(levels, "grad_cohort")
    geo = "US" if layout.area == "all" else layout.area.upper()
    return Sidecars(rows, frozenset({Version(kind, geo, layout.area_code, int(min(cohorts)), int(max(cohorts)))}))


def _codes(levels: Sequence[LehdLevel], identifier: str) -> set[str]:
    return {code for level in levels for code in level.codes(identifier)}


def _agg(agg: AggLevel) -> Row:
    levels = (agg.cip_level, agg.inst_level, agg.geo_level, agg.ind_level)
    return (str(agg.number), agg.grad_char, *levels, str(int(agg.by_cohort)))


def _version_name(simulated: bool) -> str:
    return f"{stem('version_pseo', simulated)}.txt"


def _label_name(what: str, simulated: bool) -> str:
    return f"{stem(f'label_{what}', simulated)}.csv"
