"""Fixtures of the small recoding agency, for every test here."""

from support.recoding import measured_office, office, recoded_office

__all__ = ["measured_office", "office", "recoded_office"]
