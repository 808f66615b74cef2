"""Iterative proportional fitting of non-negative cells to their margins."""
