"""Exact parameters: texts are parsed exactly, and a float is refused."""

import decimal
import subprocess
import sys
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, ctx, fmpq
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from discreet.errors import ParameterError
from discreet.privacy.exact import Exact, Positive, exp_above, format_exact, parse_exact
from support.hypothesis_profile import examples

properties = examples(60)


fractions = st.fractions(-(10**9), 10**9, max_denominator=10**9)


@properties
@given(fractions)
def test_written_and_exact_are_inverse(number: Fraction) -> None:
    assert parse_exact(format_exact(number)) == number


@properties
@given(st.decimals(-(10**6), 10**6, places=12))
def test_a_decimal_stays_a_decimal(number: decimal.Decimal) -> None:
    text = format_exact(Fraction(number))
    assert "/" not in text
    assert "e" not in text.lower()
    assert Fraction(text) == Fraction(number)


@properties
@given(fractions)
def test_written_is_a_decimal_exactly_when_a_short_one_exists(number: Fraction) -> None:
    assert ("/" not in format_exact(number)) == (10**12 % number.denominator == 0)


@properties
@given(st.integers(-(10**40), 10**40), st.integers(1, 10**40))
@example(10**30 + 1, 1)
@example(10**37 + 1, 10**12)
@example(-(10**29) - 7, 1)
def test_written_is_exact_for_any_size(numerator: int, denominator: int) -> None:
    number = Fraction(numerator, denominator)
    assert Fraction(format_exact(number)) == number


def test_written_does_not_depend_on_the_callers_decimal_context() -> None:
    with decimal.localcontext() as context:
        context.prec = 5
        assert format_exact(Fraction("1.12345678")) == "1.12345678"


@pytest.mark.parametrize("value", [0, 3, "3", "1.5", "3/2", "1e-3", ".5", " 2 ", "-1/3", Fraction(2, 7)])
def test_exact_numbers_are_taken_as_written(value: Any) -> None:
    assert parse_exact(value) == Fraction(value)


@pytest.mark.parametrize(
    "value",
    [0.1, 1.0, float("nan"), float("inf"), True, False, None, [], {}, b"1", decimal.Decimal("1.5"), 1j],
)
def test_inexact_and_foreign_types_are_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="exact number") as caught:
        parse_exact(value, "tables[0].epsilon")
    assert caught.value.where == "tables[0].epsilon"
    assert '"3/2"' in caught.value.do


def test_a_float_is_called_a_float() -> None:
    with pytest.raises(ParameterError, match="a float"):
        parse_exact(0.1)


@pytest.mark.parametrize(
    "text", ["", "one", "nan", "inf", "-Infinity", "1/0", "0/0", "1,5", "1/2/3", "0x10", "1.5/2", "--1"]
)
def test_text_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="exact number"):
        parse_exact(text)


class Parameters(BaseModel):
    any: Exact
    above: Positive


@properties
@given(fractions, fractions.filter(lambda x: x > 0))
def test_models_carry_exact_numbers_through_json(one: Fraction, two: Fraction) -> None:
    model = Parameters(any=one, above=two)
    assert Parameters.model_validate_json(model.model_dump_json()) == model
    assert model.model_dump(mode="json") == {"any": format_exact(one), "above": format_exact(two)}


@pytest.mark.parametrize(
    ("json", "says"),
    [
        ('{"any": 0.5, "above": "1"}', "a float"),
        ('{"any": "1", "above": "0"}', "above 0"),
        ('{"any": "1", "above": "-1/3"}', "-1/3"),
        ('{"any": true, "above": "1"}', "a bool"),
        ('{"any": "x", "above": "1"}', "'x'"),
    ],
)
def test_models_refuse_inexact_json(json: str, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Parameters.model_validate_json(json)


@properties
@given(st.fractions(0, 1000, max_denominator=10**12))
def test_exp_above_is_above_and_tight(number: Fraction) -> None:
    before, ctx.prec = ctx.prec, 2000
    try:
        truth = arb(fmpq(number.numerator, number.denominator)).exp()
        above = exp_above(number)
        bound = arb(fmpq(above.numerator, above.denominator))
        assert bound >= truth
        assert bound <= truth * (1 + arb(10) ** -34)
    finally:
        ctx.prec = before


@properties
@given(st.fractions(0, 50), st.fractions(0, 50))
def test_exp_above_is_nowhere_far_from_monotone(one: Fraction, two: Fraction) -> None:
    low, high = sorted((one, two))
    assert exp_above(low) <= exp_above(high) * (1 + Fraction(1, 10**35))


def test_exp_above_does_not_depend_on_the_callers_decimal_context() -> None:
    with decimal.localcontext() as context:
        context.prec, context.rounding = 3, decimal.ROUND_FLOOR
        context.traps[decimal.Inexact] = True
        assert exp_above(Fraction(1, 3)) == exp_above(Fraction(1, 3))
    assert float(exp_above(Fraction(1))) == pytest.approx(2.718281828459045, rel=1e-15)


def test_a_giant_exponent_is_refused_at_once() -> None:
    code = """if True:
        from discreet.privacy.exact import parse_exact
        for text in ("1e999999999", "1e-999999999", "-1E+999999999"):
            try:
                parse_exact(text)
            except Exception as error:
                print(type(error).__name__)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=3, check=True)
    assert done.stdout.split() == ["ParameterError"] * 3


def test_a_number_too_long_to_write_is_refused_when_read() -> None:
    with pytest.raises(ParameterError):
        parse_exact("1e-5000")


@examples(30)
@given(st.text(max_size=12))
def test_any_text_is_a_number_or_a_refusal(text: str) -> None:
    if "e" in text.lower():
        return  # exponents have a test of their own
    try:
        number = parse_exact(text)
    except ParameterError:
        return
    assert Fraction(text) == number
