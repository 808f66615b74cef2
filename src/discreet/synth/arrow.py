"""Converts blocks to Arrow record batches; codes stay dictionary indices, so no string is built per row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from discreet.synth.data_errors import INVALID, NULL, PLACEHOLDER, UNDECLARED_FIELDS, UNDECLARED_SECTORS
from discreet.synth.draws import Array
from discreet.synth.education.catalogue import EducationCatalogue
from discreet.synth.education.fields import FIELDS, LEVELS
from discreet.synth.education.records import COHORTS, YEARS_AFTER, GraduateRows
from discreet.synth.sectors import SECTORS
from discreet.synth.states import STATES

CODED = {  # column of a block -> column of the file
    "institution": "institution",
    "level": "degree_level",
    "field": "cipcode",
    "cohort": "grad_cohort",
    "years": "years_after",
    "state": "state",
}
CODE = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        ("person_id", pa.string()),
        *((column, CODE) for column in CODED.values()),
        ("employed", pa.bool_()),
        ("earnings", pa.int64()),
        ("industry", CODE),
    ]
)

ID_LENGTH = 12
ID_MASK = (1 << 44) - 1
ID_STEP = 0x9E3779B97F5  # odd: multiplication permutes the 44-bit numbers, so that ids look unordered
PLACEHOLDER_ID = b"0" * ID_LENGTH
HEX_PAIRS = np.frombuffer("".join(f"{byte:02X}" for byte in range(256)).encode(), dtype=np.uint16)


@dataclass(frozen=True)
class Codes:
    """The codes of each coded column, and how many of them are valid (all, without data errors)."""

    lists: dict[str, tuple[str, ...]]
    known: dict[str, int]

    def batch(self, rows: GraduateRows) -> pa.RecordBatch:
        """The rows as an Arrow batch."""
        columns = [coded(getattr(rows, name), self.lists[name]) for name in CODED]
        earnings = pa.array(rows.earnings, mask=~rows.employed)
        industry = coded(np.where(rows.employed, rows.industry, NULL), self.lists["industry"])
        return pa.RecordBatch.from_arrays(
            [person_ids(rows.person), *columns, pa.array(rows.employed), earnings, industry], schema=SCHEMA
        )


def codes(public: EducationCatalogue, data_errors: bool) -> Codes:
    """The code lists of an agency: the public ones, followed by invalid codes if there are data errors."""
    lists = {
        "institution": tuple(school.code for school in public.institutions),
        "level": tuple(level.code for level in LEVELS),
        "field": tuple(field.cip6 for field in FIELDS),
        "cohort": COHORTS,
        "years": YEARS_AFTER,
        "state": tuple(state.code for state in STATES),
        "industry": tuple(sector.code for sector in SECTORS),
    }
    known = {name: len(valid) for name, valid in lists.items()}
    if data_errors:
        lists = {name: valid + INVALID for name, valid in lists.items()}
        lists["field"] += UNDECLARED_FIELDS
        lists["industry"] += UNDECLARED_SECTORS
    return Codes(lists, known)


def person_ids(numbers: Array) -> pa.StringArray:
    """Ids of twelve characters, "P" and eleven hexadecimal digits; null and placeholder ids for those numbers."""
    scrambled = (numbers.astype(np.uint64) * np.uint64(ID_STEP)) & np.uint64(ID_MASK)
    digits = HEX_PAIRS[scrambled.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]]
    text = digits.view(np.uint8).reshape(-1, ID_LENGTH)
    text[:, 0] = ord("P")
    text[numbers == PLACEHOLDER] = np.frombuffer(PLACEHOLDER_ID, dtype=np.uint8)
    offsets = np.arange(0, ID_LENGTH * (len(numbers) + 1), ID_LENGTH, dtype=np.int32)
    valid = np.packbits(numbers != NULL, bitorder="little")
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(text), pa.py_buffer(valid))


def coded(positions: Array, values: tuple[str, ...]) -> pa.DictionaryArray:
    """Positions in a list of codes as a dictionary array; null for NULL."""
    indices = pa.array(positions.astype(np.int32, copy=False), mask=positions == NULL)
    return pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string()))
