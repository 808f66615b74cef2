"""From a file of records to protected estimates in one command: the declaration is written, then released as any other.

The declaration stays beside the output, so that what was asked for can be read, planned and asked for again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from discreet import api
from discreet.errors import PublishError, SpecError

if TYPE_CHECKING:
    from discreet.publish.manifest import Manifest

MOST = 10**7  # codes of a range
LINES = ("slope", "intercept", "prediction")


@dataclass(frozen=True)
class Asked:
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

    def declaration(self) -> dict[str, Any]:
        """The release that this asks for."""
        variables = {name: self._variable(name) for name in (self.x, self.y) if name is not None}
        table: dict[str, Any] = {
            "name": self.statistic,
            "method": "sensitivity",
            "by": [name for name, _ in map(assigned, self.by)],
            "statistic": self._statistic(),
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
        return {
            "release": _name(self.out.name),
            "asset": _name(self.data.stem),
            "source": {_name(self.data.stem): str(self.data.resolve())},
            "unit": "record" if self.unit == "record" else {"person": person, "max_records": 1},
            "domains": {name: _domain(codes) for name, codes in map(assigned, self.by)},
            "tables": [table],
        }

    def _statistic(self) -> dict[str, Any]:
        if self.statistic not in LINES:
            return {"name": self.statistic, "of": self.y}
        if self.x is None:
            raise SpecError(f"a {self.statistic} is one of y on x", where="--x", do="name the column of x")
        extra = {"at": self.at, "winsorise": self.winsorise}
        return {"name": self.statistic, "x": self.x, "y": self.y} | {k: v for k, v in extra.items() if v is not None}

    def _variable(self, name: str) -> dict[str, str]:
        found = dict(map(assigned, self.bounds))
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


def assigned(text: str) -> tuple[str, str]:
    name, equals, rest = text.partition("=")
    if not equals or not name or not rest:
        raise SpecError(f"cannot read {text!r}", where="--by or --bounds", do="write NAME=VALUE, such as cell=1..111")
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


def estimate(asked: Asked, budget: str | None, observe: Callable[[str, int, int], None]) -> tuple[Path, Manifest]:
    """Write the declaration, set the budget if one is named, and release."""
    declared = asked.out.with_name(f"{asked.out.name}.yaml")
    for path in (asked.out, declared):
        if path.exists():
            raise PublishError("exists already", where=str(path), do="name another folder with --out")
    if not asked.data.exists():
        raise SpecError("does not exist", where=str(asked.data), do="check the path")
    text = yaml.safe_dump(asked.declaration(), sort_keys=False, allow_unicode=True)
    declared.parent.mkdir(parents=True, exist_ok=True)
    declared.write_text(text, encoding="utf-8")
    release: api.OpenRelease | None = None
    try:
        release = api.release(declared)
        planned = release.plan()
        if budget is not None:
            unit = {"person": release.spec.unit.entity} if release.spec.unit.entity else "record"
            delta = planned.total.delta
            api.set_budget(release.ledger, release.spec.asset, epsilon=budget, delta=delta, unit=unit)
        return declared, release.run(asked.out, observe=observe)
    except BaseException:
        if not _reserved(release):
            declared.unlink(missing_ok=True)
        raise


def _reserved(release: api.OpenRelease | None) -> bool:
    """Whether the ledger knows of it: then `discreet resume` needs the declaration."""
    if release is None or not release.ledger.store.exists():
        return False
    return release.spec.release in release.ledger.chain().releases()
