"""What every part of a declaration has in common: unknown keys are refused, nothing is guessed."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from discreet.privacy.exact import written

ColumnName = Annotated[str, Field(min_length=1, max_length=200)]


class Strict(BaseModel):
    """Unknown keys are refused, with the nearest known one; values are what they look like. `needs` says what a missing
    key is for."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    needs: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for key in data:
                if key not in cls.model_fields:
                    text = unknown(str(key), [name for name in cls.model_fields if name != "base"])
                    raise PydanticCustomError("unknown_key", "{text}", {"text": text, "key": str(key)})
            for key, why in cls.needs.items():
                if key not in data:
                    raise ValueError(f"key {key!r} is missing: {why}")
        return data


def unknown(word: str, known: list[str], what: str = "key") -> str:
    """«unknown key 'epsilno'; did you mean 'epsilon'?»"""
    close = difflib.get_close_matches(word, known, 1, cutoff=0.6)
    return f"unknown {what} {word!r}; " + (f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}")


def within(least: Fraction | int, most: Fraction | int) -> Callable[[Fraction], Fraction]:
    """A validator: the number lies between these."""

    def check(number: Fraction) -> Fraction:
        if not least <= number <= most:
            raise ValueError(f"lies outside {written(Fraction(least))} … {written(Fraction(most))}")
        return number

    return check


def short(field: str, known: str) -> BeforeValidator:
    """`bins: pseo` for {standard: pseo}, `layout: lehd` for {kind: lehd}."""

    def expand(data: Any) -> Any:
        if isinstance(data, str) and data != known:
            raise ValueError(f"expected {known!r}, or keys and values; found {data!r}")
        return {field: data} if isinstance(data, str) else data

    return BeforeValidator(expand)
