"""What a release has measured, kept inside: protected numbers of every cell, suppressed ones among them, and what they
are about. All that was published can be made of it again, and more, without a record and at no cost."""

from __future__ import annotations

import hashlib
import json
from math import prod
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from discreet import formats
from discreet.errors import PublishError
from discreet.privacy.exact import Exact
from discreet.privacy.guarantee import Guarantee
from discreet.publish.description import MEASUREMENTS
from discreet.publish.storage import Storage


class _MeasurementPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MeasuredAttribute(_MeasurementPart):
    """What groups are by: its columns and, in order, their codes."""

    name: str
    columns: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]


class MeasuredTable(_MeasurementPart):
    """Groups in the order of their attributes, the first most significant, each with `width` numbers side by side."""

    name: str
    method: str
    attributes: tuple[MeasuredAttribute, ...]
    width: int
    about: dict[str, Any]  # what the numbers of a group are
    rate: Exact  # of the noise in each number
    draws: tuple[int, ...] | None = None  # after a recoding: how many draws each group has; -1: it was divided
    guarantee: Guarantee
    files: dict[str, str]

    @property
    def groups(self) -> int:
        return prod(len(attribute.categories) for attribute in self.attributes)


class Measurements(_MeasurementPart):
    """All tables of a release."""

    format: Literal["discreet-measurements/1"] = "discreet-measurements/1"
    release: str
    asset: str
    simulation: bool
    guarantee: Guarantee
    tables: tuple[MeasuredTable, ...]

    def text(self) -> str:
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":")) + "\n"


def read(place: Storage, where: str) -> tuple[Measurements, str]:
    """What a folder of measurements says about itself, and the digest of that."""
    try:
        content = place.read(MEASUREMENTS)
        about = Measurements.model_validate(formats.parsed(content, formats.MEASUREMENTS, where))
        return about, hashlib.sha256(content).hexdigest()
    except FileNotFoundError:
        raise PublishError(
            "holds no measurements", where=where, do="name the folder that a release had as its `keep_measurements`"
        ) from None
    except (ValueError, OSError):
        raise PublishError("has measurements that cannot be read", where=where, do="restore them from a copy") from None
