"""Which tables have the words that somebody looks for."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from discreet.serve.query_model import QueryableTable


def matches(table: QueryableTable, text: str) -> bool:
    """Whether all words are somewhere in its title, variables, labels of codes, measures or notes."""
    key: Any = table  # hashed as the object that it is
    words = text.casefold().split()
    return not words or all(word in _said(key) for word in words)


@lru_cache(maxsize=1_000)
def _said(table: QueryableTable) -> str:
    about = table.about
    texts = [about.id, about.title, about.release, *about.notes]
    for v in table.variables:
        texts += [v.id, v.label, *v.labels]
    for measure in table.measures:
        texts += [measure.id, measure.label, measure.meaning]
    return "\n".join(texts).casefold()
