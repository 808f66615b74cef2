"""Percentiles of earnings from noisy histograms (000, 001)."""
