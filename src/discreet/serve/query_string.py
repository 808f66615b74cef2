"""Questions as links: query parameters into a `TableQuery`, and back.

`valueCodes[VARIABLE]=a,b` shows a variable, with these codes or with all (`*`); `where[VARIABLE]=a,b` limits everything
to these; `valueCodes[ContentsCode]=…` names measures; `codelist[VARIABLE]=TABLE_COARSER` shows the coarser one instead.
Each may be repeated, once for each code. Codes may also be chosen by `61*`, `?1`, `top(n)`, `bottom(n)`, `range(a,b)`,
`from(a)` and `to(b)`, in the order of the table; what is a code already is that code. A comma, a backslash, an
asterisk, a question mark or the start of such a choice that is a code's own has a backslash before it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import translate
from urllib.parse import parse_qsl, quote

from discreet.errors import InvalidQuery
from discreet.serve.query_model import QueryableTable, TableQuery, TableVariable, members, variable

CONTENTS = "ContentsCode"
ALL = "*"
MOST_PARAMETERS = 5_000
MOST_CHOICES = 50  # expressions of a variable
LAYOUT = ("placement", "heading", "stub")  # PxWeb's, of pages: an answer has the order that it was asked for
FORMAT_PARAMETERS = (
    "UseCodes",
    "UseTexts",
    "UseCodesAndTexts",
    "IncludeTitle",
    "SeparatorTab",
    "SeparatorSpace",
    "SeparatorSemicolon",
)
OUTPUT_VALUES = ("aggregated", "single")
_KEY = re.compile(r"(valueCodes|where|codelist|outputValues)\[(.+)\]", re.DOTALL | re.IGNORECASE)
_CHOICE = re.compile(r"(top|bottom|range|from|to)\((.*)\)", re.DOTALL | re.IGNORECASE)
_STARTS = re.compile(r"\[?(?:top|bottom|range|from|to)\(", re.IGNORECASE)
_OPEN = re.compile(r"\[?(?:top|bottom|range|from|to)\((?:[^()\\]|\\.)*", re.DOTALL | re.IGNORECASE)
_COUNT = re.compile(r"[0-9]{1,9}")
_SYMBOLS = re.compile(r"\\(.)|(.)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PIECES = re.compile(r"(?:^|,)((?:[^,\\]|\\.)*)", re.DOTALL)
_WHOLE = re.compile(r"(?:[^\\]|\\.)*", re.DOTALL)
_Codes = tuple[str, ...]


def asked(
    table: QueryableTable, query: bytes | str, others: Collection[str] = ()
) -> tuple[TableQuery, Mapping[str, str]]:
    """What a link asks of a table, and what else it says, such as the format of the answer. Parameters that are neither
    of a question nor one of `others` are refused."""
    shown, limits, lists, values = (dict[str, list[str]]() for _ in range(4))
    into = {"valuecodes": shown, "where": limits, "codelist": lists, "outputvalues": values}
    known = {name.lower(): name for name in others}
    found: dict[str, str] = {}
    for key, value in pairs(query):
        small = key.lower()
        if small in known:
            if known[small] in found:
                raise InvalidQuery("is there twice", where=known[small], do="name one value")
            found[known[small]] = value
        elif match := _KEY.fullmatch(key):
            kind, name = match.group(1).lower(), match.group(2)
            own = into[kind].setdefault(name, [])
            whole = kind in ("codelist", "outputvalues")
            own += [value] if whole else _split(value, f"{match.group(1)}[{name[:40]}]")
        elif not _ignored(small, value):
            raise InvalidQuery(
                f"no parameter {key[:60]!r}",
                where="query",
                do="write valueCodes[VARIABLE]=code,code or where[VARIABLE]=code,code",
            )
    return question(table, shown, limits, lists, values), found


def _ignored(key: str, value: str) -> bool:
    """Whether PxWeb has this parameter and an answer does not depend on it."""
    if key == "outputvalues":
        single(value)
        return True
    if key != "outputformatparams":
        return key in LAYOUT
    names = {name.lower() for name in FORMAT_PARAMETERS}
    if any(one.strip().lower() not in names for one in value.split(",")):
        raise InvalidQuery("is not known", where="outputFormatParams", do=f"there are {', '.join(FORMAT_PARAMETERS)}")
    return True


def single(value: str) -> bool:
    """Whether the codes of a code list stand for the finer ones in them, rather than for their sums."""
    if value.lower() not in OUTPUT_VALUES:
        raise InvalidQuery("is not known", where="outputValues", do=f"there are {', '.join(OUTPUT_VALUES)}")
    return value.lower() == "single"


def question(
    table: QueryableTable,
    shown: Mapping[str, Sequence[str]],
    limits: Mapping[str, Sequence[str]],
    lists: Mapping[str, Sequence[str]],
    values: Mapping[str, Sequence[str]] | None = None,
) -> TableQuery:
    """Of codes as they were written: `*` is all of them, none leaves the variable out."""
    finer = {name for name, said in (values or {}).items() if True in [single(one) for one in said]}
    measures: _Codes = ()
    by = list[tuple[str, _Codes]]()
    for name, written in shown.items():
        own = _listed(table, name, lists)
        codes = _codes(table, own, written, f"valueCodes[{name[:40]}]")
        if name == CONTENTS:
            measures = codes or ()
        elif codes is not None:
            by.append((name, _within(table, own, codes)) if own != name and name in finer else (own, codes))
    if strange := next((name for name in lists if name not in shown), None):
        raise InvalidQuery(
            f"a code list of {strange[:40]!r}, which is not shown", where="codelist", do="choose codes of it"
        )
    named = ((name, _codes(table, name, written, f"where[{name[:40]}]")) for name, written in limits.items())
    return canonical(TableQuery(tuple(by), tuple((name, codes) for name, codes in named if codes), measures))


def canonical(found: TableQuery) -> TableQuery:
    """With limits in order. What is shown keeps the order that it was asked for: the answer has it too."""
    where = sorted((name, tuple(sorted(codes))) for name, codes in found.where)
    return replace(found, where=tuple(where))


def link(found: TableQuery, others: Iterable[tuple[str, str]] = ()) -> str:
    """The query part of the one link of a question."""
    found = canonical(found)
    named = [(f"valueCodes[{name}]", _joined(codes)) for name, codes in found.by]
    named += [(f"valueCodes[{CONTENTS}]", _joined(found.measures))] if found.measures else []
    named += [(f"where[{name}]", _joined(codes)) for name, codes in found.where]
    return "&".join(f"{quote(key, safe='')}={quote(value, safe='*,')}" for key, value in (*named, *others))


def codelist(table: QueryableTable, coarser: TableVariable) -> str:
    """The name of a coarser variable among all code lists."""
    return f"{table.about.id}_{coarser.id}"


def less(table: QueryableTable, found: TableQuery, most: int) -> TableQuery | None:
    """The same with less detail: coarser variables, or one fewer, until it fits in one answer."""
    by, where = dict(found.by), dict(found.where)
    known = {v.id: v for v in table.variables}
    while table.cells(TableQuery(tuple(by.items()), tuple(where.items()), found.measures)) > most:
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
    return canonical(TableQuery(tuple(by.items()), tuple(where.items()), found.measures))


def told(table: QueryableTable, found: TableQuery, smaller: TableQuery) -> str:
    """What a question with less detail has left out, in words."""
    before, after = dict(found.by), dict(smaller.by)
    limits, known = dict(smaller.where), {v.id: v for v in table.variables}
    words = list[str]()
    for name in (name for name in before if name not in after):
        coarser = next((other for other in after if known[other].of == name), None)
        if coarser is not None:
            words.append(f"{coarser} instead of {name}")
        elif table.additive:
            words.append(f"{name} added up" + (", over the codes that you chose" if before[name] else ""))
        else:
            words.append(f"{name} limited to {limits[name][0][:40]}")
    return "; ".join(words)


def pairs(query: bytes | str) -> list[tuple[str, str]]:
    """The parameters of a link, decoded."""
    try:
        text = query if isinstance(query, str) else query.decode("utf-8")
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except UnicodeDecodeError:
        raise InvalidQuery("is not UTF-8", where="query", do="percent-encode codes as UTF-8") from None
    except ValueError:
        raise InvalidQuery(
            f"has more than {MOST_PARAMETERS:,} parameters", where="query", do="separate codes by commas"
        ) from None


def _split(text: str, where: str) -> list[str]:
    """Codes between commas, still escaped."""
    if not text:
        return []
    if not _WHOLE.fullmatch(text):
        raise InvalidQuery("ends in a single backslash", where=where, do="write two for a backslash")
    found = _PIECES.findall(text)
    if not all(found):
        raise InvalidQuery("names an empty code", where=where, do="write codes between commas, or * for all")
    whole, joined = list[str](), False
    for one in found:  # the comma of range(a,b) is its own
        if whole and not joined and _OPEN.fullmatch(whole[-1]):
            whole[-1] += f",{one}"
            joined = True
        else:
            whole.append(one)
            joined = False
    return whole


def _codes(table: QueryableTable, name: str, written: Sequence[str], where: str) -> _Codes | None:
    """Plain codes; () stands for all of them, None for not at all."""
    if not written:
        return None
    if ALL in written:
        if len(written) > 1:
            raise InvalidQuery("names all codes, and some", where=where, do="write * alone, or the codes")
        return ()
    choices = sum(_chooses(text) for text in written)
    if not choices:
        return tuple(_plain(text) for text in written)
    known = tuple(m.id for m in table.measures) if name == CONTENTS else variable(table, name, where).codes
    named = set(known)
    choices = sum(_chooses(text) and _plain(text) not in named for text in written)
    if choices > MOST_CHOICES:
        raise InvalidQuery(f"has more than {MOST_CHOICES} expressions", where=where, do="name the codes")
    found, chosen = list[str](), set[str]()
    for text in written:
        if not _chooses(text) or _plain(text) in named:
            found += [code for code in [_plain(text)] if code not in chosen]
        else:
            fits = _fitting(text, known, where)
            chosen.update(fits)
            there = set(found)
            found += [code for code in fits if code not in there]
    return tuple(found)


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _chooses(text: str) -> bool:
    """Whether it is an expression, not a code."""
    return _choice(text) is not None or bool({"*", "?"} & set(_ESCAPED.sub("", text)))


def _choice(text: str) -> re.Match[str] | None:
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text  # PxWeb allows brackets around it
    return _CHOICE.fullmatch(inner)


def _fitting(text: str, known: Sequence[str], where: str) -> Sequence[str]:
    """The codes that an expression chooses, in their order."""
    match = _choice(text)
    if match is None:
        fits = re.compile(_pattern(text)).match
        found: Sequence[str] = [code for code in known if fits(code)]
    else:
        kind, said = match.group(1).lower(), _split(match.group(2), where)
        found = _counted(kind, said, known, where) if kind in ("top", "bottom") else _between(kind, said, known, where)
    if not found:
        raise InvalidQuery(f"no code fits {text[:40]!r}", where=where, do="the metadata of the table has all codes")
    return found


def _pattern(text: str) -> str:
    """`*` is any text and `?` any character, unless it is escaped. Matching does not go back: it takes no long time."""
    signs = ((own or "", other or "") for own, other in _SYMBOLS.findall(text))
    return translate(
        "".join(f"[{own}]" if own in ("*", "?", "[") else own or other.replace("[", "[[]") for own, other in signs)
    )


def _counted(kind: str, said: Sequence[str], known: Sequence[str], where: str) -> Sequence[str]:
    if len(said) not in (1, 2) or not all(_COUNT.fullmatch(one.strip()) for one in said) or int(said[0]) < 1:
        raise InvalidQuery(f"{kind} counts codes", where=where, do=f"write {kind}(3), or {kind}(3,1) to pass over one")
    many, passed = int(said[0]), int(said[1]) if len(said) > 1 else 0
    return (
        known[passed : passed + many]
        if kind == "top"
        else known[max(0, len(known) - passed - many) : max(0, len(known) - passed)]
    )


def _between(kind: str, said: Sequence[str], known: Sequence[str], where: str) -> Sequence[str]:
    wanted = 2 if kind == "range" else 1
    if len(said) != wanted:
        raise InvalidQuery(
            f"{kind} names {'two codes' if wanted == 2 else 'one code'}",
            where=where,
            do=f"write {kind}({'a,b'[: 2 * wanted - 1]})",
        )
    ends = [_plain(one) for one in said]
    if strange := next((code for code in ends if code not in known), None):
        raise InvalidQuery(f"no code {strange[:40]!r}", where=where, do="the metadata of the table has all codes")
    first = 0 if kind == "to" else known.index(ends[0])
    return known[first : len(known) if kind == "from" else known.index(ends[-1]) + 1]


def _within(table: QueryableTable, coarser: str, codes: _Codes) -> _Codes:
    """The finer codes in these of a coarser variable, or in all."""
    v = variable(table, coarser, "codelist")
    if strange := next((code for code in codes if code not in v.codes), None):
        raise InvalidQuery(f"no code {strange[:40]!r} of {coarser}", where="codelist", do="the code list has all codes")
    return members(variable(table, v.of, "codelist"), v, {*codes} or v.codes)


def _joined(codes: Sequence[str]) -> str:
    return ",".join(escaped(code) for code in codes) or ALL


def escaped(code: str) -> str:
    """As it is written in a link."""
    text = re.sub(r"([\\,*?])", r"\\\1", code)
    return f"\\{text}" if _STARTS.match(text) else text


def _listed(table: QueryableTable, name: str, lists: Mapping[str, Sequence[str]]) -> str:
    """The variable itself, or the coarser one that a code list stands for."""
    if name not in lists:
        return name
    coarser = {codelist(table, v): v.id for v in table.variables if v.of == name}
    if len(lists[name]) != 1 or lists[name][0] not in coarser:
        known = ", ".join(coarser) or "none"
        raise InvalidQuery(f"no such code list of {name[:40]!r}", where="codelist", do=f"it has {known}")
    return coarser[lists[name][0]]
