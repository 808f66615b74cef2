"""Query strings: URL parameters into a `TableQuery`, and back.

`valueCodes[VARIABLE]=a,b` shows a variable, with these codes or with all (`*`); `where[VARIABLE]=a,b` limits all
numbers to these; `valueCodes[ContentsCode]=…` names measures; `codelist[VARIABLE]=TABLE_COARSER` shows the coarser
variable instead. Each may be repeated, once for each code. Codes may also be selected by the expressions `61*`, `?1`,
`top(n)`, `bottom(n)`, `range(a,b)`, `from(a)` and `to(b)`, in the order of the table; text that equals a code is that
code. In a code, a comma, a backslash, an asterisk, a question mark or the start of an expression is escaped by a
backslash.
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
MAX_PARAMETERS = 5_000
MAX_EXPRESSIONS = 50  # expressions of a variable
LAYOUT = ("placement", "heading", "stub")  # PxWeb's page layout, ignored: an answer has the order of the query
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


def parse_query(
    table: QueryableTable, query: bytes | str, names: Collection[str] = ()
) -> tuple[TableQuery, Mapping[str, str]]:
    """The query in a URL, and its other parameters, such as the format of the answer. Parameters that are neither part
    of a query nor listed in `names` are refused."""
    shown, limits, lists, values = (dict[str, list[str]]() for _ in range(4))
    into = {"valuecodes": shown, "where": limits, "codelist": lists, "outputvalues": values}
    known = {name.lower(): name for name in names}
    others: dict[str, str] = {}
    for key, value in pairs(query):
        small = key.lower()
        if small in known:
            if known[small] in others:
                raise InvalidQuery("is given twice", where=known[small], do="give one value")
            others[known[small]] = value
        elif match := _KEY.fullmatch(key):
            kind, name = match.group(1).lower(), match.group(2)
            own = into[kind].setdefault(name, [])
            verbatim = kind in ("codelist", "outputvalues")
            own += [value] if verbatim else _split(value, f"{match.group(1)}[{name[:40]}]")
        elif not _ignored(small, value):
            raise InvalidQuery(
                f"unknown parameter {key[:60]!r}",
                where="query",
                do="write valueCodes[VARIABLE]=code,code or where[VARIABLE]=code,code",
            )
    return build_query(table, shown, limits, lists, values), others


def _ignored(key: str, value: str) -> bool:
    """Whether this is a parameter of PxWeb that does not affect the answer."""
    if key == "outputvalues":
        is_single(value)
        return True
    if key != "outputformatparams":
        return key in LAYOUT
    names = {name.lower() for name in FORMAT_PARAMETERS}
    if any(one.strip().lower() not in names for one in value.split(",")):
        raise InvalidQuery("has an unknown value", where="outputFormatParams", do=f"use {', '.join(FORMAT_PARAMETERS)}")
    return True


def is_single(value: str) -> bool:
    """Whether the codes of a code list stand for the finer codes in them, rather than for their sums."""
    if value.lower() not in OUTPUT_VALUES:
        raise InvalidQuery("has an unknown value", where="outputValues", do=f"use {' or '.join(OUTPUT_VALUES)}")
    return value.lower() == "single"


def build_query(
    table: QueryableTable,
    shown: Mapping[str, Sequence[str]],
    limits: Mapping[str, Sequence[str]],
    lists: Mapping[str, Sequence[str]],
    values: Mapping[str, Sequence[str]] | None = None,
) -> TableQuery:
    """The query for codes as written: `*` is all codes of a variable; no codes omit the variable."""
    finer = {name for name, choices in (values or {}).items() if True in [is_single(one) for one in choices]}
    measures: _Codes = ()
    by = list[tuple[str, _Codes]]()
    for name, written in shown.items():
        own = _codelist_variable(table, name, lists)
        codes = _codes(table, own, written, f"valueCodes[{name[:40]}]")
        if name == CONTENTS:
            measures = codes or ()
        elif codes is not None:
            by.append((name, _finer_codes(table, own, codes)) if own != name and name in finer else (own, codes))
    if unknown := next((name for name in lists if name not in shown), None):
        raise InvalidQuery(
            f"a code list of {unknown[:40]!r}, which is not shown",
            where="codelist",
            do="add valueCodes for the variable",
        )
    named = ((name, _codes(table, name, written, f"where[{name[:40]}]")) for name, written in limits.items())
    return canonical(TableQuery(tuple(by), tuple((name, codes) for name, codes in named if codes), measures))


def canonical(query: TableQuery) -> TableQuery:
    """With limits sorted. Shown variables and codes keep their order, which is that of the answer."""
    where = sorted((name, tuple(sorted(codes))) for name, codes in query.where)
    return replace(query, where=tuple(where))


def link(query: TableQuery, others: Iterable[tuple[str, str]] = ()) -> str:
    """The canonical query string of a query."""
    query = canonical(query)
    named = [(f"valueCodes[{name}]", _code_list(codes)) for name, codes in query.by]
    named += [(f"valueCodes[{CONTENTS}]", _code_list(query.measures))] if query.measures else []
    named += [(f"where[{name}]", _code_list(codes)) for name, codes in query.where]
    return "&".join(f"{quote(key, safe='')}={quote(value, safe='*,')}" for key, value in (*named, *others))


def codelist_id(table: QueryableTable, coarser: TableVariable) -> str:
    """The identifier of a coarser variable among all code lists."""
    return f"{table.summary.id}_{coarser.id}"


def reduce_query(table: QueryableTable, query: TableQuery, most: int) -> TableQuery | None:
    """The query with less detail, by coarser or fewer variables, so that its answer is within the limit."""
    by, where = dict(query.by), dict(query.where)
    known = {v.id: v for v in table.variables}
    while table.cells(TableQuery(tuple(by.items()), tuple(where.items()), query.measures)) > most:
        if not by:
            return None
        largest = max(by, key=lambda name: len(by[name]) or len(known[name]))
        coarser = [v for v in table.variables if v.finer == largest and v.id not in by and len(v) < len(known[largest])]
        if table.additive and coarser and not by[largest]:
            best = max(coarser, key=len)
            by = {(best.id if name == largest else name): codes for name, codes in by.items()}
            continue
        codes = by.pop(largest)
        if not table.additive:
            where[largest] = where.get(largest, codes or known[largest].codes)[:1]
        elif codes:
            where[largest] = tuple(code for code in codes if code in where.get(largest, codes))
    return canonical(TableQuery(tuple(by.items()), tuple(where.items()), query.measures))


def describe_reduction(table: QueryableTable, query: TableQuery, smaller: TableQuery) -> str:
    """A description of what the reduced query leaves out."""
    before, after = dict(query.by), dict(smaller.by)
    limits, known = dict(smaller.where), {v.id: v for v in table.variables}
    words = list[str]()
    for name in (name for name in before if name not in after):
        coarser = next((other for other in after if known[other].finer == name), None)
        if coarser is not None:
            words.append(f"{coarser} instead of {name}")
        elif table.additive:
            words.append(f"summed over {name}" + (" (selected codes only)" if before[name] else ""))
        else:
            words.append(f"{name} limited to {limits[name][0][:40]}")
    return "; ".join(words)


def pairs(query: bytes | str) -> list[tuple[str, str]]:
    """The decoded parameters of a query string."""
    try:
        text = query if isinstance(query, str) else query.decode("utf-8")
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS)
    except UnicodeDecodeError:
        raise InvalidQuery("is not UTF-8", where="query", do="percent-encode codes as UTF-8") from None
    except ValueError:
        raise InvalidQuery(
            f"has more than {MAX_PARAMETERS:,} parameters", where="query", do="separate codes with commas"
        ) from None


def _split(text: str, where: str) -> list[str]:
    """Comma-separated codes, still escaped."""
    if not text:
        return []
    if not _WHOLE.fullmatch(text):
        raise InvalidQuery("ends in a single backslash", where=where, do="write two for a literal backslash")
    pieces = _PIECES.findall(text)
    if not all(pieces):
        raise InvalidQuery("contains an empty code", where=where, do="separate codes with commas, or write * for all")
    codes, joined = list[str](), False
    for one in pieces:  # the comma of range(a,b) is its own
        if codes and not joined and _OPEN.fullmatch(codes[-1]):
            codes[-1] += f",{one}"
            joined = True
        else:
            codes.append(one)
            joined = False
    return codes


def _codes(table: QueryableTable, name: str, written: Sequence[str], where: str) -> _Codes | None:
    """Unescaped codes; () stands for all codes, None for none."""
    if not written:
        return None
    if ALL in written:
        if len(written) > 1:
            raise InvalidQuery("mixes * with codes", where=where, do="write * alone, or list the codes")
        return ()
    choices = sum(_is_expression(text) for text in written)
    if not choices:
        return tuple(_unescape(text) for text in written)
    known = tuple(m.id for m in table.measures) if name == CONTENTS else variable(table, name, where).codes
    named = set(known)
    choices = sum(_is_expression(text) and _unescape(text) not in named for text in written)
    if choices > MAX_EXPRESSIONS:
        raise InvalidQuery(f"has more than {MAX_EXPRESSIONS} expressions", where=where, do="list the codes")
    codes, chosen = list[str](), set[str]()
    for text in written:
        if not _is_expression(text) or _unescape(text) in named:
            codes += [code for code in [_unescape(text)] if code not in chosen]
        else:
            fits = _matching_codes(text, known, where)
            chosen.update(fits)
            present = set(codes)
            codes += [code for code in fits if code not in present]
    return tuple(codes)


def _unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _is_expression(text: str) -> bool:
    """Whether this is an expression rather than a code."""
    return _function_call(text) is not None or bool({"*", "?"} & set(_ESCAPED.sub("", text)))


def _function_call(text: str) -> re.Match[str] | None:
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text  # PxWeb allows brackets around it
    return _CHOICE.fullmatch(inner)


def _matching_codes(text: str, known: Sequence[str], where: str) -> Sequence[str]:
    """The codes that match an expression, in the order of the table."""
    match = _function_call(text)
    if match is None:
        fits = re.compile(_pattern(text)).match
        matching: Sequence[str] = [code for code in known if fits(code)]
    else:
        kind, arguments = match.group(1).lower(), _split(match.group(2), where)
        matching = (
            _first_or_last(kind, arguments, known, where)
            if kind in ("top", "bottom")
            else _code_range(kind, arguments, known, where)
        )
    if not matching:
        raise InvalidQuery(f"no code matches {text[:40]!r}", where=where, do="see the codes in the table's metadata")
    return matching


def _pattern(text: str) -> str:
    """`*` is any text and `?` any character, unless escaped. Matching does not backtrack, so it takes linear time."""
    signs = ((own or "", other or "") for own, other in _SYMBOLS.findall(text))
    return translate(
        "".join(f"[{own}]" if own in ("*", "?", "[") else own or other.replace("[", "[[]") for own, other in signs)
    )


def _first_or_last(kind: str, arguments: Sequence[str], known: Sequence[str], where: str) -> Sequence[str]:
    if (
        len(arguments) not in (1, 2)
        or not all(_COUNT.fullmatch(one.strip()) for one in arguments)
        or int(arguments[0]) < 1
    ):
        raise InvalidQuery(
            f"{kind}() takes one or two numbers", where=where, do=f"write {kind}(3), or {kind}(3,1) to skip one"
        )
    many, passed = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    return (
        known[passed : passed + many]
        if kind == "top"
        else known[max(0, len(known) - passed - many) : max(0, len(known) - passed)]
    )


def _code_range(kind: str, arguments: Sequence[str], known: Sequence[str], where: str) -> Sequence[str]:
    count = 2 if kind == "range" else 1
    if len(arguments) != count:
        raise InvalidQuery(
            f"{kind}() takes {'two codes' if count == 2 else 'one code'}",
            where=where,
            do=f"write {kind}({'a,b'[: 2 * count - 1]})",
        )
    ends = [_unescape(one) for one in arguments]
    if unknown := next((code for code in ends if code not in known), None):
        raise InvalidQuery(f"unknown code {unknown[:40]!r}", where=where, do="see the codes in the table's metadata")
    first = 0 if kind == "to" else known.index(ends[0])
    return known[first : len(known) if kind == "from" else known.index(ends[-1]) + 1]


def _finer_codes(table: QueryableTable, coarser: str, codes: _Codes) -> _Codes:
    """The finer codes that belong to these codes of a coarser variable, or to any of them."""
    v = variable(table, coarser, "codelist")
    if unknown := next((code for code in codes if code not in v.codes), None):
        raise InvalidQuery(
            f"unknown code {unknown[:40]!r} of {coarser}", where="codelist", do="see the codes in the code list"
        )
    return members(variable(table, v.finer, "codelist"), v, {*codes} or v.codes)


def _code_list(codes: Sequence[str]) -> str:
    return ",".join(escape_code(code) for code in codes) or ALL


def escape_code(code: str) -> str:
    """A code as written in a query string."""
    text = re.sub(r"([\\,*?])", r"\\\1", code)
    return f"\\{text}" if _STARTS.match(text) else text


def _codelist_variable(table: QueryableTable, name: str, lists: Mapping[str, Sequence[str]]) -> str:
    """The variable itself, or the coarser one that the requested code list stands for."""
    if name not in lists:
        return name
    coarser = {codelist_id(table, v): v.id for v in table.variables if v.finer == name}
    if len(lists[name]) != 1 or lists[name][0] not in coarser:
        known = ", ".join(coarser) or "none"
        raise InvalidQuery(f"unknown code list of {name[:40]!r}", where="codelist", do=f"its code lists: {known}")
    return coarser[lists[name][0]]
