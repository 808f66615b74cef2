"""From a file of records to protected estimates in one command: the declaration is written, then released as any other.

The declaration stays beside the output, so that what was asked for can be read, planned and asked for again.
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

MOST = 10**7  # codes of a range
LINES = ("slope", "intercept", "prediction")


@dataclass(frozen=True)
class EstimateOptions:
    """What the command line says."""

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
    size: str
    minimum: int | None
    search: str | None
    stata: bool
    unit: str
    asset: str | None = None
    ledger: str = "discreet-ledger.sqlite"

    def declaration(self) -> dict[str, Any]:
        """The release that this asks for."""
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
            "size": self.size,
        }
        table |= {} if self.delta is None else {"delta": self.delta}
        table |= {} if self.minimum is None else {"minimum": {"count": self.minimum}}
        table |= {} if self.search is None else {"search": self.search}
        table |= {"formats": ["parquet", "csv", "dta"]} if self.stata else {}
        person = self.unit.removeprefix("person:")
        if self.unit != "record" and (person == self.unit or not person):
            raise SpecError(f"{self.unit!r} is no unit", where="--unit", do="write record, or person:COLUMN")
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
        return [assigned(text, "--by") for text in self.by]

    def _statistic(self) -> dict[str, Any]:
        if self.statistic == "median":
            return {"name": "quantile", "of": self.y, "p": "1/2"}
        if self.statistic not in LINES:
            return {"name": self.statistic, "of": self.y}
        if self.x is None:
            raise SpecError(f"a {self.statistic} is one of y on x", where="--x", do="name the column of x")
        extra = {"at": self.at, "winsorise": self.winsorise}
        return {"name": self.statistic, "x": self.x, "y": self.y} | {k: v for k, v in extra.items() if v is not None}

    def _variable(self, name: str) -> dict[str, str]:
        found = dict(assigned(text, "--bounds") for text in self.bounds)
        if unused := next((column for column in found if column not in (self.x, self.y)), None):
            raise SpecError(f"{unused!r} is neither x nor y", where="--bounds", do="leave it out")
        if name not in found:
            raise SpecError(
                f"{name!r} is not bounded",
                where="--bounds",
                do=f"say within which bounds it lies, such as --bounds {name}=0:1; not from these data",
            )
        low, colon, high = found[name].partition(":")
        if not colon:
            raise SpecError(f"{found[name]!r} are no bounds", where="--bounds", do=f"write {name}=LOW:HIGH")
        return {"low": low, "high": high}


def assigned(text: str, where: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, equals, rest = text.partition("=")
    if not equals or not name or not rest:
        raise SpecError(f"cannot read {text!r}", where=where, do="write NAME=VALUE")
    return name, rest


def _domain(codes: str) -> dict[str, Any]:
    """`1..111`, `01,02,05`, or a CSV file with a column `code`."""
    if found := re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", codes):
        first, last = int(found[1]), int(found[2])
        if not 0 <= last - first < MOST:
            raise SpecError(f"{codes} is no range of codes", where="--by", do="write FIRST..LAST")
        return {"values": [str(code) for code in range(first, last + 1)]}
    if codes.endswith(".csv"):
        return {"codes": str(Path(codes).resolve())}
    return {"values": codes.split(",")}


def _name(text: str) -> str:
    """A name that a declaration takes."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "release"


def check(asked: EstimateOptions) -> list[str]:
    """What the declared rules will do to the records: for the operator."""
    release = _opened(asked)
    return lines(release.check(), release.spec)


def _opened(asked: EstimateOptions) -> api.OpenRelease:
    """The release, looked at as a whole before anything is written."""
    if not asked.data.exists():
        raise SpecError("does not exist", where=str(asked.data), do="check the path")
    declared = loader.build(asked.declaration(), asked.out.absolute().parent, "estimate")
    methods(declared)
    return api.OpenRelease(declared, None, api.ledger(declared.ledger), default_keys())


def estimate(
    asked: EstimateOptions, budget: str | None, observe: Callable[[str, int, int], None]
) -> tuple[Path, Manifest]:
    """Look at everything that can be wrong, write the declaration, set the budget if one is named, and release."""
    if not asked.out.name:
        raise SpecError("is no new folder", where="--out", do="name one that does not exist yet")
    declared = asked.out.with_name(f"{asked.out.name}.yaml")
    for path in (asked.out, declared):
        if path.exists():
            raise PublishError("already exists", where=str(path), do="name another folder with --out")
    release = _opened(asked)
    cost = total_guarantee(release.spec, methods(release.spec))
    if budget is not None:
        _set_budget(release, cost, parse_exact(budget, "--budget"))
    declared.parent.mkdir(parents=True, exist_ok=True)
    declared.write_text(yaml.safe_dump(asked.declaration(), sort_keys=False, allow_unicode=True), encoding="utf-8")
    try:
        return declared, release.run(asked.out, observe=observe)
    except BaseException:
        if not release.ledger.store.exists() or release.spec.release not in release.ledger.chain().releases():
            declared.unlink(missing_ok=True)  # else `discreet resume` needs it
        raise


def _set_budget(release: api.OpenRelease, cost: Guarantee, epsilon: Fraction) -> None:
    """ε as named, for this and earlier releases together; as much δ as they need."""
    ledger, asset, delta, spent = release.ledger, release.spec.asset, cost.delta, Fraction(0)
    if ledger.store.exists() and (before := ledger.chain().lifetime(asset)) is not None:
        delta, spent = delta + before.delta, before.epsilon
    if cost.epsilon + spent > epsilon:
        raise SpecError(
            f"{format_exact(epsilon)} is less than what this costs, {format_exact(cost.epsilon)}, and {format_exact(spent)} before",
            where="--budget",
            do="ask for less, or set a larger budget",
        )
    unit = {"person": release.spec.unit.entity} if release.spec.unit.entity else "record"
    api.set_budget(ledger, asset, epsilon=epsilon, delta=delta, unit=unit)


def doubts(out: Path, made: Manifest) -> list[str]:
    """What the published numbers themselves give reason to look at."""
    table = next(table for table in made.tables if not table.name.endswith("_chi"))
    files = [out / name for name in table.files if name.endswith(".parquet")]
    counts = sum(pc.sum(table_of(file, ["count"])["count"]).as_py() or 0 for file in files)
    if counts > table.cells:
        return []
    return [
        "The released counts are about 0 everywhere: were the codes of --by written as in the records? "
        "`discreet estimate … --check` looks at them, inside."
    ]
