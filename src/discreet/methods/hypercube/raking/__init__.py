"""Raking (iterative proportional fitting) of a cube to control totals."""
