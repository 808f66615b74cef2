"""The files of a release that are written beside its tables: codebook, layouts, and what is kept of measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.methods.writing import Made, Places
from discreet.privacy.reservation import Grant
from discreet.publish.codebook import codebooks
from discreet.publish.description import MEASUREMENTS, Measurement, ReleaseDescription
from discreet.publish.storage import Storage

if TYPE_CHECKING:
    from discreet.publish.measurements import MeasuredTable


@dataclass(frozen=True)
class Staged:
    """Everything but the manifest: published files and kept measurements, with their digests."""

    files: dict[str, str]
    kept: dict[str, str]


def complete(places: Places, description: ReleaseDescription, made: Sequence[Made], grant: Grant, keep: bool) -> Staged:
    """Write what is left when every method has written its tables: all but the manifest. Measurements stay only if they
    are to be kept."""
    tables = {name: digest for output in made for name, digest in output.files.items()}
    texts = dict[str, str]()
    if description.shared is not None:
        texts |= description.shared.texts(grant.simulated, grant.time.date(), description.release)
    if description.recoded is not None:
        texts |= {description.transitions(name): text for name, text in description.recoded.tables.items()}
    kept = _kept(places.measured, description, made, keep)
    return Staged(tables | _written(places.published, texts | codebooks(description)), kept)


def _kept(place: Storage, description: ReleaseDescription, made: Sequence[Made], keep: bool) -> dict[str, str]:
    """The files of measurements with their digests; removed, unless they stay."""
    files = {n: d for output in made for parts in output.measured.values() for n, d in parts.value.files.items()}
    if not keep:
        for name in files:
            place.remove(name)
        return {}
    from discreet.publish.measurements import Measurements

    about = Measurements(
        release=description.release,
        asset=description.asset,
        simulation=description.simulated,
        guarantee=description.guarantee,
        tables=tuple(
            _measured(m, output) for m in description.measurements for output in made if m.name in output.measured
        ),
    )
    return files | _written(place, {MEASUREMENTS: about.text()})


def _written(place: Storage, texts: Mapping[str, str]) -> dict[str, str]:
    """Small files, and their digests."""
    files = {}
    for name, text in texts.items():
        with place.create(name) as file:
            file.write(text.encode())
        files[name] = file.sha256()
    return files


def _measured(measurement: Measurement, made: Made) -> MeasuredTable:
    from discreet.publish.measurements import MeasuredAttribute, MeasuredTable

    return MeasuredTable(
        name=measurement.name,
        method=measurement.method,
        attributes=tuple(
            MeasuredAttribute(name=a.name, columns=a.columns, categories=a.published)
            for a in measurement.groups.attributes
        ),
        width=measurement.width,
        about=measurement.about,
        rate=measurement.rate,
        draws=made.draws.get(measurement.name),
        guarantee=measurement.guarantee,
        files=made.measured[measurement.name].value.files,
    )
