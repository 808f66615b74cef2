"""Earnings percentiles from histograms with discrete Laplace noise (PSEO)."""
