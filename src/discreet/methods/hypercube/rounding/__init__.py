"""Controlled rounding: non-negative integers that keep their margins."""
