"""The formats of everything that is written to be read again. Another version is refused, never half understood."""

from __future__ import annotations

import json
from typing import Any

from discreet.errors import DiscreetError, PublishError

SPEC = 1  # release.yaml
LEDGER = 3
MEMORY = "discreet-ledger-memory/1"  # of a ledger, in a key store
MANIFEST = "discreet-manifest/2"
CODEBOOK = "discreet-codebook/1"
MEASUREMENTS = "discreet-measurements/1"
MODEL = "discreet-cube/1"
COMPARATOR = "discreet-comparator/1"  # of what is only there to be compared, and is no release
AGAIN = "make it again with this version, or read it with the version that wrote it"


def parsed(content: bytes, expected: str, where: str) -> dict[str, Any]:
    """A JSON document of one format. Of the same kind in another version, it is refused by its version; of no kind,
    ValueError."""
    try:
        text = content.decode()
        data = json.loads(text)
        if "\\ud" in text.lower():  # perhaps half a character, which could be written nowhere
            json.dumps(data, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    found = data.get("format") if isinstance(data, dict) else None
    if found == expected:
        return dict(data)
    kind = expected.partition("/")[0]
    if isinstance(found, str) and found.partition("/")[0] == kind:
        raise other(f"{found[:60]!r}", f"{expected!r}", where, PublishError)
    raise ValueError("no such document")


def other(found: str, expected: str, where: str, error: type[DiscreetError], do: str = AGAIN) -> DiscreetError:
    """The refusal of a version that this one does not read."""
    return error(f"is in format {found}, and this version of discreet reads {expected} alone", where=where, do=do)
