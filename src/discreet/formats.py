"""Format identifiers of every file that is read back. Another version is refused, never partly understood."""

from __future__ import annotations

import json
from typing import Any

from discreet.errors import DiscreetError, PublishError

SPEC = 1  # release.yaml
LEDGER = 3
MEMORY = "discreet-ledger-memory/1"  # the seen entries of a ledger, in a key store
MANIFEST = "discreet-manifest/2"
CODEBOOK = "discreet-codebook/1"
MEASUREMENTS = "discreet-measurements/1"
MODEL = "discreet-cube/1"
COMPARATOR = "discreet-comparator/1"  # outputs for comparison only, which are no release
AGAIN = "produce it again with this version, or read it with the version that wrote it"


def parsed(content: bytes, expected: str, where: str) -> dict[str, Any]:
    """A JSON document of the expected format. Another version of the format is refused by name; anything else is a
    ValueError."""
    try:
        text = content.decode()
        data = json.loads(text)
        if "\\ud" in text.lower():  # perhaps a lone surrogate, which cannot be encoded
            json.dumps(data, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    name = data.get("format") if isinstance(data, dict) else None
    if name == expected:
        return dict(data)
    kind = expected.partition("/")[0]
    if isinstance(name, str) and name.partition("/")[0] == kind:
        raise other(f"{name[:60]!r}", f"{expected!r}", where, PublishError)
    raise ValueError("no such document")


def other(actual: str, expected: str, where: str, error: type[DiscreetError], do: str = AGAIN) -> DiscreetError:
    """The refusal of a format version that this version of discreet does not read."""
    return error(f"is in format {actual}, and this version of discreet reads {expected} alone", where=where, do=do)
