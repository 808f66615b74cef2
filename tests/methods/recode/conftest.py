"""Fixtures of recoding for every test of this folder."""

from support.recoding import measured_office, office, recoded_office

__all__ = ["measured_office", "office", "recoded_office"]
