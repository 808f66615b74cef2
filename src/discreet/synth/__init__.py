"""Synthetic agencies: confidential files of synthetic people, with the distributions and data errors of real ones.

An agency is a folder with confidential Parquet files and, in `public`, the code lists that its releases declare. All
of it is simulated from seeds and rounded public weights; no real record is involved.
"""

from discreet.synth.education.files import Graduates, graduates

__all__ = ["Graduates", "graduates"]
