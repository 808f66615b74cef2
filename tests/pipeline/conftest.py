"""The small world of recoding is at hand in every test here."""

from support.recoding import measured_office, office, recoded_office

__all__ = ["measured_office", "office", "recoded_office"]
