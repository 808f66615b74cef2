"""Accuracy of percentiles and flows of PSEO on invented graduates (000, 001)."""
