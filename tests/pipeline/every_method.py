"""Releases of every method, a resumption and a recoding in one process: prints the imported modules of discreet."""

from __future__ import annotations

import sys
from pathlib import Path

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
from support.recoding import RecodingOffice, RunCrash, Watch


def main(folder: Path) -> None:
    bureau = agency_bureau(folder / "bureau")
    bureau.published(spec("person", write_records(bureau, records())))
    bureau.published(estimates("record", write_records(bureau, with_zeros(records()))))
    bureau.published(cubes("whole", write_records(bureau, records())))
    register = register_with_doubles(folder / "register")
    register.published(jobs_by_unit(register, one_file=False)["strong"])
    registrar = earnings.Registrar(folder / "registrar", earnings.graduates(60))
    registrar.published(earnings.spec(earnings.table(layout="lehd")))
    careers = flows.CareersAgency(folder / "careers", flows.graduates(20))
    total = [{"name": "total", **flows.LEVELS["total"]}]
    careers.published(flows.spec(flows.table(layout="lehd", levels=total)))
    _interrupted(careers)
    office = RecodingOffice.founded(folder / "office")
    office.measure()
    office.recode()
    print(*sorted(name for name in sys.modules if name.split(".")[0] in ("discreet", "discreet_studies")))


def _interrupted(careers: Bureau) -> None:
    release = careers.open(flows.spec())
    try:
        release.run(careers.folder / "interrupted", simulation="cover", observe=Watch("reserve#1"))
    except RunCrash:
        release.resume()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
