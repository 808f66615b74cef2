"""How a tally is declared."""

from typing import Literal

from discreet.privacy.exact import Positive
from discreet.spec.base import TableSpec


class Tally(TableSpec):
    """Protected counts, as plain as can be."""

    method: Literal["tally"] = "tally"
    epsilon: Positive
