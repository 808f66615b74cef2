"""The small world of recoding is at hand in every test here."""

from recoders import measured_office, office, recoded_office

__all__ = ["measured_office", "office", "recoded_office"]
