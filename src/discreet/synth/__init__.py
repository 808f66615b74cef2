"""Synthetic agencies: invented people with the shapes, and the dirt, of real confidential files."""

from discreet.synth.writing import Graduates, graduates

__all__ = ["Graduates", "graduates"]
