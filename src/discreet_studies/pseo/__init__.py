"""Accuracy of PSEO percentiles and flows on synthetic graduates (PSEO Technical Appendices)."""
