"""The Python API: the same as the command line, on a YAML file, or on a frame and a dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from discreet.formatting import Observer, silent
from discreet.noise.keystore import KeyStore
from discreet.privacy.exact import as_refusal
from discreet.privacy.guarantee import Neighbours, Unit
from discreet.privacy.ledger.events import Budget, LedgerKind
from discreet.privacy.ledger.ledger import Clock, Ledger, now
from discreet.privacy.ledger.store import open_store
from discreet.spec import Release, loader, parse_budget_unit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from discreet.engine.audit import Audit
    from discreet.engine.frames import Frames
    from discreet.pipeline.plan import Plan
    from discreet.pipeline.run import ReleaseJob
    from discreet.publish.manifest import Manifest

Declaration: TypeAlias = Mapping[str, object]  # the keys of release.yaml
ExactNumber: TypeAlias = str | int | Fraction  # never a float
UnitDeclaration: TypeAlias = str | Mapping[str, object] | Unit  # "record", {"person": "person_id"}, …


def ledger(place: str | Path, clock: Clock = now) -> Ledger:
    """The ledger in this file, or in this database (`postgresql://…`); it need not exist yet."""
    return Ledger(open_store(place), clock)


def set_budget(
    ledger: Ledger,
    asset: str,
    *,
    epsilon: ExactNumber,
    unit: UnitDeclaration,
    delta: ExactNumber = "0",
    neighbours: Neighbours = "add-remove",
    start: str | None = None,
    end: str | None = None,
    kind: LedgerKind = "real",
) -> None:
    """Set the privacy budget of an asset; begins the ledger if there is none."""
    with as_refusal("budget"):
        budget = Budget.model_validate(
            {
                "asset": asset,
                "unit": parse_budget_unit(unit),
                "epsilon": epsilon,
                "delta": delta,
                "neighbours": neighbours,
                "start": start,
                "end": end,
                "who": ledger.who(),
                "time": ledger.clock(),
            }
        )
    if not ledger.store.exists():
        ledger.create(kind, exist_ok=True)  # another process may begin it at the same time
    ledger.refuse_other_kind(ledger.chain(), simulated=kind == "simulation")
    ledger.set_budget(budget)


def release(
    spec: str | Path | Declaration,
    *,
    frame: Frames | None = None,
    ledger: Ledger | str | Path | None = None,
    keys: KeyStore | None = None,
    session: SparkSession | None = None,
) -> OpenRelease:
    """A release from a YAML file or a dictionary; `frame` replaces its source by a frame, or by one for each name of a
    dictionary, the records first. With a Spark `session` it runs there, and `frame` may be a DataFrame of that
    session."""
    if isinstance(spec, Mapping):
        named = frame if isinstance(frame, Mapping) else {"frame": frame}
        data = {"source": dict.fromkeys(named, ""), **spec} if frame is not None else dict(spec)
        declared = loader.build(data, Path.cwd())
    else:
        declared = loader.load(spec)
    if not isinstance(ledger, Ledger):
        ledger = Ledger(open_store(declared.ledger, declared.base) if ledger is None else open_store(ledger))
    keys = keys or ledger.keys
    return OpenRelease(declared, frame, ledger.remembered_by(keys), keys, session or _session(frame))


def _session(frame: Frames | None) -> SparkSession | None:
    """The Spark session that a frame belongs to, or the first one of several frames."""
    frames = list(frame.values()) if isinstance(frame, Mapping) else [frame]
    return next((session for f in frames if (session := getattr(f, "sparkSession", None)) is not None), None)


@dataclass(frozen=True)
class OpenRelease:
    """A declared release with its ledger: plan, check, run, resume."""

    spec: Release
    frame: Frames | None
    ledger: Ledger
    keys: KeyStore
    session: SparkSession | None = None

    def plan(self, *, trust: bool = False) -> Plan:
        """Tables, privacy cost and expected error. Reads no confidential data, and runs a Python file that the
        declaration names only if it is trusted."""
        from discreet.pipeline.plan import plan

        return plan(self.spec, self.ledger, trust=trust)

    def check(self) -> Audit:
        """Confidential: how many records the declared rules will drop, clamp or recode to "other"."""
        from discreet.pipeline.check import check

        return check(self.spec, self.frame, self.session)

    def run(
        self,
        out: str | Path,
        *,
        simulation: str | None = None,
        observe: Observer = silent,
    ) -> Manifest:
        """Spend the privacy budget and publish."""
        from discreet.pipeline.run import run

        return run(self._job(str(out), observe), simulation)

    def resume(self, *, observe: Observer = silent) -> Manifest:
        """Complete an interrupted run: same bytes, no further cost."""
        from discreet.pipeline.run import resume

        return resume(self._job("", observe))

    def _job(self, out: str, observe: Observer) -> ReleaseJob:
        from discreet.pipeline.run import ReleaseJob

        return ReleaseJob(self.spec, out, self.ledger, self.keys, self.frame, self.session, observe)
