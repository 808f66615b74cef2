"""Controlled rounding: whole numbers that keep their margins."""
