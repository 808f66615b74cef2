"""Synthetic agencies: invented people with the shapes, and the dirt, of real confidential files."""

from discreet.synth.education.files import Graduates, graduates

__all__ = ["Graduates", "graduates"]
