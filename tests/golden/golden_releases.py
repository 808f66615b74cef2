"""Releases of every method under a test key, and the SHA-256 of what they publish.

`PYTHONPATH=tests python tests/golden/golden_releases.py` writes the digests anew: after a change that is meant to
change what is published, or after an upgrade of a library that writes files otherwise.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from discreet.cli import demo
from discreet.synth import graduates
from discreet.synth.atlas import write_atlas
from discreet.synth.occupational.files import write_occupations
from discreet.synth.workplaces.files import write_employers
from support import earnings, flows
from support.engines import Bureau
from support.method_cases import (
    agency_bureau,
    cubes,
    estimates,
    jobs_by_unit,
    records,
    register_with_doubles,
    spec,
    with_zeros,
    write_records,
)
from support.recoding import RecodingOffice, contents

DIGESTS = Path(__file__).parent / "releases.json"
Digests = dict[str, str]
LAID_OUT = {
    "layout": "lehd",
    "suppress_codes": {"cip4": ["01.09"]},
    "levels": [
        {"name": "families", "by": ["family", "grad_cohort", "years_after"]},
        {"name": "schools", "by": ["school", "years_after"], "epsilon": "1"},
    ],
}


def digests(files: Mapping[str, bytes]) -> Digests:
    """Of every file, by name. A manifest says which code made it, and where the ledger stood: both left out."""
    said = {name: _manifest(content) if name == "manifest.json" else content for name, content in files.items()}
    return {name: hashlib.sha256(content).hexdigest() for name, content in said.items()}


def _manifest(content: bytes) -> bytes:
    said = json.loads(content)
    return json.dumps({key: said[key] for key in said if key not in ("code", "digest", "ledger")}).encode()


def counts_earnings_flows(folder: Path) -> Digests:
    bureau = agency_bureau(folder / "bureau")
    declared = spec("person", write_records(bureau, records()))
    return digests(bureau.published(declared))


def sensitivity(folder: Path) -> Digests:
    bureau = agency_bureau(folder / "bureau")
    return digests(bureau.published(estimates("record", write_records(bureau, with_zeros(records())))))


def hypercube(folder: Path) -> Digests:
    bureau = agency_bureau(folder / "bureau")
    return digests(bureau.published(cubes("whole", write_records(bureau, records()))))


def employer(folder: Path) -> Digests:
    register = register_with_doubles(folder / "register")
    actual = {}
    for name, declared in jobs_by_unit(register, one_file=False).items():
        actual |= {f"{name}/{file}": digest for file, digest in digests(register.published(declared)).items()}
    return actual


def earnings_in_a_layout(folder: Path) -> Digests:
    office = earnings.Registrar(folder / "office", earnings.graduates(60))
    return digests(office.published(earnings.spec(earnings.table(**LAID_OUT))))


def flows_with_everything(folder: Path) -> Digests:
    office = flows.CareersAgency(folder / "office", flows.graduates(20))
    return digests(office.published(flows.spec()))


def recode(folder: Path) -> Digests:
    office = RecodingOffice.founded(folder / "office")
    office.measure()
    office.recode()
    folders = ("out-old", "out-new", "kept/old", "kept/new")
    actual = {f"{out}/{n}": content for out in folders for n, content in contents(office.folder / out).items()}
    plain = {name: content for name, content in actual.items() if not name.endswith("manifest.json")}
    manifests = {n: content for n, content in actual.items() if n.endswith("manifest.json")}
    return digests(plain) | {n: digests({"manifest.json": c})["manifest.json"] for n, c in manifests.items()}


def _invented(folder: Path, invent: Callable[[Path], Any], declared: str, unit: Any) -> Digests:
    """What is invented, and a release of it as in `discreet demo`."""
    import yaml

    bureau = Bureau(folder)
    invent(folder / "invented")
    release = yaml.safe_load(declared)
    for key in ("release", "asset"):
        del release[key]
    inputs = digests(contents(folder / "invented"))
    for path in (folder / "invented").iterdir():
        path.rename(folder / path.name)
    return {f"invented/{n}": d for n, d in inputs.items()} | digests(bureau.published({**release, "unit": unit}))


def demo_graduates(folder: Path) -> Digests:
    unit = {"person": "person_id", "max_records": 6}
    return _invented(folder / "bureau", lambda at: graduates(at, 3000), demo.declaration("graduates"), unit)


def demo_jobs(folder: Path) -> Digests:
    unit = {"establishment": "workplace_id", "alpha": "0.1", "adversary": "strong"}
    return _invented(folder / "bureau", lambda at: write_employers(at, 3000), demo.declaration("jobs"), unit)


def demo_atlas(folder: Path) -> Digests:
    return _invented(folder / "bureau", lambda at: write_atlas(at, 3000, 40), demo.declaration("children"), "record")


def demo_survey(folder: Path) -> Digests:
    unit = {"establishment": "establishment", "whole": True, "max_records": 8}
    return _invented(folder / "bureau", lambda at: write_occupations(at, 2000), demo.declaration("survey"), unit)


RELEASES: dict[str, Callable[[Path], Digests]] = {
    made.__name__: made
    for made in (
        counts_earnings_flows,
        sensitivity,
        hypercube,
        employer,
        earnings_in_a_layout,
        flows_with_everything,
        recode,
        demo_graduates,
        demo_jobs,
        demo_atlas,
        demo_survey,
    )
}


def remake(name: str) -> Digests:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for variable in ("HOME", "DISCREET_KEYS", "DISCREET_TMP"):
            patch.setenv(variable, f"{folder}/home/{variable}")
        return RELEASES[name](Path(folder))


if __name__ == "__main__":
    made = {name: remake(name) for name in RELEASES}
    DIGESTS.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")
