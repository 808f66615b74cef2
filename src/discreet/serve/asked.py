"""Questions as links: query parameters into a `Question`, and back.

`valueCodes[VARIABLE]=a,b` shows a variable, with these codes or with all (`*`); `where[VARIABLE]=a,b` limits everything
to these; `valueCodes[ContentsCode]=…` names measures; `codelist[VARIABLE]=TABLE_COARSER` shows the coarser one instead.
Each may be repeated, once for each code. A comma, a backslash or an asterisk of a code's own has a backslash before it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, quote

from discreet.errors import AskedWrongly
from discreet.serve.asking import Question, Table, Variable

CONTENTS = "ContentsCode"
ALL = "*"
MOST_PARAMETERS = 5_000
_KEY = re.compile(r"(valueCodes|where|codelist)\[(.+)\]", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PIECES = re.compile(r"(?:[^,\\]|\\.)*", re.DOTALL)
_Codes = tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """A question, and what else a link says, such as the format of the answer."""

    question: Question
    others: Mapping[str, str]


def asked(table: Table, query: bytes | str, others: Collection[str] = ()) -> Asked:
    """What a link asks of a table. Parameters that are neither of a question nor one of `others` are refused."""
    shown, limits, lists = dict[str, list[str]](), dict[str, list[str]](), dict[str, list[str]]()
    into = {"valueCodes": shown, "where": limits, "codelist": lists}
    found: dict[str, str] = {}
    for key, value in pairs(query):
        if key in others:
            if key in found:
                raise AskedWrongly("is there twice", where=key, do="name one value")
            found[key] = value
        elif match := _KEY.fullmatch(key):
            kind, name = match.groups()
            own = into[kind].setdefault(name, [])
            own += [value] if kind == "codelist" else _split(value, f"{kind}[{name[:40]}]")
        else:
            raise AskedWrongly(
                f"no parameter {key[:60]!r}",
                where="query",
                do="write valueCodes[VARIABLE]=code,code or where[VARIABLE]=code,code",
            )
    return Asked(question(table, shown, limits, lists), found)


def question(
    table: Table,
    shown: Mapping[str, Sequence[str]],
    limits: Mapping[str, Sequence[str]],
    lists: Mapping[str, Sequence[str]],
) -> Question:
    """Of codes as they were written: `*` is all of them, none leaves the variable out."""
    measures: _Codes = ()
    by = list[tuple[str, _Codes]]()
    for name, written in shown.items():
        codes = _codes(written, f"valueCodes[{name[:40]}]")
        if name == CONTENTS:
            measures = codes or ()
        elif codes is not None:
            by.append((_listed(table, name, lists), codes))
    if strange := next((name for name in lists if name not in shown), None):
        raise AskedWrongly(
            f"a code list of {strange[:40]!r}, which is not shown", where="codelist", do="choose codes of it"
        )
    named = ((name, _codes(written, f"where[{name[:40]}]")) for name, written in limits.items())
    return canonical(Question(tuple(by), tuple((name, codes) for name, codes in named if codes), measures))


def canonical(found: Question) -> Question:
    """With limits in order. What is shown keeps the order that it was asked for: the answer has it too."""
    where = sorted((name, tuple(sorted(codes))) for name, codes in found.where)
    return replace(found, where=tuple(where))


def link(found: Question, others: Iterable[tuple[str, str]] = ()) -> str:
    """The query part of the one link of a question."""
    found = canonical(found)
    named = [(f"valueCodes[{name}]", _joined(codes)) for name, codes in found.by]
    named += [(f"valueCodes[{CONTENTS}]", _joined(found.measures))] if found.measures else []
    named += [(f"where[{name}]", _joined(codes)) for name, codes in found.where]
    return "&".join(f"{quote(key, safe='')}={quote(value, safe='*,')}" for key, value in (*named, *others))


def codelist(table: Table, coarser: Variable) -> str:
    """The name of a coarser variable among all code lists."""
    return f"{table.about.id}_{coarser.id}"


def less(table: Table, found: Question, most: int) -> Question | None:
    """The same with less detail: coarser variables, or one fewer, until it fits in one answer."""
    by, where = dict(found.by), dict(found.where)
    known = {v.id: v for v in table.variables}
    while table.cells(Question(tuple(by.items()), tuple(where.items()), found.measures)) > most:
        if not by:
            return None
        largest = max(by, key=lambda name: len(by[name]) or len(known[name]))
        coarser = [v for v in table.variables if v.of == largest and v.id not in by and len(v) < len(known[largest])]
        if table.additive and coarser and not by[largest]:
            best = max(coarser, key=len)
            by = {(best.id if name == largest else name): codes for name, codes in by.items()}
            continue
        codes = by.pop(largest)
        if not table.additive:
            where[largest] = where.get(largest, codes or known[largest].codes)[:1]
        elif codes:
            where[largest] = tuple(code for code in codes if code in where.get(largest, codes))
    return canonical(Question(tuple(by.items()), tuple(where.items()), found.measures))


def pairs(query: bytes | str) -> list[tuple[str, str]]:
    """The parameters of a link, decoded."""
    try:
        text = query if isinstance(query, str) else query.decode("utf-8")
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except UnicodeDecodeError:
        raise AskedWrongly("is not UTF-8", where="query", do="percent-encode codes as UTF-8") from None
    except ValueError:
        raise AskedWrongly(
            f"has more than {MOST_PARAMETERS:,} parameters", where="query", do="separate codes by commas"
        ) from None


def _split(text: str, where: str) -> list[str]:
    """Codes between commas, still escaped."""
    if not text:
        return []
    found, start = list[str](), 0
    while True:
        piece = _PIECES.match(text, start)
        end = start if piece is None else piece.end()
        found.append(text[start:end])
        if end == len(text):
            break
        if text[end] != ",":
            raise AskedWrongly("ends in a single backslash", where=where, do="write two for a backslash")
        start = end + 1
    if not all(found):
        raise AskedWrongly("names an empty code", where=where, do="write codes between commas, or * for all")
    return found


def _codes(written: Sequence[str], where: str) -> _Codes | None:
    """Plain codes; () stands for all of them, None for not at all."""
    if not written:
        return None
    if ALL in written:
        if len(written) > 1:
            raise AskedWrongly("names all codes, and some", where=where, do="write * alone, or the codes")
        return ()
    return tuple(_ESCAPED.sub(r"\1", code) for code in written)


def _joined(codes: Sequence[str]) -> str:
    return ",".join(escaped(code) for code in codes) or ALL


def escaped(code: str) -> str:
    """As it is written in a link."""
    return "\\*" if code == ALL else code.replace("\\", "\\\\").replace(",", "\\,")


def _listed(table: Table, name: str, lists: Mapping[str, Sequence[str]]) -> str:
    """The variable itself, or the coarser one that a code list stands for."""
    if name not in lists:
        return name
    coarser = {codelist(table, v): v.id for v in table.variables if v.of == name}
    if len(lists[name]) != 1 or lists[name][0] not in coarser:
        known = ", ".join(coarser) or "none"
        raise AskedWrongly(f"no such code list of {name[:40]!r}", where="codelist", do=f"it has {known}")
    return coarser[lists[name][0]]
