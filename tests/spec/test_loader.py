"""release.yaml: every error is one line that names what, where and what to do."""

import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from discreet.errors import SpecError
from discreet.spec import Release
from discreet.spec.loader import load, parse
from support.hypothesis_profile import examples

TEXT = """\
release: r
asset: a
source: {g: x.parquet}
unit:
  person: pid
  max_records: 2
domains:
  d:
    values: ["01", "02"]
tables:
  - name: t
    method: counts
    by: [d]
    epsilon: "1.5"
"""


def changed(old: str, new: str) -> str:
    assert TEXT.count(old) == 1
    return TEXT.replace(old, new)


def refused(text: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        parse(text)
    assert "\n" not in str(caught.value)
    assert "pydantic" not in str(caught.value)
    return caught.value


def test_the_example_is_read() -> None:
    assert isinstance(parse(TEXT), Release)


@pytest.mark.parametrize(
    ("old", "new", "line", "path", "says"),
    [
        ('epsilon: "1.5"', "epsilon: 1.5", 14, "tables[0].epsilon", "a float"),
        ('epsilon: "1.5"', 'epsilon: "0"', 14, "tables[0].epsilon", "above 0"),
        ('epsilon: "1.5"', "epsilon: much", 14, "tables[0].epsilon", "'much'"),
        ('epsilon: "1.5"', "epsilon: 2020-01-01", 14, "tables[0].epsilon", "'2020-01-01'"),
        ('epsilon: "1.5"', "epsilon: 1:30", 14, "tables[0].epsilon", "'1:30'"),
        ('"01", "02"', "10, 02", 9, "domains.d.values[0]", "quote it"),
        ('"01", "02"', '"01", true', 9, "domains.d.values[1]", "quote it"),
        ("by: [d]", "by: d", 13, "tables[0].by", "expected a list"),
        ("method: counts", "method: count", 11, "tables[0]", "did you mean 'counts'"),
        ("by: [d]", "bye: [d]", 13, "tables[0].bye", "did you mean 'by'"),
        ("asset: a", "asset: [a]", 2, "asset", "found a list"),
        ("asset: a", "asset:", 2, "asset", "found nothing"),
        ("release: r", "release: a/b", 1, "release", "letters, digits"),
        ("person: pid", "persons: pid\n  person: pid", 4, "unit", "did you mean 'person'"),
        ("{g: x.parquet}", "x.parquet", 3, "source", "expected keys and values"),
        ("{g: x.parquet}", "{g: {path: 5}}", 3, "source.g.path", "expected text"),
    ],
)
def test_the_line_and_the_path_are_named(old: str, new: str, line: int, path: str, says: str) -> None:
    error = refused(changed(old, new))
    assert error.where == f"release.yaml, line {line}, {path}"
    assert says in error.what


def test_the_line_of_a_bad_max_records_is_its_own() -> None:
    assert refused(changed("max_records: 2", "max_records: 0")).where == "release.yaml, line 6, unit.max_records"


def test_the_line_of_an_unknown_key_is_its_own() -> None:
    assert refused(f"{TEXT}ledgr: x\n").where == "release.yaml, line 15, ledgr"


def test_yaml_has_no_surprises() -> None:
    """Version 1.1 reads NO as false, 01 as one, 010 as eight: here they are what they look like."""
    release = parse(changed('"01", "02"', "NO, 01, 1_0, 2020-01-01, off"))
    assert release.attributes["d"].categories == (("NO",), ("01",), ("1_0",), ("2020-01-01",), ("off",))
    assert parse(changed('epsilon: "1.5"', "epsilon: 010")).tables[0].epsilon == 10


def test_a_missing_key_is_named() -> None:
    error = refused(changed("asset: a\n", ""))
    assert error.what == "key 'asset' is missing"
    error = refused(changed('    epsilon: "1.5"\n', ""))
    assert (error.what, error.where) == ("key 'epsilon' is missing", "release.yaml, line 11, tables[0]")


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        (TEXT + "asset: b\n", 15, "asset"),
        (TEXT + '    epsilon: "9"\n', 15, "epsilon"),
        (changed("{g: x.parquet}", "{g: x.parquet, g: y.parquet}"), 3, "g"),
        (changed("  person: pid", '  person: pid\n  "person": pid2'), 6, "person"),
    ],
)
def test_a_key_that_stands_twice_is_refused(text: str, line: int, key: str) -> None:
    error = refused(text)
    assert error.what == f"duplicate key {key!r}"
    assert error.where == f"release.yaml, line {line}"
    assert error.do


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: b: c", 1),
        ("a: [1, 2", 1),
        ("a:\n\t- b", 2),
        ("a: b\n---\nc: d", 2),
        ("a: !!python/object/apply:os.system [ls]", 1),
        ('a: "\\q"', 1),
        ("a: 'open", 1),
        ("%YAML 9.9\n---\na: b", 1),
        ("a: @b", 1),
    ],
)
def test_what_is_not_yaml_is_refused_with_its_line(text: str, line: int) -> None:
    error = refused(text)
    assert "is not YAML" in error.what
    assert error.where == f"release.yaml, line {line}"


@pytest.mark.parametrize("text", ["", "# nothing", "- a", "just words", "5", "null", "2020-01-01"])
def test_what_has_no_keys_is_refused(text: str) -> None:
    error = refused(text)
    assert error.what == "expected keys and values"
    assert error.do


@pytest.mark.parametrize(
    "text",
    ["a: \0", "[" * 1500, "{a: " * 700, "a: " + "1" * 5000, "a: 2020-13-45", "a: &a [*a]", "a: *nowhere", "- " * 1500],
)
def test_hostile_text_is_refused(text: str) -> None:
    assert refused(text).where.startswith("release.yaml")


def test_deep_nesting_inside_a_field_is_refused() -> None:
    assert (
        "unit" in refused(TEXT.replace("unit:\n  person: pid\n  max_records: 2", "unit: " + "[" * 90 + "]" * 90)).where
    )


@pytest.mark.parametrize("escape", [r"\UFFFFFFFF", r"\U00110000", r"\x", r"\q"])
def test_an_escape_that_is_no_character_is_refused(escape: str) -> None:
    assert "is not YAML" in refused(f'release: "{escape}"').what


def test_deep_nesting_is_refused_at_once() -> None:
    began = time.process_time()
    for text in (f"{TEXT}x: {'[' * 100_000}", "{a: " * 100_000, "- " * 100_000, "? " * 100_000):
        assert "nested too deeply" in refused(text).what
    assert time.process_time() - began < 2


@pytest.mark.parametrize("key", ["release", "epsilon", "method", "max_records", "values", "tables"])
@pytest.mark.parametrize("half", [r"\uD800", r"\uDC00\uD800"])
def test_lone_surrogates_are_refused_anywhere(key: str, half: str) -> None:
    refused(re.sub(rf"\b{key}:.*", lambda _: f'{key}: "{half}"', TEXT))


@pytest.mark.parametrize("key", ["1", "null", "true", "2020-01-01"])
def test_keys_that_are_no_text_are_refused(key: str) -> None:
    assert "unknown key" in refused(f"{TEXT}{key}: x\n").what


@pytest.mark.parametrize("text", ["? [a]\n: b", "? {a: b}\n: c", "{[a, b]: c}"])
def test_complex_keys_are_refused(text: str) -> None:
    refused(text)


@pytest.mark.parametrize("value", ["!!timestamp soon", "!!bool perhaps", '!!int ""', '!!float ""'])
def test_wrongly_tagged_values_are_refused(value: str) -> None:
    refused(f"a: {value}")


@pytest.mark.parametrize("key", ["ep{x}", "{}", "{0}", "a}b", "{key!r}"])
def test_braces_in_a_key_are_repeated_as_they_are(key: str) -> None:
    assert key in refused(f'{TEXT}"{key}": 1\n').what


def test_a_billion_laughs_are_refused_at_once() -> None:
    lines = ['a0: &a0 ["x"]', *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10))]
    code = (
        "import sys\nfrom discreet.errors import SpecError\nfrom discreet.spec.loader import parse\n"
        "try: parse(sys.argv[1])\nexcept SpecError as e: print('refused')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "\n".join(lines)], capture_output=True, text=True, timeout=3, check=True
    )
    assert done.stdout.strip() == "refused"


@examples(100)
@given(st.text(st.sampled_from("ab:-[]{}\"'#\n ,.1|>"), max_size=40))
@example("1{:")
@example("? [a]\n: b")
def test_any_text_is_a_release_or_a_refusal(text: str) -> None:
    with suppress(SpecError):
        parse(text)


MANGLE: dict[str, Callable[[str], list[str]]] = {
    "drop": lambda line: [],
    "cut": lambda line: [line[: len(line) // 2]],
    "double": lambda line: [line, line],
    "indent": lambda line: [f"   {line}"],
    "empty": lambda line: [f"{line.partition(':')[0]}:"],
}


def test_any_mangled_line_is_a_release_or_a_refusal() -> None:
    refusals = 0
    for i, line in enumerate(TEXT.splitlines()):
        for mangle in MANGLE.values():
            lines = TEXT.splitlines()
            lines[i : i + 1] = mangle(line)
            try:
                parse("\n".join(lines))
            except SpecError:
                refusals += 1
    assert refusals > 50


# --- files --------------------------------------------------------------------------------------------------------


def test_load_remembers_where_the_file_lies(tmp_path: Path) -> None:
    (tmp_path / "release.yaml").write_text(TEXT)
    assert load(tmp_path / "release.yaml").base == tmp_path
    assert load(str(tmp_path / "release.yaml")) == parse(TEXT, base=tmp_path)


def test_a_byte_order_mark_is_no_part_of_the_release(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(TEXT, encoding="utf-8-sig")
    assert load(tmp_path / "r.yaml").release == "r"


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x89PNG\r\n\x1a\n", "a: b".encode("utf-16")])
def test_files_that_are_no_text_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r.yaml").write_bytes(content)
    with pytest.raises(SpecError) as caught:
        load(tmp_path / "r.yaml")
    assert "r.yaml" in caught.value.where


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="does not exist"):
        load(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="cannot be read"):
        load(tmp_path)


def test_the_file_is_named_in_its_errors(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(changed('"1.5"', "1.5"))
    with pytest.raises(SpecError) as caught:
        load(tmp_path / "other.yaml")
    assert caught.value.where == "other.yaml, line 14, tables[0].epsilon"
