"""Comparators without a guarantee, or with a different one: noise infusion, per-record zCDP."""
