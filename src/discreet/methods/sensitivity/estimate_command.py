"""From a file of records to protected estimates in one command: the declaration is written, then released like any
other.

The declaration stays next to the output, so that it can be read, planned and run again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import yaml

from discreet import api
from discreet.errors import PublishError, SpecError
from discreet.methods.registry import methods, total_guarantee
from discreet.noise.keystore import default_keys
from discreet.pipeline.check import lines
from discreet.privacy.exact import format_exact, parse_exact
from discreet.privacy.guarantee import Guarantee
from discreet.publish.parquet import table_of
from discreet.spec import loader

if TYPE_CHECKING:
    from discreet.publish.manifest import Manifest

MOST = 10**7  # codes in a range
LINES = ("slope", "intercept", "prediction")


@dataclass(frozen=True)
class EstimateOptions:
    """The arguments of `discreet estimate`."""

    data: Path
    out: Path
    statistic: str
    y: str
    x: str | None
    at: str | None
    winsorise: str | None
    by: Sequence[str]
    bounds: Sequence[str]
    epsilon: str
    delta: str | None
    noise: str
    cell_size: str
    suppress_below: int | None
    search: str | None
    stata: bool
    unit: str
    asset: str | None = None
    ledger: str = "discreet-ledger.sqlite"

    def declaration(self) -> dict[str, Any]:
        """The declaration of the requested release."""
        statistic = self._statistic()
        variables = {name: self._variable(name) for name in (self.x, self.y) if name is not None}
        table: dict[str, Any] = {
            "name": self.statistic,
            "method": "sensitivity",
            "by": [name for name, _ in self._cells()],
            "statistic": statistic,
            "variables": variables,
            "epsilon": self.epsilon,
            "noise": self.noise,
            "cell_size": self.cell_size,
        }
        table |= {} if self.delta is None else {"delta": self.delta}
        table |= {} if self.suppress_below is None else {"suppress_below": {"count": self.suppress_below}}
        table |= {} if self.search is None else {"search": self.search}
        table |= {"formats": ["parquet", "csv", "dta"]} if self.stata else {}
        person = self.unit.removeprefix("person:")
        if self.unit != "record" and (person == self.unit or not person):
            raise SpecError(f"{self.unit!r} is not a unit", where="--unit", do="write record, or person:COLUMN")
        return {
            "release": _name(self.out.name),
            "asset": self.asset or _name(self.data.stem),
            "source": {_name(self.data.stem): str(self.data.resolve())},
            "unit": "record" if self.unit == "record" else {"person": person, "max_records": 1},
            "domains": {name: _domain(codes) for name, codes in self._cells()},
            "tables": [table],
            "ledger": self.ledger if "://" in self.ledger else str(Path(self.ledger).resolve()),
        }

    def _cells(self) -> list[tuple[str, str]]:
        return [parse_assignment(text, "--by") for text in self.by]

    def _statistic(self) -> dict[str, Any]:
        if self.statistic == "median":
            return {"name": "quantile", "of": self.y, "p": "1/2"}
        if self.statistic not in LINES:
            return {"name": self.statistic, "of": self.y}
        if self.x is None:
            raise SpecError(f"a {self.statistic} needs an x", where="--x", do="name the column of x")
        extra = {"at": self.at, "winsorise": self.winsorise}
        return {"name": self.statistic, "x": self.x, "y": self.y} | {k: v for k, v in extra.items() if v is not None}

    def _variable(self, name: str) -> dict[str, str]:
        bounds = dict(parse_assignment(text, "--bounds") for text in self.bounds)
        if unused := next((column for column in bounds if column not in (self.x, self.y)), None):
            raise SpecError(f"{unused!r} is neither x nor y", where="--bounds", do="omit it")
        if name not in bounds:
            raise SpecError(
                f"{name!r} has no bounds",
                where="--bounds",
                do=f"state its bounds, such as --bounds {name}=0:1; not from these data",
            )
        low, colon, high = bounds[name].partition(":")
        if not colon:
            raise SpecError(f"{bounds[name]!r} are not bounds", where="--bounds", do=f"write {name}=LOW:HIGH")
        return {"low": low, "high": high}


def parse_assignment(text: str, where: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, equals, rest = text.partition("=")
    if not equals or not name or not rest:
        raise SpecError(f"cannot read {text!r}", where=where, do="write NAME=VALUE")
    return name, rest


def _domain(codes: str) -> dict[str, Any]:
    """`1..111`, `01,02,05`, or a CSV file with a column `code`."""
    if match := re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", codes):
        first, last = int(match[1]), int(match[2])
        if not 0 <= last - first < MOST:
            raise SpecError(f"{codes} is not a range of codes", where="--by", do="write FIRST..LAST")
        return {"values": [str(code) for code in range(first, last + 1)]}
    if codes.endswith(".csv"):
        return {"codes": str(Path(codes).resolve())}
    return {"values": codes.split(",")}


def _name(text: str) -> str:
    """A valid name for a declaration."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "release"


def check(options: EstimateOptions) -> list[str]:
    """What the declared rules will do to the records: confidential, for the operator."""
    release = _opened(options)
    return lines(release.check(), release.spec)


def _opened(options: EstimateOptions) -> api.OpenRelease:
    """The release, checked as a whole before anything is written."""
    if not options.data.exists():
        raise SpecError("does not exist", where=str(options.data), do="check the path")
    declared = loader.build(options.declaration(), options.out.absolute().parent, "estimate")
    methods(declared)
    return api.OpenRelease(declared, None, api.ledger(declared.ledger), default_keys())


def estimate(
    options: EstimateOptions, budget: str | None, observe: Callable[[str, int, int], None]
) -> tuple[Path, Manifest]:
    """Check everything, write the declaration, set the budget if one is given, and release."""
    if not options.out.name:
        raise SpecError("is not a new folder", where="--out", do="name one that does not exist yet")
    declaration = options.out.with_name(f"{options.out.name}.yaml")
    for path in (options.out, declaration):
        if path.exists():
            raise PublishError("exists already", where=str(path), do="name another folder with --out")
    release = _opened(options)
    cost = total_guarantee(release.spec, methods(release.spec))
    if budget is not None:
        _set_budget(release, cost, parse_exact(budget, "--budget"))
    declaration.parent.mkdir(parents=True, exist_ok=True)
    declaration.write_text(yaml.safe_dump(options.declaration(), sort_keys=False, allow_unicode=True), encoding="utf-8")
    try:
        return declaration, release.run(options.out, observe=observe)
    except BaseException:
        if not release.ledger.store.exists() or release.spec.release not in release.ledger.chain().releases():
            declaration.unlink(missing_ok=True)  # else `discreet resume` needs it
        raise


def _set_budget(release: api.OpenRelease, cost: Guarantee, epsilon: Fraction) -> None:
    """The given ε, for this and earlier releases together; δ as they need."""
    ledger, asset, delta, spent = release.ledger, release.spec.asset, cost.delta, Fraction(0)
    if ledger.store.exists() and (before := ledger.chain().lifetime(asset)) is not None:
        delta, spent = delta + before.delta, before.epsilon
    if cost.epsilon + spent > epsilon:
        raise SpecError(
            f"{format_exact(epsilon)} is below the cost of this release, {format_exact(cost.epsilon)}, plus "
            f"{format_exact(spent)} spent before",
            where="--budget",
            do="lower the cost, or set a larger budget",
        )
    unit = {"person": release.spec.unit.entity} if release.spec.unit.entity else "record"
    api.set_budget(ledger, asset, epsilon=epsilon, delta=delta, unit=unit)


def sanity_warnings(out: Path, manifest: Manifest) -> list[str]:
    """Warnings that the published numbers themselves give rise to."""
    table = next(table for table in manifest.tables if not table.name.endswith("_chi"))
    files = [out / name for name in table.files if name.endswith(".parquet")]
    counts = sum(pc.sum(table_of(file, ["count"])["count"]).as_py() or 0 for file in files)
    if counts > table.cells:
        return []
    return [
        "The released counts are about 0 everywhere: are the codes of --by written as in the records? "
        "`discreet estimate … --check` compares them, on the confidential side."
    ]
