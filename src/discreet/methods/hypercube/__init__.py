"""A full cross-tabulation that is perturbed once and calibrated; every query adds up its cells (Li & Krenzke 2020)."""
