"""Counts with discrete Laplace (two-sided geometric) noise, in dense or sparse form."""
