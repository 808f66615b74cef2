"""Reads and validates the codebook of a published release."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, FiniteFloat, NonNegativeFloat, ValidationError, model_validator

from discreet import formats
from discreet.errors import PublishError
from discreet.publish.description import CODEBOOKS
from discreet.publish.manifest import Manifest
from discreet.publish.published import read_verified
from discreet.publish.storage import Storage


class _CodebookPart(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class ColumnPart(_CodebookPart):
    """A column of a table."""

    name: str
    type: str
    meaning: str


class AdditivePart(_CodebookPart):
    """The column that may be summed, with the variance and fourth cumulant of its noise."""

    column: str
    variance: NonNegativeFloat
    fourth: FiniteFloat


class TablePart(_CodebookPart):
    """The entry of one table."""

    about: str
    columns: list[ColumnPart]
    additive: AdditivePart | None = None


class AttributePart(_CodebookPart):
    """The codes of an attribute, one text per column, and their labels, if any."""

    columns: list[str]
    codes: list[list[str]]
    labels: list[str] | None

    @model_validator(mode="after")
    def _fits(self) -> AttributePart:
        if any(len(code) != len(self.columns) for code in self.codes):
            raise ValueError("a code does not have one part per column")
        if self.labels is not None and len(self.labels) != len(self.codes):
            raise ValueError("labels and codes differ in number")
        return self


class Codebook(_CodebookPart):
    """All tables and attributes of a release."""

    tables: dict[str, TablePart]
    attributes: dict[str, AttributePart]


def read_codebook(manifest: Manifest, place: Storage, where: str) -> Codebook:
    """The codebook, refused unless it is valid and describes every table of the manifest."""
    name = CODEBOOKS[0]
    if name not in manifest.files:
        raise PublishError("has no codebook", where=where, do="publish the release again with this version")
    place_in = f"{where}/{name}"
    try:
        book = Codebook.model_validate(formats.parsed(read_verified(manifest, place, name), formats.CODEBOOK, place_in))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(str(step)[:60] for step in first["loc"])
        raise PublishError(
            f"is not a valid codebook ({path or 'as a whole'})", where=place_in, do="restore it from a copy"
        ) from None
    except ValueError:
        raise PublishError("is not a valid codebook", where=place_in, do="restore it from a copy") from None
    for table in manifest.tables:
        if table.name not in book.tables:
            raise PublishError(f"does not describe table {table.name!r}", where=place_in, do="restore it from a copy")
    return book
