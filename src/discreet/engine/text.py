"""Values as codes are written, the same on every engine."""

from __future__ import annotations

import ibis

WHOLE = 2.0**53  # beyond it a double no longer tells whole numbers apart


def missing(column: ibis.Value) -> ibis.Value:
    """Whether there is no value. Not a number is none: Ibis has it so on Spark already.

    It is told by its text. DuckDB decides `isnan` for a whole file at once from the least and the largest value that
    Parquet lists, which leave it out: then one other record would decide whether all such records count.
    """
    nothing = column.isnull()
    return nothing | column.cast("string").lower().isin(["nan", "-nan"]) if column.type().is_floating() else nothing


def as_text(column: ibis.Value, width: int | None = None) -> ibis.Value:
    """A value as its code is written, padded with zeros to `width`. SAS has no whole numbers: 1.0 is the code 1."""
    text = _plain_text(column)
    return text if width is None else (text.length() < width).ifelse(text.lpad(width, "0"), text)


def _plain_text(column: ibis.Value) -> ibis.Value:
    """Fractions and dates are codes where all engines write them alike, 64-bit ones from 0.001 to 10^7 and years 1 to
    9999; beyond, a value is no code."""
    if column.type().is_date():
        column = column.between(ibis.date(1, 1, 1), ibis.date(9999, 12, 31)).ifelse(column, ibis.null("date"))
    if not column.type().is_floating():
        return column.cast("string")
    column = missing(column).ifelse(ibis.null(column.type()), column)  # what follows must not meet it
    plain = (column.abs() >= 1e-3) & (column.abs() < 1e7) & ibis.literal(column.type().is_float64())
    whole = (column.abs() < WHOLE) & (column % 1.0 == 0.0)  # false for NaN and infinity, which no cast survives
    return whole.ifelse(
        whole.ifelse(column, 0.0).cast("int64").cast("string"),
        plain.ifelse(column, ibis.null(column.type())).cast("string"),
    )
