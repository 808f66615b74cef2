"""Synthetic graduates, their programmes and earnings, like the input of PSEO."""
